//! What differs between two captures of one folder.

use std::sync::Arc;

use super::super::path::join;
use super::super::stamp::{self, Stamp};
use super::{Entry, File, Folder, Left, Node};

/// One path that differs. Both sides of a folder stand for the folder itself, not for what is in it.
#[derive(Debug, Clone)]
pub(crate) struct Delta {
    pub(crate) path: Vec<u8>,
    pub(crate) old: Option<Node>,
    pub(crate) new: Option<Node>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeltaKind {
    Added,
    Edited,
    Deleted,
    ModeChanged,
    TypeChanged,
}

impl Delta {
    pub(crate) fn kind(&self) -> DeltaKind {
        let kind = |node: &Node| node.mode() & stamp::TYPE_MASK;
        match (&self.old, &self.new) {
            (None, _) => DeltaKind::Added,
            (_, None) => DeltaKind::Deleted,
            (Some(old), Some(new)) if kind(old) != kind(new) => DeltaKind::TypeChanged,
            (Some(Node::File(old)), Some(Node::File(new))) if old.id == new.id => DeltaKind::ModeChanged,
            (Some(old), Some(_)) if old.is_folder() => DeltaKind::ModeChanged,
            _ => DeltaKind::Edited,
        }
    }

    /// Is it about what is watched, and not about an ignored path?
    pub(crate) fn is_watched(&self) -> bool {
        self.old.as_ref().is_none_or(Node::is_watched) && self.new.as_ref().is_none_or(Node::is_watched)
    }

    pub(crate) fn was_folder(&self) -> bool {
        self.old.as_ref().is_some_and(Node::is_folder)
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.new.as_ref().is_some_and(Node::is_folder)
    }
}

/// Every path that differs, sorted as a walk goes. Stamps do not count, but for contents that are not captured.
/// Ignored paths count where they were kept, or are gone.
pub(crate) fn difference(old: &Arc<Folder>, new: &Arc<Folder>) -> Vec<Delta> {
    let mut deltas = Vec::new();
    if !Arc::ptr_eq(old, new) {
        if old.mode != new.mode {
            let (old, new) = (Some(Node::Folder(old.clone())), Some(Node::Folder(new.clone())));
            deltas.push(Delta { path: Vec::new(), old, new });
        }
        compare(Some(old), Some(new), &[], &mut deltas);
    }
    deltas
}

fn compare(old: Option<&Arc<Folder>>, new: Option<&Arc<Folder>>, path: &[u8], out: &mut Vec<Delta>) {
    if let (Some(old), Some(new)) = (old, new)
        && Arc::ptr_eq(old, new)
    {
        return;
    }
    let olds = old.map_or(&[][..], |folder| &folder.entries);
    let news = new.map_or(&[][..], |folder| &folder.entries);
    let (mut at, mut by) = (0, 0);
    loop {
        let (a, b) = (olds.get(at), news.get(by));
        let order = match (a, b) {
            (None, None) => return,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.name.cmp(&b.name),
        };
        let a = if order.is_le() { a } else { None };
        let b = if order.is_ge() { b } else { None };
        at += usize::from(a.is_some());
        by += usize::from(b.is_some());
        if let Some(Entry { name, .. }) = a.or(b) {
            one(&join(path, name), a.map(|a| &a.node), b.map(|b| &b.node), out);
        }
    }
}

fn one(path: &[u8], old: Option<&Node>, new: Option<&Node>, out: &mut Vec<Delta>) {
    if let (Some(old), Some(new)) = (old, new)
        && !old.is_watched()
        && new.is_watched()
        && !matches!(new, Node::Left { .. })
        && old.stands_for_folder() != new.stands_for_folder()
    {
        // two things of one name: what git ignored is gone, and something else came
        one(path, Some(old), None, out);
        return one(path, None, Some(new), out);
    }
    if differs(old, new) {
        out.push(Delta { path: path.to_vec(), old: old.cloned(), new: new.cloned() });
    }
    match (old, new) {
        (Some(Node::Folder(old)), Some(Node::Folder(new) | Node::Kept(new)))
        | (Some(Node::Kept(old)), Some(Node::Kept(new))) => compare(Some(old), Some(new), path, out),
        // what came into an ignored folder is nobody's business, and what is not looked into is not gone
        (_, Some(Node::Kept(_))) | (Some(Node::Kept(_)), Some(Node::Folder(_) | Node::Ignored { .. })) => {}
        (Some(Node::Kept(old)), _) => compare(Some(old), None, path, out),
        // what is in a folder that can't be read now is unknown, not gone; and the other way round
        (Some(Node::Folder(_)), Some(new)) if new.is_folder() => {}
        (Some(old), Some(Node::Folder(_))) if old.is_folder() || matches!(old, Node::Ignored { .. }) => {}
        (Some(Node::Folder(old)), _) => compare(Some(old), None, path, out),
        (_, Some(Node::Folder(new))) => compare(None, Some(new), path, out),
        _ => {}
    }
}

fn differs(old: Option<&Node>, new: Option<&Node>) -> bool {
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        // new things that git ignores are nobody's business
        (None, Some(Node::Ignored { .. })) => return false,
        (None, Some(new)) => return !new.is_kept(),
        (Some(_), None) => return true,
        (None, None) => return false,
    };
    match (old, new) {
        (Node::Ignored { .. }, _) => false,
        // kept no more, because there is too much to keep
        (old, Node::Ignored { .. }) if old.is_kept() => false,
        (Node::Folder(old), Node::Folder(new)) | (Node::Kept(old), Node::Kept(new)) => old.mode != new.mode,
        (Node::Kept(_), Node::Folder(_)) => false,
        (Node::File(old), Node::File(new)) => old.id != new.id || old.stamp.mode != new.stamp.mode,
        (Node::Special { stamp: a, device: c }, Node::Special { stamp: b, device: d }) => a.mode != b.mode || c != d,
        (Node::Left { stamp: a, why: c }, Node::Left { stamp: b, why: d }) => c != d || unlike(a, b, *c),
        (Node::NestedGit { stamp: a, id: c }, Node::NestedGit { stamp: b, id: d }) => a.kind() != b.kind() || c != d,
        (Node::File(File { stamp: a, .. }), Node::Left { stamp: b, why: Left::Unreadable }) => {
            // it can't be read, but its stamp may still prove its content
            a.mode != b.mode || a.ino == 0 || a.size != b.size || a.mtime != b.mtime || a.ino != b.ino
        }
        (old, new) if old.is_folder() && new.is_folder() => old.mode() != new.mode(),
        _ => true,
    }
}

/// Stamps of contents that are not captured. A folder that can't be read has no content to speak of.
fn unlike(a: &Stamp, b: &Stamp, why: Left) -> bool {
    if a.mode != b.mode {
        return true;
    }
    match why {
        Left::UnreadableFolder | Left::TooDeep => false,
        Left::OverCap | Left::Unreadable => a.size != b.size || a.mtime != b.mtime,
    }
}
