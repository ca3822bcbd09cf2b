//! Why there is no turn. An agent that fails is an outcome of its turn, never one of these.

use std::io;
use std::path::PathBuf;

use crate::mechanism::process::ProcessError;

/// An agent that can't be used, or a machine that can't carry a turn.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The agent's spec has a mistake.
    #[error("agent `{agent}`: {field}: {problem}")]
    Spec {
        /// Name of the agent.
        agent: String,
        /// Dotted name of the field.
        field: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The agent is a function of the embedding program; this module runs programs only.
    #[error("agent `{agent}` is the function `{function}` of the embedding program, not a command")]
    NotACommand {
        /// Name of the agent.
        agent: String,
        /// Name of the function.
        function: String,
    },
    /// Its program can't be started.
    #[error("agent `{agent}` can't be started: {source}{}", install_hint(.install))]
    Program {
        /// Name of the agent.
        agent: String,
        /// What was looked for, and where.
        source: ProcessError,
        /// What to type to install it.
        install: Option<String>,
    },
    /// The prompt can't reach the agent the way that was chosen.
    #[error("agent `{agent}`: {problem}")]
    Prompt {
        /// Name of the agent.
        agent: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The prompt's file can't be written.
    #[error("agent `{agent}`: can't write its prompt to {}: {source}", .file.display())]
    PromptFile {
        /// Name of the agent.
        agent: String,
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The machine can't carry the turn.
    #[error("agent `{agent}`: {source}")]
    Host {
        /// Name of the agent.
        agent: String,
        /// What happened.
        source: ProcessError,
    },
}

fn install_hint(install: &Option<String>) -> String {
    match install {
        Some(install) => format!("; to install it: {install}"),
        None => String::new(),
    }
}
