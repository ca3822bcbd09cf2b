//! Awake time and suspended time. Owns the two clocks that budgets are measured with; knows nothing of budgets.
//!
//! The monotonic clock stands still while the machine is suspended and is never set back, the boot-time clock counts
//! the suspension too. Their difference is the time that a closed lid took, which is charged to nobody.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// One moment on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// `CLOCK_MONOTONIC`: time awake since boot.
    pub awake: Duration,
    /// `CLOCK_BOOTTIME`: all time since boot.
    pub boot: Duration,
}

/// What passed between two stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Elapsed {
    /// Time that the machine was awake.
    pub awake: Duration,
    /// Time that the machine was suspended. Differences below 50 ms are reading noise and count as zero.
    pub suspended: Duration,
}

const NOISE: Duration = Duration::from_millis(50);

impl Stamp {
    /// Reads both clocks.
    pub fn now() -> Stamp {
        let awake = clock_gettime(ClockId::Monotonic);
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let boot = clock_gettime(ClockId::Boottime);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let boot = awake;
        Stamp { awake: to_duration(awake), boot: to_duration(boot) }
    }

    /// What passed since `earlier`; a clock that seems to have gone backwards counts as no time at all.
    pub fn since(self, earlier: Stamp) -> Elapsed {
        let awake = self.awake.saturating_sub(earlier.awake);
        let suspended = self.boot.saturating_sub(earlier.boot).saturating_sub(awake);
        Elapsed { awake, suspended: if suspended < NOISE { Duration::ZERO } else { suspended } }
    }
}

fn to_duration(t: Timespec) -> Duration {
    Duration::new(t.tv_sec.max(0) as u64, t.tv_nsec.clamp(0, 999_999_999) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(awake: u64, boot: u64) -> Stamp {
        Stamp { awake: Duration::from_secs(awake), boot: Duration::from_secs(boot) }
    }

    #[test]
    fn a_closed_lid_is_suspended_time_and_not_awake_time() {
        let e = at(101, 100 + 8 * 3600).since(at(100, 100));
        assert_eq!(e.awake, Duration::from_secs(1));
        assert_eq!(e.suspended, Duration::from_secs(8 * 3600 - 1));
    }

    #[test]
    fn time_never_runs_backwards() {
        assert_eq!(at(5, 5).since(at(10, 10)), Elapsed::default());
    }

    #[test]
    fn an_hour_awake_is_an_hour() {
        let e = at(3700, 3700).since(at(100, 100));
        assert_eq!((e.awake.as_secs(), e.suspended), (3600, Duration::ZERO));
    }

    #[test]
    fn the_real_clocks_advance() {
        let a = Stamp::now();
        assert!(a.awake > Duration::ZERO);
        assert!(Stamp::now().since(a).awake < Duration::from_secs(60));
    }
}
