//! A repository in a temporary folder, with a home folder of its own, and an independent look at it.

use lunation::mechanism::repo::{Repository, RepositoryOptions, Workspace, WorkspaceOptions, state_folder};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

pub(crate) struct World {
    dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

/// Path to what is there, in words.
pub(crate) type Manifest = BTreeMap<String, String>;

impl World {
    /// A repository with one commit: `a.txt`, `src/main.rs`, `src/deep/x.c`, a program and a link.
    pub(crate) fn new() -> World {
        let world = World::empty();
        world.write("a.txt", "a\n");
        world.write("src/main.rs", "fn main() {}\n");
        world.write("src/deep/x.c", "int x;\n");
        world.sh("printf '#!/bin/sh\\n' > run.sh; chmod 755 run.sh; ln -s a.txt link");
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "first"]);
        world
    }

    /// A repository with no commit.
    pub(crate) fn empty() -> World {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let root = dir.path().canonicalize().expect("a real path").join("repo");
        fs::create_dir(&root).expect("made");
        let home = root.parent().expect("a parent").join("home");
        fs::create_dir(&home).expect("made");
        let world = World { dir, root };
        world.git(&["init", "-q", "-b", "main"]);
        world
    }

    pub(crate) fn top(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("a real path")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.top().join("home")
    }

    pub(crate) fn options(&self) -> RepositoryOptions {
        RepositoryOptions { home: Some(self.home()), system_config: None, ..RepositoryOptions::default() }
    }

    pub(crate) fn repository(&self) -> Repository {
        Repository::discover(&self.root, &self.options()).expect("a repository")
    }

    pub(crate) fn state(&self) -> PathBuf {
        state_folder(&self.top().join("state"), &self.repository()).expect("a state folder")
    }

    pub(crate) fn workspace(&self) -> Workspace {
        self.workspace_with(watch())
    }

    pub(crate) fn workspace_with(&self, options: WorkspaceOptions) -> Workspace {
        self.workspace_at(&self.root, options)
    }

    pub(crate) fn workspace_at(&self, start: &Path, options: WorkspaceOptions) -> Workspace {
        let repository = Repository::discover(start, &self.options()).expect("a repository");
        let state = state_folder(&self.top().join("state"), &repository).expect("a state folder");
        Workspace::open(repository, &state, options).expect("a workspace")
    }

    fn command(&self, program: &str, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(folder).env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.home());
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C").env("TMPDIR", self.dir.path());
        for (name, value) in [("NAME", "Ada"), ("EMAIL", "ada@example.org"), ("DATE", "2020-01-02T03:04:05Z")] {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        command
    }

    /// Runs git as a person would, and answers what it printed.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_at(&self.root, args)
    }

    pub(crate) fn git_at(&self, folder: &Path, args: &[&str]) -> String {
        let output = self.command("git", folder).args(args).output().expect("git runs");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a script in the root, as an agent would. It must succeed.
    pub(crate) fn sh(&self, script: &str) {
        self.sh_at(&self.root, script);
    }

    pub(crate) fn sh_at(&self, folder: &Path, script: &str) {
        let output = self.try_sh(folder, script);
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn try_sh(&self, folder: &Path, script: &str) -> Output {
        self.command("bash", folder).args(["-ec", script]).output().expect("bash runs")
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, content).expect("written");
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).expect("read")
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        fs::symlink_metadata(self.root.join(path)).is_ok()
    }

    /// Everything in the working tree, with times.
    pub(crate) fn tree(&self) -> Manifest {
        manifest(&self.root, &|path| path == b".git", true)
    }

    /// Everything in the working tree, without times.
    pub(crate) fn contents(&self) -> Manifest {
        manifest(&self.root, &|path| path == b".git", false)
    }

    /// Everything in the git folder but objects, without times.
    pub(crate) fn git_folder(&self) -> Manifest {
        git_folder(&self.root.join(".git"))
    }
}

pub(crate) fn git_folder(path: &Path) -> Manifest {
    manifest(path, &|path| path == b"objects" || path.ends_with(b"/objects") || path == b"lunation", false)
}

/// Options whose waiting fits tests.
pub(crate) fn watch() -> WorkspaceOptions {
    WorkspaceOptions { stale_lock_age: Duration::from_millis(50), free_bytes: 0, ..WorkspaceOptions::default() }
}

fn manifest(root: &Path, skip: &dyn Fn(&[u8]) -> bool, times: bool) -> Manifest {
    let mut found = Manifest::new();
    add(root, root, skip, times, &mut found);
    found
}

fn add(root: &Path, folder: &Path, skip: &dyn Fn(&[u8]) -> bool, times: bool, found: &mut Manifest) {
    for entry in fs::read_dir(folder).expect("listed") {
        let path = entry.expect("listed").path();
        let name = path.strip_prefix(root).expect("below the root").as_os_str().as_bytes().to_vec();
        if skip(&name) {
            continue;
        }
        let meta = fs::symlink_metadata(&path).expect("looked at");
        let kind = meta.file_type();
        let mut words = format!("{:o}", meta.mode());
        if kind.is_symlink() {
            words.push_str(&format!(" -> {:?}", fs::read_link(&path).expect("a link")));
        } else if kind.is_file() {
            words.push_str(&match fs::read(&path) {
                Ok(content) => format!(" {:x?}", &Sha256::digest(&content)[..8]),
                Err(error) => format!(" {:?} {}", error.kind(), meta.len()),
            });
        } else if kind.is_fifo() || kind.is_socket() {
            words.push_str(" special");
        }
        if times && !kind.is_dir() {
            words.push_str(&format!(" {}.{:09}", meta.mtime(), meta.mtime_nsec()));
        }
        found.insert(name.escape_ascii().to_string(), words);
        if kind.is_dir() && fs::read_dir(&path).is_ok() {
            add(root, &path, skip, times, found);
        }
    }
}

/// Two looks must be equal; only what differs is shown.
#[track_caller]
pub(crate) fn assert_same(now: &Manifest, before: &Manifest, what: &str) {
    let paths: std::collections::BTreeSet<_> = now.keys().chain(before.keys()).collect();
    let lines: Vec<_> = paths
        .into_iter()
        .filter(|path| now.get(*path) != before.get(*path))
        .map(|path| format!("  {path}: was {:?}, is {:?}", before.get(path), now.get(path)))
        .collect();
    assert!(lines.is_empty(), "{what}:\n{}", lines.join("\n"));
}
