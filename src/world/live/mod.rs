//! The live world: real processes, a real repository, real time.
//!
//! Owns how an effect is had from the mechanisms. Must not know why it is asked for. Guarantees that no effect runs on
//! the caller's thread: processes are tasks of the host's runtime and repository work runs on its blocking threads, so
//! a script that never yields cannot stall a budget or a reaper.

mod commands;
mod repository;
mod turns;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio_util::sync::CancellationToken;

use super::functions::{AgentFunction, FunctionContext, SensorFunction};
use super::{
    Clock, CommandResult, Committed, FixAnswer, GitQuestion, Point, Restored, TurnAnswer, TurnAsk, World, WorldError,
};
use crate::journal::Journal;
use crate::mechanism::process::Processes;
use crate::mechanism::repo::Workspace;
use crate::policy::scope::Scope;
use crate::policy::{AgentSpec, ChangeSummary, CommandSpec, Reading, SensorSource, SensorSpec};

/// What the live world works with.
pub struct LiveParts {
    /// The checkout under watch.
    pub workspace: Workspace,
    /// Root of the workspace.
    pub root: PathBuf,
    /// A folder of ours for logs and temporary folders of this run.
    pub scratch: PathBuf,
    /// The table of everything that runs.
    pub processes: Processes,
    /// Keeps blobs and masks secrets.
    pub journal: Journal,
    /// Id of the run.
    pub run: String,
    /// The environment that the agents' and sensors' are made from.
    pub ambient: Vec<(OsString, OsString)>,
    /// Agents that are functions.
    pub agents: BTreeMap<String, Arc<dyn AgentFunction>>,
    /// Sensors that are functions.
    pub sensors: BTreeMap<String, Arc<dyn SensorFunction>>,
    /// Seed of all randomness.
    pub seed: u64,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where tasks run.
    pub runtime: tokio::runtime::Handle,
}

/// The live world.
pub struct LiveWorld {
    workspace: Arc<Mutex<Workspace>>,
    root: PathBuf,
    scratch: PathBuf,
    processes: Processes,
    journal: Journal,
    run: String,
    ambient: Vec<(OsString, OsString)>,
    agents: BTreeMap<String, Arc<dyn AgentFunction>>,
    sensors: BTreeMap<String, Arc<dyn SensorFunction>>,
    random: Mutex<StdRng>,
    clock: Arc<dyn Clock>,
    runtime: tokio::runtime::Handle,
    launches: std::sync::atomic::AtomicU64,
}

impl LiveWorld {
    /// A world over these parts.
    pub fn new(parts: LiveParts) -> LiveWorld {
        LiveWorld {
            workspace: Arc::new(Mutex::new(parts.workspace)),
            root: parts.root,
            scratch: parts.scratch,
            processes: parts.processes,
            journal: parts.journal,
            run: parts.run,
            ambient: parts.ambient,
            agents: parts.agents,
            sensors: parts.sensors,
            random: Mutex::new(StdRng::seed_from_u64(parts.seed)),
            clock: parts.clock,
            runtime: parts.runtime,
            launches: std::sync::atomic::AtomicU64::new(0),
        }
    }

    /// A number for the next process's files; never used twice in a run.
    fn launch(&self) -> u64 {
        self.launches.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }

    fn context(&self, cancel: &CancellationToken) -> FunctionContext {
        FunctionContext { workspace: self.root.clone(), run: self.run.clone(), cancel: cancel.clone() }
    }

    /// Keeps a log file as a blob, capped by the journal, and removes it where asked.
    async fn keep_log(&self, log: PathBuf, remove: bool) -> Result<Option<String>, WorldError> {
        let journal = self.journal.clone();
        self.blocking(move || {
            let bytes = match std::fs::read(&log) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(WorldError::Journal(error.into())),
            };
            if remove {
                std::fs::remove_file(&log).map_err(|error| WorldError::Journal(error.into()))?;
            }
            if bytes.is_empty() {
                return Ok(None);
            }
            journal.blob(&bytes).map(Some).map_err(journal_error)
        })
        .await
    }

    /// Runs blocking work on the host's runtime; it is finished even when the caller goes away.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, WorldError> + Send + 'static,
    ) -> Result<T, WorldError> {
        match self.runtime.spawn_blocking(work).await {
            Ok(result) => result,
            Err(error) => Err(WorldError::Other(anyhow::anyhow!("a step panicked: {error}"))),
        }
    }
}

pub(super) fn journal_error(error: crate::journal::JournalError) -> WorldError {
    if error.is_disk_full() { WorldError::DiskFull(error.to_string()) } else { WorldError::Journal(error.into()) }
}

#[async_trait]
impl World for LiveWorld {
    fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    fn random(&self) -> u64 {
        self.random.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).random()
    }

    async fn wait(&self, duration: Duration, cancel: &CancellationToken) {
        tokio::select! {
            () = tokio::time::sleep(duration) => {}
            () = cancel.cancelled() => {}
        }
    }

    async fn peek(&self, path: &str, most: usize) -> Result<Option<String>, WorldError> {
        self.peek_beneath(path, most).await
    }

    async fn glob(&self, pattern: &str) -> Result<Vec<String>, WorldError> {
        self.glob_beneath(pattern).await
    }

    async fn check_agent(&self, agent: &AgentSpec) -> Result<(), WorldError> {
        self.check_agent_now(agent)
    }

    async fn checkpoint(&self, iteration: u32) -> Result<Point, WorldError> {
        self.take_checkpoint(iteration).await
    }

    async fn turn(&self, ask: TurnAsk, cancel: &CancellationToken) -> Result<TurnAnswer, WorldError> {
        self.take_turn(ask, cancel).await
    }

    async fn guard(&self, since: &Point) -> Result<Vec<String>, WorldError> {
        self.put_git_folder_back(since).await
    }

    async fn fence(&self, since: &Point, scope: &Scope) -> Result<Vec<String>, WorldError> {
        self.revert_out_of_scope(since, scope).await
    }

    async fn tree(&self) -> Result<String, WorldError> {
        self.tree_now().await
    }

    async fn changes(&self, since: &Point) -> Result<ChangeSummary, WorldError> {
        self.compare_with(since).await
    }

    async fn fix(&self, fix: &CommandSpec, cancel: &CancellationToken) -> Result<FixAnswer, WorldError> {
        self.run_fix(fix, cancel).await
    }

    async fn read(
        &self,
        sensor: &SensorSpec,
        _attempt: u32,
        cancel: &CancellationToken,
    ) -> Result<Reading, WorldError> {
        match &sensor.source {
            SensorSource::Command(command) => self.read_command(sensor, command, cancel).await,
            SensorSource::Function(name) => self.read_function(sensor, name, cancel).await,
        }
    }

    async fn undo(&self, tree: &str) -> Result<Vec<String>, WorldError> {
        self.undo_to(tree).await
    }

    async fn settle(&self) -> Result<(), WorldError> {
        self.clear_pending().await
    }

    async fn restore(&self, to: &Point) -> Result<Restored, WorldError> {
        self.put_back(to).await
    }

    async fn command(&self, command: &CommandSpec, cancel: &CancellationToken) -> Result<CommandResult, WorldError> {
        self.run_command(command, cancel).await
    }

    async fn git(&self, question: &GitQuestion) -> Result<serde_json::Value, WorldError> {
        self.answer(question).await
    }

    async fn commit(&self, start: &Point, message: &str) -> Result<Committed, WorldError> {
        self.commit_since(start, message).await
    }

    async fn write(&self, path: &str, text: &str) -> Result<(), WorldError> {
        self.write_beneath(path, text).await
    }
}
