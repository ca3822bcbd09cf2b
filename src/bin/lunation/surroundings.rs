//! What the program takes from around it: environment, folder, state. Read once, and passed in from here.
//!
//! Owns the names of our own variables. The library reads none of this by itself.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use lunation::host::{Host, HostBuilder, Tier};
use lunation::journal::{RunEntry, RunsFolder};
use lunation::mechanism::repo::{Repository, RepositoryOptions, state_folder};

use crate::args::RunChoice;
use crate::exit_code::UsageError;

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

    /// Where all state is: `LUNATION_HOME`, else the usual folder of the system.
    ///
    /// # Errors
    /// When there is no home folder, and none was named.
    pub(crate) fn state_home(&self) -> anyhow::Result<PathBuf> {
        if let Some(home) = self.var("LUNATION_HOME") {
            return std::path::absolute(home).with_context(|| format!("LUNATION_HOME={}", home.to_string_lossy()));
        }
        let folders = directories::ProjectDirs::from("", "", "lunation").ok_or_else(|| {
            UsageError::new("there is no home folder to keep state in", "set HOME, or LUNATION_HOME to a folder")
        })?;
        Ok(folders.state_dir().unwrap_or_else(|| folders.data_local_dir()).to_owned())
    }

    /// What the library may know of this machine and its user.
    pub(crate) fn repository_options(&self) -> RepositoryOptions {
        let set = |name: &str| self.var(name).map(OsStr::to_owned);
        RepositoryOptions {
            home: set("HOME").map(PathBuf::from),
            xdg_config: set("XDG_CONFIG_HOME").map(PathBuf::from),
            path: set("PATH"),
            sudo_uid: set("SUDO_UID").and_then(|uid| uid.to_str()?.parse().ok()),
            ..RepositoryOptions::default()
        }
    }

    /// The runs of the repository around the folder, also those that only the state folder still has.
    ///
    /// # Errors
    /// When there is no repository.
    pub(crate) fn runs(&self) -> anyhow::Result<RunsFolder> {
        let repository = Repository::discover(&self.folder, &self.repository_options())?;
        let runs = RunsFolder::new(repository.common_dir());
        let home = self.state_home()?;
        // Whoever only reads makes no state folder where there never was one.
        if !home.join("repositories").is_dir() {
            return Ok(runs);
        }
        Ok(runs.with_second_place(&state_folder(&home, &repository)?))
    }

    /// The run that was asked for, else the newest.
    ///
    /// # Errors
    /// When there is none, or several have that name.
    pub(crate) fn run(&self, choice: &RunChoice) -> anyhow::Result<RunEntry> {
        let runs = self.runs()?;
        Ok(match &choice.run {
            Some(asked) => runs.find(asked)?,
            None => runs.latest()?,
        })
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
        let builder = Host::builder().root(&self.folder).state(self.state_home()?).ambient(self.vars.clone());
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
        let repository = Repository::discover(&self.folder, &self.repository_options())?;
        let state = state_folder(&self.state_home()?, &repository)?;
        Ok(Here { repository, state })
    }
}
