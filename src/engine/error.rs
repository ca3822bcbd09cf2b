//! What can go wrong with a loop, typed, with the reason that it gives the run.

use super::iteration::OutOfOrder;
use super::recorder::RecordError;
use crate::policy::scope::ScopeError;
use crate::policy::{PolicyError, Reason, SpecError};
use crate::world::WorldError;

/// A loop that could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The spec cannot be run; nothing was launched.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Spec(Vec<SpecError>),
    /// A glob of the fence cannot be read; nothing was launched.
    #[error("fence: {0}")]
    Scope(#[from] ScopeError),
    /// An effect failed.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The policy failed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A loop by hand asked for things in an order that makes no sense.
    #[error("{0}")]
    Misuse(String),
    /// The record could not be written.
    #[error("the journal could not be written: {0}")]
    Record(#[from] RecordError),
    /// Somebody ended the run; the open iteration has been rolled back.
    #[error("cancelled")]
    Cancelled,
}

impl From<OutOfOrder> for EngineError {
    fn from(error: OutOfOrder) -> EngineError {
        EngineError::Misuse(error.to_string())
    }
}

impl EngineError {
    /// True when the run was ended from outside.
    pub fn is_cancelled(&self) -> bool {
        matches!(
            self,
            EngineError::Cancelled
                | EngineError::World(WorldError::Cancelled)
                | EngineError::Policy(PolicyError::Cancelled)
        )
    }

    /// Why a run ends that meets this error.
    pub fn reason(&self) -> Reason {
        match self {
            EngineError::Spec(_) | EngineError::Scope(_) | EngineError::Policy(_) | EngineError::Misuse(_) => {
                Reason::ScriptError
            }
            EngineError::World(WorldError::DiskFull(_)) | EngineError::Record(RecordError::DiskFull(_)) => {
                Reason::DiskFull
            }
            EngineError::World(WorldError::Repository { .. }) => Reason::RepoLost,
            EngineError::World(WorldError::Agent(_)) => Reason::AgentMissing,
            EngineError::World(WorldError::Cancelled) | EngineError::Cancelled => Reason::Interrupted,
            EngineError::World(_) | EngineError::Record(_) => Reason::HostError,
        }
    }
}
