//! The user's index: which paths are in it, and whether two versions of it say the same.

use std::path::Path;

use super::discover::Repository;
use super::error::RepoError;

/// An entry of an index, without what git only keeps to be fast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) path: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) id: String,
    /// stage, assume-unchanged, skip-worktree, intent-to-add
    flags: u32,
}

const STAGE: u16 = 0x3000;
const ASSUME_UNCHANGED: u16 = 0x8000;
const SKIP_WORKTREE: u16 = 0x4000;
const INTENT_TO_ADD: u16 = 0x2000;

/// The entries of an index file; `None` when the library does not know the format.
pub(crate) fn read_entries(index: &Path) -> Option<Vec<IndexEntry>> {
    if !index.exists() {
        return Some(Vec::new());
    }
    let index = git2::Index::open(index).ok()?;
    let entries = index.iter().map(|entry| IndexEntry {
        mode: entry.mode,
        id: entry.id.to_string(),
        flags: u32::from(entry.flags & (STAGE | ASSUME_UNCHANGED)) << 16
            | u32::from(entry.flags_extended & (SKIP_WORKTREE | INTENT_TO_ADD)),
        path: entry.path,
    });
    Some(entries.collect())
}

/// The tracked paths. Asks the library first, and the git command where the library does not know the format: only
/// on a configuration that is the user's own.
pub(crate) fn tracked_paths(repository: &Repository) -> Result<Vec<Vec<u8>>, RepoError> {
    if !repository.settings().sha256
        && let Some(entries) = read_entries(&repository.git_dir().join("index"))
    {
        return Ok(entries.into_iter().map(|entry| entry.path).collect());
    }
    let program = repository.git_program();
    let output = repository.git(&program).args(["ls-files", "-z", "--full-name"]).output()?;
    Ok(output.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
}
