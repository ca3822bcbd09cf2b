//! Folders under construction: each waits for the folders in it, and goes to the one that it is in when they are all
//! there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::super::super::error::RepoError;
use super::super::super::object::{Kind, ObjectId};
use super::super::stored::tree_of;
use super::super::{Census, Entry, Folder, Node, Rules, Verdict};
use super::Shared;

/// What is known of a folder before the folders in it are there.
pub(super) struct Frame {
    pub(super) prev: Option<Arc<Folder>>,
    pub(super) mode: u32,
    pub(super) ino: u64,
    pub(super) times: (i64, i64),
    pub(super) rules: Option<Arc<Rules>>,
    pub(super) ruled_by: ObjectId,
    pub(super) forced: bool,
}

/// An entry, or the place of one.
pub(super) enum Slot {
    Entry(Entry),
    /// a folder that is being looked at
    Waiting(Box<[u8]>, Verdict),
    Gone,
}

impl Slot {
    pub(super) fn into_entry(self) -> Option<Entry> {
        match self {
            Slot::Entry(entry) => Some(entry),
            Slot::Waiting(..) | Slot::Gone => None,
        }
    }
}

pub(super) struct Building {
    parent: Option<(Arc<Building>, usize)>,
    frame: Option<Frame>,
    slots: Mutex<Vec<Slot>>,
    /// folders that are not there yet, and one for the folder's own names
    left: AtomicUsize,
}

impl Building {
    /// What waits for the root.
    pub(super) fn top() -> Building {
        let slots = vec![Slot::Waiting(Box::default(), Verdict::default())];
        Building { parent: None, frame: None, slots: Mutex::new(slots), left: AtomicUsize::new(usize::MAX) }
    }

    pub(super) fn take_top(&self) -> Option<Node> {
        match self.lock().pop()? {
            Slot::Entry(entry) => Some(entry.node),
            _ => None,
        }
    }

    pub(super) fn new(parent: &Arc<Building>, slot: usize, frame: Frame) -> Building {
        Building {
            parent: Some((parent.clone(), slot)),
            frame: Some(frame),
            slots: Mutex::new(Vec::new()),
            left: AtomicUsize::new(1),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The folder's own names, of which `waiting` are folders.
    pub(super) fn fill(self: &Arc<Building>, slots: Vec<Slot>, waiting: usize) {
        *self.lock() = slots;
        self.left.fetch_add(waiting, Ordering::AcqRel);
    }

    /// One of the waiting folders turned out to be something else, or is gone.
    pub(super) fn put(self: &Arc<Building>, slot: usize, node: Option<Node>) {
        let mut slots = self.lock();
        let Some(place) = slots.get_mut(slot) else { return };
        let old = std::mem::replace(place, Slot::Gone);
        if let (Slot::Waiting(name, verdict), Some(node)) = (old, node) {
            // only where rules were asked
            let verdict = Some(verdict);
            *place = Slot::Entry(Entry { name, verdict, node });
        }
    }

    /// A whole entry in a place that waited for a folder.
    pub(super) fn put_entry(self: &Arc<Building>, slot: usize, entry: Entry) {
        if let Some(place) = self.lock().get_mut(slot) {
            *place = Slot::Entry(entry);
        }
    }

    /// One thing less to wait for. Finishes the folder, and those above it, when it was the last.
    pub(super) fn one_less(self: &Arc<Building>, shared: &Shared<'_>) -> Result<(), RepoError> {
        let mut at = self.clone();
        loop {
            if at.left.fetch_sub(1, Ordering::AcqRel) != 1 {
                return Ok(());
            }
            let Some((parent, slot)) = &at.parent else { return Ok(()) };
            let folder = at.finish(shared)?;
            parent.put(*slot, Some(Node::Folder(folder)));
            let parent = parent.clone();
            at = parent;
        }
    }

    fn finish(&self, shared: &Shared<'_>) -> Result<Arc<Folder>, RepoError> {
        let slots = std::mem::take(&mut *self.lock());
        let entries = slots.into_iter().filter_map(Slot::into_entry);
        match &self.frame {
            Some(frame) => finish(frame, entries.collect(), shared),
            None => Err(shared.failed(b"", rustix::io::Errno::INVAL)),
        }
    }
}

/// A folder whose entries are all there. Equal to the last look: that very value.
pub(super) fn finish(frame: &Frame, entries: Vec<Entry>, shared: &Shared<'_>) -> Result<Arc<Folder>, RepoError> {
    let mut folder = Folder {
        mode: frame.mode,
        ino: frame.ino,
        times: frame.times,
        rules: frame.rules.clone(),
        ruled_by: frame.ruled_by,
        forced: frame.forced,
        census: Census::default(),
        tree: ObjectId::default(),
        entries,
    };
    if let Some(prev) = frame.prev.as_ref().filter(|prev| prev.same_as(&folder)) {
        if prev.times == folder.times && prev.forced == folder.forced {
            return Ok(prev.clone());
        }
        // only what proves it unchanged is new
        folder.tree = prev.tree;
        folder.census = prev.census.clone();
        return Ok(Arc::new(folder));
    }
    folder.census = Census::of(&folder.entries);
    folder.tree = shared.shelf.put(Kind::Tree, &tree_of(&folder))?;
    Ok(Arc::new(folder))
}
