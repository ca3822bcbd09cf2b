//! Files too large for a pack: kept raw under their id, with holes kept as holes, read and written in streams.

use rustix::fs::{OFlags, SeekFrom, ftruncate, ioctl_ficlone, seek};
use rustix::io::Errno;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use super::super::error::RepoError;
use super::super::object::{Hasher, Kind, ObjectId};
use super::Store;

const STEP: usize = 1 << 20;

/// A run of bytes of a file: data to be read, or a hole of zeros.
enum Piece<'a> {
    Data(u64, &'a [u8]),
    Hole(u64),
}

impl Store {
    pub(super) fn large_path(&self, id: ObjectId) -> PathBuf {
        self.dir.join("large").join(id.to_string())
    }

    /// Hashes a large file, and keeps it unless it is here already. `None`: it changed while it was read.
    pub(crate) fn put_large(&mut self, file: BorrowedFd<'_>, size: u64) -> Result<Option<ObjectId>, RepoError> {
        let dir = self.dir.clone();
        let failed = |doing| RepoError::os(&dir, doing);
        let Some(id) = hash(file, size).map_err(failed("hashing a large file"))? else { return Ok(None) };
        let target = self.large_path(id);
        if self.has(id) || target.exists() {
            return Ok(Some(id));
        }
        let temporary = self.temporary();
        let out = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)
            .map_err(RepoError::io(&temporary, "making the file"))?;
        // what is kept must be what was hashed: the copy is hashed in the end, not the original
        let copied = copy(file, out.as_fd(), size);
        drop(out);
        let same = copied.and_then(|()| {
            let back = rustix::fs::open(&temporary, OFlags::RDONLY | OFlags::CLOEXEC, rustix::fs::Mode::empty())?;
            Ok(hash(back.as_fd(), size)? == Some(id))
        });
        match same {
            Ok(true) => {
                fs::rename(&temporary, &target).map_err(RepoError::io(&target, "renaming into place"))?;
                self.unsynced.push(target);
                Ok(Some(id))
            }
            other => {
                let _ = fs::remove_file(&temporary);
                match other {
                    Ok(_) | Err(Errno::AGAIN) => Ok(None),
                    Err(error) => Err(RepoError::os(&temporary, "copying a large file")(error)),
                }
            }
        }
    }

    /// Writes the content of an object to an open, empty file.
    pub(crate) fn copy_to(&mut self, id: ObjectId, out: BorrowedFd<'_>) -> Result<(), RepoError> {
        let large = self.large_path(id);
        if let Ok(file) = fs::File::open(&large) {
            let size = file.metadata().map_err(RepoError::io(&large, "looking at"))?.len();
            return copy(file.as_fd(), out, size).map_err(RepoError::os(&large, "copying a large file"));
        }
        let bytes = self.read(id)?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let written = rustix::io::write(out, rest).map_err(RepoError::os(&self.dir, "writing a file back"))?;
            rest = &rest[written..];
        }
        Ok(())
    }
}

fn hash(file: BorrowedFd<'_>, size: u64) -> Result<Option<ObjectId>, Errno> {
    let mut hasher = Hasher::new(Kind::Blob, size);
    let zeros = vec![0_u8; STEP];
    let whole = pieces(file, size, |piece| {
        match piece {
            Piece::Data(_, bytes) => hasher.update(bytes),
            Piece::Hole(mut length) => {
                while length > 0 {
                    let step = length.min(STEP as u64);
                    hasher.update(&zeros[..step as usize]);
                    length -= step;
                }
            }
        }
        Ok(())
    })?;
    Ok(whole.then(|| hasher.finish()))
}

fn copy(from: BorrowedFd<'_>, to: BorrowedFd<'_>, size: u64) -> Result<(), Errno> {
    if ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    ftruncate(to, size)?;
    let whole = pieces(from, size, |piece| match piece {
        Piece::Hole(_) => Ok(()),
        Piece::Data(mut at, mut bytes) => {
            while !bytes.is_empty() {
                let written = rustix::io::pwrite(to, bytes, at)?;
                at += written as u64;
                bytes = &bytes[written..];
            }
            Ok(())
        }
    })?;
    if whole { Ok(()) } else { Err(Errno::AGAIN) }
}

/// Walks over a file. Answers false when it got shorter meanwhile.
fn pieces(
    file: BorrowedFd<'_>,
    size: u64,
    mut each: impl FnMut(Piece<'_>) -> Result<(), Errno>,
) -> Result<bool, Errno> {
    let mut buffer = vec![0_u8; STEP];
    let mut at = 0;
    while at < size {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data.min(size),
            Err(Errno::NXIO) => size,
            // a file system that knows no holes
            Err(_) => at,
        };
        if data > at {
            each(Piece::Hole(data - at))?;
            at = data;
            continue;
        }
        let end = seek(file, SeekFrom::Hole(at)).unwrap_or(size).min(size);
        while at < end {
            let step = (end - at).min(STEP as u64) as usize;
            let read = rustix::io::pread(file, &mut buffer[..step], at)?;
            if read == 0 {
                return Ok(false);
            }
            each(Piece::Data(at, &buffer[..read]))?;
            at += read as u64;
        }
    }
    Ok(true)
}
