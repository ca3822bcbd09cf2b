//! A folder that has the names that it had: each is looked at, and nothing is listed.
//!
//! The proof: a folder's times move whenever a name comes, goes or is replaced, its ctime can't be set by anybody, and
//! times that could still move within one tick of the clock were not kept.

use rustix::fs::{AtFlags, statat};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::super::super::error::RepoError;
use super::super::super::path::{join, os};
use super::super::super::stamp::Stamp;
use super::super::{Entry, File, Folder, Node};
use super::building::{Building, Frame, Slot, finish};
use super::kept::KEPT_SIZE;
use super::{Hands, Place};

impl Hands<'_, '_> {
    /// Looks at the names that the folder had at the last look.
    pub(super) fn look_at_known_names(
        &mut self,
        folder: &Arc<OwnedFd>,
        path: &[u8],
        depth: usize,
        place: &Arc<Place>,
        frame: &Frame,
        (parent, slot): (&Arc<Building>, usize),
    ) -> Result<(), RepoError> {
        let Some(prev) = &frame.prev else { return Ok(()) };
        let fd = folder.as_fd();
        let mut changed: Vec<(usize, Option<Node>)> = Vec::new();
        let mut folders = Vec::new();
        for (at, entry) in prev.entries.iter().enumerate() {
            match &entry.node {
                Node::File(old) if is_unchanged(fd, &entry.name, old) => {}
                Node::Folder(_) => folders.push(at),
                // its name is still there, as the folder's times say
                Node::Ignored { .. } => {}
                old => {
                    let now = self.look_again(fd, path, entry, old, place)?;
                    if now.as_ref() != Some(old) {
                        changed.push((at, now));
                    }
                }
            }
        }
        if folders.is_empty() {
            let whole = match changed.is_empty() {
                true => prev.clone(),
                false => finish(frame, replaced(prev, changed), self.shared)?,
            };
            parent.put(slot, Some(Node::Folder(whole)));
            return parent.one_less(self.shared);
        }
        let frame = Frame { prev: frame.prev.clone(), rules: frame.rules.clone(), ..*frame };
        let building = Arc::new(Building::new(parent, slot, frame));
        let mut slots: Vec<Slot> = prev.entries.iter().map(|entry| Slot::Entry(entry.clone())).collect();
        for (at, node) in changed {
            let Entry { name, verdict, .. } = &prev.entries[at];
            slots[at] = match node {
                Some(node) => Slot::Entry(Entry { name: name.clone(), verdict: *verdict, node }),
                None => Slot::Gone,
            };
        }
        for at in &folders {
            let Entry { name, verdict, .. } = &prev.entries[*at];
            let verdict = verdict.unwrap_or_default();
            slots[*at] = Slot::Waiting(name.clone(), verdict);
            self.found(&building, *at, folder, place, join(path, name), depth + 1, verdict);
        }
        building.fill(slots, folders.len());
        building.one_less(self.shared)
    }

    /// A name that is no folder and not proven unchanged.
    fn look_again(
        &mut self,
        fd: BorrowedFd<'_>,
        path: &[u8],
        entry: &Entry,
        old: &Node,
        place: &Place,
    ) -> Result<Option<Node>, RepoError> {
        let full = join(path, &entry.name);
        match old {
            Node::NestedGit { .. } => self.nested_git(fd, &full, &entry.name),
            Node::Kept(_) => self.kept_folder(fd, &full, &entry.name, place),
            _ => {
                let keep = old.is_kept().then_some(KEPT_SIZE);
                let now = self.look_at_file(fd, &full, &entry.name, place.prev.as_deref(), keep)?;
                match now {
                    // a folder took its place: the folder that it is in changed while it was looked at
                    Some(now) if now.is_folder() && !old.is_folder() => {
                        Err(self.shared.failed(&full, rustix::io::Errno::AGAIN))
                    }
                    now => Ok(now),
                }
            }
        }
    }
}

fn is_unchanged(fd: BorrowedFd<'_>, name: &[u8], old: &File) -> bool {
    !old.racy && statat(fd, os(name), AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| Stamp::of(&stat) == old.stamp)
}

fn replaced(prev: &Folder, changed: Vec<(usize, Option<Node>)>) -> Vec<Entry> {
    let mut changed = changed.into_iter().peekable();
    let mut entries = Vec::with_capacity(prev.entries.len());
    for (at, entry) in prev.entries.iter().enumerate() {
        match changed.next_if(|(place, _)| *place == at) {
            Some((_, Some(node))) => entries.push(Entry { node, ..entry.clone() }),
            Some((_, None)) => {}
            None => entries.push(entry.clone()),
        }
    }
    entries
}
