//! Decisions as data, and the trait that makes them.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::observation::Observation;

/// What to do with an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Its tree becomes the base of the next iteration.
    Keep,
    /// Put the tree back byte for byte; the note is told to later prompts.
    Rollback,
    /// No progress: the tree stays, the stall counts.
    Stall,
    /// Like a stall, and climb one rung now.
    Escalate,
    /// End the run here, with the tree as it is.
    Stop,
}

impl Decision {
    /// All of them, with the names that scripts use.
    pub const NAMES: [(&'static str, Decision); 5] = [
        ("keep", Decision::Keep),
        ("rollback", Decision::Rollback),
        ("stall", Decision::Stall),
        ("escalate", Decision::Escalate),
        ("stop", Decision::Stop),
    ];

    /// The name that scripts and journals use.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Keep => "keep",
            Decision::Rollback => "rollback",
            Decision::Stall => "stall",
            Decision::Escalate => "escalate",
            Decision::Stop => "stop",
        }
    }
}

/// A decision with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What to do.
    pub decision: Decision,
    /// Why, in a line; a rollback's note becomes negative knowledge.
    pub note: Option<String>,
}

impl Verdict {
    /// A decision with a note.
    pub fn because(decision: Decision, note: impl Into<String>) -> Verdict {
        Verdict { decision, note: Some(note.into()) }
    }

    /// A decision without a note.
    pub fn plain(decision: Decision) -> Verdict {
        Verdict { decision, note: None }
    }
}

/// A policy that could not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The policy itself is wrong: a script error, with file and line in the message.
    #[error("{message}")]
    Failed {
        /// Whole message for people.
        message: String,
        /// Where, as `file:line`, when known.
        place: Option<String>,
    },
    /// The run was cancelled while it was thinking.
    #[error("cancelled")]
    Cancelled,
}

/// Answers the questions of a loop. Each answer must depend on the observation alone, so that it can be replayed.
///
/// Every method has the default behaviour, so a policy in Rust implements only what it wants to change.
/// What a policy cannot do: skip the fence, the guard, the budgets or the record.
#[async_trait]
pub trait Policy: Send + Sync {
    /// The prompt of the next iteration, where [`super::PromptSource::Function`] asks for one.
    async fn prompt(&self, _observation: &Observation) -> Result<String, PolicyError> {
        Err(PolicyError::Failed { message: "this policy has no prompt function".into(), place: None })
    }

    /// The data of a slot, where [`super::SlotSource::Function`] asks for it.
    async fn slot(&self, name: &str, _observation: &Observation) -> Result<String, PolicyError> {
        Err(PolicyError::Failed { message: format!("this policy has no function for the slot `{name}`"), place: None })
    }

    /// Keep, roll back, stall, escalate or stop. Not asked about iterations that changed nothing.
    async fn decide(&self, observation: &Observation) -> Result<Verdict, PolicyError> {
        Ok(super::DefaultPolicy.verdict(observation))
    }

    /// Whether the loop is complete, with a remark. `None`: the configured completion decides.
    async fn complete(&self, _observation: &Observation) -> Result<Option<(bool, Option<String>)>, PolicyError> {
        Ok(None)
    }

    /// What to do about an iteration that changed nothing. `None`: it is a stall.
    async fn on_stall(&self, _observation: &Observation) -> Result<Option<Verdict>, PolicyError> {
        Ok(None)
    }

    /// Sees each iteration after it ended; cannot change anything.
    async fn on_iteration(&self, _observation: &Observation) -> Result<(), PolicyError> {
        Ok(())
    }
}
