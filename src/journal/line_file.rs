//! The file under a journal: whole lines at its end, or nothing.
//!
//! Owns the open file, its lock and its second place. Knows nothing of events. Guarantees that a line is in the file
//! completely or not at all after an error, that nobody else's bytes get between two lines unnoticed, and that only one
//! process writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::error::JournalError;

/// How long a writer waits for readers that look whether the file is in use.
const PATIENCE: Duration = Duration::from_secs(1);

/// One line file, in one or two places.
#[derive(Debug)]
pub(super) struct LineFile {
    main: Place,
    /// Where the second name of the same file is, or a copy of it where links cannot cross.
    second: Option<Second>,
    len: u64,
}

#[derive(Debug)]
struct Place {
    path: PathBuf,
    file: File,
}

#[derive(Debug)]
enum Second {
    Link(PathBuf),
    Copy(Place),
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

/// Takes the lock of a writer; the system frees it when the process is gone, however it went.
fn lock(place: &Place) -> Result<(), JournalError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match flock(&place.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => thread::sleep(Duration::from_millis(2)),
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(JournalError::InUse { path: place.path.clone() }),
            Err(error) => return Err(JournalError::from_io("lock", &place.path, error.into())),
        }
    }
}

/// True while a living process writes the file.
pub(super) fn is_locked(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
}

impl LineFile {
    /// A new file, with its second name where one is wanted.
    pub(super) fn create(path: PathBuf, second: Option<PathBuf>) -> Result<LineFile, JournalError> {
        let file = options().create_new(true).open(&path).map_err(|e| JournalError::from_io("create", &path, e))?;
        let main = Place { path, file };
        lock(&main)?;
        let mut lines = LineFile { main, second: None, len: 0 };
        if let Some(second) = second {
            lines.second = Some(lines.link(second)?);
        }
        Ok(lines)
    }

    /// The file of an earlier process.
    pub(super) fn open(path: PathBuf, second: Option<PathBuf>) -> Result<LineFile, JournalError> {
        let file = options().open(&path).map_err(|e| JournalError::from_io("open", &path, e))?;
        let main = Place { path, file };
        lock(&main)?;
        let len = main.size()?;
        let mut lines = LineFile { main, second: None, len };
        if let Some(second) = second {
            lines.second = Some(lines.link(second)?);
        }
        Ok(lines)
    }

    /// Gives the file its second name, or makes a copy where a link cannot be had.
    fn link(&self, second: PathBuf) -> Result<Second, JournalError> {
        if self.main.is_at(&second) {
            return Ok(Second::Link(second));
        }
        let staged = second.with_extension("new");
        // Left by a process that died between the two steps.
        remove_if_there(&staged)?;
        if std::fs::hard_link(&self.main.path, &staged).is_ok() && self.main.is_at(&staged) {
            std::fs::rename(&staged, &second).map_err(|e| JournalError::from_io("create", &second, e))?;
            // Two names of one file make a rename do nothing, so the staged one may still be there.
            remove_if_there(&staged)?;
            return Ok(Second::Link(second));
        }
        remove_if_there(&staged)?;
        let copy = self.main.copy_to(&staged)?;
        std::fs::rename(&staged, &second).map_err(|e| JournalError::from_io("create", &second, e))?;
        let copy = Place { path: second, file: copy };
        lock(&copy)?;
        Ok(Second::Copy(copy))
    }

    /// Bytes of all whole lines.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Adds one line; `line` has its line end.
    ///
    /// Returns how the size of the file differs from what was written so far: not 0 when somebody else wrote to it or
    /// cut it. What they added is dropped; what they cut is gone.
    pub(super) fn append(&mut self, line: &[u8]) -> Result<i64, JournalError> {
        let size = self.main.size()?;
        let foreign = size as i64 - self.len as i64;
        if size > self.len {
            self.main.shrink(self.len)?;
        }
        let mut start = size.min(self.len);
        if foreign < 0 && start > 0 && self.main.byte_before(start)? != b'\n' {
            self.main.write(b"\n", start)?;
            start += 1;
        }
        self.main.write(line, start)?;
        self.len = start + line.len() as u64;
        if let Some(Second::Copy(copy)) = &mut self.second {
            let before = copy.size()?;
            if let Err(error) = copy.write(line, before) {
                // Both or none: the caller hears that nothing was written.
                self.main.shrink(start)?;
                self.len = start;
                return Err(error);
            }
        }
        Ok(foreign)
    }

    /// Cuts the file after `len` bytes.
    pub(super) fn cut(&mut self, len: u64) -> Result<(), JournalError> {
        self.main.shrink(len)?;
        if let Some(Second::Copy(copy)) = &mut self.second {
            copy.shrink(len)?;
        }
        self.len = len;
        Ok(())
    }

    /// Waits until all is on the disk.
    pub(super) fn sync(&self) -> Result<(), JournalError> {
        let copy = match &self.second {
            Some(Second::Copy(copy)) => Some(copy),
            _ => None,
        };
        for place in std::iter::once(&self.main).chain(copy) {
            place.file.sync_data().map_err(|e| JournalError::from_io("flush", &place.path, e))?;
        }
        Ok(())
    }

    /// Puts names back that somebody removed or replaced. The folders must be there.
    ///
    /// Returns whether anything had to be done.
    pub(super) fn repair(&mut self) -> Result<bool, JournalError> {
        let mut repaired = false;
        if !self.main.is_at(&self.main.path) {
            repaired = true;
            remove_if_there(&self.main.path)?;
            let linked = match &self.second {
                Some(Second::Link(second)) if self.main.is_at(second) => {
                    std::fs::hard_link(second, &self.main.path).is_ok()
                }
                _ => false,
            };
            if !linked {
                // Every name is gone: what the open file holds goes into a new one.
                let file = self.main.copy_to(&self.main.path)?;
                self.main = Place { path: self.main.path.clone(), file };
                lock(&self.main)?;
            }
        }
        let lost = match &self.second {
            Some(Second::Link(second)) => !self.main.is_at(second),
            Some(Second::Copy(copy)) => !copy.is_at(&copy.path),
            None => false,
        };
        if lost && let Some(Second::Link(path) | Second::Copy(Place { path, .. })) = self.second.take() {
            remove_if_there(&path)?;
            self.second = Some(self.link(path)?);
            repaired = true;
        }
        Ok(repaired)
    }

    /// A reader over the file from its start.
    pub(super) fn read(&self) -> Result<File, JournalError> {
        File::open(&self.main.path).map_err(|e| JournalError::from_io("read", &self.main.path, e))
    }
}

fn remove_if_there(path: &Path) -> Result<(), JournalError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(JournalError::from_io("remove", path, error)),
        _ => Ok(()),
    }
}

impl Place {
    fn size(&self) -> Result<u64, JournalError> {
        let data = self.file.metadata().map_err(|e| JournalError::from_io("read", &self.path, e))?;
        Ok(data.len())
    }

    fn byte_before(&self, at: u64) -> Result<u8, JournalError> {
        let mut byte = [0];
        self.file.read_exact_at(&mut byte, at - 1).map_err(|e| JournalError::from_io("read", &self.path, e))?;
        Ok(byte[0])
    }

    /// Writes at the end, which is at `start`; takes back what was written when it does not all fit.
    fn write(&mut self, bytes: &[u8], start: u64) -> Result<(), JournalError> {
        self.file.write_all(bytes).map_err(|error| {
            // The first error is the one to tell; a failed shrink shows up as a damaged line for readers.
            let _ = self.file.set_len(start);
            JournalError::from_io("write", &self.path, error)
        })
    }

    fn shrink(&self, len: u64) -> Result<(), JournalError> {
        self.file.set_len(len).map_err(|e| JournalError::from_io("cut", &self.path, e))
    }

    /// True when `path` is a name of this very file.
    fn is_at(&self, path: &Path) -> bool {
        match (self.file.metadata(), std::fs::symlink_metadata(path)) {
            (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
            _ => false,
        }
    }

    fn copy_to(&self, path: &Path) -> Result<File, JournalError> {
        let wrap = |error| JournalError::from_io("copy", path, error);
        let mut copy = options().create_new(true).open(path).map_err(wrap)?;
        // This moves the position of the open file, which matters to nobody: every write goes to the end.
        let mut source = self.file.try_clone().map_err(wrap)?;
        source.seek(SeekFrom::Start(0)).map_err(wrap)?;
        io::copy(&mut source.take(self.size()?), &mut copy).map_err(wrap)?;
        Ok(copy)
    }
}
