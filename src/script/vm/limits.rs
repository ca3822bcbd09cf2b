//! What bounds a script: instructions between effects, the order to end, and the clock of the watchdog.
//!
//! Guarantees that once an end is ordered, every Lua function on the stack fails, whatever the script does to catch it.

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::script::error::{ErrorKind, Place, Raised, ScriptError};

/// Instructions between two looks at the limits.
pub(super) const STRIDE: u32 = 1_000;

/// Shared by the VM's thread and its handles.
#[derive(Debug)]
pub(in crate::script) struct Limits {
    budget: i64,
    left: AtomicI64,
    end: Mutex<Option<Raised>>,
    /// True when `end` holds something: read often, without the lock.
    ended: AtomicUsize,
    /// Milliseconds since `born` when Lua was entered, plus one; 0 while it waits or sleeps.
    busy: AtomicU64,
    born: Instant,
    stuck_after: Duration,
    stuck_grace: Duration,
    /// Jobs that are under way.
    pub(super) jobs: AtomicUsize,
    /// Calls that wait end when this is cancelled.
    pub(in crate::script) cancel: CancellationToken,
}

impl Limits {
    pub(super) fn new(budget: u64, stuck_after: Duration, stuck_grace: Duration) -> Limits {
        let budget = i64::try_from(budget).unwrap_or(i64::MAX);
        Limits {
            budget,
            left: AtomicI64::new(budget),
            end: Mutex::new(None),
            ended: AtomicUsize::new(0),
            busy: AtomicU64::new(0),
            born: Instant::now(),
            stuck_after,
            stuck_grace,
            jobs: AtomicUsize::new(0),
            cancel: CancellationToken::new(),
        }
    }

    /// A new budget of instructions: after an effect, and before the host asks something.
    pub(in crate::script) fn refill(&self) {
        self.left.store(self.budget, Ordering::Relaxed);
    }

    /// From the hook. `place` is asked for only when the script must end.
    pub(super) fn tick(&self, place: impl FnOnce() -> Option<Place>) -> Result<(), Raised> {
        if self.ended.load(Ordering::Relaxed) == 0 {
            if self.left.fetch_sub(i64::from(STRIDE), Ordering::Relaxed) > i64::from(STRIDE) {
                return Ok(());
            }
            let message = format!(
                "the script ran {} instructions without waiting for anything: is there an endless loop?",
                self.budget
            );
            self.order_end(Raised::new(ErrorKind::Budget, place(), message));
        }
        self.check()
    }

    /// Fails when an end is ordered.
    pub(in crate::script) fn check(&self) -> Result<(), Raised> {
        if self.ended.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        match &*self.end.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(end) => Err(end.clone()),
            None => Ok(()),
        }
    }

    /// Orders the end; the first order holds.
    pub(in crate::script) fn order_end(&self, end: Raised) {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(end);
        self.ended.store(1, Ordering::Relaxed);
    }

    pub(in crate::script) fn cancelled() -> Raised {
        Raised::new(ErrorKind::Cancelled, None, "cancelled")
    }

    /// A used-up budget ends one job, not the VM: the next one starts with a new budget.
    pub(super) fn begin(&self) {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        if end.as_ref().is_some_and(|end| end.kind == ErrorKind::Budget) && self.jobs.load(Ordering::Relaxed) == 0 {
            *end = None;
            self.ended.store(0, Ordering::Relaxed);
        }
        drop(end);
        self.refill();
    }

    pub(super) fn enter(&self) {
        let now = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1;
        self.busy.store(now, Ordering::Relaxed);
    }

    pub(super) fn leave(&self) {
        self.busy.store(0, Ordering::Relaxed);
    }

    fn busy_for(&self) -> Duration {
        match self.busy.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => self.born.elapsed().saturating_sub(Duration::from_millis(since - 1)),
        }
    }

    /// Asked by whoever waits for the VM. Orders the end of Lua that has not come back for long, and gives it up after
    /// that: only a C function without a hook, like a pattern match, gets so far.
    pub(super) fn watch(&self) -> Result<(), ScriptError> {
        let busy = self.busy_for();
        if busy < self.stuck_after {
            return Ok(());
        }
        let seconds = self.stuck_after.as_secs_f64();
        let message = format!("the script ran for {seconds} seconds without waiting for anything");
        self.order_end(Raised::new(ErrorKind::Stuck, None, message));
        if busy < self.stuck_after + self.stuck_grace {
            return Ok(());
        }
        Err(stuck())
    }
}

pub(super) fn stuck() -> ScriptError {
    ScriptError::new(
        ErrorKind::Stuck,
        "the script is stuck inside one Lua function and cannot be stopped; most likely a pattern in string.find, match, \
         gmatch or gsub that backtracks over a long text: use a simpler pattern, or cut the text first",
    )
}
