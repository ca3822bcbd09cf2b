//! The git folder: captured before each turn, and put back byte for byte after it.
//!
//! Owns the capture of everything in a git folder but its objects (which are linked, see [`super::store`]), what an
//! agent's changes in it are called, git's own lock files, and the putting back. It parses as little as it can, runs
//! nothing, and believes nothing that it finds.

mod locks;
mod refs;
mod undone;

pub(crate) use locks::{LockPolicy, settle};
pub(crate) use refs::{Refs, read_refs};
pub(crate) use undone::{UndoneInput, name_undone};

use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::discover::Repository;
use super::error::RepoError;
use super::snapshot::{Folder, Node, Profile, Tracked, Walk};
use super::store::Store;
use rustix::fs::{Mode, OFlags};

/// Something in the git folder that the guard put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// What it was: `commit`, `branch`, `tag`, `remote`, `stash`, `ref`, `HEAD`, `index`, `config`, `hook`, `info`,
    /// `worktree`, `submodule`, `alternates`, `operation` (a merge or rebase), `lock`, `reflog`, `objects`,
    /// `git folder` or `file`.
    pub what: String,
    /// Which one, and what had become of it.
    pub detail: String,
}

impl Undone {
    pub(crate) fn new(what: &str, detail: impl Into<String>) -> Undone {
        Undone { what: what.into(), detail: detail.into() }
    }
}

impl std::fmt::Display for Undone {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: {}", self.what, self.detail)
    }
}

/// The folders to guard: the common one, and that of this working tree where it lies elsewhere.
pub(crate) fn folders(repository: &Repository) -> Vec<PathBuf> {
    let common = repository.common_dir().to_path_buf();
    let own = repository.git_dir();
    if own.starts_with(&common) { vec![common] } else { vec![common, own.to_path_buf()] }
}

/// Opens a folder by its pinned path, which must not have become a link.
pub(crate) fn open(path: &Path) -> Result<OwnedFd, RepoError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(RepoError::os(path, "opening"))
}

/// Captures a git folder.
pub(crate) fn capture(store: &mut Store, path: &Path, prev: Option<&Arc<Folder>>) -> Result<Arc<Folder>, RepoError> {
    let folder = open(path)?;
    // no ignore rule holds here, so the index is never asked for
    let mut tracked = || Ok(Arc::new(Tracked::default()));
    Walk::new(store, path, Profile::GitFolder, u64::MAX, &mut tracked).run(folder, prev, None, None)
}

/// The `objects` folders in a captured git folder, relative to it: its own, and those of submodules.
pub(crate) fn areas(captured: &Folder) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    captured.visit(&mut Vec::new(), &mut |path, entry| {
        let is_area = &*entry.name == b"objects" && matches!(entry.node, Node::Folder(_));
        if is_area && (path == b"objects" || path.starts_with(b"modules/")) {
            found.push(path.to_vec());
        }
    });
    found
}
