//! Puts paths back as a capture had them.
//!
//! Owns the order of the steps and the checks before each. Must not know why something is put back. Guarantees: only
//! the given paths are touched; nothing is written through a link, outside the root, or into an inode that somebody
//! else may hold (unlink, then create exclusively); what changed since it was captured is left and told; running it
//! again after a crash at any point finishes it, because what is half written differs from the capture and is put
//! back again.

mod bring;
mod dependents;

pub(crate) use dependents::with_dependents;

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use super::beneath::{look, open_folder, remove_all, set_folder_mode};
use super::error::RepoError;
use super::path::{TreePath, os, split};
use super::snapshot::{Delta, Left, Node};
use super::stamp::{self, Stamp};
use super::store::Store;

/// A path that could not be put back, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The path.
    pub path: TreePath,
    /// Why it was left as it is.
    pub why: String,
}

/// What was done to put paths back.
#[derive(Debug, Default)]
pub(crate) struct Reverted {
    pub(crate) written: u64,
    pub(crate) removed: u64,
    pub(crate) modes: u64,
    pub(crate) conflicts: Vec<Conflict>,
}

impl Reverted {
    pub(crate) fn done(&self) -> u64 {
        self.written + self.removed + self.modes
    }
}

/// One piece of work beneath one root.
pub(crate) struct Revert<'a> {
    root: BorrowedFd<'a>,
    /// for messages
    name: &'a Path,
    store: &'a mut Store,
    /// put the recorded mtime back as well (the index: git judges by it what it need not read again)
    times: bool,
    report: Reverted,
    /// folder that was opened last
    open: Option<(Vec<u8>, OwnedFd)>,
    /// folders that were made writable for the work, and the mode that they had
    loosened: Vec<(Vec<u8>, u32)>,
}

impl<'a> Revert<'a> {
    pub(crate) fn new(root: BorrowedFd<'a>, name: &'a Path, store: &'a mut Store) -> Revert<'a> {
        Revert { root, name, store, times: false, report: Reverted::default(), open: None, loosened: Vec::new() }
    }

    pub(crate) fn with_times(mut self) -> Revert<'a> {
        self.times = true;
        self
    }

    /// Puts the old side of each delta back.
    pub(crate) fn run(mut self, deltas: &[Delta]) -> Result<Reverted, RepoError> {
        self.open_up_folders(deltas)?;
        let mut removals: Vec<_> = deltas
            .iter()
            .filter(|delta| delta.new.is_some() && (delta.old.is_none() || delta.was_folder() != delta.is_folder()))
            .collect();
        removals.sort_by(|a, b| b.path.cmp(&a.path));
        for delta in removals {
            self.remove(delta)?;
        }
        self.open = None;
        let mut wanted: Vec<_> = deltas.iter().filter(|delta| delta.old.is_some()).collect();
        wanted.sort_by(|a, b| a.path.cmp(&b.path));
        for delta in &wanted {
            self.bring_back(delta)?;
        }
        self.open = None;
        self.set_folder_modes(&wanted)?;
        Ok(self.report)
    }

    fn failed(&self, path: &[u8], doing: &'static str) -> impl FnOnce(Errno) -> RepoError + use<> {
        RepoError::os(&self.name.join(os(path)), doing)
    }

    fn conflict(&mut self, path: &[u8], why: impl Into<String>) {
        self.report.conflicts.push(Conflict { path: TreePath::new(path), why: why.into() });
    }

    /// Folders whose mode changed get all rights of their owner for the time of the work.
    fn open_up_folders(&mut self, deltas: &[Delta]) -> Result<(), RepoError> {
        for delta in deltas.iter().filter(|delta| delta.was_folder() && delta.is_folder()) {
            let Ok(folder) = open_folder(self.root, &delta.path) else { continue };
            let mode = delta.new.as_ref().map_or(0, Node::mode);
            if mode & 0o700 != 0o700 {
                let failed = self.failed(&delta.path, "changing the mode");
                set_folder_mode(folder.as_fd(), mode | 0o700).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// The folder of a path, writable.
    fn folder_of(&mut self, path: &[u8]) -> Result<BorrowedFd<'_>, Errno> {
        let (folder, _) = split(path);
        if self.open.as_ref().is_none_or(|open| open.0 != folder) {
            let opened = open_folder(self.root, folder)?;
            let mode = Stamp::of(&rustix::fs::fstat(&opened)?).permissions();
            if mode & 0o300 != 0o300 {
                set_folder_mode(opened.as_fd(), mode | 0o700)?;
                self.loosened.push((folder.to_vec(), mode));
            }
            self.open = Some((folder.to_vec(), opened));
        }
        self.open.as_ref().map(|open| open.1.as_fd()).ok_or(Errno::BADF)
    }

    /// The folder of a path that was made writable before.
    fn reopen(&self, path: &[u8]) -> Result<OwnedFd, RepoError> {
        open_folder(self.root, split(path).0).map_err(self.failed(path, "opening the folder of"))
    }

    fn remove(&mut self, delta: &Delta) -> Result<(), RepoError> {
        let Some(new) = &delta.new else { return Ok(()) };
        let path = &delta.path;
        let (_, name) = split(path);
        let in_git_folder = self.times;
        let folder = match self.folder_of(path) {
            Ok(folder) => folder,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(errno) => return Err(self.failed(path, "opening the folder of")(errno)),
        };
        let seen = match look(folder, name) {
            Ok(Some(seen)) => seen,
            Ok(None) => return Ok(()),
            Err(errno) => return Err(self.failed(path, "looking at")(errno)),
        };
        if seen.kind() != new.mode() & stamp::TYPE_MASK || new.stamp().is_some_and(|stamp| !still(stamp, &seen)) {
            self.conflict(path, "it changed after it was captured");
            return Ok(());
        }
        let removed = match new {
            Node::NestedGit { .. } if seen.kind() == stamp::FOLDER => return self.move_away(path),
            Node::Left { why: Left::TooDeep | Left::UnreadableFolder, .. } => remove_all(folder, name),
            Node::Folder(_) => match unlinkat(folder, os(name), AtFlags::REMOVEDIR) {
                // in a git folder the objects are not captured, so commits may be in what is left of it
                Err(Errno::NOTEMPTY | Errno::EXIST) if in_git_folder => return self.move_away(path),
                // the folder was not there at the checkpoint, so what git ignores in it was not either
                Err(Errno::NOTEMPTY | Errno::EXIST) => remove_with_ignored(folder, name, new),
                other => other,
            },
            _ => unlinkat(folder, os(name), AtFlags::empty()),
        };
        match removed {
            Ok(()) => self.report.removed += 1,
            Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                // a folder that still holds what may stay
                if delta.old.is_some() {
                    self.conflict(path, "a folder with other contents stands in its place");
                }
            }
            Err(errno) => self.conflict(path, format!("it could not be removed: {errno}")),
        }
        Ok(())
    }

    /// A git folder that came into being is moved out of the tree: commits may be in it.
    fn move_away(&mut self, path: &[u8]) -> Result<(), RepoError> {
        let target = self.store.displaced();
        let (_, name) = split(path);
        let name = name.to_vec();
        let folder = self.folder_of(path).map_err(RepoError::os(&target, "opening the folder of a git folder"))?;
        let moved = match rustix::fs::renameat(folder, os(&name), rustix::fs::CWD, &target) {
            Err(Errno::XDEV) => remove_all(folder, &name),
            other => other,
        };
        match moved {
            Ok(()) => self.report.removed += 1,
            Err(errno) => self.conflict(path, format!("it could not be removed: {errno}")),
        }
        Ok(())
    }

    /// Modes of folders come last, the deepest first: a folder may forbid what was to be done in it.
    fn set_folder_modes(&mut self, wanted: &[&Delta]) -> Result<(), RepoError> {
        let mut modes: Vec<(Vec<u8>, u32)> = Vec::new();
        for delta in wanted {
            match &delta.old {
                Some(Node::Folder(folder) | Node::Kept(folder)) => modes.push((delta.path.clone(), folder.mode)),
                Some(Node::Left { stamp, .. }) if stamp.kind() == stamp::FOLDER => {
                    modes.push((delta.path.clone(), stamp.mode));
                }
                _ => {}
            }
        }
        let loosened = std::mem::take(&mut self.loosened);
        for (path, mode) in loosened {
            if !modes.iter().any(|(known, _)| *known == path) {
                modes.push((path, mode));
            }
        }
        modes.sort_by(|a, b| b.0.cmp(&a.0));
        for (path, mode) in modes {
            let Ok(folder) = open_folder(self.root, &path) else { continue };
            let now =
                rustix::fs::fstat(&folder).map(|stat| Stamp::of(&stat)).map_err(self.failed(&path, "looking at"))?;
            if now.permissions() != mode & 0o7777 {
                set_folder_mode(folder.as_fd(), mode).map_err(self.failed(&path, "changing the mode"))?;
                self.report.modes += 1;
            }
        }
        Ok(())
    }
}

/// Is a file still what was captured? A link count that moved (its other names were removed) also moves the ctime.
fn still(captured: &Stamp, seen: &Stamp) -> bool {
    seen.kind() == captured.kind()
        && (seen.kind() == stamp::FOLDER
            || (seen.ino == captured.ino && seen.size == captured.size && seen.mtime == captured.mtime))
}

/// Removes a folder and those entries of it that were captured as ignored, and nothing that came later.
fn remove_with_ignored(folder: BorrowedFd<'_>, name: &[u8], node: &Node) -> Result<(), Errno> {
    let Node::Folder(captured) = node else { return Err(Errno::NOTEMPTY) };
    let inside = open_folder(folder, name)?;
    for entry in captured.entries.iter().filter(|entry| !entry.node.is_watched()) {
        remove_all(inside.as_fd(), &entry.name)?;
    }
    unlinkat(folder, os(name), AtFlags::REMOVEDIR)
}
