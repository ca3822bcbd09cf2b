//! Where things are: the repository around the current folder, and the records of its runs.

use std::path::{Path, PathBuf};

use lunation::journal::{RunEntry, RunsFolder};

use crate::args::RunChoice;

/// No place to work in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    /// No repository around.
    #[error("there is no git repository at {} or above it", start.display())]
    NoRepository {
        /// Where the search began.
        start: PathBuf,
    },
    /// A folder that cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// The runs of the repository around `start`.
pub(crate) fn runs(start: &Path) -> Result<RunsFolder, PlaceError> {
    Ok(RunsFolder::new(&common_dir(start)?))
}

/// The run that was asked for, else the newest.
pub(crate) fn run(runs: &RunsFolder, choice: &RunChoice) -> anyhow::Result<RunEntry> {
    Ok(match &choice.run {
        Some(asked) => runs.find(asked)?,
        None => runs.latest()?,
    })
}

/// The git folder that all worktrees share.
fn common_dir(start: &Path) -> Result<PathBuf, PlaceError> {
    let unreadable = |path: &Path, source| PlaceError::Unreadable { path: path.to_owned(), source };
    let start = start.canonicalize().map_err(|source| unreadable(start, source))?;
    let none: [&Path; 0] = [];
    let git_dir =
        git2::Repository::discover_path(&start, none).map_err(|_| PlaceError::NoRepository { start: start.clone() })?;
    // A linked worktree names the shared folder in a file.
    let link = git_dir.join("commondir");
    match std::fs::read_to_string(&link) {
        Ok(text) => git_dir.join(text.trim_end()).canonicalize().map_err(|source| unreadable(&link, source)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(git_dir),
        Err(source) => Err(unreadable(&link, source)),
    }
}
