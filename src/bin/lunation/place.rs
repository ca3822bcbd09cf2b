//! Where things are: the repository around a folder, and the records of its runs in their two places.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use lunation::journal::{RunEntry, RunsFolder};
use lunation::mechanism::repo::{Repository, RepositoryOptions, state_folder};

use crate::args::RunChoice;
use crate::exit_code::UsageError;

/// The runs of the repository around `start`, also those that only the state folder still has.
pub(crate) fn runs(start: &Path) -> anyhow::Result<RunsFolder> {
    if !start.is_dir() {
        return Err(UsageError::new(format!("{} is no folder", start.display()), "name another one with -C").into());
    }
    let repository = Repository::discover(start, &repository_options())?;
    let runs = RunsFolder::new(repository.common_dir());
    let home = state_home()?;
    // Whoever only reads makes no state folder where there never was one.
    if !home.join("repositories").is_dir() {
        return Ok(runs);
    }
    Ok(runs.with_second_place(&state_folder(&home, &repository)?))
}

/// The run that was asked for, else the newest.
pub(crate) fn run(runs: &RunsFolder, choice: &RunChoice) -> anyhow::Result<RunEntry> {
    Ok(match &choice.run {
        Some(asked) => runs.find(asked)?,
        None => runs.latest()?,
    })
}

/// Where all state is: `LUNATION_HOME`, else the usual folder of the system.
pub(crate) fn state_home() -> anyhow::Result<PathBuf> {
    if let Some(home) = env::var_os("LUNATION_HOME").filter(|home| !home.is_empty()) {
        return std::path::absolute(&home).with_context(|| format!("LUNATION_HOME={}", home.to_string_lossy()));
    }
    let folders = directories::ProjectDirs::from("", "", "lunation").ok_or_else(|| {
        UsageError::new("there is no home folder to keep state in", "set HOME, or LUNATION_HOME to a folder")
    })?;
    Ok(folders.state_dir().unwrap_or_else(|| folders.data_local_dir()).to_owned())
}

/// What the library may know of this machine and its user.
pub(crate) fn repository_options() -> RepositoryOptions {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    RepositoryOptions {
        home: set("HOME").map(PathBuf::from),
        xdg_config: set("XDG_CONFIG_HOME").map(PathBuf::from),
        path: set("PATH"),
        sudo_uid: set("SUDO_UID").and_then(|uid| uid.to_str()?.parse().ok()),
        ..RepositoryOptions::default()
    }
}
