//! The tiers without a namespace: the leader is the warden's own child, and orphans come to it (or, at the weakest tier,
//! do not). Owns the reaping while the command runs; the end is the sweep's.

use std::os::fd::{AsFd, BorrowedFd};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::{Pid, getpid},
};

use super::{
    super::{
        LeaderStatus,
        protocol::{GoneReport, Stage},
        sys::{self, Found},
    },
    children::OwnChildren,
    gate::{Gate, GateMaker},
    leader::{Launch, errno},
    sweep::{MOST_REAPED_AT_ONCE, Round, Sweep},
    tree::{News, Tree},
};

/// The leader and what comes of it.
pub(super) struct Descendants {
    leader: i32,
    leader_ended: bool,
    /// Orphans come to us.
    subreaper: bool,
    children: OwnChildren,
    gate: Option<Gate>,
    sweep: Option<Sweep>,
}

impl Descendants {
    /// Forks the leader.
    pub(super) fn start(mut launch: Launch, subreaper: bool) -> Result<Descendants, (Stage, i32)> {
        let warden = getpid();
        let leader =
            sys::fork(|| launch.become_leader(warden, || Ok(()))).map_err(|error| (Stage::Fork, errno(&error)))?;
        Ok(Descendants::of(leader, subreaper))
    }

    /// Forks the leader behind a gate.
    pub(super) fn start_gated(mut launch: Launch) -> Result<Descendants, (Stage, i32)> {
        let warden = getpid();
        let (maker, coming) = GateMaker::new().map_err(|error| (Stage::Gate, errno(&error)))?;
        let leader = sys::fork(|| launch.become_leader(warden, || maker.make()))
            .map_err(|error| (Stage::Fork, errno(&error)))?;
        drop((launch, maker));
        // When it does not come, the leader failed before and has reported that.
        Ok(Descendants { gate: coming.take(), ..Descendants::of(leader, true) })
    }

    /// A leader that is a child of this process already.
    pub(super) fn of(leader: i32, subreaper: bool) -> Descendants {
        let children = OwnChildren::new();
        Descendants { leader, leader_ended: false, subreaper, children, gate: None, sweep: None }
    }

    /// Reaps what came to us and ended, and notices the leader's end without reaping it.
    fn reap_until_leader_ends(&mut self) -> News {
        for _ in 0..MOST_REAPED_AT_ONCE {
            match sys::peek() {
                Ok(Found::Ended(ended)) if ended.pid == self.leader => {
                    self.leader_ended = true;
                    return News::LeaderEnded(ended.status);
                }
                Ok(Found::Ended(ended)) => drop(sys::reap(ended.pid)),
                Ok(Found::NoneEnded) | Err(_) => return News::Nothing,
                Ok(Found::NoChild) => return News::Nobody,
            }
        }
        // Their signals were already taken.
        News::More
    }

    /// Reaps others than the leader.
    fn reap_beside_leader(&mut self) -> News {
        // Without the subreaper the others are not our children; the host tells when their pipes are closed.
        if !self.subreaper {
            return News::Nothing;
        }
        let Ok(children) = self.children.list() else { return News::Nothing };
        let mut others = false;
        for pid in children.into_iter().filter(|&pid| pid != self.leader).take(MOST_REAPED_AT_ONCE) {
            others |= !matches!(sys::reap(pid), Ok(Found::Ended(_)));
        }
        if others { News::Nothing } else { News::Alone }
    }
}

impl Tree for Descendants {
    fn also(&self) -> Option<BorrowedFd<'_>> {
        self.gate.as_ref().map(AsFd::as_fd)
    }

    fn attend(&mut self) -> bool {
        if self.gate.as_ref().is_some_and(|gate| !gate.serve()) {
            self.gate = None;
        }
        true
    }

    fn look(&mut self) -> News {
        if self.leader_ended { self.reap_beside_leader() } else { self.reap_until_leader_ends() }
    }

    fn term(&mut self) {
        if !self.leader_ended {
            // Unreaped, so the group is the leader's. Fails only when nobody in it can be signalled; KILL follows.
            let _ = killpg(Pid::from_raw(self.leader), Signal::SIGTERM);
            let _ = killpg(Pid::from_raw(self.leader), Signal::SIGCONT);
        }
    }

    fn round(&mut self, _: bool) -> Round {
        // From here on every fork behind the gate fails.
        self.gate = None;
        self.sweep.get_or_insert_with(|| Sweep::new(OwnChildren::new(), Some(self.leader))).round()
    }

    fn leader_status(&self) -> Option<LeaderStatus> {
        self.sweep.as_ref().and_then(Sweep::leader_status)
    }

    fn report(&mut self, proven: bool) -> GoneReport {
        let report = self.sweep.as_mut().map(|sweep| sweep.report(proven)).unwrap_or_default();
        // Without the subreaper nobody comes to us, so having no child proves nothing.
        GoneReport { confirmed: proven && self.subreaper, ..report }
    }
}
