//! Rollback: the working tree as a checkpoint had it, byte for byte.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;

use super::super::beneath::{look, open_folder};
use super::super::checkpoint::Checkpoint;
use super::super::error::RepoError;
use super::super::object::TreeId;
use super::super::path::{is_below, os, split};
use super::super::revert::{Conflict, Revert, with_dependents};
use super::super::snapshot::{Delta, Folder, Node, difference};
use super::Workspace;

/// What a folder hides until its mode is put back shows in the next round.
const MOST_ROUNDS: usize = 4;

/// What a rollback did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreReport {
    /// The tree after it, by a walk that verifies it.
    pub tree: TreeId,
    /// True when that is the tree that was asked for.
    pub exact: bool,
    /// Files, links and folders that were written.
    pub written: u64,
    /// Names that were removed.
    pub removed: u64,
    /// Modes that were put back.
    pub modes: u64,
    /// What could not be put back, and why.
    pub conflicts: Vec<Conflict>,
}

impl Workspace {
    /// Brings the working tree back to a checkpoint. Only paths that differ are touched; what git ignored at the
    /// checkpoint is never deleted; what changed under our hands is left and told. Refs and the index are the guard's.
    ///
    /// # Errors
    /// A tree that can't be captured whole, a checkpoint that is not there, errors of the file system. A path that
    /// can't be put back is not an error but a conflict in the report.
    pub fn restore(&mut self, to: &Checkpoint) -> Result<RestoreReport, RepoError> {
        let base = self.captured(&to.id)?;
        let root = base.work.root.clone();
        self.bring_to(&root, &root, base.work.id, None)
    }

    /// Brings the working tree to a tree that was captured after the last checkpoint: for what a sensor dirtied.
    ///
    /// # Errors
    /// As [`Workspace::restore`].
    pub fn restore_tree(&mut self, to: &TreeId) -> Result<RestoreReport, RepoError> {
        let target = self.folder_of(to)?;
        let known = self.remembered.iter().any(|(stored, _)| stored.id == *to);
        // a tree from the store does not say what was ignored; the checkpoint does
        let base = match (known, self.checkpoints.last()) {
            (false, Some((_, captured))) => captured.work.root.clone(),
            _ => target.clone(),
        };
        self.bring_to(&target, &base, *to, None)
    }

    /// Brings single paths, and all that is below them, back to a checkpoint.
    ///
    /// # Errors
    /// As [`Workspace::restore`].
    pub fn revert_paths(
        &mut self,
        to: &Checkpoint,
        paths: &[super::super::path::TreePath],
    ) -> Result<RestoreReport, RepoError> {
        let base = self.captured(&to.id)?;
        let root = base.work.root.clone();
        let paths: Vec<Vec<u8>> = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
        self.bring_to(&root, &root, base.work.id, Some(&paths))
    }

    /// `target`: what is wanted. `base`: what says which paths were ignored. `only`: the paths to touch.
    fn bring_to(
        &mut self,
        target: &Arc<Folder>,
        base: &Arc<Folder>,
        id: TreeId,
        only: Option<&[Vec<u8>]>,
    ) -> Result<RestoreReport, RepoError> {
        let mut report =
            RestoreReport { tree: id, exact: false, written: 0, removed: 0, modes: 0, conflicts: Vec::new() };
        let mut root = self.look(Some(base))?;
        for _ in 0..MOST_ROUNDS {
            let mut deltas = wanted(target, &root, only);
            if deltas.is_empty() {
                report.conflicts.clear();
                break;
            }
            let folder = self.open_root()?;
            if only.is_none() && move_ignored_back(folder.as_fd(), &difference(target, &root)) {
                root = self.look(Some(base))?;
                deltas = wanted(target, &root, only);
            }
            let name = self.repository.root().to_path_buf();
            let reverted = Revert::new(folder.as_fd(), &name, &mut self.store).run(&deltas)?;
            report.written += reverted.written;
            report.removed += reverted.removed;
            report.modes += reverted.modes;
            let stuck = reverted.done() == 0;
            report.conflicts = reverted.conflicts;
            root = self.look(Some(base))?;
            if stuck {
                break;
            }
        }
        report.tree = self.remember(&root)?.0.id;
        report.exact = report.tree == id;
        if !report.exact && only.is_none() {
            for delta in wanted(target, &root, only) {
                let told = report.conflicts.iter().any(|conflict| conflict.path.as_bytes() == delta.path);
                if !told && delta.is_watched() {
                    let path = super::super::path::TreePath::new(&*delta.path);
                    report.conflicts.push(Conflict { path, why: "it differs again after it was put back".into() });
                }
            }
        }
        Ok(report)
    }
}

/// What is to be put back. Ignored paths that were not captured can't be.
fn wanted(target: &Arc<Folder>, now: &Arc<Folder>, only: Option<&[Vec<u8>]>) -> Vec<Delta> {
    let mut deltas = difference(target, now);
    deltas.retain(|delta| !matches!(delta.old, Some(Node::Ignored { .. })) || delta.new.is_some());
    let Some(only) = only else { return deltas };
    let mut chosen: Vec<bool> =
        deltas.iter().map(|delta| only.iter().any(|path| *path == delta.path || is_below(&delta.path, path))).collect();
    with_dependents(&deltas, &mut chosen);
    let mut chosen = chosen.into_iter();
    deltas.retain(|_| chosen.next().unwrap_or(false));
    deltas
}

/// Something that git ignores may have been renamed to a name that it does not ignore. It looks new there, and to
/// remove it would lose the user's data: it is moved back, as its inode tells. True when anything was moved.
fn move_ignored_back(root: std::os::fd::BorrowedFd<'_>, deltas: &[Delta]) -> bool {
    let gone: HashMap<u64, &Delta> = deltas
        .iter()
        .filter_map(|delta| match (&delta.old, &delta.new) {
            (Some(Node::Ignored { ino, .. }), None) if *ino != 0 => Some((*ino, delta)),
            (Some(Node::Kept(folder)), None) if folder.ino != 0 => Some((folder.ino, delta)),
            _ => None,
        })
        .collect();
    let mut moved = false;
    for delta in deltas.iter().filter(|delta| delta.old.is_none()) {
        let Some(home) = delta.new.as_ref().and_then(|new| gone.get(&new.ino())) else { continue };
        let ((from, name), (to, old_name)) = (split(&delta.path), split(&home.path));
        let folders = (open_folder(root, from), open_folder(root, to));
        let (Ok(from), Ok(to)) = folders else { continue };
        // never over something that stands there
        if matches!(look(to.as_fd(), old_name), Ok(None)) {
            moved |= rustix::fs::renameat(&from, os(name), &to, os(old_name)).is_ok();
        }
    }
    moved
}
