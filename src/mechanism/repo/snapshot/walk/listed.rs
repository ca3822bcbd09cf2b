//! A folder that is looked into: known again, or listed and its names told apart.

use rustix::fs::{AtFlags, FileType, RawDir, fstat, statat};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::super::super::error::RepoError;
use super::super::super::path::{join, os};
use super::super::super::stamp::{self, Stamp};
use super::super::{Entry, Left, Node, Rules, Verdict};
use super::building::{Building, Frame, Slot, finish};
use super::classify::{Found, Name};
use super::{Hands, Job, MOST_TRIES, Place, Profile, SHARED_LEVELS};

impl Hands<'_, '_> {
    /// Looks into an open folder; its value goes to the slot of `parent`, when all in it is there.
    pub(super) fn look_into(
        &mut self,
        fd: OwnedFd,
        path: &[u8],
        depth: usize,
        mut place: Place,
        parent: (&Arc<Building>, usize),
    ) -> Result<(), RepoError> {
        // taken before the names are: what comes in between shows in the times of the next look
        let stat = fstat(&fd).map_err(|errno| self.shared.failed(path, errno))?;
        let times = self.shared.times(&stat);
        let known = place.prev.clone().filter(|prev| {
            prev.times == times && times != (0, 0) && prev.ino == stat.st_ino && prev.mode == stat.st_mode
        });
        let ignore_file = self.ignore_file(fd.as_fd(), path, &place, known.is_some())?;
        let rules = self.rules_of(ignore_file.as_ref(), &place)?;
        place.add_rules(rules.as_ref(), path);
        let mut frame = Frame {
            prev: place.prev.clone(),
            mode: stat.st_mode,
            ino: stat.st_ino,
            times,
            rules,
            ruled_by: place.ruled_by,
            forced: false,
        };
        let folder = Arc::new(fd);
        if let Some(prev) = known.filter(|prev| place.classification_holds(prev, self.shared)) {
            frame.forced = prev.forced;
            return self.look_at_known_names(&folder, path, depth, &Arc::new(place), &frame, parent);
        }
        self.list(folder, path, depth, Arc::new(place), frame, ignore_file, parent)
    }

    /// The folder's own `.gitignore`.
    fn ignore_file(
        &mut self,
        fd: BorrowedFd<'_>,
        path: &[u8],
        place: &Place,
        known: bool,
    ) -> Result<Option<Node>, RepoError> {
        const NAME: &[u8] = b".gitignore";
        let surely_none = known && place.prev.as_ref().is_some_and(|prev| prev.get(NAME).is_none());
        if self.shared.profile == Profile::GitFolder || surely_none {
            return Ok(None);
        }
        self.look_at_file(fd, &join(path, NAME), NAME, place.prev.as_deref(), None)
    }

    /// The rules of the folder's own `.gitignore`.
    fn rules_of(&mut self, node: Option<&Node>, place: &Place) -> Result<Option<Arc<Rules>>, RepoError> {
        let Some(Node::File(file)) = node else { return Ok(None) };
        if file.stamp.kind() != stamp::FILE {
            // git follows no link here, and neither do we
            return Ok(None);
        }
        if let Some(prev) = &place.prev
            && let Some(Entry { node: Node::File(old), .. }) = prev.get(b".gitignore")
            && old.id == file.id
            && let Some(rules) = &prev.rules
        {
            return Ok(Some(rules.clone()));
        }
        let content = self.shared.shelf.read(file.id)?;
        Ok(Some(Arc::new(Rules::parse(&content, self.shared.fold_case))))
    }

    #[expect(clippy::too_many_arguments, reason = "a folder, all that is known of it, and where it goes")]
    fn list(
        &mut self,
        folder: Arc<OwnedFd>,
        path: &[u8],
        depth: usize,
        place: Arc<Place>,
        mut frame: Frame,
        mut ignore_file: Option<Node>,
        (parent, slot): (&Arc<Building>, usize),
    ) -> Result<(), RepoError> {
        let fd = folder.as_fd();
        let names = self.names(fd, path)?;
        let known = place.prev.clone().filter(|prev| prev.ruled_by == frame.ruled_by && !self.shared.watch_ignored);
        let is_git_folder = self.shared.profile == Profile::GitFolder
            && (depth == 0 || names.iter().any(|name| &*name.0 == b"HEAD" && name.1 != FileType::Directory));
        let mut slots = Vec::with_capacity(names.len());
        let mut folders = Vec::new();
        for (name, kind, ino) in names {
            if self.passes_over(&name, path, depth, is_git_folder) {
                continue;
            }
            let full = join(path, &name);
            let looked_at = if &*name == b".gitignore" { ignore_file.take() } else { None };
            let old = known.as_ref().and_then(|prev| prev.get(&name));
            match self.classify(fd, &full, &name, (kind, ino), &place, old, looked_at)? {
                Found::Entry(entry, by_base) => {
                    frame.forced |= by_base;
                    slots.push(Slot::Entry(entry));
                }
                Found::Folder(verdict, by_base) => {
                    frame.forced |= by_base;
                    folders.push((slots.len(), full, verdict));
                    slots.push(Slot::Waiting(name, verdict));
                }
                Found::Gone => {}
            }
        }
        if folders.is_empty() {
            let entries = slots.into_iter().filter_map(Slot::into_entry).collect();
            let whole = finish(&frame, entries, self.shared)?;
            parent.put(slot, Some(Node::Folder(whole)));
            return parent.one_less(self.shared);
        }
        let building = Arc::new(Building::new(parent, slot, frame));
        building.fill(slots, folders.len());
        for (slot, full, verdict) in folders {
            self.found(&building, slot, &folder, &place, full, depth + 1, verdict);
        }
        building.one_less(self.shared)
    }

    /// A folder that is to be looked at by whoever comes first.
    #[expect(clippy::too_many_arguments, reason = "all that a job is")]
    pub(super) fn found(
        &mut self,
        parent: &Arc<Building>,
        slot: usize,
        folder: &Arc<OwnedFd>,
        outer: &Arc<Place>,
        path: Vec<u8>,
        depth: usize,
        verdict: Verdict,
    ) {
        // there it is opened by its path, so that a wide tree of deep folders holds few descriptors
        let from = (depth != SHARED_LEVELS + 1).then(|| folder.clone());
        let name_at = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let (outer, parent) = (outer.clone(), parent.clone());
        self.worker.found.push(Job { outer, from, path, name_at, depth, verdict, parent, slot });
    }

    /// The names in a folder, sorted.
    fn names(&mut self, fd: BorrowedFd<'_>, path: &[u8]) -> Result<Vec<Name>, RepoError> {
        let mut names: Vec<Name> = Vec::new();
        let mut batches = RawDir::new(fd, self.worker.batch.spare_capacity_mut());
        while let Some(entry) = batches.next() {
            let entry = entry.map_err(|errno| self.shared.failed(path, errno))?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push((name.into(), entry.file_type(), entry.ino()));
            }
        }
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(names)
    }

    /// Names that are no part of the tree.
    fn passes_over(&self, name: &[u8], folder: &[u8], depth: usize, is_git_folder: bool) -> bool {
        match self.shared.profile {
            Profile::WorkTree => depth == 0 && name == b".git",
            Profile::GitFolder if folder == b"objects" || folder.ends_with(b"/objects") => name != b"info",
            Profile::GitFolder if folder == b"objects/info" || folder.ends_with(b"/objects/info") => {
                !matches!(name, b"alternates" | b"http-alternates")
            }
            Profile::GitFolder if is_git_folder => {
                (depth == 0 && name == b"lunation")
                    || name == b"lfs"
                    || name == b"annex"
                    || name.starts_with(b"fsmonitor--daemon")
            }
            Profile::GitFolder => false,
        }
    }

    /// A folder that could not be opened: it can't be read, is gone, or is no folder any more.
    pub(super) fn not_opened(&mut self, folder: BorrowedFd<'_>, job: &Job, errno: Errno) -> Result<(), RepoError> {
        let why = match errno {
            Errno::ACCESS | Errno::PERM => Left::UnreadableFolder,
            Errno::NOENT => {
                job.parent.put(job.slot, None);
                return job.parent.one_less(self.shared);
            }
            Errno::NOTDIR | Errno::LOOP => {
                match self.look_once_more(folder, job)? {
                    Some(entry) => job.parent.put_entry(job.slot, entry),
                    None => job.parent.put(job.slot, None),
                }
                return job.parent.one_less(self.shared);
            }
            errno => return Err(self.shared.failed(&job.path, errno)),
        };
        self.tell(folder, job, why)
    }

    /// A folder that is told and not looked into.
    pub(super) fn tell(&mut self, folder: BorrowedFd<'_>, job: &Job, why: Left) -> Result<(), RepoError> {
        let node = match statat(folder, os(job.name()), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(Node::Left { stamp: Stamp::of(&stat), why }),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(self.shared.failed(&job.path, errno)),
        };
        job.parent.put(job.slot, node);
        job.parent.one_less(self.shared)
    }

    /// What was a folder when it was listed is something else now.
    fn look_once_more(&mut self, folder: BorrowedFd<'_>, job: &Job) -> Result<Option<Entry>, RepoError> {
        for _ in 0..MOST_TRIES {
            let name: Box<[u8]> = job.name().into();
            match self.classify(folder, &job.path, &name, (FileType::Unknown, 0), &job.outer, None, None)? {
                Found::Entry(entry, _) => return Ok(Some(entry)),
                Found::Gone => return Ok(None),
                Found::Folder(..) => {}
            }
        }
        Err(self.shared.failed(&job.path, Errno::AGAIN))
    }
}
