//! Questions about a repository that change nothing, and small files of lunation's own in its tree.
//!
//! Owns what scripts and records may ask. Asked only when no turn is under way, since git runs what a configuration
//! names; each call is hardened (see [`super::git`]) and nothing depends on the words of a message.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{Mode, OFlags, RenameFlags, mkdirat, openat, renameat_with, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use super::beneath::open_folder;
use super::discover::Repository;
use super::error::RepoError;

/// Most bytes of a diff that a question answers with.
const MOST_DIFF: usize = 1 << 20;

/// Most paths that a glob looks at, and answers with.
const MOST_LOOKED_AT: usize = 100_000;
const MOST_MATCHES: usize = 1_000;

/// Where HEAD stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The branch that it names; none when detached.
    pub branch: Option<String>,
    /// The commit; none on an unborn branch.
    pub commit: Option<String>,
}

/// A path that differs from HEAD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusEntry {
    /// Git's two letters: index and working tree.
    pub status: String,
    /// The path; bytes that are no text are replaced.
    pub path: String,
}

/// A commit in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Its id.
    pub commit: String,
    /// Its author.
    pub author: String,
    /// When, as text in ISO 8601.
    pub date: String,
    /// The first line of its message.
    pub subject: String,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Repository {
    /// Where HEAD stands.
    ///
    /// # Errors
    /// When git cannot be asked.
    pub fn head(&self) -> Result<Head, RepoError> {
        let program = self.git_program();
        let branch = self.git(&program).args(["symbolic-ref", "--quiet", "--short", "HEAD"]).run()?;
        let commit = self.git(&program).args(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).run()?;
        let line = |answer: super::git::Answer| {
            answer.status.success().then(|| text(answer.output.trim_ascii_end())).filter(|line| !line.is_empty())
        };
        Ok(Head { branch: line(branch), commit: line(commit) })
    }

    /// Paths that differ from HEAD, untracked ones included; nothing of what is in submodules.
    ///
    /// # Errors
    /// When git cannot be asked.
    pub fn status(&self) -> Result<Vec<StatusEntry>, RepoError> {
        let program = self.git_program();
        // inside a nested repository git would run what its own configuration names, which no guard covers
        let args = ["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all"];
        let output = self.git(&program).args(args).output()?;
        let entry = |part: &[u8]| {
            let (status, path) = (part.get(..2)?, part.get(3..)?);
            Some(StatusEntry { status: text(status), path: text(path) })
        };
        Ok(output.split(|&byte| byte == 0).filter_map(entry).collect())
    }

    /// The diff of the working tree against HEAD; against nothing on an unborn branch. At most 1 MiB.
    ///
    /// # Errors
    /// When git cannot be asked.
    pub fn diff_to_head(&self) -> Result<String, RepoError> {
        let program = self.git_program();
        let against: &[&str] = match self.head()?.commit {
            Some(_) => &["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "HEAD"],
            None => &["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"],
        };
        let mut output = self.git(&program).args(against).output()?;
        output.truncate(MOST_DIFF);
        Ok(text(&output))
    }

    /// The last commits, newest first; none on an unborn branch.
    ///
    /// # Errors
    /// When git cannot be asked.
    pub fn log(&self, most: u32) -> Result<Vec<LogEntry>, RepoError> {
        if self.head()?.commit.is_none() {
            return Ok(Vec::new());
        }
        let program = self.git_program();
        let count = format!("-n{most}");
        let output = self.git(&program).args(["log", &count, "-z", "--format=%H%x1f%an%x1f%aI%x1f%s"]).output()?;
        let entry = |part: &[u8]| {
            let mut fields = part.split(|&byte| byte == 0x1f).map(text);
            Some(LogEntry {
                commit: fields.next().filter(|commit| !commit.is_empty())?,
                author: fields.next()?,
                date: fields.next()?,
                subject: fields.next()?,
            })
        };
        Ok(output.split(|&byte| byte == 0).filter_map(entry).collect())
    }

    /// Paths of plain files beneath the root that match a glob (`*` stays within a folder, `**` does not), sorted, at
    /// most 1,000 of the first 100,000 that are looked at. Links are not followed; `.git` folders are left out.
    ///
    /// # Errors
    /// A glob that cannot be read; errors of the file system.
    pub fn glob(&self, pattern: &str) -> Result<Vec<String>, RepoError> {
        let matcher = globset::GlobBuilder::new(pattern).literal_separator(true).build().map_err(|error| {
            RepoError::Record { path: pattern.into(), what: format!("this glob cannot be read: {error}") }
        })?;
        let matcher = matcher.compile_matcher();
        let walk = ignore::WalkBuilder::new(self.root())
            .standard_filters(false)
            .follow_links(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .build();
        let mut found = Vec::new();
        for entry in walk.take(MOST_LOOKED_AT) {
            let Ok(entry) = entry else { continue };
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            if let Ok(path) = entry.path().strip_prefix(self.root())
                && matcher.is_match(path)
            {
                found.push(path.to_string_lossy().into_owned());
            }
        }
        found.sort();
        found.truncate(MOST_MATCHES);
        Ok(found)
    }

    /// Looks into a small file beneath the root, through no link. `None` when there is no such thing; a thing that is
    /// no plain file counts as an empty one.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn peek(&self, path: &str, most: usize) -> Result<Option<Vec<u8>>, RepoError> {
        let fail = RepoError::os(&self.root().join(path), "looking at");
        let Some((folder, name)) = self.folder_of(path, false)? else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(&folder, name, flags, Mode::empty()) {
            Ok(file) => {
                let file = std::fs::File::from(file);
                let mut bytes = Vec::new();
                let plain = file.metadata().is_ok_and(|data| data.is_file());
                if plain {
                    file.take(most as u64)
                        .read_to_end(&mut bytes)
                        .map_err(RepoError::io(&self.root().join(path), "reading"))?;
                }
                Ok(Some(bytes))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP | Errno::NXIO | Errno::ACCESS) => Ok(Some(Vec::new())),
            Err(errno) => Err(fail(errno)),
        }
    }

    /// Writes a small file of lunation's own beneath the root, through no link; replaces an older one whole.
    ///
    /// # Errors
    /// Errors of the file system; a link on the way is one.
    pub fn write_own_file(&self, path: &str, bytes: &[u8]) -> Result<(), RepoError> {
        let shown = self.root().join(path);
        let Some((folder, name)) = self.folder_of(path, true)? else {
            return Err(RepoError::os(&shown, "writing")(Errno::NOENT));
        };
        let mut staged = name.to_owned();
        staged.push(".lunation-new");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A file of this name that a crash left is ours.
        let _ = unlinkat(&folder, &staged, rustix::fs::AtFlags::empty());
        let file = openat(&folder, &staged, flags, Mode::from(0o644)).map_err(RepoError::os(&shown, "writing"))?;
        std::fs::File::from(file).write_all(bytes).map_err(RepoError::io(&shown, "writing"))?;
        renameat_with(&folder, &staged, &folder, name, RenameFlags::empty()).map_err(RepoError::os(&shown, "writing"))
    }

    /// The folder of a path beneath the root, and the name in it. With `make`, folders that are missing are made.
    fn folder_of<'p>(&self, path: &'p str, make: bool) -> Result<Option<(OwnedFd, &'p OsStr)>, RepoError> {
        let shown = self.root().join(path);
        let fail = RepoError::os(&shown, "looking at");
        let mut parts: Vec<&[u8]> = path.as_bytes().split(|&byte| byte == b'/').collect();
        let name = parts.pop().unwrap_or_default();
        if name.is_empty() || parts.iter().chain([&name]).any(|part| matches!(*part, b"" | b"." | b"..")) {
            return Err(fail(Errno::INVAL));
        }
        let root = std::fs::File::open(self.root()).map_err(RepoError::io(self.root(), "opening"))?;
        let folder = parts.join(&b'/');
        if make {
            make_folders(root.as_fd(), &parts).map_err(RepoError::os(&shown, "making the folder of"))?;
        }
        match open_folder(root.as_fd(), &folder) {
            Ok(folder) => Ok(Some((folder, OsStr::from_bytes(name)))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(RepoError::os(&shown, "looking at")(errno)),
        }
    }
}

fn make_folders(root: BorrowedFd<'_>, parts: &[&[u8]]) -> Result<(), Errno> {
    for depth in 0..parts.len() {
        let above = open_folder(root, &parts[..depth].join(&b'/'))?;
        match mkdirat(&above, OsStr::from_bytes(parts[depth]), Mode::from(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
