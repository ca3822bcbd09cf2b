//! The folder with all runs of a repository: listing them, and finding one by what a person types.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::error::JournalError;
use super::folders::JOURNAL;
use super::run_id::RunId;

/// Runs of a repository: `<common git folder>/lunation/runs`, and the second place of each record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunsFolder {
    main: PathBuf,
    second: Option<PathBuf>,
}

/// A run on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEntry {
    /// Its name.
    pub id: RunId,
    /// Its folder: in the git folder, or the second place when the git folder lost it.
    pub dir: PathBuf,
}

/// A run that was not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// There are none at all.
    #[error("there are no runs here yet: `lunation run` makes the first one")]
    NoRuns,
    /// None is called like this.
    #[error("there is no run `{asked}`{}", near.as_ref().map(|id| format!(": did you mean {id}?")).unwrap_or_default())]
    Unknown {
        /// What was asked for.
        asked: String,
        /// The nearest name, where one is near.
        near: Option<RunId>,
    },
    /// Several are.
    #[error("`{asked}` fits {} runs, the newest of them {newest}: write more of the name", count)]
    Ambiguous {
        /// What was asked for.
        asked: String,
        /// How many.
        count: usize,
        /// The newest one.
        newest: RunId,
    },
    /// The folder could not be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl RunsFolder {
    /// The runs below a common git folder.
    pub fn new(common_dir: &Path) -> RunsFolder {
        RunsFolder { main: common_dir.join("lunation").join("runs"), second: None }
    }

    /// Also looks for runs whose second place is below `state_dir` (the state folder of this repository), in `runs`.
    pub fn with_second_place(self, state_dir: &Path) -> RunsFolder {
        RunsFolder { second: Some(state_dir.join("runs")), ..self }
    }

    /// Folder for a run of this name, whether it is there or not.
    pub fn run_dir(&self, id: &RunId) -> PathBuf {
        self.main.join(id.as_str())
    }

    /// Its second place, where one is configured.
    pub fn second_dir(&self, id: &RunId) -> Option<PathBuf> {
        self.second.as_ref().map(|second| second.join(id.as_str()))
    }

    /// All runs, newest first. Folders with other names and without a journal are passed over.
    ///
    /// # Errors
    /// When a folder is there and cannot be read.
    pub fn list(&self) -> Result<Vec<RunEntry>, JournalError> {
        let mut found = BTreeMap::new();
        // The main place is looked at last, so that it wins.
        for folder in self.second.iter().chain([&self.main]) {
            let entries = match std::fs::read_dir(folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.map_err(|e| JournalError::from_io("read", folder, e))?,
            };
            for entry in entries {
                let dir = entry.map_err(|e| JournalError::from_io("read", folder, e))?.path();
                let id = dir.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<RunId>().ok());
                if let Some(id) = id
                    && dir.join(JOURNAL).is_file()
                {
                    found.insert(id, dir);
                }
            }
        }
        Ok(found.into_iter().rev().map(|(id, dir)| RunEntry { id, dir }).collect())
    }

    /// The newest run.
    ///
    /// # Errors
    /// When there is none.
    pub fn latest(&self) -> Result<RunEntry, FindError> {
        self.list()?.into_iter().next().ok_or(FindError::NoRuns)
    }

    /// The run whose name, or the last part of it, begins with `asked`.
    ///
    /// # Errors
    /// When none does, with the nearest name, or several do.
    pub fn find(&self, asked: &str) -> Result<RunEntry, FindError> {
        let runs = self.list()?;
        if runs.is_empty() {
            return Err(FindError::NoRuns);
        }
        let asked = asked.trim();
        let fits = |run: &&RunEntry| {
            !asked.is_empty() && (run.id.as_str().starts_with(asked) || run.id.short().starts_with(asked))
        };
        let mut fitting: Vec<&RunEntry> = runs.iter().filter(fits).collect();
        match (fitting.len(), fitting.pop()) {
            (1, Some(run)) => Ok(run.clone()),
            (0, _) => Err(FindError::Unknown { near: nearest(asked, &runs), asked: asked.to_owned() }),
            (count, _) => {
                let newest = runs.iter().find(fits).map_or_else(|| runs[0].id.clone(), |run| run.id.clone());
                Err(FindError::Ambiguous { asked: asked.to_owned(), count, newest })
            }
        }
    }
}

/// The name that is likest to what was typed, where that is likely a typo.
fn nearest(asked: &str, runs: &[RunEntry]) -> Option<RunId> {
    runs.iter()
        .map(|run| {
            (
                strsim::damerau_levenshtein(asked, run.id.as_str())
                    .min(strsim::damerau_levenshtein(asked, run.id.short())),
                run,
            )
        })
        .filter(|(distance, _)| *distance <= 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, run)| run.id.clone())
}
