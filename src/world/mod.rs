//! The one door for effects: everything that a loop can cause or learn passes through [`World`].
//!
//! Owns the trait, the live world that does the work, and the scripted one that plays it in memory.
//! Must not know when or why something is asked: no budgets, no decisions, no Lua.
//! Guarantees that a loop sees nothing of the outside but through these methods, so that the same policy code runs
//! live, replayed and simulated.

mod clock;
mod functions;
mod live;
mod scripted;

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::policy::scope::Scope;
use crate::policy::{AgentSpec, ChangeSummary, CommandSpec, Reading, SensorSpec, TurnSummary};

pub use clock::{Clock, ManualClock, SystemClock};
pub use functions::{AgentFunction, FunctionContext, FunctionReading, FunctionTurn, SensorFunction};
pub use live::{LiveParts, LiveWorld};
pub use scripted::{ScriptedTurn, ScriptedWorld};

/// A saved state of the workspace that can be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Its id in the shadow store.
    pub id: String,
    /// The tree at that point.
    pub tree: String,
}

/// What an agent is asked.
#[derive(Debug, Clone)]
pub struct TurnAsk {
    /// The agent.
    pub agent: AgentSpec,
    /// The whole prompt, slots included, instructions not.
    pub prompt: String,
    /// The iteration that it belongs to.
    pub iteration: u32,
    /// Awake time that is left of the run's budget; the turn ends with it.
    pub wall_left: Option<Duration>,
}

/// What came of a turn.
#[derive(Debug, Clone)]
pub struct TurnAnswer {
    /// How it went.
    pub summary: TurnSummary,
    /// Names of variables that were kept from it.
    pub scrubbed: Vec<String>,
}

/// What a command printed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandResult {
    /// True for exit code 0.
    pub ok: bool,
    /// Exit code; 124 after a timeout, 128 plus the signal when killed.
    pub code: i32,
    /// Standard output, capped.
    pub stdout: String,
    /// Standard error, capped.
    pub stderr: String,
    /// The last 4 KiB of both.
    pub tail: String,
    /// True when its time ran out.
    pub timed_out: bool,
    /// Awake seconds.
    pub duration_s: f64,
}

/// What came of putting a point back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Restored {
    /// Paths that were put back.
    pub restored: u64,
    /// Paths that could not be, with the reason.
    pub conflicts: Vec<String>,
}

/// What came of committing a result.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Committed {
    /// The commit; none when there was nothing to commit.
    pub commit: Option<String>,
    /// Paths in it.
    pub paths: Vec<String>,
    /// Paths that changed and are not in it, with the reason.
    pub left_out: Vec<String>,
}

/// A question about the repository that changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitQuestion {
    /// The branch that HEAD names; null when detached.
    Branch,
    /// The commit at HEAD; null on an unborn branch.
    Head,
    /// Paths that differ from HEAD, with git's two status letters.
    Status,
    /// The diff against HEAD, by git's rules.
    Diff,
    /// The last commits, newest first, at most this many.
    Log(u32),
}

/// A fix command's end.
#[derive(Debug, Clone, PartialEq)]
pub struct FixAnswer {
    /// Exit code; none when it was killed.
    pub exit: Option<i32>,
    /// Awake seconds.
    pub duration_s: f64,
    /// Remarks.
    pub notes: Vec<String>,
}

/// An effect that could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// Somebody ended the run meanwhile.
    #[error("cancelled")]
    Cancelled,
    /// The repository cannot be captured or put back.
    #[error("the repository could not be {doing}: {source}")]
    Repository {
        /// `captured`, `guarded`, `restored`, …
        doing: &'static str,
        /// Why.
        #[source]
        source: anyhow::Error,
    },
    /// The disk is full.
    #[error("the disk is full: {0}")]
    DiskFull(String),
    /// An agent that cannot be started at all.
    #[error("{0}")]
    Agent(String),
    /// Host trouble with processes.
    #[error("a process could not be run: {0}")]
    Process(#[source] anyhow::Error),
    /// The record could not be written.
    #[error("the journal could not be written: {0}")]
    Journal(#[source] anyhow::Error),
    /// A name that nobody registered.
    #[error("no {kind} named `{name}` is registered; there are: {known}")]
    Unknown {
        /// `agent`, `sensor` or `function`.
        kind: &'static str,
        /// The name.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// Anything else.
    #[error("{0}")]
    Other(#[source] anyhow::Error),
}

/// Everything that a loop can cause or learn. One implementation for each world.
///
/// All methods that take time can be cancelled by the token that the world was made with or was handed; a cancelled
/// effect has ended whatever it started before it returns.
#[async_trait]
pub trait World: Send + Sync {
    /// The clock of this world.
    fn clock(&self) -> &dyn Clock;

    /// A random number from the run's seed.
    fn random(&self) -> u64;

    /// Waits; returns early when `cancel` fires.
    async fn wait(&self, duration: Duration, cancel: &CancellationToken);

    /// What a file below the root holds, its first `most` bytes; `None` when there is none. Links are not followed, and
    /// what is no plain file counts as an empty one.
    async fn peek(&self, path: &str, most: usize) -> Result<Option<String>, WorldError>;

    /// Paths below the root that match a glob, sorted, at most 1,000; links are not followed.
    async fn glob(&self, pattern: &str) -> Result<Vec<String>, WorldError>;

    /// Checks that an agent can be started; names what is missing and how to get it.
    async fn check_agent(&self, agent: &AgentSpec) -> Result<(), WorldError>;

    /// Saves the workspace and notes that an iteration is open, so that a crash is rolled back to here.
    async fn checkpoint(&self, iteration: u32) -> Result<Point, WorldError>;

    /// Runs one agent turn until nothing of it is left.
    async fn turn(&self, ask: TurnAsk, cancel: &CancellationToken) -> Result<TurnAnswer, WorldError>;

    /// Puts the git folder back; says what was undone.
    async fn guard(&self, since: &Point) -> Result<Vec<String>, WorldError>;

    /// Reverts paths outside of the scope; names them.
    async fn fence(&self, since: &Point, scope: &Scope) -> Result<Vec<String>, WorldError>;

    /// The id of the tree as it is.
    async fn tree(&self) -> Result<String, WorldError>;

    /// Compares the tree as it is with a point.
    async fn changes(&self, since: &Point) -> Result<ChangeSummary, WorldError>;

    /// Runs a sensor's fix command.
    async fn fix(&self, fix: &CommandSpec, cancel: &CancellationToken) -> Result<FixAnswer, WorldError>;

    /// Reads one sensor. `attempt` is 0 for the reading of a pass; later ones repeat it on the same tree, because it was
    /// broken or has to be confirmed.
    async fn read(&self, sensor: &SensorSpec, attempt: u32, cancel: &CancellationToken) -> Result<Reading, WorldError>;

    /// Puts the tree back to how it was when it had this id, without touching the git folder; names what was undone.
    async fn undo(&self, tree: &str) -> Result<Vec<String>, WorldError>;

    /// Notes that the open iteration is settled: its tree stays whatever happens next.
    async fn settle(&self) -> Result<(), WorldError>;

    /// Puts the workspace back to a point, byte for byte, and settles.
    async fn restore(&self, to: &Point) -> Result<Restored, WorldError>;

    /// Runs a command of the script.
    async fn command(&self, command: &CommandSpec, cancel: &CancellationToken) -> Result<CommandResult, WorldError>;

    /// Answers a question about the repository.
    async fn git(&self, question: &GitQuestion) -> Result<serde_json::Value, WorldError>;

    /// Commits what changed since `start` on the user's branch, the user's own changes left out.
    async fn commit(&self, start: &Point, message: &str) -> Result<Committed, WorldError>;

    /// Writes a file of lunation's own (a diagnosis) below the root, never through a link.
    async fn write(&self, path: &str, text: &str) -> Result<(), WorldError>;
}
