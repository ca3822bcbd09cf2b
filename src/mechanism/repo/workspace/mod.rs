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
mod restore;

pub use changes::{Change, ChangeKind, Changes, LeftAlone, Side};
pub use commit::{CommitReport, Identity};
pub use diff::{Diff, FileDiff};
pub use fence::{FenceReport, Fenced};
pub use guard::GuardReport;
pub use restore::RestoreReport;

use rustix::fs::{Mode, OFlags};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::checkpoint::{self, Captured, Checkpoint, Places};
use super::discover::Repository;
use super::error::RepoError;
use super::gitfolder::{self, LockPolicy, Undone};
use super::index;
use super::object::{Kind, ObjectId, TreeId};
use super::snapshot::{
    Chain, Folder, Profile, Rules, Stored, Tracked, Walk, load_cache, load_folder, save_cache, store_kept, store_tree,
};
use super::stamp::Stamp;
use super::store::{AreaState, Store, private_folder, short_name};

/// Captures that are kept in memory; they share all that did not change.
const MOST_REMEMBERED: usize = 16;
/// Longest file of ignore rules outside the tree that is read.
const MOST_RULES: u64 = 4 << 20;

/// How a checkout is watched.
#[derive(Debug, Clone)]
pub struct WorkspaceOptions {
    /// Files above this many bytes are recorded by size and time, and left alone; default 256 MiB.
    pub size_cap: u64,
    /// True: paths that git ignores are watched like all others; default false.
    pub watch_ignored: bool,
    /// Most bytes of a diff's text; default 1 MiB.
    pub diff_cap: usize,
    /// How long a live lock of git is waited for; default 10 s.
    pub lock_wait: Duration,
    /// How old a lock without a holder must be to count as stale; default 1 s.
    pub stale_lock_age: Duration,
    /// The first checkpoint of the run, when a run is taken up again: its ignore rules stay in force. Default: the
    /// first checkpoint that is taken.
    pub start: Option<String>,
    /// Bytes that must be free on the disk of the state folder for a checkpoint to be taken; default 64 MiB.
    pub free_bytes: u64,
}

impl Default for WorkspaceOptions {
    fn default() -> WorkspaceOptions {
        WorkspaceOptions {
            size_cap: 256 << 20,
            watch_ignored: false,
            diff_cap: 1 << 20,
            lock_wait: Duration::from_secs(10),
            stale_lock_age: Duration::from_secs(1),
            start: None,
            free_bytes: 64 << 20,
        }
    }
}

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
    /// the last look at each git folder
    git_looks: HashMap<PathBuf, Arc<Folder>>,
    areas: HashMap<PathBuf, AreaState>,
    /// captures by identity, newest last
    remembered: Vec<(Stored, ObjectId)>,
    checkpoints: Vec<(String, Arc<Captured>)>,
    start: Option<Start>,
    tracked: Option<(Option<Stamp>, Arc<Tracked>)>,
}

/// What of the run's start stays in force.
#[derive(Debug, Clone)]
struct Start {
    id: String,
    root: Arc<Folder>,
    chain: Chain,
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
        self.save_look()?;
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

    /// Looks at the working tree. `base`: the capture that it will be compared with.
    fn look(&mut self, base: Option<&Arc<Folder>>) -> Result<Arc<Folder>, RepoError> {
        let folder = self.open_root()?;
        let (_, now) = self.excludes()?;
        let start = self.start.clone();
        let fold_case = self.repository.folds_case();
        let Workspace { repository, store, tracked, look, options, .. } = self;
        let mut source = || tracked_of(repository, tracked, base.is_some());
        let mut walk = Walk::new(store, repository.root(), Profile::WorkTree, options.size_cap, &mut source);
        walk.now = now;
        walk.then = start.as_ref().map(|start| start.chain.clone());
        walk.watch_ignored = options.watch_ignored;
        walk.fold_case = fold_case;
        let start_root = start.as_ref().map(|start| &*start.root);
        let root = walk.run(folder, look.as_ref(), base.map(|base| &**base), start_root)?;
        self.look = Some(root.clone());
        Ok(root)
    }

    fn open_root(&self) -> Result<OwnedFd, RepoError> {
        let root = self.repository.root();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(root, flags, Mode::empty()) {
            Ok(folder) => Ok(folder),
            Err(errno @ (rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP)) => {
                Err(RepoError::Lost { path: root.into(), why: errno.to_string() })
            }
            // a root that its owner may not read: the mode is put back by a rollback
            Err(rustix::io::Errno::ACCESS) => {
                let place = rustix::fs::open(root, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
                    .map_err(RepoError::os(root, "opening"))?;
                super::beneath::set_folder_mode(std::os::fd::AsFd::as_fd(&place), 0o700)
                    .map_err(RepoError::os(root, "making it readable"))?;
                rustix::fs::open(root, flags, Mode::empty()).map_err(RepoError::os(root, "opening"))
            }
            Err(errno) => Err(RepoError::os(root, "opening")(errno)),
        }
    }

    /// The ignore rules outside the tree: the global file, then the repository's own.
    fn excludes(&mut self) -> Result<(Vec<ObjectId>, Chain), RepoError> {
        let own = self.repository.common_dir().join("info/exclude");
        let global = self.repository.settings().excludes_file.clone();
        let mut ids = Vec::new();
        let mut chain = Chain::default();
        for path in [global, Some(own)] {
            let content = match path {
                Some(path) => read_rules(&path)?,
                None => Vec::new(),
            };
            ids.push(self.store.put(Kind::Blob, &content)?);
            chain = chain.push(&Arc::new(Rules::parse(&content, self.repository.folds_case())), b"");
        }
        Ok((ids, chain))
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

    /// Looks at a git folder when no lock is in it any more.
    fn look_at_git(&mut self, path: &Path) -> Result<(Arc<Folder>, Vec<Undone>), RepoError> {
        let mut cleared = Vec::new();
        let policy = LockPolicy { wait: self.options.lock_wait, stale_after: self.options.stale_lock_age };
        loop {
            let folder = gitfolder::capture(&mut self.store, path, self.git_looks.get(path))?;
            self.git_looks.insert(path.to_path_buf(), folder.clone());
            let places = [self.repository.root(), self.repository.common_dir(), self.repository.git_dir()];
            let waited = gitfolder::settle(path, &folder, &places, policy)?;
            let Some(removed) = waited else { return Ok((folder, cleared)) };
            cleared.extend(removed.iter().map(|lock| {
                let name = lock.strip_prefix(path).unwrap_or(lock);
                Undone::new("lock", format!("{} was stale and was removed", name.display()))
            }));
        }
    }

    /// Links the objects of a git folder into the store.
    fn link_objects(&mut self, git_folder: &Path, captured: &Folder) -> Result<(), RepoError> {
        let readable = !self.repository.settings().sha256;
        for area in gitfolder::areas(captured) {
            let objects = git_folder.join(super::path::os(&area));
            let seen = self.areas.entry(objects.clone()).or_default();
            self.store.link_area(&objects, readable, seen)?;
        }
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

    fn save_look(&mut self) -> Result<(), RepoError> {
        let Some(look) = &self.look else { return Ok(()) };
        if self.saved.as_ref().is_some_and(|saved| Arc::ptr_eq(saved, look)) {
            return Ok(());
        }
        save_cache(&self.cache_file(), &self.store.mark()?, look)?;
        self.saved = Some(look.clone());
        Ok(())
    }
}

/// The paths of the index. `settled`: those of the checkpoint count, because the index may be the agent's.
fn tracked_of(
    repository: &Repository,
    cached: &mut Option<(Option<Stamp>, Arc<Tracked>)>,
    settled: bool,
) -> Result<Arc<Tracked>, RepoError> {
    let file = repository.git_dir().join("index");
    let stamp = rustix::fs::lstat(&file).ok().map(|stat| Stamp::of(&stat));
    if let Some((seen, tracked)) = cached
        && (settled || *seen == stamp)
    {
        return Ok(tracked.clone());
    }
    let tracked = Arc::new(Tracked::new(index::tracked_paths(repository)?));
    // an index that may be written again within this tick is read again
    let racy = stamp.is_some_and(|stamp| super::stamp::Instant::now().makes_racy(&stamp));
    let seen = if racy { None } else { stamp };
    *cached = Some((seen, tracked.clone()));
    Ok(tracked)
}

fn read_rules(path: &Path) -> Result<Vec<u8>, RepoError> {
    use std::io::Read;
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        // git warns and goes on; fewer rules only mean that more is watched
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Ok(Vec::new()),
        Err(error) => return Err(RepoError::io(path, "reading ignore rules")(error)),
    };
    let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
    let mut content = Vec::new();
    if is_file {
        file.take(MOST_RULES).read_to_end(&mut content).map_err(RepoError::io(path, "reading ignore rules"))?;
    }
    Ok(content)
}
