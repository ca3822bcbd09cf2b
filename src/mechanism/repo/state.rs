//! Where the state of a repository lives: one folder for each, outside of it.
//!
//! Owns the naming. A repository is found by its git common folder: by the real path of it, or by device and inode,
//! so that links to it, linked worktrees and bind mounts all lead to one state folder, and so does a git folder that
//! was removed and made again in its place.

use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::discover::Repository;
use super::error::RepoError;
use super::path::TreePath;
use super::store::{private_folder, short_name, write_whole};

#[derive(Debug, Serialize, Deserialize)]
struct Identity {
    version: u32,
    common_dir: TreePath,
    device: u64,
    inode: u64,
}

const RECORD: &str = "repository.json";

/// The state folder of a repository below `home`, the folder of all state. It is made when there is none.
///
/// # Errors
/// Errors of the file system.
pub fn state_folder(home: &Path, repository: &Repository) -> Result<PathBuf, RepoError> {
    let all = home.join("repositories");
    private_folder(&all)?;
    let common = repository.common_dir();
    let meta = std::fs::metadata(common).map_err(RepoError::io(common, "looking at"))?;
    let named = all.join(folder_name(common));
    if !named.join(RECORD).exists()
        && let Some(found) = find_by_inode(&all, &meta)?
    {
        return Ok(found);
    }
    private_folder(&named)?;
    let identity = Identity { version: 1, common_dir: TreePath::from(common), device: meta.dev(), inode: meta.ino() };
    let text = serde_json::to_vec(&identity)
        .map_err(|error| RepoError::Record { path: named.join(RECORD), what: error.to_string() })?;
    write_whole(&named.join(RECORD), &text, false)?;
    Ok(named)
}

/// A name that tells a person which repository it is about, and no two paths share.
fn folder_name(common: &Path) -> String {
    let shown = if common.file_name().is_some_and(|name| name == ".git") { common.parent() } else { Some(common) };
    let shown = shown.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let shown: String =
        shown.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.')).take(40).collect();
    format!("{}-{}", shown.trim_start_matches('.'), short_name(common))
}

fn find_by_inode(all: &Path, meta: &std::fs::Metadata) -> Result<Option<PathBuf>, RepoError> {
    for entry in std::fs::read_dir(all).map_err(RepoError::io(all, "listing"))? {
        let folder = entry.map_err(RepoError::io(all, "listing"))?.path();
        let Ok(text) = std::fs::read(folder.join(RECORD)) else { continue };
        let Ok(identity) = serde_json::from_slice::<Identity>(&text) else { continue };
        if (identity.device, identity.inode) != (meta.dev(), meta.ino()) {
            continue;
        }
        // an inode is used again after a removal: the path of then must be this folder still, or be gone
        let there = std::fs::metadata(identity.common_dir.as_path()).ok();
        if there.is_none_or(|there| (there.dev(), there.ino()) == (meta.dev(), meta.ino())) {
            return Ok(Some(folder));
        }
    }
    Ok(None)
}
