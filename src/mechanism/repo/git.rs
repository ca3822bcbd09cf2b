//! The one place that runs git commands.
//!
//! Owns how git is called: in a cleared environment, on a pinned git folder and working tree, with hooks, monitors,
//! editors, signing, pagers, credential helpers, fetching and optional locks off, in plain English, and under a time
//! limit. It must only be used on a configuration that is the user's own: before a turn, or after the guard. (git2
//! and the walk run nothing; git itself runs what a configuration names.)

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::error::RepoError;

/// Most bytes that are taken from a command; more is an error.
const MOST_OUTPUT: u64 = 512 << 20;

/// How git is found and what it may see.
#[derive(Debug, Clone)]
pub(crate) struct GitProgram {
    pub(crate) program: PathBuf,
    pub(crate) path: Option<OsString>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) xdg_config: Option<PathBuf>,
    pub(crate) time_limit: Duration,
}

/// One git command.
pub(crate) struct GitCommand<'a> {
    git: &'a GitProgram,
    git_dir: &'a Path,
    root: &'a Path,
    args: Vec<OsString>,
    settings: Vec<&'static str>,
    envs: Vec<(&'static str, OsString)>,
    input: Vec<u8>,
}

/// What a command answered.
pub(crate) struct Answer {
    pub(crate) status: ExitStatus,
    pub(crate) output: Vec<u8>,
    pub(crate) errors: String,
}

/// Settings that hold for every call.
const SETTINGS: [&str; 19] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=keep",
    "core.editor=false",
    "sequence.editor=false",
    "core.askPass=",
    "core.pager=cat",
    "core.alternateRefsCommand=",
    "core.sshCommand=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "gpg.program=false",
    "credential.helper=",
    "protocol.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "diff.external=",
    "advice.detachedHead=false",
];

impl<'a> GitCommand<'a> {
    pub(crate) fn new(git: &'a GitProgram, git_dir: &'a Path, root: &'a Path) -> GitCommand<'a> {
        GitCommand {
            git,
            git_dir,
            root,
            args: Vec::new(),
            settings: SETTINGS.to_vec(),
            envs: Vec::new(),
            input: Vec::new(),
        }
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> GitCommand<'a> {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// More settings than those that always hold.
    pub(crate) fn settings(mut self, settings: impl IntoIterator<Item = &'static str>) -> GitCommand<'a> {
        self.settings.extend(settings);
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: impl AsRef<OsStr>) -> GitCommand<'a> {
        self.envs.push((name, value.as_ref().to_owned()));
        self
    }

    pub(crate) fn input(mut self, bytes: Vec<u8>) -> GitCommand<'a> {
        self.input = bytes;
        self
    }

    fn name(&self) -> String {
        self.args.first().map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn failed(&self, what: impl Into<String>) -> RepoError {
        RepoError::Git { command: self.name(), what: what.into() }
    }

    /// Runs it and takes its output; a status other than 0 is an error.
    pub(crate) fn output(self) -> Result<Vec<u8>, RepoError> {
        let name = self.name();
        let answer = self.run()?;
        if answer.status.success() {
            return Ok(answer.output);
        }
        let how = match (answer.status.code(), answer.status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None) => "ended in an unknown way".into(),
        };
        let errors: Vec<_> = answer.errors.lines().rev().take(5).collect();
        let errors = errors.into_iter().rev().collect::<Vec<_>>().join("; ");
        Err(RepoError::Git { command: name, what: format!("{how}: {errors}") })
    }

    /// Runs it and takes its output as one line of text.
    pub(crate) fn line(self) -> Result<String, RepoError> {
        let name = self.name();
        let output = self.output()?;
        match String::from_utf8(output) {
            Ok(text) => Ok(text.trim_end_matches('\n').to_string()),
            Err(_) => Err(RepoError::Git { command: name, what: "it answered with bytes that are no text".into() }),
        }
    }

    /// Runs it, whatever its status is.
    pub(crate) fn run(self) -> Result<Answer, RepoError> {
        let mut command = Command::new(&self.git.program);
        command.env_clear();
        let path = self.git.path.clone().unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        command.env("PATH", path);
        for (name, value) in [
            ("LC_ALL", "C"),
            ("LANGUAGE", "C"),
            ("TZ", "UTC"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ASKPASS", "false"),
            ("SSH_ASKPASS", "false"),
            ("GIT_EDITOR", "false"),
            ("GIT_SEQUENCE_EDITOR", "false"),
            ("GIT_PAGER", "cat"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_LITERAL_PATHSPECS", "1"),
        ] {
            command.env(name, value);
        }
        // with no home git would fail on `~` in a configuration; an empty place serves
        command.env("HOME", self.git.home.as_deref().unwrap_or(Path::new("/nonexistent")));
        if let Some(xdg) = &self.git.xdg_config {
            command.env("XDG_CONFIG_HOME", xdg);
        }
        for (name, value) in &self.envs {
            command.env(name, value);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let mut git_dir = OsString::from("--git-dir=");
        git_dir.push(self.git_dir);
        let mut work_tree = OsString::from("--work-tree=");
        work_tree.push(self.root);
        command.arg(git_dir).arg(work_tree).args(&self.args).current_dir(self.root).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| self.failed(format!("{} could not be started: {error}", self.git.program.display())))?;
        self.talk(&mut child)
    }

    /// Feeds it and reads it until it ends. A process that it left behind with its output open holds nothing up
    /// beyond the time limit.
    fn talk(self, child: &mut Child) -> Result<Answer, RepoError> {
        let (stdin, stdout, stderr) = match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => (stdin, stdout, stderr),
            _ => return Err(self.failed("its pipes are not there")),
        };
        let limit = self.git.time_limit;
        let deadline = Instant::now() + limit;
        let late = || self.failed(format!("it did not end within its time limit of {} s", limit.as_secs()));
        let input = self.input.clone();
        std::thread::spawn(move || {
            let mut stdin = stdin;
            // a command that does not read all of its input says so by its status
            let _ = stdin.write_all(&input);
        });
        let (output, errors) = (read_aside(stdout), read_aside(stderr));
        let ended = wait(child, deadline);
        if !matches!(ended, Ok(Some(_))) {
            end_group(child);
        }
        let status = match ended {
            Ok(Some(status)) => status,
            Ok(None) => return Err(late()),
            Err(error) => return Err(self.failed(format!("waiting for it: {error}"))),
        };
        let collect = |from: Receiver<std::io::Result<Vec<u8>>>| {
            let left = deadline.saturating_duration_since(Instant::now());
            match from.recv_timeout(left) {
                Ok(Ok(bytes)) => Ok(bytes),
                Ok(Err(error)) => Err(self.failed(format!("reading its output: {error}"))),
                Err(_) => Err(late()),
            }
        };
        let output = collect(output)?;
        let errors = collect(errors)?;
        Ok(Answer { status, output, errors: String::from_utf8_lossy(&errors).into_owned() })
    }
}

/// Reads to the end in a thread of its own.
fn read_aside(from: impl Read + Send + 'static) -> Receiver<std::io::Result<Vec<u8>>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // nobody waits any more when the time limit has passed
        let _ = sender.send(read_all(from));
    });
    receiver
}

fn read_all(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = from.take(MOST_OUTPUT + 1).read_to_end(&mut bytes)?;
    if read as u64 > MOST_OUTPUT {
        return Err(std::io::Error::other("more output than is taken"));
    }
    Ok(bytes)
}

/// Waits until the child ends or the deadline has come.
fn wait(child: &mut Child, deadline: Instant) -> std::io::Result<Option<ExitStatus>> {
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Ends the child and its group. It was not waited for yet, so its id is still its own.
fn end_group(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // it may have ended by itself; there is nothing to do then
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}
