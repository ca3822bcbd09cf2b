//! Requests to end a run, in its record: each of them once, when it comes.

use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::{Interrupts, Recorder, Urgency};
use crate::journal::Event;

/// What was recorded of the requests of one run.
pub(super) struct Requests {
    interrupts: Arc<Interrupts>,
    recorder: Arc<dyn Recorder>,
    recorded: Mutex<Option<Urgency>>,
}

impl Requests {
    pub(super) fn new(interrupts: Arc<Interrupts>, recorder: Arc<dyn Recorder>) -> Arc<Requests> {
        Arc::new(Requests { interrupts, recorder, recorded: Mutex::new(None) })
    }

    /// Records what comes, for as long as it is polled.
    pub(super) async fn follow(self: Arc<Requests>) {
        loop {
            let known = *self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            self.interrupts.beyond(known).await;
            self.record_pending();
        }
    }

    /// Records the request in force, unless it was recorded already.
    pub(super) fn record_pending(&self) {
        let Some(request) = self.interrupts.pending() else { return };
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded.is_some_and(|recorded| recorded >= request.urgency) {
            return;
        }
        *recorded = Some(request.urgency);
        let event = Event::Interrupted { by: request.by, how: request.urgency.words().to_owned() };
        if let Err(error) = self.recorder.record("", &event, false) {
            // The run ends all the same, and finds out about its record by itself.
            tracing::warn!(%error, "a request to end could not be recorded");
        }
    }
}
