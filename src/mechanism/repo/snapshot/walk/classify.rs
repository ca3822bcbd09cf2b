//! What a name in a folder is: watched, ignored, a folder, or something special.

use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;
use std::os::fd::BorrowedFd;

use super::super::super::error::RepoError;
use super::super::super::path::os;
use super::super::super::stamp::{self, Stamp};
use super::super::read::{Read, Reader};
use super::super::{Entry, File, Folder, Left, Node, Verdict};
use super::kept::KEPT_SIZE;
use super::{Hands, MOST_TRIES, Place, Profile, Shared};

/// A name in a folder, with what the listing says of it.
pub(super) type Name = (Box<[u8]>, FileType, u64);

/// What became of a name. The flag: the checkpoint decided, and not the rules alone.
pub(super) enum Found {
    Entry(Entry, bool),
    Folder(Verdict, bool),
    Gone,
}

impl Hands<'_, '_> {
    /// `old`: the entry of the last look, where it was made by the same rules. `looked_at`: the node, where it is
    /// known already.
    #[expect(clippy::too_many_arguments, reason = "one name, all that is known of it, and where it stands")]
    pub(super) fn classify(
        &mut self,
        fd: BorrowedFd<'_>,
        path: &[u8],
        name: &[u8],
        (mut kind, mut ino): (FileType, u64),
        place: &Place,
        old: Option<&Entry>,
        looked_at: Option<Node>,
    ) -> Result<Found, RepoError> {
        let entry = |verdict, node, by_base| Found::Entry(Entry { name: name.into(), verdict, node }, by_base);
        if self.shared.profile == Profile::WorkTree && name == b".git" {
            let node = self.nested_git(fd, path, name)?;
            return Ok(node.map_or(Found::Gone, |node| entry(None, node, false)));
        }
        for _ in 0..MOST_TRIES {
            if kind == FileType::Unknown {
                match statat(fd, os(name), AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => (kind, ino) = (FileType::from_raw_mode(stat.st_mode), stat.st_ino),
                    Err(Errno::NOENT) => return Ok(Found::Gone),
                    Err(errno) => return Err(self.shared.failed(path, errno)),
                }
            }
            let is_folder = kind == FileType::Directory;
            let in_base = place.base.as_ref().and_then(|base| base.get(name)).map(|entry| &entry.node);
            // an ignored folder that became a file or link, or the other way round, is something new
            let in_base = in_base.filter(|node| node.is_watched() || node.stands_for_folder() == is_folder);
            if let Some(Node::Ignored { .. }) = in_base {
                return Ok(entry(None, Node::Ignored { ino, folder: is_folder }, true));
            }
            let verdict = self.verdict(path, is_folder, place, old);
            let ignored = verdict.ignored_now && (place.then.is_none() || verdict.ignored_at_start);
            let watched = in_base.is_some_and(Node::is_watched);
            let kept_in_base = in_base.is_some_and(Node::is_kept);
            let passed_over = kept_in_base || (ignored && !watched && !self.shared.is_tracked(path, is_folder)?);
            let by_base = in_base.is_some() && passed_over != ignored;
            if passed_over {
                // what the checkpoint does not have can't be lost
                let nothing_to_keep = place.base.is_some() && !kept_in_base;
                let node = match is_folder {
                    true if nothing_to_keep => Some(Node::Ignored { ino, folder: true }),
                    true => self.kept_folder(fd, path, name, place)?,
                    false if nothing_to_keep || (place.now.ignores_all() && !kept_in_base) => {
                        Some(Node::Ignored { ino, folder: false })
                    }
                    false => self.look_at_file(fd, path, name, place.prev.as_deref(), Some(KEPT_SIZE))?,
                };
                match node {
                    Some(Node::Left { why: Left::UnreadableFolder, .. }) if !is_folder => kind = FileType::Unknown,
                    Some(node) => return Ok(entry(Some(verdict), node, by_base)),
                    None => return Ok(Found::Gone),
                }
                continue;
            }
            if is_folder {
                return Ok(Found::Folder(verdict, by_base));
            }
            if let Some(node) = &looked_at
                && !node.is_folder()
            {
                return Ok(entry(Some(verdict), node.clone(), by_base));
            }
            match self.look_at_file(fd, path, name, place.prev.as_deref(), None)? {
                Some(node) if node.is_folder() => kind = FileType::Unknown,
                Some(node) => return Ok(entry(Some(verdict), node, by_base)),
                None => return Ok(Found::Gone),
            }
        }
        Err(self.shared.failed(path, Errno::AGAIN))
    }

    fn verdict(&self, path: &[u8], is_folder: bool, place: &Place, old: Option<&Entry>) -> Verdict {
        if self.shared.watch_ignored || self.shared.profile == Profile::GitFolder {
            return Verdict::default();
        }
        if let Some(Entry { verdict: Some(verdict), node, .. }) = old
            && node.stands_for_folder() == is_folder
        {
            return *verdict;
        }
        Verdict {
            ignored_now: place.now.ignores(path, is_folder),
            ignored_at_start: place.then.as_ref().is_some_and(|then| then.ignores(path, is_folder)),
        }
    }

    /// The node of a name that is no folder; one that turned out to be a folder is told by its mode. `prev`: the
    /// folder at the last look. `keep`: it is ignored, and kept up to this size.
    pub(super) fn look_at_file(
        &mut self,
        fd: BorrowedFd<'_>,
        path: &[u8],
        name: &[u8],
        prev: Option<&Folder>,
        keep: Option<u64>,
    ) -> Result<Option<Node>, RepoError> {
        for _ in 0..MOST_TRIES {
            let stat = match statat(fd, os(name), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(self.shared.failed(path, errno)),
            };
            let stamp = Stamp::of(&stat);
            if stamp.kind() == stamp::FOLDER {
                return Ok(Some(Node::Left { stamp, why: Left::UnreadableFolder }));
            }
            let is_content = matches!(stamp.kind(), stamp::FILE | stamp::LINK);
            if let Some(most) = keep
                && !(is_content && stamp.size <= most && self.shared.budget.takes(stamp.size))
            {
                return Ok(Some(Node::Ignored { ino: stamp.ino, folder: false }));
            }
            match prev.and_then(|prev| prev.get(name)).map(|entry| &entry.node) {
                Some(Node::File(old)) if old.stamp == stamp && !old.racy => {
                    return Ok(Some(Node::File(File { kept: keep.is_some(), ..*old })));
                }
                Some(old @ Node::Left { stamp: before, why: Left::Unreadable }) if *before == stamp => {
                    return Ok(Some(old.clone()));
                }
                _ => {}
            }
            if !is_content {
                return Ok(Some(Node::Special { stamp, device: stat.st_rdev }));
            }
            match self.read(fd, name, stamp, keep.is_some())? {
                Ok(Read::Node(node)) => return Ok(Some(node)),
                Ok(Read::Changed) => {}
                Err(errno) => return Err(self.shared.failed(path, errno)),
            }
        }
        Err(self.shared.failed(path, Errno::AGAIN))
    }

    fn read(
        &mut self,
        fd: BorrowedFd<'_>,
        name: &[u8],
        stamp: Stamp,
        kept: bool,
    ) -> Result<Result<Read, Errno>, RepoError> {
        let Shared { shelf, look, size_cap, .. } = self.shared;
        let content = &mut self.worker.content;
        Reader { shelf, look: *look, size_cap: *size_cap, content }.read(fd, name, stamp, kept)
    }

    pub(super) fn nested_git(
        &mut self,
        fd: BorrowedFd<'_>,
        path: &[u8],
        name: &[u8],
    ) -> Result<Option<Node>, RepoError> {
        let stamp = match statat(fd, os(name), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Stamp::of(&stat),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(self.shared.failed(path, errno)),
        };
        if !matches!(stamp.kind(), stamp::FILE | stamp::LINK) || stamp.size > KEPT_SIZE {
            return Ok(Some(Node::NestedGit { stamp, id: None }));
        }
        match self.read(fd, name, stamp, false)? {
            Ok(Read::Node(Node::File(file))) => Ok(Some(Node::NestedGit { stamp: file.stamp, id: Some(file.id) })),
            Ok(_) => Ok(Some(Node::NestedGit { stamp, id: None })),
            Err(errno) => Err(self.shared.failed(path, errno)),
        }
    }
}
