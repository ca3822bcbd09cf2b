//! What can go wrong before and around a run, typed; hints and exit codes belong to whoever shows it.

use std::path::PathBuf;

use crate::engine::EngineError;
use crate::journal::JournalError;
use crate::mechanism::process::ProcessError;
use crate::mechanism::repo::{LockHolder, RepoError};
use crate::script::ScriptError;
use crate::world::WorldError;

/// A host that could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Nothing tells where state may be kept.
    #[error("no folder for state: set LUNATION_HOME or HOME, or name one")]
    NoStateFolder,
    /// The repository cannot be used.
    #[error(transparent)]
    Repository(#[from] RepoError),
    /// Somebody else is at work in this repository.
    #[error("{} holds this repository", .holder.as_ref().map_or_else(|| "another run".to_owned(), ToString::to_string))]
    Held {
        /// Who; unknown when its record could not be read.
        holder: Option<Box<LockHolder>>,
    },
    /// The script cannot be found, read, loaded or run.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The script is not trusted.
    #[error("{}", untrusted(.script, .changed))]
    Untrusted {
        /// Its path.
        script: PathBuf,
        /// Files that changed since it was trusted; empty when it never was.
        changed: Vec<String>,
    },
    /// The loop cannot be run; nothing was launched.
    #[error("{0}")]
    Config(String),
    /// The kill switch is there already.
    #[error("the kill switch `{path}` exists: remove it to run")]
    KillSwitch {
        /// Its path below the root.
        path: String,
    },
    /// A loop failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Processes cannot be run at all.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The journal cannot be started.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An effect before the run failed.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A file of lunation's own cannot be written.
    #[error("{path}: {source}", path = .path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The run's own task died.
    #[error("the run died: {0}")]
    Died(String),
}

fn untrusted(script: &std::path::Path, changed: &[String]) -> String {
    match changed {
        [] => format!("{} is not trusted yet", script.display()),
        files => format!("{} is not trusted any more: {} changed", script.display(), files.join(", ")),
    }
}

impl HostError {
    /// True when nothing was launched because of what was given: exit code 4.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            HostError::NoStateFolder
                | HostError::Script(_)
                | HostError::Untrusted { .. }
                | HostError::Config(_)
                | HostError::KillSwitch { .. }
                | HostError::Engine(_)
        ) || matches!(self, HostError::Repository(error) if !error.is_disk_full())
    }
}
