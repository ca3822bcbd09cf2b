//! How `lunation stop` reaches a run: a small file in the state folder, never a signal, since only our own descendants
//! are ever signalled.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::{Interrupts, Request, Urgency};
use crate::policy::Reason;

/// How often a run looks.
const LOOKS: Duration = Duration::from_millis(200);

/// A request to stop, addressed to one run; an empty id is addressed to nobody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequest {
    /// Id of the run.
    pub run: String,
    /// True: abort the open iteration and roll it back. False: end after it.
    pub now: bool,
}

fn file(state: &Path) -> PathBuf {
    state.join("stop.json")
}

/// Asks the run that holds this state folder to stop.
///
/// # Errors
/// When the request cannot be written.
pub fn ask_to_stop(state: &Path, request: &StopRequest) -> io::Result<()> {
    let text = serde_json::to_vec(request)?;
    let staged = tempfile::NamedTempFile::new_in(state)?;
    std::fs::write(staged.path(), text)?;
    staged.persist(file(state))?;
    Ok(())
}

/// Forgets a request that an earlier run left.
pub(super) fn clear(state: &Path) -> io::Result<()> {
    match std::fs::remove_file(file(state)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Hands a request for `run` to its interrupts; returns only with the second, stronger one.
pub(super) async fn watch(state: PathBuf, run: String, interrupts: Arc<Interrupts>) {
    loop {
        tokio::time::sleep(LOOKS).await;
        let Ok(text) = std::fs::read(file(&state)) else { continue };
        let Ok(request) = serde_json::from_slice::<StopRequest>(&text) else { continue };
        if request.run != run || run.is_empty() {
            continue;
        }
        let urgency = if request.now { Urgency::Now } else { Urgency::AfterIteration };
        let known = interrupts.pending().is_some_and(|pending| pending.urgency >= urgency);
        if !known {
            interrupts.ask(Request { urgency, reason: Reason::Killed, by: "stop command".into(), signal: None });
        }
    }
}
