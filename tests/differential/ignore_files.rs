//! Random repositories full of ignore files, judged by git and by us.

use lunation::mechanism::repo::{Repository, RepositoryOptions, Workspace, WorkspaceOptions, state_folder};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const NAMES: [&str; 12] = ["a", "b", "ab", "a.x", "b.x", "c d", "!a", "#a", "sub", "deep", "ü", "A"];
const PATTERNS: [&str; 40] = [
    "a",
    "b/",
    "/a",
    "/sub",
    "*.x",
    "!*.x",
    "!a",
    "sub/a",
    "sub/*",
    "**/a",
    "a/**",
    "sub/**/a",
    "**/sub/",
    "[ab]",
    "[!a]",
    "[^a-b].x",
    "?",
    "a*",
    "*b",
    "\\!a",
    "\\#a",
    "# a comment",
    "",
    "c d",
    "c d ",
    "c\\ d",
    "a\\ ",
    "!sub/",
    "/*",
    "!/sub",
    "*",
    "!*/",
    "deep/a/",
    "/deep/**",
    "a/b/",
    "!b",
    "ü",
    "[[:alpha:]]",
    "**",
    "a\\",
];

/// The files that are watched, by us and by git, and the rules for a message.
pub(crate) struct Judged {
    pub(crate) ours: BTreeSet<String>,
    pub(crate) gits: BTreeSet<String>,
    pub(crate) rules: String,
}

fn git(root: &Path, home: &Path, args: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .args(args)
        .current_dir(root)
        .env_clear()
        .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .env("HOME", home)
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn pick<'a>(dice: &mut StdRng, from: &[&'a str]) -> &'a str {
    from[dice.random_range(0..from.len())]
}

/// Makes the repository of a seed and lets both judge it.
pub(crate) fn judge(seed: u64) -> Judged {
    let mut dice = StdRng::seed_from_u64(seed);
    let folder = tempfile::tempdir().expect("a folder");
    let top = folder.path().canonicalize().expect("a real path");
    let (root, home) = (top.join("repo"), top.join("home"));
    fs::create_dir(&root).expect("made");
    fs::create_dir(&home).expect("made");
    git(&root, &home, &["init", "-q"]);
    let open = || {
        let options =
            RepositoryOptions { home: Some(home.clone()), system_config: None, ..RepositoryOptions::default() };
        let repository = Repository::discover(&root, &options).expect("a repository");
        let state = state_folder(&top.join("state"), &repository).expect("a state folder");
        Workspace::open(repository, &state, WorkspaceOptions { free_bytes: 0, ..WorkspaceOptions::default() })
            .expect("opened")
    };
    let empty = open().checkpoint().expect("a checkpoint").tree;

    let mut folders = vec![PathBuf::new()];
    for _ in 0..dice.random_range(5..60) {
        let parts: Vec<_> = (0..dice.random_range(1..5)).map(|_| pick(&mut dice, &NAMES)).collect();
        let path = PathBuf::from(parts.join("/"));
        let parent = path.parent().map(Path::to_path_buf).unwrap_or_default();
        if fs::create_dir_all(root.join(&parent)).is_ok() && !root.join(&path).exists() {
            fs::write(root.join(&path), "x").expect("written");
            folders.push(parent);
        }
    }
    let mut rules = String::new();
    for _ in 0..dice.random_range(1..5) {
        let at = folders[dice.random_range(0..folders.len())].clone();
        let file =
            if dice.random_range(0..6) == 0 { PathBuf::from(".git/info/exclude") } else { at.join(".gitignore") };
        let end = if dice.random_range(0..5) == 0 { "\r\n" } else { "\n" };
        let lines: String =
            (0..dice.random_range(1..6)).map(|_| format!("{}{end}", pick(&mut dice, &PATTERNS))).collect();
        rules.push_str(&format!("--- {}\n{lines}", file.display()));
        fs::write(root.join(&file), lines).expect("written");
    }
    if dice.random_range(0..3) == 0 {
        let what = pick(&mut dice, &["a", "sub", "a.x", "."]);
        if root.join(what).exists() {
            git(&root, &home, &["add", "-f", "--", what]);
        }
    }

    let list = |args: &[&str]| -> Vec<String> {
        let output = git(&root, &home, args);
        output
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty())
            .map(|path| String::from_utf8_lossy(path).into())
            .collect()
    };
    let mut gits: BTreeSet<String> = list(&["ls-files", "-z", "-o", "--exclude-standard"]).into_iter().collect();
    gits.extend(list(&["ls-files", "-z"]));
    let mut workspace = open();
    let now = workspace.checkpoint().expect("a checkpoint").tree;
    let ours = workspace.diff(&empty, &now).expect("compared").files;
    Judged { ours: ours.iter().map(|file| file.path.to_string()).collect(), gits, rules }
}
