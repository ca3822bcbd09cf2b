//! The folders of a run on disk: for the owner only, and never through a link.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use super::blobs;
use super::error::JournalError;

/// File with the records, in the folder of a run.
pub(super) const JOURNAL: &str = "journal.jsonl";

/// Makes the folder of a new run, with its blob folder; folders above it are made too where they are missing.
pub(super) fn create(run_dir: &Path) -> Result<(), JournalError> {
    if let Some(above) = run_dir.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(above)
            .map_err(|e| JournalError::from_io("create", above, e))?;
        // The two folders above are ours (`lunation/runs`); a link there was planted.
        for ours in above.ancestors().take(2) {
            refuse_link(ours)?;
        }
    }
    match DirBuilder::new().mode(0o700).create(run_dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(JournalError::Exists { path: run_dir.to_owned() });
        }
        made => made.map_err(|e| JournalError::from_io("create", run_dir, e))?,
    }
    let blobs = run_dir.join(blobs::FOLDER);
    DirBuilder::new().mode(0o700).create(&blobs).map_err(|e| JournalError::from_io("create", &blobs, e))
}

/// Makes what is missing of the folders of a run that is under way.
pub(super) fn complete(run_dir: &Path) -> Result<(), JournalError> {
    let blobs = run_dir.join(blobs::FOLDER);
    refuse_link(run_dir)?;
    refuse_link(&blobs)?;
    DirBuilder::new().recursive(true).mode(0o700).create(&blobs).map_err(|e| JournalError::from_io("create", &blobs, e))
}

fn refuse_link(path: &Path) -> Result<(), JournalError> {
    match std::fs::symlink_metadata(path) {
        Ok(data) if !data.is_dir() => Err(JournalError::NotAFolder { path: path.to_owned() }),
        _ => Ok(()),
    }
}
