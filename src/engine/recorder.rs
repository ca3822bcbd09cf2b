//! Where a run's events go: a journal, a list in memory, and whoever listens.

use std::sync::{Arc, Mutex};

use crate::journal::Event;

/// A record that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// No room left.
    #[error("the disk is full: {0}")]
    DiskFull(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Takes events in order. Implemented by journals, by lists for tests, and by nobody else's hidden state.
pub trait Recorder: Send + Sync {
    /// Adds an event of the loop at `path`; `durable` waits until it is on the disk.
    fn record(&self, path: &str, event: &Event, durable: bool) -> Result<(), RecordError>;
    /// Keeps bytes; returns their name.
    fn blob(&self, bytes: &[u8]) -> Result<String, RecordError>;
}

/// A recorder that keeps everything in memory, for simulations and tests.
#[derive(Debug, Default)]
pub struct MemoryRecorder {
    events: Mutex<Vec<Event>>,
    blobs: Mutex<Vec<Vec<u8>>>,
}

impl MemoryRecorder {
    /// An empty one.
    pub fn new() -> Arc<MemoryRecorder> {
        Arc::new(MemoryRecorder::default())
    }

    /// All events so far.
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// A blob by its name.
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        let blobs = self.blobs.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        name.strip_prefix("blob-").and_then(|n| n.parse::<usize>().ok()).and_then(|n| blobs.get(n).cloned())
    }
}

impl Recorder for MemoryRecorder {
    fn record(&self, _path: &str, event: &Event, _durable: bool) -> Result<(), RecordError> {
        self.events.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(event.clone());
        Ok(())
    }

    fn blob(&self, bytes: &[u8]) -> Result<String, RecordError> {
        let mut blobs = self.blobs.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        blobs.push(bytes.to_vec());
        Ok(format!("blob-{}", blobs.len() - 1))
    }
}

type Listener = Box<dyn Fn(&Event) + Send + Sync>;

/// Hands events to a recorder and then to listeners.
pub struct Announcer {
    recorder: Arc<dyn Recorder>,
    listeners: Vec<Listener>,
}

impl Announcer {
    /// Events go to the recorder first: nobody hears of what is not written.
    pub fn new(recorder: Arc<dyn Recorder>, listeners: Vec<Listener>) -> Announcer {
        Announcer { recorder, listeners }
    }
}

impl Recorder for Announcer {
    fn record(&self, path: &str, event: &Event, durable: bool) -> Result<(), RecordError> {
        self.recorder.record(path, event, durable)?;
        for listener in &self.listeners {
            listener(event);
        }
        Ok(())
    }

    fn blob(&self, bytes: &[u8]) -> Result<String, RecordError> {
        self.recorder.blob(bytes)
    }
}
