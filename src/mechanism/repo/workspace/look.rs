//! Looks at the disk: the working tree, the git folders, and the ignore rules outside the tree.

use rustix::fs::{Mode, OFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use super::super::beneath::set_folder_mode;
use super::super::discover::Repository;
use super::super::error::RepoError;
use super::super::gitfolder::{self, LockPolicy, Undone};
use super::super::index;
use super::super::object::{Kind, ObjectId};
use super::super::path::os;
use super::super::snapshot::{Chain, Folder, Profile, Rules, Tracked, Walk};
use super::super::stamp::{Instant, Stamp};
use super::Workspace;

/// Longest file of ignore rules outside the tree that is read.
const MOST_RULES: u64 = 4 << 20;

impl Workspace {
    /// Looks at the working tree. `base`: the capture that it will be compared with.
    pub(super) fn look(&mut self, base: Option<&Arc<Folder>>) -> Result<Arc<Folder>, RepoError> {
        self.fenced = None;
        let folder = self.open_root()?;
        let (_, now) = self.excludes()?;
        let start = self.start.clone();
        let fold_case = self.repository.folds_case();
        let index_now = index_stamp(&self.repository);
        let Workspace { repository, store, tracked, look, options, index_seen, .. } = self;
        let mut source = || tracked_of(repository, tracked, base.is_some());
        let mut walk = Walk::new(store, repository.root(), Profile::WorkTree, options.size_cap, &mut source);
        walk.now = now;
        walk.then = start.as_ref().map(|start| start.chain.clone());
        walk.watch_ignored = options.watch_ignored;
        walk.fold_case = fold_case;
        walk.same_index = base.is_some() || (index_now.is_some() && index_now == *index_seen);
        let start_root = start.as_ref().map(|start| &start.root);
        let root = walk.run(folder, look.as_ref(), base, start_root)?;
        self.look = Some(root.clone());
        if base.is_none() {
            self.index_seen = index_now;
        }
        Ok(root)
    }

    pub(super) fn open_root(&self) -> Result<OwnedFd, RepoError> {
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
                set_folder_mode(place.as_fd(), 0o700).map_err(RepoError::os(root, "making it readable"))?;
                rustix::fs::open(root, flags, Mode::empty()).map_err(RepoError::os(root, "opening"))
            }
            Err(errno) => Err(RepoError::os(root, "opening")(errno)),
        }
    }

    /// The ignore rules outside the tree: the global file, then the repository's own.
    pub(super) fn excludes(&mut self) -> Result<(Vec<ObjectId>, Chain), RepoError> {
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

    /// Looks at a git folder when no lock is in it any more.
    pub(super) fn look_at_git(&mut self, path: &Path) -> Result<(Arc<Folder>, Vec<Undone>), RepoError> {
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
    pub(super) fn link_objects(&mut self, git_folder: &Path, captured: &Folder) -> Result<(), RepoError> {
        let readable = !self.repository.settings().sha256;
        for area in gitfolder::areas(captured) {
            let objects = git_folder.join(os(&area));
            let seen = self.areas.entry(objects.clone()).or_default();
            self.store.link_area(&objects, readable, seen)?;
        }
        Ok(())
    }
}

/// The paths of the index. `settled`: those of the checkpoint count, because the index may be the agent's.
fn tracked_of(
    repository: &Repository,
    cached: &mut Option<(Option<Stamp>, Arc<Tracked>)>,
    settled: bool,
) -> Result<Arc<Tracked>, RepoError> {
    let stamp = index_stamp(repository);
    if let Some((seen, tracked)) = cached
        && (settled || (seen.is_some() && *seen == stamp))
    {
        return Ok(tracked.clone());
    }
    let tracked = Arc::new(Tracked::new(index::tracked_paths(repository)?));
    *cached = Some((stamp, tracked.clone()));
    Ok(tracked)
}

/// The stamp that proves an index unchanged; `None`: there is none, or it may be written again within this tick.
fn index_stamp(repository: &Repository) -> Option<Stamp> {
    let file = repository.git_dir().join("index");
    let stamp = rustix::fs::lstat(&file).ok().map(|stat| Stamp::of(&stat))?;
    (!Instant::now().makes_racy(&stamp)).then_some(stamp)
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
