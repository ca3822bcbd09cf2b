//! Finding the repository that a folder belongs to, once; from then on its folders are pinned.
//!
//! Owns the search, the reasons to refuse, and what stands in the place of `.git`. Reads no environment variable:
//! home and configuration folders are passed in. Must not open the repository with a library that can't read every
//! format: nothing here depends on how refs or objects are kept.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::checkpoint::Places;
use super::error::RepoError;
use super::git::{GitCommand, GitProgram};
use super::path::os;
use super::settings::{self, Settings};
use super::store::short_name;

/// What the library may know of the world around a repository; nothing else of it is read.
#[derive(Debug, Clone)]
pub struct RepositoryOptions {
    /// The person's home folder, for `~/.gitconfig`; default none.
    pub home: Option<PathBuf>,
    /// The folder of configurations; default `.config` in the home folder.
    pub xdg_config: Option<PathBuf>,
    /// The configuration of the machine; default `/etc/gitconfig`.
    pub system_config: Option<PathBuf>,
    /// The git program; default `git`, found in `path`.
    pub git: PathBuf,
    /// Where programs are looked for; default `/usr/local/bin:/usr/bin:/bin`.
    pub path: Option<OsString>,
    /// How long a git command may take; default 60 s.
    pub git_time_limit: Duration,
    /// The user that `sudo` was called by, whose repositories root may use as git allows it; default none.
    pub sudo_uid: Option<u32>,
}

impl Default for RepositoryOptions {
    fn default() -> RepositoryOptions {
        RepositoryOptions {
            home: None,
            xdg_config: None,
            system_config: Some("/etc/gitconfig".into()),
            git: "git".into(),
            path: None,
            git_time_limit: Duration::from_secs(60),
            sudo_uid: None,
        }
    }
}

/// What stands at `.git` in the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DotGit {
    Folder,
    /// A file that names the git folder.
    File(Vec<u8>),
    /// A link to the git folder.
    Link(Vec<u8>),
}

/// A repository whose folders were found and are pinned.
#[derive(Debug, Clone)]
pub struct Repository {
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    dot_git: DotGit,
    settings: Settings,
    options: RepositoryOptions,
}

impl Repository {
    /// Finds the repository that `start` lies in.
    ///
    /// Takes a folder, which may be any folder of the working tree. Works for linked worktrees, separate git folders,
    /// submodules, an unborn and a detached HEAD, and every format of refs and objects.
    ///
    /// # Errors
    /// No repository (with those directly below, if any), a bare one, one that belongs to somebody else, one whose
    /// root is the home folder or `/`, one with a redirected working tree; errors of the file system.
    pub fn discover(start: &Path, options: &RepositoryOptions) -> Result<Repository, RepoError> {
        let start = fs::canonicalize(start).map_err(RepoError::io(start, "looking for a repository"))?;
        let mut device = None;
        for folder in start.ancestors() {
            let meta = fs::metadata(folder).map_err(RepoError::io(folder, "looking for a repository"))?;
            // git does not look beyond the file system either
            if *device.get_or_insert(meta.dev()) != meta.dev() {
                break;
            }
            if let Some((git_dir, dot_git)) = git_dir_at(folder)? {
                return Repository::pin(folder, git_dir, dot_git, options);
            }
            if is_git_dir(folder) {
                let common = common_dir_of(folder)?;
                let bare = settings::read(options, folder, &common)?.bare;
                return Err(if bare { RepoError::Bare(folder.into()) } else { RepoError::InsideGitFolder(start) });
            }
        }
        let below = repositories_below(&start);
        Err(RepoError::NoRepository { start, below })
    }

    fn pin(
        root: &Path,
        git_dir: PathBuf,
        dot_git: DotGit,
        options: &RepositoryOptions,
    ) -> Result<Repository, RepoError> {
        let common_dir = common_dir_of(&git_dir)?;
        check_owner(root, &git_dir, options)?;
        let settings = settings::read(options, &git_dir, &common_dir)?;
        if settings.bare && settings.worktree.is_none() && git_dir == common_dir {
            return Err(RepoError::Bare(git_dir));
        }
        if let (Some(worktree), true) = (&settings.worktree, git_dir == common_dir) {
            let resolved = fs::canonicalize(git_dir.join(worktree)).ok();
            if resolved.as_deref() != Some(root) {
                return Err(RepoError::Unsupported {
                    path: root.into(),
                    why: format!("its core.worktree leads to {worktree}; start there, or unset it"),
                });
            }
        }
        let home = options.home.as_ref().and_then(|home| fs::canonicalize(home).ok());
        if root == Path::new("/") || home.as_deref() == Some(root) {
            return Err(RepoError::TooWide(root.into()));
        }
        Ok(Repository { root: root.into(), git_dir, common_dir, dot_git, settings, options: options.clone() })
    }

    /// The top folder of the working tree, as a real path.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The git folder of this working tree.
    #[must_use]
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The git folder that all working trees of the repository share.
    #[must_use]
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// A short name of the repository, the same in all of its working trees.
    #[must_use]
    pub fn id(&self) -> String {
        short_name(&self.common_dir)
    }

    /// True when it is a working tree made by `git worktree add`.
    #[must_use]
    pub fn is_linked_worktree(&self) -> bool {
        self.git_dir != self.common_dir
    }

    /// True when its file system takes names that differ in case for one.
    #[must_use]
    pub fn folds_case(&self) -> bool {
        self.settings.fold_case
    }

    pub(crate) fn dot_git(&self) -> &DotGit {
        &self.dot_git
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Reads the settings anew; only on a configuration that is the user's own.
    pub(crate) fn read_settings(&mut self) -> Result<(), RepoError> {
        self.settings = settings::read(&self.options, &self.git_dir, &self.common_dir)?;
        Ok(())
    }

    pub(crate) fn git_program(&self) -> GitProgram {
        GitProgram {
            program: self.options.git.clone(),
            path: self.options.path.clone(),
            home: self.options.home.clone(),
            xdg_config: self.options.xdg_config.clone(),
            time_limit: self.options.git_time_limit,
        }
    }

    pub(crate) fn git<'a>(&'a self, program: &'a GitProgram) -> GitCommand<'a> {
        GitCommand::new(program, &self.git_dir, &self.root)
    }

    /// A repository whose places are known from a checkpoint. Its configuration is not read: it may be anybody's.
    pub(crate) fn from_record(places: Places, options: &RepositoryOptions) -> Repository {
        let Places { root, git_dir, common_dir, dot_git, fold_case } = places;
        let settings = Settings { fold_case, ..Settings::default() };
        Repository { root, git_dir, common_dir, dot_git, settings, options: options.clone() }
    }
}

/// The git folder that `.git` in a folder is or names.
fn git_dir_at(folder: &Path) -> Result<Option<(PathBuf, DotGit)>, RepoError> {
    let dot = folder.join(".git");
    let meta = match fs::symlink_metadata(&dot) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RepoError::io(&dot, "looking for a repository")(error)),
    };
    let real = |path: &Path| fs::canonicalize(path).map_err(RepoError::io(path, "following"));
    if meta.is_file() {
        let text = fs::read(&dot).map_err(RepoError::io(&dot, "reading"))?;
        let Some(target) = text.strip_prefix(b"gitdir: ") else { return Ok(None) };
        let target = folder.join(os(target.trim_ascii_end()));
        if !is_git_dir(&target) {
            let why = format!("it names {}, which is no git folder; `git worktree repair` may help", target.display());
            return Err(RepoError::Unsupported { path: dot, why });
        }
        return Ok(Some((real(&target)?, DotGit::File(text))));
    }
    if !is_git_dir(&dot) {
        return Ok(None);
    }
    if meta.is_symlink() {
        let target = fs::read_link(&dot).map_err(RepoError::io(&dot, "reading the link"))?;
        return Ok(Some((real(&dot)?, DotGit::Link(target.into_os_string().into_vec()))));
    }
    Ok(Some((real(&dot)?, DotGit::Folder)))
}

/// What git takes for a git folder: a HEAD, and objects and refs of its own or elsewhere.
pub(crate) fn is_git_dir(path: &Path) -> bool {
    let head = fs::symlink_metadata(path.join("HEAD")).is_ok_and(|meta| meta.is_file() || meta.is_symlink());
    let shared = path.join("commondir").is_file();
    head && (shared || (path.join("objects").is_dir() && path.join("refs").is_dir()))
}

fn common_dir_of(git_dir: &Path) -> Result<PathBuf, RepoError> {
    let file = git_dir.join("commondir");
    match fs::read(&file) {
        Ok(text) => {
            let path = git_dir.join(os(text.trim_ascii_end()));
            fs::canonicalize(&path).map_err(RepoError::io(&path, "following"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(git_dir.to_path_buf()),
        Err(error) => Err(RepoError::io(&file, "reading")(error)),
    }
}

fn check_owner(root: &Path, git_dir: &Path, options: &RepositoryOptions) -> Result<(), RepoError> {
    let me = rustix::process::geteuid().as_raw();
    let mut found = None;
    for path in [root, git_dir] {
        let owner = fs::metadata(path).map_err(RepoError::io(path, "looking at"))?.uid();
        if owner != me && !(me == 0 && options.sudo_uid == Some(owner)) {
            found = Some(owner);
            break;
        }
    }
    let Some(owner) = found else { return Ok(()) };
    for safe in settings::safe_folders(options)? {
        let expanded = match (safe.strip_prefix("~/"), &options.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(&safe),
        };
        let below = safe.strip_suffix("/*").is_some_and(|folder| root.starts_with(folder) && root != Path::new(folder));
        let same = expanded == root || fs::canonicalize(&expanded).is_ok_and(|real| real == root);
        if safe == "*" || below || same {
            return Ok(());
        }
    }
    Err(RepoError::DubiousOwnership { path: root.into(), owner })
}

/// Repositories directly below a folder, at most 64.
fn repositories_below(start: &Path) -> Vec<PathBuf> {
    let Ok(listed) = fs::read_dir(start) else { return Vec::new() };
    let mut below: Vec<_> = listed
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.join(".git").exists() && path.as_os_str().as_bytes() != b".git")
        .take(64)
        .collect();
    below.sort();
    below
}
