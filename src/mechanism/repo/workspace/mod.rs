//! A checkout under watch: checkpoints, what changed since, and the way back.
//!
//! Owns the order of looks at the disk, the caches between them, and the run's start, whose ignore rules stay in
//! force. Must not know agents, loops or decisions. Guarantees: what it says of the tree was looked at when it was
//! asked; a capture that fails is an error and never an old answer; nothing of it is ever written into the user's
//! repository but by [`Workspace::commit_result`].

mod changes;
mod commit;
mod diff;
mod fence;
mod guard;
mod look;
mod options;
mod restore;

pub use changes::{Change, ChangeKind, Changes, LeftAlone, Side};
pub use commit::{CommitReport, Identity};
pub use diff::{Diff, FileDiff};
pub use fence::{FenceReport, Fenced};
pub use guard::GuardReport;
pub use options::WorkspaceOptions;
pub use restore::RestoreReport;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::checkpoint::{self, Captured, Checkpoint, Places};
use super::discover::Repository;
use super::error::RepoError;
use super::gitfolder;
use super::object::{ObjectId, TreeId};
use super::snapshot::{
    Chain, Folder, Rules, Stored, Tracked, load_cache, load_folder, save_cache, store_kept, store_tree,
};
use super::stamp::Stamp;
use super::store::{AreaState, Store, private_folder, short_name};

/// Captures that are kept in memory; they share all that did not change.
const MOST_REMEMBERED: usize = 16;
/// How often the last look is kept on disk while a run goes on. A run that is killed loses only time by it.
const SAVED_EVERY: Duration = Duration::from_secs(30);

/// A checkout under watch.
#[derive(Debug)]
pub struct Workspace {
    repository: Repository,
    state: PathBuf,
    options: WorkspaceOptions,
    store: Store,
    /// the last look at the working tree, and the one that is on disk
    look: Option<Arc<Folder>>,
    saved: Option<Arc<Folder>>,
    saved_at: Option<Instant>,
    /// the tree as the last fence left it, since that checkpoint; taken by the comparison that follows
    fenced: Option<(String, Arc<Folder>)>,
    /// the last look at each git folder
    git_looks: HashMap<PathBuf, Arc<Folder>>,
    areas: HashMap<PathBuf, AreaState>,
    /// captures by identity, newest last
    remembered: Vec<(Stored, ObjectId)>,
    checkpoints: Vec<(String, Arc<Captured>)>,
    start: Option<Start>,
    tracked: Option<(Option<Stamp>, Arc<Tracked>)>,
    /// the index that the last look without a checkpoint knew of
    index_seen: Option<Stamp>,
}

/// What of the run's start stays in force.
#[derive(Debug, Clone)]
struct Start {
    id: String,
    root: Arc<Folder>,
    chain: Chain,
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // what the look needs is in the store, or the look is as good as none at the next start
        let kept = self.store.flush().and_then(|()| self.save_look(true));
        if let Err(error) = kept {
            tracing::warn!(%error, "the last look at the tree could not be kept; the next run starts with a longer one");
        }
    }
}

impl Workspace {
    /// Opens a checkout.
    ///
    /// Takes the repository, and its state folder as [`super::state_folder`] answers it: everything is kept there, in
    /// folders that only their owner can enter.
    ///
    /// # Errors
    /// Errors of the file system, a damaged store, a `start` that is no checkpoint.
    pub fn open(repository: Repository, state: &Path, options: WorkspaceOptions) -> Result<Workspace, RepoError> {
        private_folder(state)?;
        let store = Store::open(&state.join("store"))?;
        let mut workspace = Workspace {
            look: None,
            saved: None,
            saved_at: None,
            fenced: None,
            repository,
            state: state.to_path_buf(),
            options,
            store,
            git_looks: HashMap::new(),
            areas: HashMap::new(),
            remembered: Vec::new(),
            checkpoints: Vec::new(),
            start: None,
            tracked: None,
            index_seen: None,
        };
        workspace.look = load_cache(&workspace.cache_file(), &workspace.store.mark()?);
        workspace.saved = workspace.look.clone();
        if let Some(start) = workspace.options.start.clone() {
            let captured = workspace.captured(&start)?;
            workspace.set_start(&start, &captured)?;
        }
        Ok(workspace)
    }

    /// The repository that it watches.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// The state folder.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// How it is watched.
    #[must_use]
    pub fn options(&self) -> &WorkspaceOptions {
        &self.options
    }

    /// Reads git's settings anew; only on a configuration that is the user's own.
    pub(crate) fn read_settings(&mut self) -> Result<(), RepoError> {
        self.repository.read_settings()
    }

    /// Takes a checkpoint: working tree, refs, HEAD, index, configuration, hooks, and all else of the git folder, and
    /// forces it to disk.
    ///
    /// # Errors
    /// A tree that can't be captured whole, a live lock of git, a disk with too little room. After an error nothing
    /// may be launched.
    pub fn checkpoint(&mut self) -> Result<Checkpoint, RepoError> {
        self.check_disk()?;
        self.repository.read_settings()?;
        let mut cleared = Vec::new();
        let mut folders = Vec::new();
        for path in gitfolder::folders(&self.repository) {
            let (folder, removed) = self.look_at_git(&path)?;
            cleared.extend(removed);
            self.link_objects(&path, &folder)?;
            folders.push((path, store_tree(&mut self.store, &folder, Some(b"index"))?));
        }
        let (excludes, chain) = self.excludes()?;
        let root = self.look(None)?;
        let (work, kept) = self.remember(&root)?;
        let tree = work.id;
        let captured = Captured { work, kept, folders, excludes, places: self.places() };
        let id = checkpoint::save(&mut self.store, &captured)?.to_string();
        self.store.sync()?;
        if self.start.is_none() {
            self.start = Some(Start { id: id.clone(), root, chain });
        }
        self.keep_captured(&id, Arc::new(captured));
        self.save_look(false)?;
        Ok(Checkpoint { id, tree, cleared })
    }

    /// A checkpoint by its id, also one of an earlier process.
    ///
    /// # Errors
    /// [`RepoError::NoCheckpoint`] when it is not there or can't be read.
    pub fn load(&mut self, id: &str) -> Result<Checkpoint, RepoError> {
        let captured = self.captured(id)?;
        Ok(Checkpoint { id: id.to_string(), tree: captured.work.id, cleared: Vec::new() })
    }

    /// The checkpoint whose ignore rules are in force: the first of the run. `None` before it.
    #[must_use]
    pub fn start(&self) -> Option<&str> {
        self.start.as_ref().map(|start| &*start.id)
    }

    /// Captures the working tree as it is now. Compared with [`Changes::tree`] it tells whether anything changed.
    ///
    /// # Errors
    /// A tree that can't be captured whole.
    pub fn tree(&mut self) -> Result<TreeId, RepoError> {
        let base = self.checkpoints.last().map(|(_, captured)| captured.work.root.clone());
        let root = self.look(base.as_ref())?;
        Ok(self.remember(&root)?.0.id)
    }

    fn set_start(&mut self, id: &str, captured: &Captured) -> Result<(), RepoError> {
        let mut chain = Chain::default();
        for exclude in &captured.excludes {
            let content = self.store.read(*exclude)?;
            chain = chain.push(&Arc::new(Rules::parse(&content, captured.places.fold_case)), b"");
        }
        self.start = Some(Start { id: id.to_string(), root: captured.work.root.clone(), chain });
        Ok(())
    }

    /// Keeps a capture of the working tree, in the store and in memory.
    fn remember(&mut self, root: &Arc<Folder>) -> Result<(Stored, ObjectId), RepoError> {
        if let Some(at) = self.remembered.iter().position(|(stored, _)| Arc::ptr_eq(&stored.root, root)) {
            let found = self.remembered.remove(at);
            self.remembered.push(found.clone());
            return Ok(found);
        }
        let stored = store_tree(&mut self.store, root, None)?;
        let kept = store_kept(&mut self.store, root)?;
        if self.remembered.len() >= MOST_REMEMBERED {
            self.remembered.remove(0);
        }
        self.remembered.push((stored.clone(), kept));
        Ok((stored, kept))
    }

    /// A captured tree by its id.
    fn folder_of(&mut self, tree: &TreeId) -> Result<Arc<Folder>, RepoError> {
        let found = self.remembered.iter().rev().find(|(stored, _)| stored.id == *tree);
        if let Some((stored, _)) = found {
            return Ok(stored.root.clone());
        }
        let found = self.checkpoints.iter().rev().find(|(_, captured)| captured.work.id == *tree);
        if let Some((_, captured)) = found {
            return Ok(captured.work.root.clone());
        }
        Ok(load_folder(&mut self.store, *tree, None, self.repository.folds_case())?.root)
    }

    /// The state behind a checkpoint.
    fn captured(&mut self, id: &str) -> Result<Arc<Captured>, RepoError> {
        if let Some((_, captured)) = self.checkpoints.iter().find(|(known, _)| known == id) {
            return Ok(captured.clone());
        }
        let captured = Arc::new(checkpoint::load(&mut self.store, id)?);
        if captured.places.root != self.repository.root() {
            let why = format!("it is of another working tree: {}", captured.places.root.display());
            return Err(RepoError::NoCheckpoint { id: id.to_string(), why });
        }
        self.keep_captured(id, captured.clone());
        Ok(captured)
    }

    fn keep_captured(&mut self, id: &str, captured: Arc<Captured>) {
        self.checkpoints.retain(|(known, _)| known != id);
        if self.checkpoints.len() >= MOST_REMEMBERED {
            self.checkpoints.remove(0);
        }
        self.checkpoints.push((id.to_string(), captured));
    }

    fn places(&self) -> Places {
        Places {
            root: self.repository.root().to_path_buf(),
            git_dir: self.repository.git_dir().to_path_buf(),
            common_dir: self.repository.common_dir().to_path_buf(),
            dot_git: self.repository.dot_git().clone(),
            fold_case: self.repository.folds_case(),
        }
    }

    fn check_disk(&self) -> Result<(), RepoError> {
        let free = rustix::fs::statvfs(&self.state).map_err(RepoError::os(&self.state, "asking for free space"))?;
        let bytes = free.f_bavail.saturating_mul(free.f_frsize);
        let needed = self.options.free_bytes;
        if bytes < needed {
            return Err(RepoError::DiskFull { path: self.state.clone(), free: bytes, needed });
        }
        Ok(())
    }

    fn cache_file(&self) -> PathBuf {
        self.state.join(format!("look-{}", short_name(self.repository.root())))
    }

    /// Keeps the last look on disk for the next run: at first, then now and then, and in the end.
    fn save_look(&mut self, in_the_end: bool) -> Result<(), RepoError> {
        let Some(look) = &self.look else { return Ok(()) };
        let is_saved = self.saved.as_ref().is_some_and(|saved| Arc::ptr_eq(saved, look));
        let is_fresh = self.saved_at.is_some_and(|at| at.elapsed() < SAVED_EVERY);
        if is_saved || (is_fresh && !in_the_end) {
            return Ok(());
        }
        save_cache(&self.cache_file(), &self.store.mark()?, look)?;
        self.saved = Some(look.clone());
        self.saved_at = Some(Instant::now());
        Ok(())
    }
}
