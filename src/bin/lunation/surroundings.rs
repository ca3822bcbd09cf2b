//! What the program takes from around it: environment, folder, state. Read once, and passed in from here.
//!
//! Owns the names of our own variables. The library reads none of this by itself.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use lunation::host::{Host, HostBuilder, Tier};
use lunation::mechanism::repo::{Repository, state_folder};

use crate::exit_code::UsageError;
use crate::place;

/// The surroundings of one start of the program.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// The environment as found.
    pub(crate) vars: Vec<(OsString, OsString)>,
    /// The folder that is worked in: the current one, or that of `-C`.
    pub(crate) folder: PathBuf,
}

/// The repository around a folder, with the folder of its state.
pub(crate) struct Here {
    /// The repository.
    pub(crate) repository: Repository,
    /// What lunation keeps about it outside of it.
    pub(crate) state: PathBuf,
}

impl Surroundings {
    /// Reads them; `folder` is what `-C` says.
    ///
    /// # Errors
    /// When that is no folder.
    pub(crate) fn read(folder: &Path) -> Result<Surroundings, UsageError> {
        let real =
            folder.canonicalize().ok().filter(|real| real.is_dir()).ok_or_else(|| {
                UsageError::new(format!("{} is no folder", folder.display()), "name another one with -C")
            })?;
        Ok(Surroundings { vars: std::env::vars_os().collect(), folder: real })
    }

    /// A variable that is set and not empty.
    pub(crate) fn var(&self, name: &str) -> Option<&OsStr> {
        self.vars.iter().find(|(found, value)| found == name && !value.is_empty()).map(|(_, value)| value.as_os_str())
    }

    /// The tier that `LUNATION_TIER` asks for.
    ///
    /// # Errors
    /// When it names none.
    pub(crate) fn tier(&self) -> anyhow::Result<Option<Tier>> {
        let Some(name) = self.var("LUNATION_TIER") else { return Ok(None) };
        match name.to_str().and_then(Tier::from_name) {
            Some(tier) => Ok(Some(tier)),
            None => Err(UsageError::new(
                format!("LUNATION_TIER={} is no tier", name.to_string_lossy()),
                "there are pid_namespace, fork_gate, subreaper and process_group",
            )
            .into()),
        }
    }

    /// A host that knows all of it.
    ///
    /// # Errors
    /// When there is no place for state, or no such tier.
    pub(crate) fn host(&self) -> anyhow::Result<HostBuilder> {
        let builder = Host::builder().root(&self.folder).state(place::state_home()?).ambient(self.vars.clone());
        Ok(match self.tier()? {
            Some(tier) => builder.tier(tier),
            None => builder,
        })
    }

    /// The repository around the folder.
    ///
    /// # Errors
    /// When there is none that can be used, or its state folder cannot be made.
    pub(crate) fn here(&self) -> anyhow::Result<Here> {
        let repository = Repository::discover(&self.folder, &place::repository_options())?;
        let state = state_folder(&place::state_home()?, &repository)?;
        Ok(Here { repository, state })
    }
}
