//! What git ignores is not watched, but a person's `.env`, notes and small outputs are among it: as much of it is kept
//! as is cheap, so that it can be put back when an agent deletes or overwrites it.
//!
//! # Bounds
//! Single ignored files beside watched ones: up to [`KEPT_SIZE`] bytes each. Ignored folders: whole or not at all, up
//! to [`FOLDER_FILES`] files and [`FOLDER_BYTES`] bytes, and not those that say themselves that they are caches (a
//! `CACHEDIR.TAG`). A folder that is put back only in part could fool a build. In all of a tree: [`KEPT_FILES`] files
//! and [`KEPT_BYTES`] bytes. What is beyond is passed over, and told when it is gone.

use rustix::fs::{Mode, OFlags, RawDir, fstat, openat};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::super::error::RepoError;
use super::super::super::object::ObjectId;
use super::super::super::path::{join, os};
use super::super::super::stamp::{self, Stamp};
use super::super::{Census, Entry, Folder, Node};
use super::{Hands, Place};

/// Largest ignored file that is kept.
pub(super) const KEPT_SIZE: u64 = 256 << 10;
const KEPT_BYTES: u64 = 32 << 20;
const KEPT_FILES: u64 = 5_000;
const FOLDER_FILES: usize = 500;
const FOLDER_BYTES: u64 = 8 << 20;
const FOLDER_LEVELS: usize = 16;

/// How much was kept so far.
#[derive(Default)]
pub(super) struct Budget {
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Budget {
    pub(super) fn takes(&self, size: u64) -> bool {
        let files = self.files.fetch_add(1, Ordering::Relaxed);
        let bytes = self.bytes.fetch_add(size, Ordering::Relaxed);
        files < KEPT_FILES && bytes + size <= KEPT_BYTES
    }
}

/// What is left for one folder.
struct Allowance {
    files: usize,
    bytes: u64,
}

impl Hands<'_, '_> {
    /// The node of an ignored folder: kept, or passed over. With a checkpoint to compare with, only what that has is
    /// looked at, whatever else has come into the folder.
    pub(super) fn kept_folder(
        &mut self,
        fd: BorrowedFd<'_>,
        path: &[u8],
        name: &[u8],
        place: &Place,
    ) -> Result<Option<Node>, RepoError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match openat(fd, os(name), flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::ACCESS | Errno::PERM | Errno::NOTDIR | Errno::LOOP) => {
                return self.look_at_file(fd, path, name, place.prev.as_deref(), Some(KEPT_SIZE));
            }
            Err(errno) => return Err(self.shared.failed(path, errno)),
        };
        let stat = fstat(&folder).map_err(|errno| self.shared.failed(path, errno))?;
        let kept = |folder: &Option<Arc<Folder>>| match folder.as_ref()?.get(name)?.node {
            Node::Kept(ref folder) => Some(folder.clone()),
            _ => None,
        };
        let (prev, base) = (kept(&place.prev), kept(&place.base));
        let mut left = Allowance { files: FOLDER_FILES, bytes: FOLDER_BYTES };
        let whole = match &base {
            Some(base) => self.known_part(&folder, path, prev.as_ref(), base)?,
            None => self.keep(&folder, path, prev.as_ref(), &mut left, 0)?,
        };
        Ok(Some(match whole {
            Some(whole) => Node::Kept(whole),
            None => Node::Ignored { ino: stat.st_ino, folder: true },
        }))
    }

    /// All of an ignored folder; `None` when that is more than is kept.
    fn keep(
        &mut self,
        folder: &OwnedFd,
        path: &[u8],
        prev: Option<&Arc<Folder>>,
        left: &mut Allowance,
        level: usize,
    ) -> Result<Option<Arc<Folder>>, RepoError> {
        let fd = folder.as_fd();
        let mut names: Vec<Box<[u8]>> = Vec::new();
        let mut room = Vec::with_capacity(4 << 10);
        let mut batches = RawDir::new(fd, room.spare_capacity_mut());
        while let Some(entry) = batches.next() {
            let entry = entry.map_err(|errno| self.shared.failed(path, errno))?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if name == b"CACHEDIR.TAG" || name == b".git" || left.files == 0 || level > FOLDER_LEVELS {
                return Ok(None);
            }
            left.files -= 1;
            names.push(name.into());
        }
        names.sort_unstable();
        let mut entries = Vec::new();
        for name in names {
            let full = join(path, &name);
            let size_before = left.bytes;
            let node = match self.look_at_file(fd, &full, &name, prev.map(|prev| &**prev), Some(FOLDER_BYTES))? {
                Some(Node::Left { stamp, .. }) if stamp.kind() == stamp::FOLDER => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let Ok(inner) = openat(fd, os(&name), flags, Mode::empty()) else { return Ok(None) };
                    let prev = prev.and_then(|prev| prev.folder(&name));
                    match self.keep(&inner, &full, prev, left, level + 1)? {
                        Some(inner) => Node::Kept(inner),
                        None => return Ok(None),
                    }
                }
                Some(Node::File(file)) => {
                    left.bytes = size_before.saturating_sub(file.stamp.size);
                    if left.bytes == 0 {
                        return Ok(None);
                    }
                    Node::File(file)
                }
                None => continue,
                Some(_) => return Ok(None),
            };
            entries.push(Entry { name, verdict: None, node });
        }
        self.kept_value(folder, path, entries, prev).map(Some)
    }

    /// Of an ignored folder what the checkpoint has.
    fn known_part(
        &mut self,
        folder: &OwnedFd,
        path: &[u8],
        prev: Option<&Arc<Folder>>,
        base: &Arc<Folder>,
    ) -> Result<Option<Arc<Folder>>, RepoError> {
        let fd = folder.as_fd();
        let mut entries = Vec::new();
        for Entry { name, node, .. } in &base.entries {
            let full = join(path, name);
            let now = match node {
                Node::Kept(base) => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    match openat(fd, os(name), flags, Mode::empty()) {
                        Ok(inner) => {
                            let prev = prev.and_then(|prev| prev.folder(name));
                            self.known_part(&inner, &full, prev, base)?.map(Node::Kept)
                        }
                        Err(Errno::NOENT) => None,
                        Err(_) => self.look_at_file(fd, &full, name, None, Some(FOLDER_BYTES))?,
                    }
                }
                _ => self.look_at_file(fd, &full, name, prev.map(|prev| &**prev), Some(FOLDER_BYTES))?,
            };
            entries.extend(now.map(|node| Entry { name: name.clone(), verdict: None, node }));
        }
        self.kept_value(folder, path, entries, prev).map(Some)
    }

    fn kept_value(
        &self,
        folder: &OwnedFd,
        path: &[u8],
        entries: Vec<Entry>,
        prev: Option<&Arc<Folder>>,
    ) -> Result<Arc<Folder>, RepoError> {
        let stamp = fstat(folder).map(|stat| Stamp::of(&stat)).map_err(|errno| self.shared.failed(path, errno))?;
        let whole = Folder {
            mode: stamp.mode,
            ino: stamp.ino,
            times: (0, 0),
            rules: None,
            ruled_by: ObjectId::default(),
            forced: false,
            census: Census::of(&entries),
            tree: ObjectId::default(),
            entries,
        };
        Ok(match prev.filter(|prev| prev.same_as(&whole)) {
            Some(prev) => prev.clone(),
            None => Arc::new(whole),
        })
    }
}
