//! A scene for end-to-end tests: a project of its own, a home of its own, agents as small shell scripts, and the real
//! program. Nothing of the surroundings reaches it, and it ends only what it started itself.
#![allow(dead_code, reason = "each test file uses another part of it")]

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A project in a temporary folder.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
    vars: Vec<(String, String)>,
    owner: Option<u32>,
}

/// What the program did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A program that is still at work.
pub(crate) struct Running {
    child: Child,
}

impl Scene {
    /// A repository with one commit, in which nothing is configured.
    pub(crate) fn new() -> Scene {
        let folder = tempfile::Builder::new().prefix("lunation-test-").tempdir().expect("a temporary folder");
        let scene = Scene { folder, vars: Vec::new(), owner: None };
        for part in ["project", "home", "bin"] {
            fs::create_dir(scene.folder.path().join(part)).expect("a folder");
        }
        fs::write(
            scene.home().join(".gitconfig"),
            "[user]\n\tname = Tess Ter\n\temail = tess@example.org\n[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n",
        )
        .expect("a git configuration");
        scene.git(&["init", "-q"]);
        scene.file("README", "a project\n").commit("start")
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    /// A folder outside of the project.
    pub(crate) fn outside(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root().join(relative)
    }

    /// Writes a file in the project, with its folders.
    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Scene {
        self.write(path, content);
        self
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, content).expect("a file");
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    /// Commits everything.
    pub(crate) fn commit(self, message: &str) -> Scene {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", message]);
        self
    }

    /// The script.
    pub(crate) fn script(self, lua: &str) -> Scene {
        self.file("loop.lua", lua)
    }

    /// A program on the scene's PATH, written in shell.
    pub(crate) fn program(self, name: &str, shell: &str) -> Scene {
        let path = self.bin().join(name);
        fs::write(&path, format!("#!/bin/sh\n{shell}\n")).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
        self
    }

    /// The agent of the scene: `ln.agent { "worker" }`. `$N` is the number of its turn, from 1.
    pub(crate) fn agent(self, shell: &str) -> Scene {
        let counter = self.home().join("turns");
        let count = format!("N=$(cat {0} 2>/dev/null || echo 0); N=$((N + 1)); echo $N > {0}\n", counter.display());
        self.program("worker", &format!("{count}{shell}"))
    }

    /// How many turns the agent took.
    pub(crate) fn turns(&self) -> u32 {
        fs::read_to_string(self.home().join("turns")).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// A variable for everything that the scene starts.
    pub(crate) fn var(mut self, name: &str, value: &str) -> Scene {
        self.vars.push((name.into(), value.into()));
        self
    }

    /// Gives all that is there to this user, and runs everything as it from now on. Only root can.
    pub(crate) fn owned_by(mut self, user: u32) -> Scene {
        let mut command = Command::new("chown");
        command.arg("-hR").arg(format!("{user}:{user}")).arg(self.outside());
        finish(command).expect_code(0);
        self.owner = Some(user);
        self
    }

    /// A command in the project, with the scene's surroundings alone.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.root())
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", self.bin().display()))
            .env("HOME", self.home())
            .env("LUNATION_HOME", self.home().join("lunation"))
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .envs(self.vars.iter().cloned())
            .stdin(Stdio::null());
        if let Some(user) = self.owner {
            command.uid(user).gid(user);
        }
        command
    }

    pub(crate) fn lunation(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_lunation"));
        command.args(args);
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        finish(self.lunation(args))
    }

    /// `lunation run --trust` with further arguments.
    pub(crate) fn run_loop(&self, args: &[&str]) -> Ran {
        self.run(&[&["run", "--trust"], args].concat())
    }

    /// Starts the program.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut command = self.lunation(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { child: command.spawn().expect("the program starts") }
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let mut command = self.command("git");
        command.args(args);
        let ran = finish(command);
        assert_eq!(ran.code, 0, "git {args:?}: {}", ran.stderr);
        ran.stdout
    }

    pub(crate) fn status(&self) -> String {
        self.git(&["status", "--porcelain"])
    }

    /// The records of the newest run.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let runs = self.root().join(".git/lunation/runs");
        let mut folders: Vec<PathBuf> =
            fs::read_dir(&runs).map(|all| all.flatten().map(|entry| entry.path()).collect()).unwrap_or_default();
        folders.sort();
        let Some(newest) = folders.last() else { return Vec::new() };
        let text = fs::read_to_string(newest.join("journal.jsonl")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The data of all records of a kind in the newest run.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        self.journal()
            .into_iter()
            .filter(|record| record["kind"] == kind)
            .map(|record| record["data"].clone())
            .collect()
    }

    /// The last record of the newest run.
    pub(crate) fn end(&self) -> Value {
        self.events("run_ended").pop().unwrap_or(Value::Null)
    }

    /// The decisions of the newest run.
    pub(crate) fn decisions(&self) -> Vec<String> {
        let name = |data: Value| data["verdict"]["decision"].as_str().unwrap_or_default().to_owned();
        self.events("decided").into_iter().map(name).collect()
    }

    /// The exact prompt of an iteration.
    pub(crate) fn prompt(&self, iteration: u32) -> String {
        let ran = self.run(&["prompt", &iteration.to_string()]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout
    }
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command) -> Ran {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Ran {
        code: code_of(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn code_of(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

impl Ran {
    pub(crate) fn expect_code(self, code: i32) -> Ran {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Everything that it printed.
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// The last line of output.
    pub(crate) fn last_line(&self) -> &str {
        self.stdout.lines().last().unwrap_or_default()
    }
}

impl Running {
    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Signals the program that this scene started.
    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args(["-s", signal, &self.pid().to_string()]).status().expect("kill");
        assert!(status.success(), "the program is there to be signalled");
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> Ran {
        let deadline = Instant::now() + PATIENCE;
        // Pipes are read on threads of their own, so that a chatty program cannot block.
        let mut out = self.child.stdout.take().expect("piped");
        let mut err = self.child.stderr.take().expect("piped");
        let read_out = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = out.read_to_end(&mut text);
            text
        });
        let read_err = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = err.read_to_end(&mut text);
            text
        });
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return Ran {
                    code: code_of(status),
                    stdout: String::from_utf8_lossy(&read_out.join().expect("a reader")).into_owned(),
                    stderr: String::from_utf8_lossy(&read_err.join().expect("a reader")).into_owned(),
                };
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                panic!("the program did not end");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Polls until something holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "in vain waited for: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes whose command line holds `marker`, zombies left out.
pub(crate) fn alive(marker: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(line) = fs::read(entry.path().join("cmdline")) else { continue };
        let line: String = line.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word) + " ").collect();
        if line.contains(marker) && pid != std::process::id() as i32 {
            found.push(pid);
        }
    }
    found
}

/// A number that no other test uses, for `sleep`: unique command lines are how processes are found again.
pub(crate) fn unique_seconds() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}.{:03}", 100_000 + std::process::id() % 1_000_000, NEXT.fetch_add(1, Ordering::Relaxed))
}
