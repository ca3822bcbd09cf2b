//! Blobs: prompts, outputs and diffs, each once, named by the SHA-256 of what they hold.
//!
//! Owns the `blobs` folder of a run. Gets bytes that are masked already. Guarantees that a blob is there whole or not
//! at all, that the reader gets exactly the bytes that the name stands for, and that nothing is written through a link.
//! The files are gzip, so `zcat < blobs/<name>` shows one to a person who has nothing else.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat, renameat, statat, unlinkat};
use sha2::{Digest, Sha256};

use super::error::JournalError;
use super::record::hex;

/// Folder of the blobs, in the folder of a run.
pub(super) const FOLDER: &str = "blobs";

/// Most bytes that a reader unpacks, whatever a file claims to hold.
const MOST_UNPACKED: u64 = 256 << 20;

/// The blobs of a run that is being written, in one or two folders.
#[derive(Debug)]
pub(super) struct BlobStore {
    folders: Vec<BlobFolder>,
}

#[derive(Debug)]
struct BlobFolder {
    path: PathBuf,
    /// Held open, so that exchanging the folder for a link moves nothing elsewhere.
    folder: OwnedFd,
}

impl BlobFolder {
    fn open(run_dir: &Path) -> Result<BlobFolder, JournalError> {
        let path = run_dir.join(FOLDER);
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        match openat(CWD, &path, flags, Mode::empty()) {
            Ok(folder) => Ok(BlobFolder { path, folder }),
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => Err(JournalError::NotAFolder { path }),
            Err(error) => Err(JournalError::from_io("open", &path, error.into())),
        }
    }

    fn has(&self, id: &str) -> bool {
        statat(&self.folder, id, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Writes a file under its name, or leaves nothing.
    fn put(&self, id: &str, packed: &[u8]) -> Result<(), JournalError> {
        let wrap = |error: io::Error| JournalError::from_io("write", &self.path.join(id), error);
        let staged = format!("{id}.new");
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Left by a process that died while it wrote; there is one writer, so nobody else is at it now.
        let _ = unlinkat(&self.folder, &staged, AtFlags::empty());
        let file = openat(&self.folder, &staged, flags, Mode::RUSR | Mode::WUSR).map_err(|e| wrap(e.into()))?;
        let written = File::from(file).write_all(packed);
        let written = written.and_then(|()| Ok(renameat(&self.folder, &staged, &self.folder, id)?));
        written.map_err(|error| {
            // The first error is the one to tell; what stays behind is overwritten by the next try.
            let _ = unlinkat(&self.folder, &staged, AtFlags::empty());
            wrap(error)
        })
    }

    /// Takes a file from another folder: a second name of it, or a copy where links cannot cross.
    fn take(&self, other: &BlobFolder, id: &str, packed: &[u8]) -> Result<(), JournalError> {
        match linkat(&other.folder, id, &self.folder, id, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(_) => self.put(id, packed),
        }
    }
}

impl BlobStore {
    /// Opens the blob folders of these run folders, the safest one first. They must be there.
    pub(super) fn open(run_dirs: &[&Path]) -> Result<BlobStore, JournalError> {
        let folders = run_dirs.iter().map(|dir| BlobFolder::open(dir)).collect::<Result<_, _>>()?;
        Ok(BlobStore { folders })
    }

    /// Stores `bytes` and returns the name, and how many bytes that took on the disk: 0 when they were there already.
    pub(super) fn put(&self, bytes: &[u8]) -> Result<(String, u64), JournalError> {
        let id = hex(&Sha256::digest(bytes));
        if self.folders.iter().all(|folder| folder.has(&id)) {
            return Ok((id, 0));
        }
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        let packed = packer
            .write_all(bytes)
            .and_then(|()| packer.finish())
            .map_err(|e| JournalError::from_io("pack", Path::new(&id), e))?;
        let Some((first, others)) = self.folders.split_first() else { return Ok((id, 0)) };
        if !first.has(&id) {
            first.put(&id, &packed)?;
        }
        for other in others {
            match other.take(first, &id, &packed) {
                // A folder that is gone is told by `repair`; the blob itself is safe.
                Err(JournalError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                taken => taken?,
            }
        }
        Ok((id, packed.len() as u64))
    }

    /// Bytes on the disk.
    pub(super) fn size(&self) -> Result<u64, JournalError> {
        let Some(first) = self.folders.first() else { return Ok(0) };
        let wrap = |error| JournalError::from_io("read", &first.path, error);
        let mut total = 0;
        for entry in std::fs::read_dir(&first.path).map_err(wrap)? {
            total += entry.and_then(|entry| entry.metadata()).map_err(wrap)?.len();
        }
        Ok(total)
    }

    /// Gives every folder the blobs that only the first one still has, after folders were made anew.
    pub(super) fn refill(&self) -> Result<(), JournalError> {
        let Some((first, others)) = self.folders.split_first() else { return Ok(()) };
        let wrap = |error| JournalError::from_io("read", &first.path, error);
        for entry in std::fs::read_dir(&first.path).map_err(wrap)? {
            let entry = entry.map_err(wrap)?;
            let Ok(id) = entry.file_name().into_string() else { continue };
            for other in others.iter().filter(|other| !other.has(&id)) {
                let packed = std::fs::read(entry.path()).map_err(wrap)?;
                other.take(first, &id, &packed)?;
            }
        }
        Ok(())
    }
}

/// Reads a blob of a run and checks it against its name.
///
/// # Errors
/// When `id` is no name of a blob, or the blob is missing or damaged.
pub fn blob(run_dir: &Path, id: &str) -> Result<Vec<u8>, JournalError> {
    if id.len() != 64 || !id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
        return Err(JournalError::BadBlobName { id: id.to_owned() });
    }
    let folder = BlobFolder::open(run_dir).map_err(|error| match error {
        JournalError::Io { path, source, .. } if source.kind() == io::ErrorKind::NotFound => {
            JournalError::NoBlob { id: id.to_owned(), path }
        }
        other => other,
    })?;
    let path = folder.path;
    let damaged = |why: String| JournalError::DamagedBlob { id: id.to_owned(), path: path.clone(), why };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match openat(&folder.folder, id, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Err(JournalError::NoBlob { id: id.to_owned(), path }),
        Err(rustix::io::Errno::LOOP) => return Err(damaged("it is a link".into())),
        Err(error) => return Err(JournalError::from_io("read", &path.join(id), error.into())),
    };
    let mut bytes = Vec::new();
    GzDecoder::new(file)
        .take(MOST_UNPACKED + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| damaged(format!("it cannot be unpacked: {error}")))?;
    if bytes.len() as u64 > MOST_UNPACKED {
        return Err(damaged(format!("it holds more than {MOST_UNPACKED} bytes")));
    }
    match hex(&Sha256::digest(&bytes)) {
        found if found == id => Ok(bytes),
        found => Err(damaged(format!("its content has the digest {found}"))),
    }
}

/// Cuts bytes to `cap`: head and tail stay, and the middle says what is missing.
pub(super) fn cap_blob(bytes: &[u8], cap: usize) -> Option<Vec<u8>> {
    if bytes.len() <= cap {
        return None;
    }
    let marker = |cut: usize| format!("\n[... {cut} of {} bytes cut: a blob holds at most {cap} ...]\n", bytes.len());
    let room = cap.saturating_sub(marker(bytes.len()).len());
    let head = room / 3;
    let tail = bytes.len() - (room - head);
    Some([&bytes[..head], marker(tail - head).as_bytes(), &bytes[tail..]].concat())
}
