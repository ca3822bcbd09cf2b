//! Captures of a folder tree: what is in it, byte for byte, as values that share all that did not change.
//!
//! Owns the tree in memory ([`Folder`]), the walk that makes it, its form in the shadow store, and the differences
//! of two of them. Must not know refs, indexes or loops. Guarantees that no status engine of git is asked: what is
//! on disk is looked at, with no filter and through no link, and what can't be looked at is told, never guessed.

mod cache;
mod census;
mod difference;
mod ignore_rules;
mod read;
mod record;
mod stored;
mod tracked;
mod walk;

pub(crate) use cache::{load_cache, save_cache};
use census::Census;
pub(crate) use difference::{Delta, DeltaKind, difference};
pub(crate) use ignore_rules::{Chain, Rules};
pub(crate) use stored::{Stored, load_folder, store_kept, store_tree};
pub(crate) use tracked::Tracked;
pub(crate) use walk::{Profile, Walk};

use std::sync::Arc;

use super::object::ObjectId;
use super::stamp::{self, Stamp};

/// A folder as it was captured.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    /// mode with its type bits; 0 where it is not known
    pub(crate) mode: u32,
    pub(crate) ino: u64,
    /// its own mtime and ctime, by which it is known again; both 0 where they prove nothing
    times: (i64, i64),
    /// sorted by name
    pub(crate) entries: Vec<Entry>,
    /// the ignore rules that its own `.gitignore` adds
    pub(crate) rules: Option<Arc<Rules>>,
    /// the rules that its entries were classified under
    pub(crate) ruled_by: ObjectId,
    /// a checkpoint decided what some of its entries are, and not the rules alone
    forced: bool,
    /// what is in it and below
    census: Census,
    /// git's tree of what is watched in it; set when the folder is complete
    pub(crate) tree: ObjectId,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: Box<[u8]>,
    /// what the ignore rules say about it, where they were asked
    pub(crate) verdict: Option<Verdict>,
    pub(crate) node: Node,
}

/// What the rules of now, and those of the run's start, say about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Verdict {
    pub(crate) ignored_now: bool,
    pub(crate) ignored_at_start: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// A regular file or a symbolic link whose content is in the store.
    File(File),
    Folder(Arc<Folder>),
    /// An ignored folder that is kept so that it can be put back, with all that is in it; see [`walk::kept`].
    Kept(Arc<Folder>),
    /// FIFO, socket or device; never opened.
    Special {
        stamp: Stamp,
        device: u64,
    },
    /// Seen, but its content is not captured.
    Left {
        stamp: Stamp,
        why: Left,
    },
    /// Ignored by git's rules, and not looked into. The inode tells when it was moved elsewhere.
    Ignored {
        ino: u64,
        folder: bool,
    },
    /// The git folder (or `.git` file) of a nested repository; a file's content is kept.
    NestedGit {
        stamp: Stamp,
        id: Option<ObjectId>,
    },
}

/// A captured file or link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) stamp: Stamp,
    pub(crate) id: ObjectId,
    /// its stamp is no proof that it did not change
    pub(crate) racy: bool,
    /// ignored by git's rules; kept only so that it can be put back
    pub(crate) kept: bool,
}

/// Why a content is not captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    OverCap,
    Unreadable,
    UnreadableFolder,
    TooDeep,
}

impl PartialEq for Node {
    /// Equal in all that a later look relies on, stamps too; folders by identity.
    fn eq(&self, other: &Node) -> bool {
        match (self, other) {
            (Node::File(a), Node::File(b)) => a == b,
            (Node::Folder(a), Node::Folder(b)) | (Node::Kept(a), Node::Kept(b)) => Arc::ptr_eq(a, b),
            (Node::Special { stamp: a, device: c }, Node::Special { stamp: b, device: d }) => a == b && c == d,
            (Node::Left { stamp: a, why: c }, Node::Left { stamp: b, why: d }) => a == b && c == d,
            (Node::Ignored { ino: a, folder: c }, Node::Ignored { ino: b, folder: d }) => a == b && c == d,
            (Node::NestedGit { stamp: a, id: c }, Node::NestedGit { stamp: b, id: d }) => a == b && c == d,
            _ => false,
        }
    }
}

impl Node {
    /// Mode with its type bits; 0 for what was not looked at.
    pub(crate) fn mode(&self) -> u32 {
        match self {
            Node::File(File { stamp, .. })
            | Node::Special { stamp, .. }
            | Node::Left { stamp, .. }
            | Node::NestedGit { stamp, .. } => stamp.mode,
            Node::Folder(folder) | Node::Kept(folder) => folder.mode,
            Node::Ignored { .. } => 0,
        }
    }

    pub(crate) fn stamp(&self) -> Option<&Stamp> {
        match self {
            Node::File(File { stamp, .. })
            | Node::Special { stamp, .. }
            | Node::Left { stamp, .. }
            | Node::NestedGit { stamp, .. } => Some(stamp),
            Node::Folder(_) | Node::Kept(_) | Node::Ignored { .. } => None,
        }
    }

    pub(crate) fn ino(&self) -> u64 {
        match self {
            Node::Folder(folder) | Node::Kept(folder) => folder.ino,
            Node::Ignored { ino, .. } => *ino,
            other => other.stamp().map_or(0, |stamp| stamp.ino),
        }
    }

    pub(crate) fn is_folder(&self) -> bool {
        self.mode() & stamp::TYPE_MASK == stamp::FOLDER
    }

    /// Is it a folder, looked into or not?
    pub(crate) fn stands_for_folder(&self) -> bool {
        matches!(self, Node::Ignored { folder: true, .. }) || self.is_folder()
    }

    pub(crate) fn is_kept(&self) -> bool {
        matches!(self, Node::File(File { kept: true, .. }) | Node::Kept(_))
    }

    /// Is it part of the tree that is compared?
    pub(crate) fn is_watched(&self) -> bool {
        !matches!(self, Node::Ignored { .. }) && !self.is_kept()
    }
}

impl Folder {
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| (*entry.name).cmp(name)).ok()?;
        Some(&self.entries[at])
    }

    /// The folder of this name in it, kept ones too.
    pub(crate) fn folder(&self, name: &[u8]) -> Option<&Arc<Folder>> {
        match &self.get(name)?.node {
            Node::Folder(folder) | Node::Kept(folder) => Some(folder),
            _ => None,
        }
    }

    /// The node at a path below this folder.
    pub(crate) fn at(&self, path: &[u8]) -> Option<&Node> {
        let mut parts = path.split(|byte| *byte == b'/');
        let mut node = &self.get(parts.next()?)?.node;
        for part in parts {
            let Node::Folder(folder) = node else { return None };
            node = &folder.get(part)?.node;
        }
        Some(node)
    }

    fn same_as(&self, other: &Folder) -> bool {
        let rules = |folder: &Folder| folder.rules.as_ref().map(|rules| rules.id());
        self.mode == other.mode
            && self.ino == other.ino
            && self.ruled_by == other.ruled_by
            && rules(self) == rules(other)
            && self.entries == other.entries
    }

    /// Calls `each` for the entries below, folders before what is in them; below a folder only where `into` says so.
    pub(crate) fn visit_some(
        &self,
        path: &mut Vec<u8>,
        into: &impl Fn(&Folder) -> bool,
        each: &mut impl FnMut(&[u8], &Entry),
    ) {
        for entry in &self.entries {
            let length = path.len();
            if length > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(&entry.name);
            each(path, entry);
            if let Node::Folder(folder) | Node::Kept(folder) = &entry.node
                && into(folder)
            {
                folder.visit_some(path, into, each);
            }
            path.truncate(length);
        }
    }

    /// Is there anything below that is not covered?
    pub(crate) fn has_odd(&self) -> bool {
        self.census.odd > 0
    }

    /// Calls `each` for every entry below, folders before what is in them.
    pub(crate) fn visit(&self, path: &mut Vec<u8>, each: &mut impl FnMut(&[u8], &Entry)) {
        self.visit_some(path, &|_| true, each);
    }
}
