//! Two clocks: the wall's, for people, and the awake one, for budgets.
//!
//! A closed lid is charged to nobody: budgets count `CLOCK_MONOTONIC`, which stands still while the machine sleeps;
//! the boot clock, which goes on, tells how long it slept. A wall clock that is set back changes no budget.

use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;

/// Where time comes from: the journal's two clocks, and how long the machine slept.
pub trait Clock: crate::journal::Clock {
    /// Time that the machine slept since that moment; never goes back.
    fn asleep(&self) -> Duration;
}

/// The machine's own clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    fn read(id: nix::time::ClockId) -> Duration {
        nix::time::clock_gettime(id).map(Duration::from).unwrap_or_default()
    }
}

impl crate::journal::Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        Timestamp::now()
    }

    fn awake(&self) -> Duration {
        SystemClock::read(nix::time::ClockId::CLOCK_MONOTONIC)
    }
}

impl Clock for SystemClock {
    #[cfg(target_os = "linux")]
    fn asleep(&self) -> Duration {
        // Read in this order the difference is never too small by what passes between the two.
        let awake = SystemClock::read(nix::time::ClockId::CLOCK_MONOTONIC);
        SystemClock::read(nix::time::ClockId::CLOCK_BOOTTIME).saturating_sub(awake)
    }

    #[cfg(not(target_os = "linux"))]
    fn asleep(&self) -> Duration {
        Duration::ZERO
    }
}

/// A clock that moves only when told to: for simulations and tests.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<(Timestamp, Duration, Duration)>,
}

impl ManualClock {
    /// Starts at this time of day.
    pub fn at(wall: Timestamp) -> ManualClock {
        ManualClock { state: Mutex::new((wall, Duration::ZERO, Duration::ZERO)) }
    }

    /// Awake time passes.
    pub fn advance(&self, by: Duration) {
        let mut state = self.lock();
        state.0 += jiff::SignedDuration::try_from(by).unwrap_or(jiff::SignedDuration::MAX);
        state.1 += by;
    }

    /// The machine sleeps.
    pub fn sleep(&self, by: Duration) {
        let mut state = self.lock();
        state.0 += jiff::SignedDuration::try_from(by).unwrap_or(jiff::SignedDuration::MAX);
        state.2 += by;
    }

    /// Somebody sets the time of day.
    pub fn set_wall(&self, wall: Timestamp) {
        self.lock().0 = wall;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Timestamp, Duration, Duration)> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl crate::journal::Clock for ManualClock {
    fn wall(&self) -> Timestamp {
        self.lock().0
    }

    fn awake(&self) -> Duration {
        self.lock().1
    }
}

impl Clock for ManualClock {
    fn asleep(&self) -> Duration {
        self.lock().2
    }
}
