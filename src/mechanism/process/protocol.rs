//! What host and warden say to each other: one enum each way, one JSON line each message. Owns the format only.
//!
//! The first byte on the socket is not part of a message: it carries the descriptors (see `spawn`). Both sides are the
//! same executable, so a different version on the other side is an error and never guessed at.

use std::ffi::OsString;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{LeaderStatus, LeftBehind, Tier};

/// Version of the messages; also the value of the marker argument that the warden is entered with.
pub(super) const VERSION: u32 = 2;
/// The first argument of a process that is to be a warden, followed by the version.
pub(super) const MARKER: &str = "--lunation-warden=";
/// How long a sweep goes on before the warden says that it can't confirm the end.
pub(super) const SWEEP_BOUND: std::time::Duration = std::time::Duration::from_secs(10);
/// The most names that are reported of what was left behind.
pub(super) const MOST_NAMES: usize = 32;
/// The longest message that is accepted: far above what the kernel lets a program have as arguments and environment.
const LONGEST_MESSAGE: usize = 64 * 1024 * 1024;

/// From the host to the warden.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToWarden {
    /// Start this. Comes once, first.
    Start(Box<Order>),
    /// Say what works on this machine, and exit. Comes once, first.
    Probe,
    /// TERM to the leader's group now, the sweep after the grace.
    Stop { grace_ms: u64 },
    /// The sweep now. `farewell`: the host leaves on purpose; the end of the socket that follows is not its death.
    Sweep { farewell: bool },
}

/// What to start. The descriptors came before: stdout, stderr, stdin, then `hold` and the three of the muster.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// Absolute path of the program.
    pub program: OsString,
    /// Its arguments, the name of the program first.
    pub argv: Vec<OsString>,
    /// Its environment, each `NAME=value`.
    pub env: Vec<OsString>,
    /// The folder to run in.
    pub cwd: OsString,
    /// How long to wait for late output after the leader's end.
    pub late_ms: u64,
    /// The tier to put in force.
    pub tier: Tier,
    /// Whether a descriptor to hold was sent.
    pub hold: bool,
    /// What to execute after the host's death; then the descriptors of the muster were sent.
    pub after_host_death: Option<AfterHostDeath>,
}

/// The program that cleans up after a host that died.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AfterHostDeath {
    /// Its arguments, the absolute path of the program first.
    pub argv: Vec<OsString>,
    /// Its environment, each `NAME=value`.
    pub env: Vec<OsString>,
}

/// From the warden to the host.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FromWarden {
    /// The program is running (its exec succeeded).
    Started,
    /// It is not running and never was; `Gone` follows.
    NotStarted { stage: Stage, errno: i32 },
    /// The leader ended. `asked`: it had been told to stop before.
    LeaderEnded { status: LeaderStatus, asked: bool },
    /// The sweep begins. `late`: because the time for late output is over.
    Sweeping { late: bool },
    /// The sweep is over. Nothing follows.
    Gone(GoneReport),
    /// The answer to a probe. Nothing follows.
    Abilities(Abilities),
    /// The warden can't do its work. Nothing follows.
    Failed { message: String },
}

/// Which step of the start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    Fork,
    Namespace,
    Session,
    Descriptors,
    Folder,
    Gate,
    Exec,
}

impl Stage {
    pub(super) fn name(self) -> &'static str {
        match self {
            Stage::Fork => "fork",
            Stage::Namespace => "PID namespace",
            Stage::Session => "own session",
            Stage::Descriptors => "descriptors",
            Stage::Folder => "working folder",
            Stage::Gate => "fork gate",
            Stage::Exec => "exec",
        }
    }

    pub(super) fn from_byte(byte: u8) -> Stage {
        [Stage::Fork, Stage::Namespace, Stage::Session, Stage::Descriptors, Stage::Folder, Stage::Gate]
            .into_iter()
            .find(|s| *s as u8 == byte)
            .unwrap_or(Stage::Exec)
    }
}

/// What the sweep found.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GoneReport {
    /// `waitpid` said that there is nobody left.
    pub confirmed: bool,
    /// Processes besides the leader that the sweep ended.
    pub swept: u64,
    /// Names of them.
    pub left_behind: Vec<LeftBehind>,
    /// Names of those that did not end.
    pub still_there: Vec<LeftBehind>,
}

/// For each tier that needs something: `None` when the probe showed it working, else why it does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Abilities {
    pub pid_namespace: Option<String>,
    /// A PID namespace comes with a user namespace here.
    pub user_namespace: bool,
    pub fork_gate: Option<String>,
    pub subreaper: Option<String>,
    /// Goes with the fork gate and is no tier of its own.
    pub signal_scope: Option<String>,
}

/// A message as a line.
pub(super) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages are plain data with string keys");
    line.push(b'\n');
    line
}

/// Collects bytes and gives whole messages.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    /// Where to look for the end of the line next.
    searched: usize,
}

impl Inbox {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, if there is one; an error when what is there can't be one.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
        let Some(end) = self.bytes[self.searched..].iter().position(|&b| b == b'\n') else {
            self.searched = self.bytes.len();
            return if self.bytes.len() > LONGEST_MESSAGE { Err("a message is too long".into()) } else { Ok(None) };
        };
        let line: Vec<u8> = self.bytes.drain(..=self.searched + end).collect();
        self.searched = 0;
        serde_json::from_slice(&line).map(Some).map_err(|error| format!("a message can't be read: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn an_order_survives_the_wire_byte_for_byte_however_it_is_cut() {
        let odd = OsString::from_vec(b"A=\xff\n\"x\\".to_vec());
        let order = Order {
            program: "/bin/sh".into(),
            argv: vec!["sh".into(), odd.clone()],
            env: vec![odd.clone()],
            cwd: odd.clone(),
            late_ms: 7,
            tier: Tier::Subreaper,
            hold: true,
            after_host_death: None,
        };
        let bytes = [line(&ToWarden::Start(Box::new(order))), line(&ToWarden::Sweep { farewell: true })].concat();
        for size in [1, 3, 7, bytes.len()] {
            let mut inbox = Inbox::default();
            let mut got = Vec::new();
            for chunk in bytes.chunks(size) {
                inbox.push(chunk);
                while let Some(m) = inbox.next::<ToWarden>().unwrap() {
                    got.push(m);
                }
            }
            let [ToWarden::Start(order), ToWarden::Sweep { farewell: true }] = &got[..] else { panic!("{got:?}") };
            assert_eq!((&order.argv[1], &order.env[0], &order.cwd), (&odd, &odd, &odd));
        }
    }

    #[test]
    fn noise_is_an_error_and_not_a_message() {
        let mut inbox = Inbox::default();
        inbox.push(b"hello\n");
        assert!(inbox.next::<FromWarden>().is_err());
    }

    #[test]
    fn stages_survive_as_bytes() {
        for stage in
            [Stage::Fork, Stage::Namespace, Stage::Session, Stage::Descriptors, Stage::Folder, Stage::Gate, Stage::Exec]
        {
            assert_eq!(Stage::from_byte(stage as u8), stage);
        }
    }
}
