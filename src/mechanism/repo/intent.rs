//! The crash record: what must be rolled back if this process ends now.
//!
//! Owns one small file in the state folder, on disk before each turn and gone after it, and the recovery that it
//! leads to. Recovery needs nothing but the state folder, may itself be interrupted at any point, and may run twice.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

use super::checkpoint::{self, Checkpoint};
use super::discover::{Repository, RepositoryOptions};
use super::error::RepoError;
use super::lock::RepoLock;
use super::path::TreePath;
use super::store::{Store, sync_folder, write_whole};
use super::workspace::{GuardReport, RestoreReport, Workspace, WorkspaceOptions};

const VERSION: u32 = 1;

/// What is under way, as it stands on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    version: u32,
    /// Id of the run.
    pub run: String,
    /// What the run was doing, for people: `turn`, `rollback`.
    pub phase: String,
    /// The checkpoint to go back to.
    pub checkpoint: String,
    /// The first checkpoint of the run, whose ignore rules are in force.
    pub start: Option<String>,
    /// The root of the working tree.
    pub root: TreePath,
    size_cap: u64,
    watch_ignored: bool,
}

/// What a recovery did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// What had been under way.
    pub intent: Intent,
    /// What the guard put back.
    pub guard: GuardReport,
    /// What was rolled back.
    pub restore: RestoreReport,
}

fn record(state: &Path) -> PathBuf {
    state.join("pending.json")
}

/// What is under way in a repository, or was when its run died. `None`: nothing.
///
/// # Errors
/// A record that can't be read.
pub fn pending(state: &Path) -> Result<Option<Intent>, RepoError> {
    let path = record(state);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RepoError::io(&path, "reading")(error)),
    };
    let intent: Intent = serde_json::from_slice(&text)
        .map_err(|error| RepoError::Record { path: path.clone(), what: format!("it is damaged: {error}") })?;
    if intent.version != VERSION {
        let what = format!("it has version {}, and this program knows {VERSION}", intent.version);
        return Err(RepoError::Record { path, what });
    }
    Ok(Some(intent))
}

fn clear(state: &Path) -> Result<(), RepoError> {
    let path = record(state);
    match fs::remove_file(&path) {
        Ok(()) => sync_folder(state),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(RepoError::io(&path, "removing")(error)),
    }
}

impl Workspace {
    /// Writes down, and forces to disk, that a crash from now on is to be answered by going back to `checkpoint`.
    /// Call it before each turn.
    ///
    /// Takes the id of the run and a word for what is done.
    ///
    /// # Errors
    /// Errors of the file system; nothing may be launched then.
    pub fn begin_intent(&mut self, run: &str, phase: &str, checkpoint: &Checkpoint) -> Result<(), RepoError> {
        let intent = Intent {
            version: VERSION,
            run: run.into(),
            phase: phase.into(),
            checkpoint: checkpoint.id.clone(),
            start: self.start().map(str::to_string),
            root: TreePath::from(self.repository().root()),
            size_cap: self.options().size_cap,
            watch_ignored: self.options().watch_ignored,
        };
        let path = record(self.state());
        let text = serde_json::to_vec(&intent)
            .map_err(|error| RepoError::Record { path: path.clone(), what: error.to_string() })?;
        write_whole(&path, &text, true)
    }

    /// Takes the record back: the decision is made and carried out. With no record it does nothing.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn finish_intent(&mut self) -> Result<(), RepoError> {
        clear(self.state())
    }
}

/// After the death of a run: puts the git folder and the working tree back to the checkpoint of its last record, and
/// takes the record back. `None`: there was no record.
///
/// Takes the state folder, its lock (so that no live run is disturbed), and what the library may know of the world.
///
/// # Errors
/// A record or a checkpoint that can't be read, a working tree that is gone, a git folder that can't be put back. The
/// record stays then.
pub fn recover(state: &Path, lock: &RepoLock, options: &RepositoryOptions) -> Result<Option<Recovered>, RepoError> {
    if !lock.belongs_to(state) {
        let what = "the lock that was given is not that of this state folder".into();
        return Err(RepoError::Record { path: state.into(), what });
    }
    let Some(intent) = pending(state)? else { return Ok(None) };
    let places = {
        let mut store = Store::open(&state.join("store"))?;
        checkpoint::load(&mut store, &intent.checkpoint)?.places
    };
    let repository = Repository::from_record(places, options);
    let workspace_options = WorkspaceOptions {
        size_cap: intent.size_cap,
        watch_ignored: intent.watch_ignored,
        start: intent.start.clone(),
        ..WorkspaceOptions::default()
    };
    let mut workspace = Workspace::open(repository, state, workspace_options)?;
    let checkpoint = workspace.load(&intent.checkpoint)?;
    let guard = workspace.guard(&checkpoint)?;
    workspace.read_settings()?;
    let restore = workspace.restore(&checkpoint)?;
    clear(state)?;
    Ok(Some(Recovered { intent, guard, restore }))
}
