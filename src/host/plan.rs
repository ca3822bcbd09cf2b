//! What a script would do, without doing it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::policy::LoopSpec;

/// An agent as found on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentPlan {
    /// Name with its model.
    pub agent: String,
    /// The program that would be started; none for functions of the embedding program.
    pub program: Option<PathBuf>,
}

/// A script that was loaded and checked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The script.
    pub script: PathBuf,
    /// Root of the repository.
    pub root: PathBuf,
    /// The loop with every default filled in; none when the script is a function over a run.
    pub spec: Option<Box<LoopSpec>>,
    /// The agents that are known before the run.
    pub agents: Vec<AgentPlan>,
    /// SHA-256 of every file that was loaded, by path.
    pub files: BTreeMap<String, String>,
    /// True when all of them are trusted as they are.
    pub trusted: bool,
    /// Files that changed, appeared or vanished since they were trusted; empty when nobody ever trusted the script.
    pub changed: Vec<String>,
    /// What is allowed but probably not meant.
    pub warnings: Vec<String>,
}
