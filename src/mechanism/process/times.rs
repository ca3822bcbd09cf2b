//! When what is due for one command: budgets, patience with the warden, the end of reading. Knows no process.
//!
//! All of it is time awake (the runtime's clock is the monotonic one), so a suspended machine uses up no budget.

use std::time::Duration;

use tokio::time::Instant;

use super::Command;

/// How long a warden may take to report the start on a machine that is busy.
const START_BOUND: Duration = Duration::from_secs(60);
/// How often the warden is woken, should the command have stopped it.
pub(super) const WAKE_EVERY: Duration = Duration::from_secs(2);

/// When what is due.
pub(super) struct Times {
    pub wall_at: Instant,
    pub silence: Option<Duration>,
    pub heard_at: Instant,
    pub finish_at: Option<Instant>,
    /// The warden should have said something by then.
    pub give_up_at: Option<Instant>,
    pub linger_at: Option<Instant>,
    pub wake_at: Instant,
}

/// Far enough for any wait.
pub(super) fn after(now: Instant, duration: Duration) -> Instant {
    now.checked_add(duration).unwrap_or(now + Duration::from_secs(u32::MAX.into()))
}

impl Times {
    pub(super) fn new(command: &Command) -> Times {
        let now = Instant::now();
        Times {
            wall_at: after(now, command.wall),
            silence: command.silence,
            heard_at: now,
            finish_at: None,
            give_up_at: Some(now + START_BOUND),
            linger_at: None,
            wake_at: now + WAKE_EVERY,
        }
    }

    pub(super) fn silence_at(&self) -> Option<Instant> {
        self.silence.map(|silence| after(self.heard_at, silence))
    }

    pub(super) fn next(&self, budgets_count: bool) -> Instant {
        let budgets = [Some(self.wall_at), self.silence_at(), self.finish_at].into_iter().flatten();
        let always = [Some(self.wake_at), self.give_up_at, self.linger_at].into_iter().flatten();
        always.chain(budgets.filter(|_| budgets_count)).min().unwrap_or(self.wake_at)
    }
}
