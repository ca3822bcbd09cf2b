//! What can go wrong with a repository, in words that name the thing and what to do.

use std::path::{Path, PathBuf};

use super::lock::LockHolder;
use super::path::TreePath;

/// An error of the repository mechanism.
#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    /// There is no repository at or above the folder.
    #[error("no git repository at {} or above it{}; run `git init` there, or start inside a repository", start.display(), list(below))]
    NoRepository {
        /// Where the search began.
        start: PathBuf,
        /// Repositories that lie directly below it; the person may have meant one of them.
        below: Vec<PathBuf>,
    },
    /// The repository has no working tree.
    #[error("{} is a bare repository: there are no files to work on; make a checkout with `git worktree add` or `git clone`", .0.display())]
    Bare(PathBuf),
    /// The start is inside a git folder.
    #[error("{} lies inside a git folder; start in the working tree", .0.display())]
    InsideGitFolder(PathBuf),
    /// The repository belongs to somebody else.
    #[error("{} belongs to another user (uid {owner}), so its configuration can't be trusted; if you trust it: git config --global --add safe.directory {}", path.display(), path.display())]
    DubiousOwnership {
        /// What belongs to somebody else.
        path: PathBuf,
        /// Who owns it.
        owner: u32,
    },
    /// The home folder, or the root of the file system, as the root of a repository.
    #[error("{} is the root of this repository: a loop there would read and could revert everything you own; start in a repository of its own", .0.display())]
    TooWide(PathBuf),
    /// A repository that can't be covered exactly.
    #[error("{}: {why}", path.display())]
    Unsupported {
        /// The repository, or the part of it.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// Somebody else works in this repository.
    #[error("{}", held(.holder))]
    Held {
        /// Who; unknown when the record beside the lock could not be read.
        holder: Option<LockHolder>,
    },
    /// A live git command holds one of git's own locks.
    #[error("{} is held by {by} and was not released within {waited_s} s; wait for it, or end it, then start again", path.display())]
    GitLocked {
        /// The lock file.
        path: PathBuf,
        /// The process that holds it, by name and id.
        by: String,
        /// How long it was waited for, in seconds.
        waited_s: u64,
    },
    /// The tree could not be captured whole, so nothing may be launched on it.
    #[error("{}: could not be captured: {source}", path.display())]
    Capture {
        /// What could not be read.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file operation failed.
    #[error("{}: {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The disk that holds the state folder is nearly full.
    #[error("{}: only {free} bytes are free, and {needed} are needed to keep checkpoints; free some space and resume", path.display())]
    DiskFull {
        /// The state folder.
        path: PathBuf,
        /// Bytes that are free.
        free: u64,
        /// Bytes that are needed.
        needed: u64,
    },
    /// The shadow store is damaged or does not hold what was asked for.
    #[error("the shadow store at {}: {what}", store.display())]
    Store {
        /// The store.
        store: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A checkpoint that is not there.
    #[error("no checkpoint {id}: {why}")]
    NoCheckpoint {
        /// The id as asked for.
        id: String,
        /// Why it can't be had.
        why: String,
    },
    /// The git folder could not be put back, so no git command may run in it.
    #[error("the git folder could not be put back as it was: {}; look at it before anything else runs here", list_paths(.conflicts))]
    Guard {
        /// What could not be put back, and why.
        conflicts: Vec<String>,
    },
    /// A git command failed.
    #[error("git {command}: {what}")]
    Git {
        /// The command without its options.
        command: String,
        /// Its exit code, signal or time limit, and the last lines of what it said.
        what: String,
    },
    /// libgit2 refused.
    #[error("{doing}: {source}")]
    Git2 {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: git2::Error,
    },
    /// The result can't be committed without mixing in what the user had changed before.
    #[error("the result was not committed: {why}")]
    CommitRefused {
        /// Why, and what to do.
        why: String,
        /// The paths in question; empty when it is not about single paths.
        paths: Vec<TreePath>,
    },
    /// The repository or its working tree is gone.
    #[error("{} is gone: {why}", path.display())]
    Lost {
        /// What is gone.
        path: PathBuf,
        /// What was seen instead.
        why: String,
    },
    /// A record of ours could not be read.
    #[error("{}: {what}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl RepoError {
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> RepoError + use<> {
        let path = path.to_path_buf();
        move |source| RepoError::Io { path, doing, source }
    }

    pub(crate) fn os(path: &Path, doing: &'static str) -> impl FnOnce(rustix::io::Errno) -> RepoError + use<> {
        let path = path.to_path_buf();
        move |errno| RepoError::Io { path, doing, source: errno.into() }
    }

    pub(crate) fn git2(doing: &'static str) -> impl FnOnce(git2::Error) -> RepoError + use<> {
        move |source| RepoError::Git2 { doing, source }
    }

    /// True when the cause is a disk with no room left, or a quota.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match self {
            RepoError::DiskFull { .. } => true,
            RepoError::Io { source, .. } | RepoError::Capture { source, .. } => {
                matches!(source.kind(), StorageFull | QuotaExceeded)
            }
            _ => false,
        }
    }
}

fn list(below: &[PathBuf]) -> String {
    if below.is_empty() {
        return String::new();
    }
    let names: Vec<_> = below.iter().take(8).map(|path| path.display().to_string()).collect();
    let more = if below.len() > 8 { format!(" and {} more", below.len() - 8) } else { String::new() };
    format!(" (there are repositories below it: {}{more})", names.join(", "))
}

fn list_paths(conflicts: &[String]) -> String {
    let shown = conflicts.iter().take(8).cloned().collect::<Vec<_>>().join("; ");
    if conflicts.len() > 8 { format!("{shown}; and {} more", conflicts.len() - 8) } else { shown }
}

fn held(holder: &Option<LockHolder>) -> String {
    match holder {
        Some(holder) => format!(
            "run {} holds this repository (process {} on {}, since {}); wait for it or stop it with `lunation stop`",
            holder.run, holder.pid, holder.host, holder.started
        ),
        None => "another run holds this repository; wait for it or stop it with `lunation stop`".into(),
    }
}
