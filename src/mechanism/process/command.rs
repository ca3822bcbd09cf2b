//! What to run, as data. Owns the defaults; starts nothing.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use super::{LogFilter, Stream};

/// What a command reads. It always ends: a pipe that nobody closes is never inherited.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Stdin {
    /// The null device.
    #[default]
    Null,
    /// These bytes and then end of file. They are given as an anonymous file, so their size is not limited by a pipe
    /// and a program that does not read them stalls nobody.
    Bytes(Vec<u8>),
    /// This file, opened for reading.
    File(PathBuf),
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stdin::Null => f.write_str("Null"),
            Stdin::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Stdin::File(path) => write!(f, "File({})", path.display()),
        }
    }
}

/// Makes the filters of a log, one for each stream.
pub type LogFilters = Arc<dyn Fn(Stream) -> Box<dyn LogFilter> + Send + Sync>;

/// A program, what it gets and what it may use. Build one with [`Command::new`] and the methods below.
#[derive(Clone)]
pub struct Command {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) cwd: PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) stdin: Stdin,
    pub(super) wall: Duration,
    pub(super) silence: Option<Duration>,
    pub(super) term_grace: Duration,
    pub(super) late_output: Duration,
    pub(super) linger: Duration,
    pub(super) head_bytes: usize,
    pub(super) tail_bytes: usize,
    pub(super) log_file: Option<PathBuf>,
    pub(super) log_cap: u64,
    pub(super) log_filter: Option<LogFilters>,
    pub(super) private_tmp: Option<PathBuf>,
}

impl Command {
    /// A command: a program (a path, or a name that is looked up in the `PATH` of `env`), the folder to run in, and the
    /// **complete** environment; nothing else is inherited.
    ///
    /// Defaults: no arguments, null stdin, one hour of wall time, no silence budget, 5 s between TERM and KILL, 1 s for
    /// late output after the leader's end, at most 2 s of reading after everything is gone, 64 KiB of head and 192 KiB
    /// of tail kept per stream, no log, no private temporary folder.
    pub fn new(program: impl Into<OsString>, cwd: impl Into<PathBuf>, env: Vec<(OsString, OsString)>) -> Command {
        Command {
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            env,
            stdin: Stdin::Null,
            wall: Duration::from_secs(3600),
            silence: None,
            term_grace: Duration::from_secs(5),
            late_output: Duration::from_secs(1),
            linger: Duration::from_secs(2),
            head_bytes: 64 * 1024,
            tail_bytes: 192 * 1024,
            log_file: None,
            log_cap: 64 * 1024 * 1024,
            log_filter: None,
            private_tmp: None,
        }
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Command {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Command {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets one variable of the environment, replacing an earlier value.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Command {
        let name = name.into();
        self.env.retain(|(n, _)| *n != name);
        self.env.push((name, value.into()));
        self
    }

    /// What it reads; default: the null device.
    pub fn stdin(mut self, stdin: Stdin) -> Command {
        self.stdin = stdin;
        self
    }

    /// The awake time that it may take; default: one hour.
    pub fn wall(mut self, wall: Duration) -> Command {
        self.wall = wall;
        self
    }

    /// The time that it may take without a byte on either stream; default: no such budget.
    pub fn silence(mut self, silence: Option<Duration>) -> Command {
        self.silence = silence;
        self
    }

    /// The time between TERM and KILL; default: 5 s. Zero means KILL at once.
    pub fn term_grace(mut self, grace: Duration) -> Command {
        self.term_grace = grace;
        self
    }

    /// How long what is left after the leader's end may go on writing to a pipe that it holds; default: 1 s. It is
    /// only waited for while a pipe is open.
    pub fn late_output(mut self, grace: Duration) -> Command {
        self.late_output = grace;
        self
    }

    /// The longest reading after everything is gone (somebody foreign may hold a pipe); default: 2 s.
    pub fn linger(mut self, linger: Duration) -> Command {
        self.linger = linger;
        self
    }

    /// How many bytes of the beginning and of the end of each stream are kept; default: 64 KiB and 192 KiB.
    pub fn keep_output(mut self, head_bytes: usize, tail_bytes: usize) -> Command {
        self.head_bytes = head_bytes;
        self.tail_bytes = tail_bytes;
        self
    }

    /// Writes the bytes of both streams, as they come, to this file (made anew, owner only) up to `cap` bytes; then a
    /// marker and nothing more.
    pub fn log(mut self, file: impl Into<PathBuf>, cap: u64) -> Command {
        self.log_file = Some(file.into());
        self.log_cap = cap;
        self
    }

    /// Passes what goes to the log file through a filter, made anew for each stream; for masking secrets.
    pub fn log_filter(mut self, make: impl Fn(Stream) -> Box<dyn LogFilter> + Send + Sync + 'static) -> Command {
        self.log_filter = Some(Arc::new(make));
        self
    }

    /// Makes this folder (owner only; it must not exist, its parents are made) before the start, names it as `TMPDIR`,
    /// `TMP` and `TEMP`, and removes it when everything is gone.
    pub fn private_tmp(mut self, folder: impl Into<PathBuf>) -> Command {
        self.private_tmp = Some(folder.into());
        self
    }

    /// The program as it was written.
    pub fn program(&self) -> &OsStr {
        &self.program
    }
}

/// Shows names of variables but no values, and the size of a prompt but not its text.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&OsStr> = self.env.iter().map(|(n, _)| n.as_os_str()).collect();
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("cwd", &self.cwd)
            .field("env", &names)
            .field("stdin", &self.stdin)
            .field("wall", &self.wall)
            .field("silence", &self.silence)
            .field("term_grace", &self.term_grace)
            .field("late_output", &self.late_output)
            .field("linger", &self.linger)
            .field("head_bytes", &self.head_bytes)
            .field("tail_bytes", &self.tail_bytes)
            .field("log_file", &self.log_file)
            .field("log_cap", &self.log_cap)
            .field("log_filter", &self.log_filter.is_some())
            .field("private_tmp", &self.private_tmp)
            .finish()
    }
}
