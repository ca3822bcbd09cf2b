//! Brings single paths back: folders, files, links, FIFOs, and at least the mode of what was not captured.

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timestamps, Uid, mkdirat, mknodat, openat, unlinkat};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};

use super::super::beneath::{look, look_closely, set_file_mode};
use super::super::error::RepoError;
use super::super::path::{os, split};
use super::super::snapshot::{Delta, File, Left, Node};
use super::super::stamp::{self, Stamp};
use super::{Revert, still};

impl Revert<'_> {
    pub(super) fn bring_back(&mut self, delta: &Delta) -> Result<(), RepoError> {
        let Some(old) = &delta.old else { return Ok(()) };
        let path = &delta.path;
        if path.is_empty() {
            return Ok(());
        }
        let (_, name) = split(path);
        let folder = match self.folder_of(path) {
            Ok(folder) => folder,
            Err(errno @ (Errno::NOENT | Errno::NOTDIR | Errno::LOOP)) => {
                self.conflict(path, format!("its folder is not there: {errno}"));
                return Ok(());
            }
            Err(errno) => return Err(self.failed(path, "opening the folder of")(errno)),
        };
        let seen = match look_closely(folder, name) {
            Ok(seen) => seen,
            Err(errno) => return Err(self.failed(path, "looking at")(errno)),
        };
        if let Node::Folder(_) | Node::Kept(_) = old {
            return self.bring_folder_back(delta, seen.map(|stat| Stamp::of(&stat)));
        }
        if let Some(why) = changed_since(seen.map(|stat| Stamp::of(&stat)), delta) {
            self.conflict(path, why);
            return Ok(());
        }
        match old {
            Node::File(file) => self.bring_file_back(delta, *file, seen.as_ref()),
            Node::NestedGit { stamp, id: Some(id) } => {
                let file = File { stamp: *stamp, id: *id, racy: true, kept: false };
                self.bring_file_back(delta, file, seen.as_ref())
            }
            Node::Special { stamp, .. } if stamp.kind() == stamp::FIFO => self.bring_fifo_back(delta, *stamp),
            Node::Special { .. } => {
                self.conflict(path, "a socket or device can't be made again");
                Ok(())
            }
            Node::NestedGit { .. } => {
                self.conflict(path, "the git folder of a nested repository is not covered");
                Ok(())
            }
            Node::Left { stamp, why } => self.bring_left_back(delta, *stamp, *why),
            Node::Ignored { .. } => {
                self.conflict(path, "git ignores it, so its content was not captured");
                Ok(())
            }
            Node::Folder(_) | Node::Kept(_) => Ok(()),
        }
    }

    fn bring_folder_back(&mut self, delta: &Delta, seen: Option<Stamp>) -> Result<(), RepoError> {
        let path = &delta.path;
        match seen {
            Some(seen) if seen.kind() == stamp::FOLDER => return Ok(()),
            // a file in its place was to be removed, and could not
            Some(_) => return Ok(()),
            None => {}
        }
        let (_, name) = split(path);
        let name = name.to_vec();
        let failed = self.failed(path, "making the folder");
        let owner = self.owner_for(path, None);
        let folder = self.reopen(path)?;
        match mkdirat(&folder, os(&name), Mode::from_raw_mode(0o700)) {
            Ok(()) => {
                if let Some((uid, gid)) = owner {
                    rustix::fs::chownat(&folder, os(&name), Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
                        .map_err(RepoError::os(self.name, "giving a folder back to its owner"))?;
                }
                self.report.written += 1;
                Ok(())
            }
            Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }

    fn bring_file_back(&mut self, delta: &Delta, file: File, seen: Option<&rustix::fs::Stat>) -> Result<(), RepoError> {
        let path = &delta.path;
        let (_, name) = split(path);
        let name = name.to_vec();
        if let (Some(seen), Some(Node::File(new))) = (seen, &delta.new)
            && new.id == file.id
            && new.stamp.kind() == file.stamp.kind()
            && file.stamp.kind() == stamp::FILE
        {
            // only the mode moved
            let ino = seen.st_ino;
            let failed = self.failed(path, "changing the mode");
            let folder = self.reopen(path)?;
            if set_file_mode(folder.as_fd(), &name, ino, file.stamp.mode).map_err(failed)? {
                self.report.modes += 1;
            } else {
                self.conflict(path, "it changed after it was captured");
            }
            return Ok(());
        }
        let owner = self.owner_for(path, seen);
        let link = if file.stamp.kind() == stamp::LINK { Some(self.store.read(file.id)?) } else { None };
        let folder = self.reopen(path)?;
        match unlinkat(&folder, os(&name), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => {
                self.conflict(path, format!("what stands in its place could not be removed: {errno}"));
                return Ok(());
            }
        }
        if let Some(target) = link {
            rustix::fs::symlinkat(os(&target), &folder, os(&name)).map_err(self.failed(path, "making the link"))?;
        } else {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let out = openat(&folder, os(&name), flags, Mode::from_raw_mode(0o600))
                .map_err(self.failed(path, "making the file"))?;
            self.store.copy_to(file.id, out.as_fd())?;
            if let Some((uid, gid)) = owner {
                rustix::fs::fchown(&out, Some(uid), Some(gid))
                    .map_err(self.failed(path, "giving back to its owner"))?;
            }
            rustix::fs::fchmod(&out, Mode::from_raw_mode(file.stamp.permissions()))
                .map_err(self.failed(path, "changing the mode"))?;
            if self.times && file.stamp.mtime != 0 {
                set_mtime(out.as_fd(), file.stamp.mtime).map_err(self.failed(path, "setting the time"))?;
            }
        }
        self.report.written += 1;
        Ok(())
    }

    fn bring_fifo_back(&mut self, delta: &Delta, stamp: Stamp) -> Result<(), RepoError> {
        let path = &delta.path;
        let (_, name) = split(path);
        let name = name.to_vec();
        let failed = self.failed(path, "making the FIFO");
        let folder = self.reopen(path)?;
        match unlinkat(&folder, os(&name), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => {
                self.conflict(path, format!("what stands in its place could not be removed: {errno}"));
                return Ok(());
            }
        }
        mknodat(&folder, os(&name), FileType::Fifo, Mode::from_raw_mode(0o600), 0).map_err(failed)?;
        let made = look(folder.as_fd(), &name).map_err(self.failed(path, "putting back"))?;
        if let Some(made) = made {
            set_file_mode(folder.as_fd(), &name, made.ino, stamp.mode).map_err(self.failed(path, "putting back"))?;
        }
        self.report.written += 1;
        Ok(())
    }

    /// Contents that were not captured: at most the mode can be put back.
    fn bring_left_back(&mut self, delta: &Delta, old: Stamp, why: Left) -> Result<(), RepoError> {
        let path = &delta.path;
        if old.kind() == stamp::FOLDER {
            if delta.new.is_none() || !delta.is_folder() {
                self.conflict(path, "it could not be read at the checkpoint, so its contents were not captured");
            }
            return Ok(());
        }
        let unchanged = match &delta.new {
            Some(Node::Left { stamp, .. } | Node::File(File { stamp, .. })) => {
                stamp.kind() == old.kind() && stamp.size == old.size && stamp.mtime == old.mtime
            }
            _ => false,
        };
        if let (true, Some(new)) = (unchanged, &delta.new) {
            let (_, name) = split(path);
            let name = name.to_vec();
            let ino = new.ino();
            let folder = self.reopen(path)?;
            if set_file_mode(folder.as_fd(), &name, ino, old.mode).map_err(self.failed(path, "putting back"))? {
                self.report.modes += 1;
            }
            return Ok(());
        }
        self.conflict(
            path,
            match why {
                Left::OverCap => "it is over the size cap, so its content was not captured",
                _ => "it could not be read at the checkpoint, so its content was not captured",
            },
        );
        Ok(())
    }

    /// As root: whose a new file shall be. Nobody else can give files away, and files are theirs anyway.
    fn owner_for(&mut self, path: &[u8], seen: Option<&rustix::fs::Stat>) -> Option<(Uid, Gid)> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let (uid, gid) = match seen {
            Some(stat) => (stat.st_uid, stat.st_gid),
            None => {
                let folder = self.folder_of(path).ok()?;
                let stat = rustix::fs::fstat(folder).ok()?;
                (stat.st_uid, stat.st_gid)
            }
        };
        (uid != 0 || gid != 0).then(|| (Uid::from_raw(uid), Gid::from_raw(gid)))
    }
}

fn set_mtime(file: BorrowedFd<'_>, mtime: i64) -> Result<(), Errno> {
    let time =
        rustix::fs::Timespec { tv_sec: mtime.div_euclid(1_000_000_000), tv_nsec: mtime.rem_euclid(1_000_000_000) };
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    rustix::fs::futimens(file, &Timestamps { last_access: now, last_modification: time })
}

/// Why a path is to be left alone, when it is not what the capture saw.
fn changed_since(seen: Option<Stamp>, delta: &Delta) -> Option<&'static str> {
    match (seen, &delta.new) {
        (None, _) => None,
        (Some(_), None) => Some("it appeared after the capture"),
        (Some(seen), Some(new)) if seen.kind() != new.mode() & stamp::TYPE_MASK => {
            Some("it changed after it was captured")
        }
        (Some(seen), Some(new)) => match new.stamp() {
            Some(stamp) if !still(stamp, &seen) => Some("it changed after it was captured"),
            _ => None,
        },
    }
}
