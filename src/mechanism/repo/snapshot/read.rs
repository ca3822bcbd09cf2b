//! Reads one file into the store.

use rustix::fs::{Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};

use super::super::error::RepoError;
use super::super::object::Kind;
use super::super::path::os;
use super::super::stamp::{self, Instant, Stamp};
use super::super::store::Shelf;
use super::{File, Left, Node};

/// Files above this are not held in memory.
const LARGE: u64 = 8 << 20;

/// What became of a file between the look at it and the reading of it.
pub(super) enum Read {
    Node(Node),
    /// gone, or of another kind than before: look again
    Changed,
}

pub(super) struct Reader<'w, 'a> {
    pub(super) shelf: &'w Shelf<'a>,
    pub(super) look: Instant,
    pub(super) size_cap: u64,
    /// room for contents
    pub(super) content: &'w mut Vec<u8>,
}

impl Reader<'_, '_> {
    /// Reads the file or link `name` of a folder, which had this stamp a moment ago.
    pub(super) fn read(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &[u8],
        stamp: Stamp,
        kept: bool,
    ) -> Result<Result<Read, Errno>, RepoError> {
        self.content.clear();
        if stamp.kind() == stamp::LINK {
            return Ok(match readlinkat(folder, os(name), Vec::new()) {
                Ok(target) => {
                    self.content.extend_from_slice(target.as_bytes());
                    let id = self.shelf.put(Kind::Blob, self.content)?;
                    let racy = self.look.makes_racy(&stamp);
                    Ok(Read::Node(Node::File(File { stamp, id, racy, kept })))
                }
                Err(Errno::NOENT | Errno::INVAL) => Ok(Read::Changed),
                Err(error) => Err(error),
            });
        }
        if stamp.size > self.size_cap {
            return Ok(Ok(Read::Node(Node::Left { stamp, why: Left::OverCap })));
        }
        // NONBLOCK: a FIFO may have taken its place since the look
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(folder, os(name), flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::ACCESS | Errno::PERM) => {
                return Ok(Ok(Read::Node(Node::Left { stamp, why: Left::Unreadable })));
            }
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::NODEV) => return Ok(Ok(Read::Changed)),
            Err(error) => return Ok(Err(error)),
        };
        let before = match fstat(&file) {
            Ok(stat) => Stamp::of(&stat),
            Err(error) => return Ok(Err(error)),
        };
        if before.kind() != stamp::FILE {
            return Ok(Ok(Read::Changed));
        }
        if before.size > self.size_cap {
            return Ok(Ok(Read::Node(Node::Left { stamp: before, why: Left::OverCap })));
        }
        let id = if before.size > LARGE {
            match self.shelf.put_large(file.as_fd(), before.size)? {
                Some(id) => id,
                None => return Ok(Ok(Read::Changed)),
            }
        } else {
            if let Err(error) = self.fill(file.as_fd(), before.size) {
                return Ok(Err(error));
            }
            self.shelf.put(Kind::Blob, self.content)?
        };
        let after = match fstat(&file) {
            Ok(stat) => Stamp::of(&stat),
            Err(error) => return Ok(Err(error)),
        };
        let racy = before != after || self.look.makes_racy(&after);
        Ok(Ok(Read::Node(Node::File(File { stamp: after, id, racy, kept }))))
    }

    fn fill(&mut self, file: BorrowedFd<'_>, size: u64) -> Result<(), Errno> {
        self.content.reserve(size as usize + 1);
        loop {
            if self.content.capacity() == self.content.len() {
                self.content.reserve(1 << 16);
            }
            match rustix::io::read(file, rustix::buffer::spare_capacity(self.content)) {
                Ok(0) => return Ok(()),
                // a file that grows while it is read is cut at twice the limit of this way of reading
                Ok(_) if self.content.len() as u64 > 2 * LARGE => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
