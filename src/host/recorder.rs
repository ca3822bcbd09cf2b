//! The journal as the engine's recorder, with everybody who listens.

use std::sync::Arc;

use tokio::sync::broadcast;

use super::builder::Listener;
use crate::engine::{RecordError, Recorder};
use crate::journal::{Event, Journal, JournalError};

/// Writes first, tells afterwards.
pub(super) struct JournalRecorder {
    pub(super) journal: Journal,
    pub(super) listeners: Vec<Listener>,
    pub(super) events: broadcast::Sender<Arc<Event>>,
}

fn record_error(error: JournalError) -> RecordError {
    if error.is_disk_full() { RecordError::DiskFull(error.to_string()) } else { RecordError::Other(error.to_string()) }
}

impl Recorder for JournalRecorder {
    fn record(&self, path: &str, event: &Event, durable: bool) -> Result<(), RecordError> {
        let written = if durable { self.journal.append_durable(path, event) } else { self.journal.append(path, event) };
        written.map_err(record_error)?;
        for listener in &self.listeners {
            listener(event);
        }
        // Nobody listening is no error.
        let _ = self.events.send(Arc::new(event.clone()));
        Ok(())
    }

    fn blob(&self, bytes: &[u8]) -> Result<String, RecordError> {
        self.journal.blob(bytes).map_err(record_error)
    }
}
