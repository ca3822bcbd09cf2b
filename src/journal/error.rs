//! What can go wrong with a record on disk.

use std::io;
use std::path::{Path, PathBuf};

/// A journal, blob or runs folder that could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// No room (or quota) is left. The journal itself is whole: a line is written completely or not at all.
    #[error("the disk is full: {} could not be written; free some space and run again", path.display())]
    DiskFull {
        /// What was written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused something else.
    #[error("could not {doing} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb: `create`, `read`.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The journal is being written by a living process.
    #[error("{} is being written by a run that is still going on", path.display())]
    InUse {
        /// The journal.
        path: PathBuf,
    },
    /// There is a run of this name already.
    #[error("{} exists already: a run never writes over another one", path.display())]
    Exists {
        /// Folder of the run.
        path: PathBuf,
    },
    /// Something stands where the journal keeps its folder, for example a link that leads elsewhere.
    #[error("{} is not a plain folder: remove it, the record of a run is not written through a link", path.display())]
    NotAFolder {
        /// What stands there.
        path: PathBuf,
    },
    /// Not the folder of a run.
    #[error("{} holds no run: there is no journal.jsonl in it", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
    },
    /// Written by a newer lunation.
    #[error(
        "{} has format version {version}, this lunation reads versions up to {ours}: update lunation to read it",
        path.display()
    )]
    NewerFormat {
        /// The journal.
        path: PathBuf,
        /// Its version.
        version: u64,
        /// The newest version that this program reads.
        ours: u32,
    },
    /// One record is larger than any record may be.
    #[error("a record of kind `{kind}` has {bytes} bytes, more than the limit of {cap}")]
    TooLong {
        /// Its kind.
        kind: String,
        /// Its size.
        bytes: usize,
        /// The limit.
        cap: usize,
    },
    /// An event that JSON cannot hold.
    #[error("an event of kind `{kind}` cannot be written as JSON: {source}")]
    NotJson {
        /// Its kind.
        kind: String,
        /// Why.
        source: serde_json::Error,
    },
    /// Not the name of a blob.
    #[error("`{id}` is not the name of a blob: 64 hexadecimal digits are")]
    BadBlobName {
        /// The name as given.
        id: String,
    },
    /// The blob is not there.
    #[error("blob {id} is not in {}: it was removed, or the run ended before it was written", path.display())]
    NoBlob {
        /// Its name.
        id: String,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The blob is there, and its content is not what its name says.
    #[error("blob {id} in {} is damaged: {why}", path.display())]
    DamagedBlob {
        /// Its name.
        id: String,
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The system gives no random numbers.
    #[error("the system gave no random numbers for the name of a run: {why}")]
    NoRandomness {
        /// What it said.
        why: String,
    },
}

impl JournalError {
    /// True when the reason is a full disk or an exhausted quota.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, JournalError::DiskFull { .. })
    }

    /// Gives an error of the system its kind.
    pub(crate) fn from_io(doing: &'static str, path: &Path, source: io::Error) -> JournalError {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => JournalError::DiskFull { path, source },
            _ => JournalError::Io { doing, path, source },
        }
    }
}
