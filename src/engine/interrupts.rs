//! Requests to end a run, from signals, the stop command, the kill switch and embedders.
//!
//! Owns how far a request goes: after this iteration, now, or at once. Must not know where it came from.
//! Guarantees that a request is never weakened, and that `now` reaches running processes without the script's consent.

use std::sync::Mutex;

use tokio_util::sync::CancellationToken;

use crate::policy::Reason;

/// How soon a run is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// When the current iteration has ended.
    AfterIteration,
    /// The current iteration is aborted and rolled back.
    Now,
    /// Nothing is waited for; what is open is rolled back by whoever comes next.
    AtOnce,
}

impl Urgency {
    /// The words of the journal.
    pub fn words(self) -> &'static str {
        match self {
            Urgency::AfterIteration => "after this iteration",
            Urgency::Now => "now",
            Urgency::AtOnce => "at once",
        }
    }
}

/// A request to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// How soon.
    pub urgency: Urgency,
    /// `Interrupted` for signals and cancellation, `Killed` for the kill switch and the stop command.
    pub reason: Reason,
    /// Who asked, for people.
    pub by: String,
    /// The signal, where it was one.
    pub signal: Option<i32>,
}

/// The place where requests arrive; shared by everybody who may ask.
#[derive(Debug, Default)]
pub struct Interrupts {
    request: Mutex<Option<Request>>,
    now: CancellationToken,
    noticed: tokio::sync::Notify,
}

impl Interrupts {
    /// Nobody has asked yet.
    pub fn new() -> Interrupts {
        Interrupts::default()
    }

    /// Asks for an end. A weaker request than the one in force changes nothing; returns the one in force.
    pub fn ask(&self, request: Request) -> Request {
        let mut slot = self.request.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let stronger = slot.as_ref().is_none_or(|old| request.urgency > old.urgency);
        if stronger {
            // The first reason stays: a second Ctrl-C does not make it another one.
            let reason = slot.as_ref().map_or(request.reason, |old| old.reason);
            let signal = slot.as_ref().and_then(|old| old.signal).or(request.signal);
            *slot = Some(Request { reason, signal, ..request });
        }
        let in_force = slot.clone();
        drop(slot);
        if in_force.as_ref().is_some_and(|request| request.urgency >= Urgency::Now) {
            self.now.cancel();
        }
        self.noticed.notify_waiters();
        in_force.unwrap_or(Request {
            urgency: Urgency::AfterIteration,
            reason: Reason::Interrupted,
            by: String::new(),
            signal: None,
        })
    }

    /// The request in force.
    pub fn pending(&self) -> Option<Request> {
        self.request.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Fires when the current iteration is to be aborted. Hand it to everything that takes time.
    pub fn now(&self) -> &CancellationToken {
        &self.now
    }

    /// Returns when a request arrives, or at once when there is one.
    pub async fn any(&self) {
        self.beyond(None).await;
    }

    /// Returns when a request is in force that is stronger than `known`, or any request when nothing is known yet.
    pub async fn beyond(&self, known: Option<Urgency>) -> Request {
        loop {
            let noticed = self.noticed.notified();
            tokio::pin!(noticed);
            noticed.as_mut().enable();
            match self.pending() {
                Some(request) if known.is_none_or(|known| request.urgency > known) => return request,
                _ => noticed.await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(urgency: Urgency, signal: i32) -> Request {
        Request { urgency, reason: Reason::Interrupted, by: "signal".into(), signal: Some(signal) }
    }

    #[test]
    fn requests_grow_and_never_weaken() {
        let interrupts = Interrupts::new();
        assert_eq!(interrupts.pending(), None);
        interrupts.ask(request(Urgency::AfterIteration, 2));
        assert!(!interrupts.now().is_cancelled());
        interrupts.ask(request(Urgency::Now, 15));
        assert!(interrupts.now().is_cancelled());
        interrupts.ask(request(Urgency::AfterIteration, 1));
        let pending = interrupts.pending().expect("asked");
        assert_eq!((pending.urgency, pending.signal), (Urgency::Now, Some(2)), "the first signal names the exit");
    }
}
