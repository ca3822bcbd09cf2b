//! What changed in the working tree since a checkpoint.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

use super::super::checkpoint::{Captured, Checkpoint};
use super::super::error::RepoError;
use super::super::object::{ObjectId, TreeId};
use super::super::path::TreePath;
use super::super::snapshot::{Delta, DeltaKind, Folder, Left, Node, difference};
use super::super::stamp;
use super::Workspace;

/// How a path changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there.
    Added,
    /// Its content changed.
    Edited,
    /// It is gone.
    Deleted,
    /// Only its permission bits changed.
    ModeChanged,
    /// A file became a link, a folder became a file, and the like.
    TypeChanged,
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ChangeKind::Added => "added",
            ChangeKind::Edited => "edited",
            ChangeKind::Deleted => "deleted",
            ChangeKind::ModeChanged => "mode changed",
            ChangeKind::TypeChanged => "replaced by something else",
        })
    }
}

impl From<DeltaKind> for ChangeKind {
    fn from(kind: DeltaKind) -> ChangeKind {
        match kind {
            DeltaKind::Added => ChangeKind::Added,
            DeltaKind::Edited => ChangeKind::Edited,
            DeltaKind::Deleted => ChangeKind::Deleted,
            DeltaKind::ModeChanged => ChangeKind::ModeChanged,
            DeltaKind::TypeChanged => ChangeKind::TypeChanged,
        }
    }
}

/// One side of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// Mode with its type bits, as `stat` tells it.
    pub mode: u32,
    /// The content in the shadow store, where it was captured.
    pub content: Option<ObjectId>,
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path relative to the root.
    pub path: TreePath,
    /// How it changed.
    pub kind: ChangeKind,
    /// How it was; `None` when it was not there.
    pub old: Option<Side>,
    /// How it is; `None` when it is gone.
    pub new: Option<Side>,
}

/// A path that can't be covered, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftAlone {
    /// The path relative to the root.
    pub path: TreePath,
    /// Why it is left alone.
    pub why: String,
}

/// The change since a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// The tree of the checkpoint.
    pub before: TreeId,
    /// The tree now.
    pub tree: TreeId,
    /// What changed, sorted by path. Folders are listed where they are empty, or changed their mode or type.
    pub paths: Vec<Change>,
    /// What can't be covered now.
    pub left_alone: Vec<LeftAlone>,
}

impl Changes {
    /// True when the tree is the same as at the checkpoint.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.before == self.tree
    }
}

impl Workspace {
    /// What changed in the working tree since a checkpoint, by looking at it now; refs and the index play no part.
    ///
    /// # Errors
    /// A tree that can't be captured whole, a checkpoint that is not there.
    pub fn changes(&mut self, since: &Checkpoint) -> Result<Changes, RepoError> {
        let base = self.captured(&since.id)?;
        let root = self.look(Some(&base.work.root))?;
        self.compared(&base, root)
    }

    /// The same, right after the fence: of the tree as the fence saw that it had left it, without another look. What a
    /// person changes between the two shows at the next checkpoint.
    ///
    /// # Errors
    /// As [`Workspace::changes`].
    pub fn changes_after_fence(&mut self, since: &Checkpoint) -> Result<Changes, RepoError> {
        let base = self.captured(&since.id)?;
        let root = match self.fenced.take() {
            Some((id, root)) if id == since.id => root,
            _ => self.look(Some(&base.work.root))?,
        };
        self.compared(&base, root)
    }

    fn compared(&mut self, base: &Captured, root: Arc<Folder>) -> Result<Changes, RepoError> {
        let (now, _) = self.remember(&root)?;
        let deltas = difference(&base.work.root, &root);
        let mut left_alone = left_alone(&root);
        left_alone.extend(deltas.iter().filter(|delta| delta.new.is_none()).filter_map(gone));
        let paths = deltas.iter().filter(|delta| delta.is_watched() && tells(delta)).map(change).collect();
        Ok(Changes { before: base.work.id, tree: now.id, paths, left_alone })
    }
}

pub(super) fn change(delta: &Delta) -> Change {
    Change {
        path: TreePath::new(&*delta.path),
        kind: delta.kind().into(),
        old: delta.old.as_ref().map(side),
        new: delta.new.as_ref().map(side),
    }
}

fn side(node: &Node) -> Side {
    let content = match node {
        Node::File(file) => Some(file.id),
        Node::NestedGit { id, .. } => *id,
        _ => None,
    };
    Side { mode: node.mode(), content }
}

/// A folder that came or went with things in it is told by those things.
fn tells(delta: &Delta) -> bool {
    let full = |node: &Option<Node>| matches!(node, Some(Node::Folder(folder)) if holds_watched(folder));
    match (&delta.old, &delta.new) {
        (None, _) => !full(&delta.new),
        (_, None) => !full(&delta.old),
        _ => true,
    }
}

fn holds_watched(folder: &Arc<Folder>) -> bool {
    folder.entries.iter().any(|entry| entry.node.is_watched())
}

/// Everything in a capture whose content is not covered.
fn left_alone(root: &Folder) -> Vec<LeftAlone> {
    let mut left = Vec::new();
    root.visit_some(&mut Vec::new(), &Folder::has_odd, &mut |path, entry| {
        let why = match &entry.node {
            Node::Left { why: Left::OverCap, stamp } => format!("over the size cap ({} bytes)", stamp.size),
            Node::Left { why: Left::Unreadable, .. } => "not readable".to_string(),
            Node::Left { why: Left::UnreadableFolder, .. } => "a folder that is not readable".to_string(),
            Node::Left { why: Left::TooDeep, .. } => "nested too deeply".to_string(),
            Node::Special { stamp, .. } if stamp.kind() != stamp::FIFO => "a socket or device".to_string(),
            Node::NestedGit { stamp, .. } if stamp.kind() == stamp::FOLDER => {
                "the git folder of a nested repository: its files are covered, its refs are not".to_string()
            }
            _ => return,
        };
        left.push(LeftAlone { path: TreePath::new(path), why });
    });
    left
}

fn gone(delta: &Delta) -> Option<LeftAlone> {
    match &delta.old {
        Some(Node::Ignored { .. }) => {
            let why = "it is gone; git ignores it, so its content was not captured".to_string();
            Some(LeftAlone { path: TreePath::new(&*delta.path), why })
        }
        _ => None,
    }
}
