//! Which changed paths go into a commit, and how.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::super::checkpoint::Checkpoint;
use super::super::super::error::RepoError;
use super::super::super::object::ObjectId;
use super::super::super::path::{TreePath, split};
use super::super::super::snapshot::{Delta, Folder, Node, difference};
use super::super::super::stamp;
use super::super::Workspace;
use super::super::changes::LeftAlone;
use super::Blob;

/// What a commit is made of.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// paths that git takes from the working tree, or that are gone
    pub(super) as_they_are: Vec<Vec<u8>>,
    /// contents from which the user's own changes were taken out
    pub(super) merged: Vec<Merged>,
    pub(super) skipped: Vec<LeftAlone>,
}

#[derive(Debug)]
pub(super) struct Merged {
    pub(super) path: Vec<u8>,
    pub(super) mode: String,
    pub(super) content: Vec<u8>,
}

/// Does a captured tree hold this content at this path?
pub(super) fn holds(root: &Folder, path: &[u8], id: ObjectId) -> bool {
    matches!(root.at(path), Some(Node::File(file)) if file.id == id)
}

impl Workspace {
    /// Sorts the changes since `start` into those that can be taken and those that can't.
    pub(super) fn plan_commit(
        &mut self,
        start: &Checkpoint,
        head: &BTreeMap<Vec<u8>, Blob>,
    ) -> Result<Plan, RepoError> {
        let base = self.captured(&start.id)?;
        let now = self.look(Some(&base.work.root))?;
        let mut plan = Plan::default();
        let mut stuck = Vec::new();
        let trusts_modes = self.trusts_modes()?;
        let nested = nested_repositories(&base.work.root, &now, head);
        for delta in difference(&base.work.root, &now) {
            let is_file = |node: &Option<Node>| matches!(node, Some(Node::File(_)));
            if !delta.is_watched() {
                continue;
            }
            let mut skip = |why: &str| {
                plan.skipped.push(LeftAlone { path: TreePath::new(&*delta.path), why: why.to_string() });
            };
            if !is_file(&delta.old) && !is_file(&delta.new) {
                if matches!(delta.new, Some(Node::Left { .. } | Node::Special { .. })) {
                    skip("its content was not captured");
                }
                continue;
            }
            if nested.iter().any(|folder| super::super::super::path::is_below(&delta.path, folder)) {
                skip("it is in a nested repository");
                continue;
            }
            let in_head = head.get(&delta.path);
            if in_head.is_none() && delta.new.is_some() && is_ignored_now(&now, &delta.path) {
                skip("git ignores it now");
                continue;
            }
            if delta.new.is_none() && in_head.is_none() {
                continue;
            }
            if self.was_clean(&delta, in_head, trusts_modes)? || delta.new.is_none() {
                plan.as_they_are.push(delta.path.clone());
                continue;
            }
            match self.separate(&delta, in_head)? {
                Some(merged) => plan.merged.push(merged),
                None => stuck.push(TreePath::new(&*delta.path)),
            }
        }
        if stuck.is_empty() {
            return Ok(plan);
        }
        let why = "the result changes what you had changed before the run and not committed, and the two can't be told apart; commit or stash your own changes first, or commit the result yourself";
        Err(RepoError::CommitRefused { why: why.into(), paths: stuck })
    }

    fn trusts_modes(&self) -> Result<bool, RepoError> {
        let answer = self.run(|git| git.args(["config", "--type=bool", "--get", "core.fileMode"]).run())?;
        Ok(answer.output.trim_ascii() != b"false")
    }

    /// Was the path at the start as HEAD has it?
    fn was_clean(&mut self, delta: &Delta, head: Option<&Blob>, trusts_modes: bool) -> Result<bool, RepoError> {
        let (Some(Node::File(old)), Some((mode, id))) = (&delta.old, head) else {
            return Ok(head.is_none() && !matches!(delta.old, Some(Node::File(_))));
        };
        let is_link = old.stamp.kind() == stamp::LINK;
        if is_link != (mode == "120000") {
            return Ok(false);
        }
        if !is_link && trusts_modes && (old.stamp.mode & 0o100 != 0) != (mode == "100755") {
            return Ok(false);
        }
        if *id == old.id.to_string() {
            return Ok(true);
        }
        let content = self.store.read(old.id)?;
        if is_link {
            let args = ["hash-object", "--stdin", "--no-filters"];
            return Ok(self.run(|git| git.args(args).input(content).line())? == *id);
        }
        let path = path_option(&delta.path);
        Ok(self.run(|git| git.args(["hash-object", "--stdin"]).args([path]).input(content).line())? == *id)
    }
}

pub(super) fn path_option(path: &[u8]) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from("--path=");
    option.push(super::super::super::path::os(path));
    option
}

/// By the rules of now alone: nobody wants build outputs in a commit because a rule for them is new.
fn is_ignored_now(root: &Arc<Folder>, path: &[u8]) -> bool {
    let (folder, name) = split(path);
    let folder = if folder.is_empty() {
        Some(root)
    } else {
        match root.at(folder) {
            Some(Node::Folder(folder)) => Some(folder),
            _ => None,
        }
    };
    let entry = folder.and_then(|folder| folder.get(name));
    entry.and_then(|entry| entry.verdict).is_some_and(|verdict| verdict.ignored_now)
}

/// Folders with a git folder of their own, and submodules.
fn nested_repositories(base: &Folder, now: &Folder, head: &BTreeMap<Vec<u8>, Blob>) -> BTreeSet<Vec<u8>> {
    let mut nested: BTreeSet<Vec<u8>> =
        head.iter().filter(|(_, (mode, _))| mode == "160000").map(|(path, _)| path.clone()).collect();
    for root in [base, now] {
        root.visit(&mut Vec::new(), &mut |path, entry| {
            if matches!(entry.node, Node::NestedGit { .. }) {
                nested.insert(split(path).0.to_vec());
            }
        });
    }
    nested
}
