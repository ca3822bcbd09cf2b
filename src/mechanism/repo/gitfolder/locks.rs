//! Git's own lock files: a live one is waited for, a proven stale one is removed.
//!
//! Proof of staleness: it is older than any instant between making a lock and working under it, no process has it
//! open, and no git process works in the repository. (Git closes a lock that it goes on holding, while an editor is
//! open for example, so an open file alone is no proof.)

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::super::error::RepoError;
use super::super::path::os;
use super::super::snapshot::{Folder, Node};

/// How locks are judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockPolicy {
    /// How long a live lock is waited for.
    pub(crate) wait: Duration,
    /// How old a lock with no holder must be.
    pub(crate) stale_after: Duration,
}

/// Lock files in a captured git folder, relative to it.
pub(crate) fn find(folder: &Folder) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    folder.visit(&mut Vec::new(), &mut |path, entry| {
        let is_lock = entry.name.ends_with(b".lock") && !matches!(entry.node, Node::Folder(_));
        if is_lock && !path.starts_with(b"hooks/") {
            found.push(path.to_vec());
        }
    });
    found
}

/// Waits until no lock is left in a captured git folder, removing stale ones. `places`: the folders of the repository,
/// in which a live git would work. `None`: there was no lock; else the locks that were removed, and the folder is to be
/// captured again.
pub(crate) fn settle(
    git_dir: &Path,
    captured: &Folder,
    places: &[&Path],
    policy: LockPolicy,
) -> Result<Option<Vec<PathBuf>>, RepoError> {
    let mut removed = Vec::new();
    let locks = find(captured);
    if locks.is_empty() {
        return Ok(None);
    }
    for path in locks {
        let path = git_dir.join(os(&path));
        let started = Instant::now();
        loop {
            let meta = match fs::symlink_metadata(&path) {
                Ok(meta) => meta,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => break,
                Err(error) => return Err(RepoError::io(&path, "looking at a lock")(error)),
            };
            let age = meta.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            let holder = holder_of(&meta, places);
            if holder.is_none() && age.is_some_and(|age| age >= policy.stale_after) {
                match fs::remove_file(&path) {
                    Ok(()) => removed.push(path),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => return Err(RepoError::io(&path, "removing a stale lock")(error)),
                }
                break;
            }
            if started.elapsed() >= policy.wait.max(policy.stale_after + Duration::from_secs(1)) {
                let by = holder.unwrap_or_else(|| "a process that can't be seen".into());
                return Err(RepoError::GitLocked { path, by, waited_s: started.elapsed().as_secs() });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(Some(removed))
}

/// The process that has the file open, or a git process that works in one of the places.
fn holder_of(lock: &fs::Metadata, places: &[&Path]) -> Option<String> {
    let own = std::process::id();
    for entry in fs::read_dir("/proc").ok()?.filter_map(Result::ok) {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if pid == own {
            continue;
        }
        let process = entry.path();
        let name = fs::read(process.join("comm")).unwrap_or_default();
        let works_here = name == b"git\n"
            && !is_daemon(&process)
            && fs::read_link(process.join("cwd")).is_ok_and(|cwd| places.iter().any(|place| cwd.starts_with(place)));
        if works_here || has_open(&process, lock) {
            let name = String::from_utf8_lossy(&name).trim_end().to_string();
            return Some(format!("{name} (process {pid})"));
        }
    }
    None
}

/// Git's daemons stay in a repository for days, and hold no lock for longer than a moment.
fn is_daemon(process: &Path) -> bool {
    let words = fs::read(process.join("cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).any(|word| word.ends_with(b"--daemon"))
}

fn has_open(process: &Path, lock: &fs::Metadata) -> bool {
    let Ok(listed) = fs::read_dir(process.join("fd")) else { return false };
    listed.filter_map(Result::ok).any(|entry| {
        let is_file = fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str().as_bytes().starts_with(b"/"));
        is_file && fs::metadata(entry.path()).is_ok_and(|open| (open.dev(), open.ino()) == (lock.dev(), lock.ino()))
    })
}
