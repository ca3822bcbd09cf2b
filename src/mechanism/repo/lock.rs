//! The lock of a repository: one run at a time.
//!
//! Owns the lock file in the state folder and the record of who holds it. The lock is the operating system's, held by
//! an open file of the long-lived process: it ends with that process and cannot be judged by age or process id, so it
//! is never stolen from a run that is slow, stopped or two hours old. The record beside it is only for messages.

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::RepoError;
use super::store::{private_folder, write_whole};

/// How long a lock may outlive its holder: a child between fork and exec still has the file open.
const LINGERS: Duration = Duration::from_millis(250);

/// Who holds a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// Process id, on that host.
    pub pid: u32,
    /// Id of the run.
    pub run: String,
    /// Name of the machine.
    pub host: String,
    /// When the run started, as text for people.
    pub started: String,
}

impl LockHolder {
    /// This process, for a run that starts now.
    #[must_use]
    pub fn this_process(run: &str, started: &str) -> LockHolder {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        LockHolder { pid: std::process::id(), run: run.to_owned(), host, started: started.to_owned() }
    }

    /// True when a process with its id is there on its machine. For messages and waiting only: ids are used again.
    #[must_use]
    pub fn seems_alive(&self) -> bool {
        let here = rustix::system::uname().nodename().to_string_lossy() == self.host;
        !here || Path::new("/proc").join(self.pid.to_string()).exists()
    }
}

impl fmt::Display for LockHolder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "run {} (process {} on {}, since {})", self.run, self.pid, self.host, self.started)
    }
}

/// The lock, held as long as this value, or the file that it hands out, lives in any process.
#[derive(Clone)]
pub struct RepoLock {
    file: Arc<File>,
    record: PathBuf,
}

impl fmt::Debug for RepoLock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RepoLock({})", self.record.display())
    }
}

impl RepoLock {
    /// Takes the lock of the repository whose state folder is `state`, or says within a quarter of a second who has it.
    ///
    /// # Errors
    /// [`RepoError::Held`] with the holder when somebody else has it; errors of the file system.
    pub fn acquire(state: &Path, who: &LockHolder) -> Result<RepoLock, RepoError> {
        private_folder(state)?;
        let path = state.join("lock");
        let record = state.join("holder.json");
        // A lock file that was removed and made again meanwhile would be two locks: look which one the name is.
        let deadline = Instant::now() + LINGERS;
        let mut replaced = 0;
        while replaced < 16 {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)
                .map_err(RepoError::io(&path, "opening the lock"))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::AGAIN) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                }
                Err(rustix::io::Errno::AGAIN) => return Err(RepoError::Held { holder: read_holder(&record) }),
                Err(errno) => return Err(RepoError::os(&path, "taking the lock")(errno)),
            }
            let mine = file.metadata().map_err(RepoError::io(&path, "looking at the lock"))?;
            let named = std::fs::metadata(&path).ok();
            if named.is_some_and(|named| (named.dev(), named.ino()) == (mine.dev(), mine.ino())) {
                let text = serde_json::to_vec(who)
                    .map_err(|error| RepoError::Record { path: record.clone(), what: error.to_string() })?;
                write_whole(&record, &text, false)?;
                return Ok(RepoLock { file: Arc::new(file), record });
            }
            replaced += 1;
        }
        Err(RepoError::Record { path, what: "the lock file is replaced again and again by somebody".into() })
    }

    /// The lock that a dead host handed on: `file` is the descriptor that [`RepoLock::file`] gave away. It is locked
    /// again, which changes nothing when it is the same open file, and fails when somebody else has the lock by now.
    ///
    /// # Errors
    /// [`RepoError::Held`] when it is not the file that holds the lock; errors of the file system.
    pub fn inherited(state: &Path, file: File) -> Result<RepoLock, RepoError> {
        let path = state.join("lock");
        let record = state.join("holder.json");
        let mine = file.metadata().map_err(RepoError::io(&path, "looking at the lock"))?;
        let named = std::fs::metadata(&path).map_err(RepoError::io(&path, "looking at the lock"))?;
        let same = (named.dev(), named.ino()) == (mine.dev(), mine.ino());
        if !same || flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(RepoError::Held { holder: read_holder(&record) });
        }
        Ok(RepoLock { file: Arc::new(file), record })
    }

    /// The open file that the lock hangs on. A process that inherits it keeps the repository locked until it ends.
    #[must_use]
    pub fn file(&self) -> Arc<File> {
        self.file.clone()
    }

    /// Is it the lock of this state folder?
    pub(crate) fn belongs_to(&self, state: &Path) -> bool {
        self.record.parent() == Some(state)
    }

    /// Who holds the repository now, as far as that can be told; `None` when nobody does.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn holder(state: &Path) -> Result<Option<LockHolder>, RepoError> {
        let path = state.join("lock");
        let file = match OpenOptions::new().read(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(RepoError::io(&path, "opening the lock")(error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(None),
            Err(rustix::io::Errno::AGAIN) => Ok(Some(read_holder(&state.join("holder.json")).unwrap_or_else(unknown))),
            Err(errno) => Err(RepoError::os(&path, "asking the lock")(errno)),
        }
    }
}

fn unknown() -> LockHolder {
    let word = || "unknown".to_string();
    LockHolder { pid: 0, run: word(), host: word(), started: word() }
}

fn read_holder(record: &Path) -> Option<LockHolder> {
    serde_json::from_slice(&std::fs::read(record).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn who(run: &str) -> LockHolder {
        LockHolder { pid: 1, run: run.into(), host: "here".into(), started: "2020-01-01".into() }
    }

    #[test]
    fn the_second_is_told_who_holds_it_however_old_the_record_is() {
        let dir = tempfile::tempdir().expect("a folder");
        let first = RepoLock::acquire(dir.path(), &who("first")).expect("taken");
        let error = RepoLock::acquire(dir.path(), &who("second")).expect_err("held");
        assert!(error.to_string().contains("run first holds"), "{error}");
        assert_eq!(RepoLock::holder(dir.path()).expect("asked"), Some(who("first")));
        drop(first);
        assert_eq!(RepoLock::holder(dir.path()).expect("asked"), None);
        RepoLock::acquire(dir.path(), &who("third")).expect("taken after it was left, whatever the record says");
    }

    #[test]
    fn the_file_that_is_handed_out_keeps_the_lock() {
        let dir = tempfile::tempdir().expect("a folder");
        let first = RepoLock::acquire(dir.path(), &who("first")).expect("taken");
        let file = first.file();
        drop(first);
        assert!(RepoLock::acquire(dir.path(), &who("second")).is_err());
        drop(file);
        assert!(RepoLock::acquire(dir.path(), &who("second")).is_ok());
    }

    #[test]
    fn of_a_hundred_starts_at_one_instant_exactly_one_wins() {
        let dir = tempfile::tempdir().expect("a folder");
        let won = AtomicUsize::new(0);
        let barrier = std::sync::Barrier::new(100);
        std::thread::scope(|scope| {
            for n in 0..100 {
                let (dir, won, barrier) = (dir.path(), &won, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let lock = RepoLock::acquire(dir, &who(&n.to_string()));
                    won.fetch_add(usize::from(lock.is_ok()), Ordering::SeqCst);
                    // nobody leaves before everybody has tried
                    barrier.wait();
                });
            }
        });
        assert_eq!(won.load(Ordering::SeqCst), 1);
    }
}
