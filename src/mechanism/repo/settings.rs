//! What git's configuration says, read from the files that the caller named and from no environment.

use git2::{Config, ConfigLevel};
use std::path::{Path, PathBuf};

use super::discover::RepositoryOptions;
use super::error::RepoError;

/// The settings that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) bare: bool,
    pub(crate) worktree: Option<String>,
    pub(crate) fold_case: bool,
    pub(crate) sha256: bool,
    /// the global file of ignore rules
    pub(crate) excludes_file: Option<PathBuf>,
}

/// Reads the settings of a repository.
pub(crate) fn read(options: &RepositoryOptions, git_dir: &Path, common_dir: &Path) -> Result<Settings, RepoError> {
    let mut config = protected(options)?;
    add(&mut config, &common_dir.join("config"), ConfigLevel::Local)?;
    add(&mut config, &git_dir.join("config.worktree"), ConfigLevel::App)?;
    let text = |name: &str| config.get_string(name).ok();
    let flag = |name: &str| config.get_bool(name).unwrap_or(false);
    let own_worktree = flag("extensions.worktreeConfig");
    let excludes_file = match text("core.excludesFile") {
        Some(path) if path.is_empty() => None,
        Some(path) => expand(&path, options),
        None => options
            .xdg_config
            .clone()
            .or_else(|| options.home.as_ref().map(|home| home.join(".config")))
            .map(|config| config.join("git/ignore")),
    };
    Ok(Settings {
        bare: flag("core.bare") && !own_worktree,
        worktree: text("core.worktree"),
        fold_case: flag("core.ignoreCase"),
        sha256: text("extensions.objectFormat").is_some_and(|format| format.eq_ignore_ascii_case("sha256")),
        excludes_file,
    })
}

/// The folders that the user has declared safe; git reads this from files of the user and the system alone.
pub(crate) fn safe_folders(options: &RepositoryOptions) -> Result<Vec<String>, RepoError> {
    let config = protected(options)?;
    let mut folders = Vec::new();
    let mut entries = match config.multivar("safe.directory", None) {
        Ok(entries) => entries,
        Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(folders),
        Err(error) => return Err(RepoError::git2("reading safe.directory")(error)),
    };
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(RepoError::git2("reading safe.directory"))?;
        match entry.value() {
            // an empty value forgets all before it
            Ok("") => folders.clear(),
            Ok(value) => folders.push(value.to_string()),
            Err(_) => {}
        }
    }
    Ok(folders)
}

fn protected(options: &RepositoryOptions) -> Result<Config, RepoError> {
    let mut config = Config::new().map_err(RepoError::git2("reading the configuration"))?;
    if let Some(system) = &options.system_config {
        add(&mut config, system, ConfigLevel::System)?;
    }
    let xdg = options.xdg_config.clone().or_else(|| options.home.as_ref().map(|home| home.join(".config")));
    if let Some(xdg) = xdg {
        add(&mut config, &xdg.join("git/config"), ConfigLevel::XDG)?;
    }
    if let Some(home) = &options.home {
        add(&mut config, &home.join(".gitconfig"), ConfigLevel::Global)?;
    }
    Ok(config)
}

fn add(config: &mut Config, path: &Path, level: ConfigLevel) -> Result<(), RepoError> {
    if !path.is_file() {
        return Ok(());
    }
    config.add_file(path, level, false).map_err(|error| RepoError::Unsupported {
        path: path.to_path_buf(),
        why: format!("git's configuration can't be read: {}", error.message()),
    })
}

fn expand(path: &str, options: &RepositoryOptions) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => options.home.as_ref().map(|home| home.join(rest)),
        None => Some(PathBuf::from(path)),
    }
}
