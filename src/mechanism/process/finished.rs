//! How a command ended. Plain data.

use std::{fmt, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::{Captured, Tier};

/// Which budget ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutKind {
    /// The awake time allowed for the whole command.
    Wall,
    /// The time allowed without a byte of output.
    Silence,
}

/// Why the command is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The leader exited by itself with this code.
    Exited(i32),
    /// The leader was ended by this signal, which did not come from us.
    Signaled(i32),
    /// A budget ran out and the ladder ended it.
    TimedOut(TimeoutKind),
    /// The observer said that the final word was spoken; it did not exit within the grace and the ladder ended it.
    FinishedAsAsked,
    /// The caller cancelled it, before or after it started.
    Cancelled,
    /// The warden died before it could say that everything is gone. Nothing is known about the processes.
    WardenLost,
}

/// How the leader (the program that was asked for) ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaderStatus {
    /// It exited with this code.
    Exited(i32),
    /// It was ended by this signal.
    Signaled(i32),
}

impl fmt::Display for LeaderStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeaderStatus::Exited(code) => write!(f, "exit code {code}"),
            LeaderStatus::Signaled(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A process that was alive when the leader had ended, or that the sweep had to kill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftBehind {
    /// Its process id, as the warden saw it. Never signal it: it is gone and the number may be somebody else's.
    pub pid: i32,
    /// Its own short name (`comm`, at most 15 bytes, chosen by the process itself), control characters replaced.
    pub name: String,
}

/// What became of the log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogReport {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes in it, markers included.
    pub bytes: u64,
    /// Bytes that did not go into it because of its cap or an error.
    pub cut: u64,
    /// The first error of a write (a full disk, say); nothing was written after it.
    pub error: Option<String>,
}

/// Everything that is known about a command that is over.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Why it is over.
    pub ending: Ending,
    /// How the leader ended, as far as is known; it may have exited with 0 after a timeout's TERM.
    pub leader_status: Option<LeaderStatus>,
    /// Its standard output.
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
    /// Awake time from the start to the leader's end (to the end of everything when the leader's end is not known).
    pub wall: Duration,
    /// Awake time from the start until everything was gone.
    pub until_gone: Duration,
    /// Time that the machine was suspended meanwhile.
    pub suspended: Duration,
    /// Names of what had to be killed besides the leader; at most 32, see [`swept`](Finished::swept) for the number.
    pub left_behind: Vec<LeftBehind>,
    /// How many processes besides the leader had to be killed.
    pub swept: u64,
    /// At the deadline these could not be brought to end; at most 32.
    pub still_there: Vec<LeftBehind>,
    /// True when `waitpid` said that there is nobody left. False is never reported as an end.
    pub confirmed_gone: bool,
    /// Something kept an output pipe open after the leader's end, past the time for late output.
    pub held_pipe: bool,
    /// The tier that was in force.
    pub tier: Tier,
    /// The log file, if one was asked for.
    pub log: Option<LogReport>,
    /// Why the private temporary folder could not be removed completely.
    pub tmp_left: Option<String>,
}

impl Finished {
    /// True when the leader exited by itself with code 0.
    pub fn is_success(&self) -> bool {
        self.ending == Ending::Exited(0)
    }
}
