//! Why a command is over, from what is known about it. Pure.

use super::{Ending, LeaderStatus, TimeoutKind};

/// Why it was told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Budget(TimeoutKind),
    FinalWord,
    Cancelled,
}

/// The verdict. `leader`: how it ended, and whether it had been told to.
pub(super) fn ending(leader: Option<(LeaderStatus, bool)>, cause: Option<Cause>, lost: bool) -> Ending {
    let by_itself = |status| match status {
        LeaderStatus::Exited(code) => Ending::Exited(code),
        LeaderStatus::Signaled(signal) => Ending::Signaled(signal),
    };
    match (leader, cause) {
        (Some((status, false)), _) if !lost => by_itself(status),
        (_, Some(Cause::Budget(kind))) => Ending::TimedOut(kind),
        (_, Some(Cause::FinalWord)) => Ending::FinishedAsAsked,
        (_, Some(Cause::Cancelled)) => Ending::Cancelled,
        _ => Ending::WardenLost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: LeaderStatus = LeaderStatus::Exited(0);

    #[test]
    fn an_end_by_itself_counts_even_when_a_budget_ran_out_at_the_same_moment() {
        let cause = Some(Cause::Budget(TimeoutKind::Wall));
        assert_eq!(ending(Some((DONE, false)), cause, false), Ending::Exited(0));
        assert_eq!(ending(Some((LeaderStatus::Signaled(9), false)), None, false), Ending::Signaled(9));
    }

    #[test]
    fn an_exit_of_0_after_term_is_still_a_timeout() {
        let cause = Some(Cause::Budget(TimeoutKind::Silence));
        assert_eq!(ending(Some((DONE, true)), cause, false), Ending::TimedOut(TimeoutKind::Silence));
        assert_eq!(ending(None, Some(Cause::Cancelled), false), Ending::Cancelled);
        assert_eq!(ending(Some((DONE, true)), Some(Cause::FinalWord), false), Ending::FinishedAsAsked);
    }

    #[test]
    fn a_lost_warden_is_no_exit() {
        assert_eq!(ending(Some((DONE, false)), None, true), Ending::WardenLost);
        assert_eq!(ending(None, None, false), Ending::WardenLost);
        assert_eq!(ending(Some((LeaderStatus::Signaled(9), true)), None, false), Ending::WardenLost);
    }
}
