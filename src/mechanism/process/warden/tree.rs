//! The command's processes as the warden's main loop sees them. Owns the seam between that loop and the tiers; each tier
//! is in a module of its own.

use std::os::fd::BorrowedFd;

use super::{
    super::{LeaderStatus, protocol::GoneReport},
    sweep::Round,
};

/// What a look at the processes found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing to act on.
    Nothing,
    /// There may be more; look again soon, after a look at the socket.
    More,
    /// The leader ended (and stays unreaped). Told once.
    LeaderEnded(LeaderStatus),
    /// The leader ended before, and nobody else is seen.
    Alone,
    /// There is no process at all.
    Nobody,
}

/// One command's processes, as a tier holds them.
pub(super) trait Tree {
    /// What to wait for beside the socket and the ends of children.
    fn also(&self) -> Option<BorrowedFd<'_>>;

    /// Answers what [`also`](Tree::also) gave, which became readable; true when nothing else is to be done about it.
    /// Never waits.
    fn attend(&mut self) -> bool;

    /// Looks who ended, reaps whom it may. Never waits.
    fn look(&mut self) -> News;

    /// TERM to the leader's group, and CONT so that a stopped one hears it. Not after the leader's end.
    fn term(&mut self);

    /// One round of the sweep; the first one begins it. `hurry`: nobody is left who would read the names.
    fn round(&mut self, hurry: bool) -> Round;

    /// How the leader ended, if that came out during the sweep.
    fn leader_status(&self) -> Option<LeaderStatus>;

    /// The report of the sweep so far; `proven`: there is no child any more.
    fn report(&mut self, proven: bool) -> GoneReport;
}
