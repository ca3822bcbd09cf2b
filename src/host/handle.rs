//! A run that is under way, from outside.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use super::error::HostError;
use crate::engine::{Interrupts, Request, Urgency};
use crate::journal::{Event, RunEnded, RunId};
use crate::mechanism::process::Processes;
use crate::policy::Reason;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Its id.
    pub run: RunId,
    /// Folder with its record.
    pub folder: PathBuf,
    /// Checkpoint of the tree as found.
    pub start: String,
    /// Its last record.
    pub ended: RunEnded,
}

/// Ends a run from anywhere; cheap to clone.
#[derive(Clone)]
pub struct Canceller {
    pub(super) interrupts: Arc<Interrupts>,
    pub(super) processes: Arc<OnceLock<Processes>>,
}

impl Canceller {
    pub(super) fn new() -> Canceller {
        Canceller { interrupts: Arc::new(Interrupts::new()), processes: Arc::default() }
    }

    /// Kills every process of the run now, and lets it start no more: for leaving at once. Blocks until all of them are
    /// gone, or the deadline has passed; returns how many commands could not be confirmed gone. The run itself then ends
    /// on its own; should the program leave before, the next run puts the open iteration back.
    pub fn kill_all(&self, deadline: Duration) -> usize {
        self.processes.get().map_or(0, |processes| processes.kill_all_blocking(deadline))
    }

    /// Asks for an end; stronger requests replace weaker ones, never the other way round.
    pub fn ask(&self, urgency: Urgency, reason: Reason, by: &str, signal: Option<i32>) -> Request {
        self.interrupts.ask(Request { urgency, reason, by: by.to_owned(), signal })
    }
}

/// A run: a future of its [`Outcome`], with a stream of its events. Dropping it does not end the run.
pub struct RunHandle {
    pub(super) task: JoinHandle<Result<Outcome, HostError>>,
    pub(super) canceller: Canceller,
    pub(super) events: broadcast::Receiver<Arc<Event>>,
}

impl RunHandle {
    /// What ends it from elsewhere.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Ends it: the open iteration is aborted and rolled back. Await the handle to know when that is done.
    pub fn cancel(&self) {
        self.canceller.ask(Urgency::Now, Reason::Interrupted, "cancelled", None);
    }

    /// Its events from now on. A reader that falls more than 1,024 events behind is told how many it missed.
    pub fn events(&self) -> broadcast::Receiver<Arc<Event>> {
        self.events.resubscribe()
    }

    /// The next event since the handle was made; `None` after the last one.
    pub async fn next_event(&mut self) -> Option<Arc<Event>> {
        loop {
            match self.events.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

impl Future for RunHandle {
    type Output = Result<Outcome, HostError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(context).map(|joined| match joined {
            Ok(result) => result,
            Err(error) => Err(HostError::Died(error.to_string())),
        })
    }
}
