//! A scratch repository with a home of its own, and the program at work in it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::running::Running;

/// How long anything may take before a test gives up on it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The scratch repository.
pub(crate) struct Project {
    folder: tempfile::TempDir,
}

/// What the program answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Answer {
    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn exits_with(&self, code: i32) -> &Answer {
        assert_eq!(self.code, Some(code), "\n--- out\n{}\n--- err\n{}", self.out, self.err);
        self
    }

    /// Checks that standard output has this text.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> &Answer {
        assert!(self.out.contains(text), "`{text}` is missing in\n--- out\n{}\n--- err\n{}", self.out, self.err);
        self
    }

    /// Checks that standard error has this text.
    #[track_caller]
    pub(crate) fn complains(&self, text: &str) -> &Answer {
        assert!(self.err.contains(text), "`{text}` is missing in\n--- err\n{}\n--- out\n{}", self.err, self.out);
        self
    }

    /// The last line of standard output.
    pub(crate) fn last_line(&self) -> &str {
        self.out.lines().last().unwrap_or_default()
    }
}

impl Project {
    /// A repository with one bug, one test that fails because of it, and everything committed.
    pub(crate) fn with_a_failing_test() -> Project {
        let project = Project::empty();
        project.write("src/calc.sh", "add() { echo $(($1 - $2)); }\n");
        project.write("test.sh", ". ./src/calc.sh\n[ \"$(add 2 3)\" = 5 ] || { echo 'add is wrong'; exit 1; }\n");
        project.write(".gitignore", "*.log\n");
        project.commit_all("a project with a bug");
        project
    }

    /// A folder without a repository.
    pub(crate) fn without_a_repository() -> Project {
        let folder = tempfile::tempdir().unwrap();
        for name in ["project", "home", "bin"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let git = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|dir| dir.join("git"))
            .find(|git| git.is_file());
        std::os::unix::fs::symlink(git.expect("git is installed"), folder.path().join("bin/git")).unwrap();
        Project { folder }
    }

    /// A repository without files.
    pub(crate) fn empty() -> Project {
        let project = Project::without_a_repository();
        project.git(&["init", "--quiet", "--initial-branch=main"]);
        project.git(&["config", "user.name", "Test"]);
        project.git(&["config", "user.email", "test@localhost"]);
        project
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("project").canonicalize().unwrap()
    }

    /// The folder around the repository: for what must not be in it.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root().join(name)).unwrap()
    }

    pub(crate) fn commit_all(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// A shell script outside of the repository, as an agent. `$here` is the folder that it lies in.
    pub(crate) fn agent(&self, body: &str) -> String {
        let path = self.outside("agent.sh");
        let here = path.parent().unwrap().display().to_string();
        fs::write(&path, format!("here='{here}'\ncat > \"$here/prompt\"\n{body}\n")).unwrap();
        path.display().to_string()
    }

    /// A program on the PATH of the program under test.
    pub(crate) fn on_path(&self, name: &str, script: &str) {
        let path = self.outside("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Writes and commits a loop that runs this agent on the failing test; `more` are further options.
    pub(crate) fn with_a_loop(self, agent: &str, more: &str) -> Project {
        let agent = self.agent(agent);
        self.write(
            "loop.lua",
            format!(
                "local ln = require \"lunation\"\n\nreturn ln.loop {{\n  agent = ln.agent {{ \"sh\", \"{agent}\", name = \"fake\" }},\n  \
                 prompt = \"Make the test pass.\",\n  sensors = {{ \"sh test.sh\" }},\n  {more}\n}}\n"
            ),
        );
        self.commit_all("a loop");
        self
    }

    /// The program with these arguments, ready to be started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lunation"));
        command.args(args).current_dir(self.root()).env_clear();
        command
            .env("HOME", self.outside("home"))
            .env("LUNATION_HOME", self.outside("state"))
            .env("TMPDIR", std::env::temp_dir());
        command.env("PATH", format!("{}:/usr/bin:/bin", self.outside("bin").display())).env("LANG", "C.UTF-8");
        command.stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    #[track_caller]
    pub(crate) fn lunation(&self, args: &[&str]) -> Answer {
        answer(&mut self.command(args))
    }

    /// Starts the program and goes on.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::start(self.command(args))
    }

    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(args).current_dir(self.root()).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.env("HOME", self.outside("home")).env("GIT_CONFIG_NOSYSTEM", "1").stdin(Stdio::null());
        for (name, value) in
            [("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"), ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")]
        {
            command.env(name, value);
        }
        let answer = answer(&mut command);
        answer.exits_with(0);
        answer.out
    }

    pub(crate) fn status(&self) -> String {
        self.git(&["status", "--porcelain"])
    }

    /// Everything of the user's that must survive: branches, HEAD, stash, index, configuration, and every file.
    pub(crate) fn everything(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for args in [
            &["for-each-ref"][..],
            &["rev-parse", "--symbolic-full-name", "HEAD"],
            &["stash", "list"],
            &["ls-files", "--stage"],
            &["status", "--porcelain", "--ignored"],
        ] {
            all.insert(args.join(" "), self.git(args));
        }
        all.insert("config".into(), self.read(".git/config"));
        files_below(&self.root(), &self.root(), &mut all);
        all
    }

    /// The journal of the newest run, as JSON records.
    pub(crate) fn records(&self) -> Vec<serde_json::Value> {
        let answer = self.lunation(&["log", "--json"]);
        answer.exits_with(0);
        answer.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How many runs were recorded.
    pub(crate) fn runs(&self) -> usize {
        fs::read_dir(self.root().join(".git/lunation/runs")).map_or(0, Iterator::count)
    }

    /// Checks that nothing was launched: the agent left no trace, and no run was recorded.
    #[track_caller]
    pub(crate) fn launched_nothing(&self) {
        assert!(!self.outside("prompt").exists(), "the agent was started");
        assert_eq!(self.runs(), 0, "a run was recorded");
    }
}

fn files_below(root: &Path, folder: &Path, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with(".git") {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            files_below(root, &path, all);
        } else {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            all.insert(name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
}

fn answer(command: &mut Command) -> Answer {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Answer { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Looks again and again until it holds, or the deadline passes.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < until, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Numbers of the living processes that have this text in an argument.
pub(crate) fn processes_with(argument: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|number| {
            let arguments = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
            arguments.split(|byte| *byte == 0).any(|found| String::from_utf8_lossy(found).contains(argument))
        })
        .collect()
}
