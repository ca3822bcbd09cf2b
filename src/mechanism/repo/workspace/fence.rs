//! The fence: reverts what was changed outside the scope.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::HashSet;
use std::os::fd::AsFd;

use super::super::checkpoint::Checkpoint;
use super::super::error::RepoError;
use super::super::object::ObjectId;
use super::super::path::{TreePath, split};
use super::super::revert::{Conflict, Revert, with_dependents};
use super::super::snapshot::{Delta, DeltaKind, File, Node, difference};
use super::Workspace;
use super::changes::ChangeKind;
use crate::policy::Scope;

/// What a folder hides until its mode is put back shows in the next round.
const MOST_ROUNDS: usize = 4;

/// A path that the fence reverted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fenced {
    /// The path relative to the root.
    pub path: TreePath,
    /// How it had been changed.
    pub how: ChangeKind,
}

/// What the fence did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FenceReport {
    /// What was reverted, sorted by path.
    pub fenced: Vec<Fenced>,
    /// What lies outside the scope and could not be reverted, and why. The tree must not be believed then.
    pub conflicts: Vec<Conflict>,
}

impl Workspace {
    /// Reverts every change since the checkpoint to a path that the scope does not hold: additions, edits, deletions,
    /// modes, links, and both sides of a rename that crosses its border.
    ///
    /// # Errors
    /// A tree that can't be captured whole, a checkpoint that is not there, errors of the file system.
    pub fn fence(&mut self, since: &Checkpoint, scope: &Scope) -> Result<FenceReport, RepoError> {
        let base = self.captured(&since.id)?;
        // where `Tests` and `tests` are one folder, a glob means both
        let folded = match self.repository.folds_case() {
            true => scope.clone().folding_case(),
            false => Ok(scope.clone()),
        };
        let scope = &folded.map_err(|error| RepoError::Unsupported {
            path: self.repository.root().to_path_buf(),
            why: error.to_string(),
        })?;
        let mut fenced: BTreeMap<Vec<u8>, ChangeKind> = BTreeMap::new();
        let mut conflicts = Vec::new();
        let mut left = None;
        for _ in 0..MOST_ROUNDS {
            let root = self.look(Some(&base.work.root))?;
            let deltas = difference(&base.work.root, &root);
            let denied = denied(&deltas, scope);
            if denied.is_empty() {
                conflicts.clear();
                left = Some(root);
                break;
            }
            let folder = self.open_root()?;
            let name = self.repository.root().to_path_buf();
            let reverted = Revert::new(folder.as_fd(), &name, &mut self.store).run(&denied)?;
            for delta in &denied {
                fenced.entry(delta.path.clone()).or_insert_with(|| delta.kind().into());
            }
            let stuck = reverted.done() == 0;
            conflicts = reverted.conflicts;
            if stuck && !conflicts.is_empty() {
                break;
            }
        }
        self.fenced = left.map(|root| (since.id.clone(), root));
        for conflict in &conflicts {
            fenced.remove(conflict.path.as_bytes());
        }
        // a folder is told by what is in it
        let above = folders_above(fenced.keys().map(|path| &**path));
        let fenced = fenced
            .iter()
            .filter(|(path, kind)| {
                !matches!(kind, ChangeKind::Added | ChangeKind::Deleted) || !above.contains(&***path)
            })
            .map(|(path, kind)| Fenced { path: TreePath::new(&**path), how: *kind })
            .collect();
        Ok(FenceReport { fenced, conflicts })
    }
}

/// The deltas that the scope does not allow, with those that they need.
fn denied(deltas: &[Delta], scope: &Scope) -> Vec<Delta> {
    let watched = |delta: &Delta| delta.is_watched() || (scope.watches_ignored() && !is_ignored(delta));
    let mut chosen: Vec<bool> = deltas.iter().map(|delta| watched(delta) && !allows(scope, delta)).collect();
    // a new folder that holds something allowed stays
    let staying = deltas.iter().zip(&chosen).filter(|(delta, chosen)| !**chosen && delta.new.is_some());
    let above = folders_above(staying.map(|(delta, _)| &*delta.path));
    for (delta, chosen) in deltas.iter().zip(chosen.iter_mut()) {
        *chosen &= !(delta.is_folder() && delta.old.is_none() && above.contains(&*delta.path));
    }
    // the other side of a rename out of the scope: the content would be lost from the tree
    let moved_out: HashSet<ObjectId> = deltas
        .iter()
        .zip(&chosen)
        .filter(|(delta, chosen)| **chosen && delta.kind() == DeltaKind::Added)
        .filter_map(|(delta, _)| content(delta.new.as_ref()))
        .collect();
    if !moved_out.is_empty() {
        for (delta, chosen) in deltas.iter().zip(chosen.iter_mut()) {
            let is_source = delta.kind() == DeltaKind::Deleted
                && delta.is_watched()
                && content(delta.old.as_ref()).is_some_and(|id| moved_out.contains(&id));
            *chosen |= is_source;
        }
    }
    with_dependents(deltas, &mut chosen);
    deltas.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(delta, _)| delta.clone()).collect()
}

/// Every folder above one of the paths.
fn folders_above<'a>(paths: impl Iterator<Item = &'a [u8]>) -> HashSet<&'a [u8]> {
    let mut above = HashSet::new();
    for path in paths {
        let mut folder = split(path).0;
        while !folder.is_empty() && above.insert(folder) {
            folder = split(folder).0;
        }
    }
    above
}

fn allows(scope: &Scope, delta: &Delta) -> bool {
    let only_folders = (delta.old.is_none() || delta.was_folder()) && (delta.new.is_none() || delta.is_folder());
    if only_folders { scope.allows_folder(&delta.path) } else { scope.allows(&delta.path) }
}

fn is_ignored(delta: &Delta) -> bool {
    matches!(delta.old, Some(Node::Ignored { .. })) || matches!(delta.new, Some(Node::Ignored { .. }))
}

/// Content that is worth looking for: an empty file is no sign of a rename.
fn content(node: Option<&Node>) -> Option<ObjectId> {
    match node {
        Some(Node::File(File { id, stamp, .. })) if stamp.size > 0 || stamp.ino == 0 => Some(*id),
        _ => None,
    }
}
