//! The strongest tier: the command in a PID namespace of its own.
//!
//! ```text
//!  warden (outside) ──── line ──── PID 1 (inside) ──▶ leader ──▶ everything else
//! ```
//!
//! PID 1 is a fork of the warden: it starts the leader, reaps, passes on TERM and, told to sweep, kills everybody at one
//! stroke and counts. All that is service; the *proof* is the warden's own: it kills PID 1, upon which the kernel ends
//! every process of the namespace, and `waitpid` gives PID 1 only when none of them is left. So nothing that the
//! command does to its PID 1 matters, and it can't even name its warden.
//!
//! When the warden dies, by whatever signal, the parent-death signal kills PID 1 and with it the namespace.

mod enter;
mod init;

use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde::{Deserialize, Serialize};

pub(super) use enter::{try_out, with_user_namespace};

use super::{
    super::{
        LeaderStatus,
        protocol::{GoneReport, Inbox, Stage, line},
        sys::{self, Found},
    },
    children::descendants_of,
    leader::{Launch, errno},
    sweep::Round,
    tree::{News, Tree},
};

/// From PID 1 to the warden.
#[derive(Debug, Serialize, Deserialize)]
enum FromInit {
    LeaderEnded(LeaderStatus),
    /// Nobody but the leader, which ended, is seen.
    Alone,
    /// The answer to [`ToInit::Sweep`]. Nothing follows.
    Swept {
        report: GoneReport,
        leader: Option<LeaderStatus>,
    },
}

/// From the warden to PID 1.
#[derive(Debug, Serialize, Deserialize)]
enum ToInit {
    /// TERM and CONT to the leader's group.
    Term,
    /// Kill everybody, count, and end.
    Sweep,
}

/// How long PID 1 may take for its count, before it is killed without one.
const COUNT_BOUND: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(32);

/// The warden's side of one namespace.
pub(super) struct Namespace {
    init: i32,
    /// `None` after its end.
    line: Option<UnixStream>,
    inbox: Inbox,
    leader_status: Option<LeaderStatus>,
    leader_told: bool,
    alone: bool,
    ended: bool,
    sweep: Option<Sweep>,
}

struct Sweep {
    ask_until: Instant,
    report: Option<GoneReport>,
    killed: bool,
    pause: Duration,
}

impl Namespace {
    /// Makes the namespace and starts the leader in it.
    pub(super) fn start(launch: Launch) -> Result<Namespace, (Stage, i32)> {
        let failed = |error: &io::Error| (Stage::Namespace, errno(error));
        let (ours, theirs) = UnixStream::pair().map_err(|error| failed(&error))?;
        ours.set_nonblocking(true).map_err(|error| failed(&error))?;
        let init = enter::fork(|entry| {
            let mut keep = launch.descriptors().to_vec();
            keep.push(theirs.as_raw_fd());
            sys::close_all_but(&mut keep);
            init::run(entry, theirs, launch);
        })
        .map_err(|error| failed(&error))?;
        Ok(Namespace {
            init,
            line: Some(ours),
            inbox: Inbox::default(),
            leader_status: None,
            leader_told: false,
            alone: false,
            ended: false,
            sweep: None,
        })
    }

    fn tell(&mut self, message: &ToInit) {
        if let Some(socket) = &mut self.line {
            // A few bytes into an empty socket. Should it be full, PID 1 is no use any more, and will be killed.
            let _ = socket.write_all(&line(message));
        }
    }

    /// Takes in what PID 1 said. It is the command's neighbour, so nothing here is believed that matters for the proof.
    fn hear(&mut self) {
        let mut buffer = [0u8; 4096];
        while let Some(socket) = &mut self.line {
            match socket.read(&mut buffer) {
                Ok(n) if n > 0 => self.inbox.push(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                _ => self.line = None,
            }
            loop {
                match self.inbox.next() {
                    Ok(Some(message)) => self.take(message),
                    Ok(None) => break,
                    Err(_) => break self.line = None,
                }
            }
        }
    }

    fn take(&mut self, message: FromInit) {
        match message {
            FromInit::LeaderEnded(status) => drop(self.leader_status.get_or_insert(status)),
            FromInit::Alone => self.alone = true,
            FromInit::Swept { report, leader } => {
                self.leader_status = self.leader_status.or(leader);
                if let Some(sweep) = &mut self.sweep {
                    sweep.report.get_or_insert(report);
                }
            }
        }
    }

    /// Reaps PID 1 if it ended; then so did everybody in its namespace.
    fn has_ended(&mut self) -> bool {
        loop {
            match sys::reap_any() {
                Ok(Found::Ended(ended)) if ended.pid == self.init => {
                    self.ended = true;
                    // If the leader had not ended before, the kernel has just killed it.
                    self.leader_status.get_or_insert(LeaderStatus::Signaled(libc::SIGKILL));
                }
                Ok(Found::Ended(_)) => {}
                Ok(Found::NoChild) => return true,
                Ok(Found::NoneEnded) | Err(_) => return false,
            }
        }
    }

    /// Kills PID 1, after a look at who is there if it gave no count.
    fn end(&mut self) {
        let (init, Some(sweep)) = (self.init, &mut self.sweep) else { return };
        if std::mem::replace(&mut sweep.killed, true) || self.ended {
            return;
        }
        if sweep.report.is_none() && self.line.is_some() {
            let (count, names) = descendants_of(init);
            // The leader is one of them.
            let count = count.saturating_sub(u64::from(self.leader_status.is_none()));
            sweep.report = Some(GoneReport { swept: count, left_behind: names, ..GoneReport::default() });
        }
        // Our own child, not reaped. Nothing in it can refuse this signal, which comes from outside.
        let _ = kill(Pid::from_raw(init), Signal::SIGKILL);
    }
}

impl Tree for Namespace {
    fn also(&self) -> Option<BorrowedFd<'_>> {
        self.line.as_ref().map(AsFd::as_fd)
    }

    fn attend(&mut self) -> bool {
        // What it says is for `look`.
        false
    }

    fn look(&mut self) -> News {
        self.hear();
        match self.leader_status {
            Some(status) if !self.leader_told => {
                self.leader_told = true;
                return News::LeaderEnded(status);
            }
            Some(_) if self.alone => return News::Alone,
            _ => {}
        }
        if self.has_ended() { News::Nobody } else { News::Nothing }
    }

    fn term(&mut self) {
        self.tell(&ToInit::Term);
    }

    fn round(&mut self, hurry: bool) -> Round {
        if self.sweep.is_none() {
            self.sweep =
                Some(Sweep { ask_until: Instant::now() + COUNT_BOUND, report: None, killed: false, pause: SHORTEST });
            if !hurry {
                self.tell(&ToInit::Sweep);
            }
        }
        self.hear();
        if self.has_ended() {
            return Round::Nobody;
        }
        let Some(sweep) = &mut self.sweep else { return Round::Nobody };
        let ask = sweep.report.is_none() && self.line.is_some() && !hurry;
        if let (true, Some(left)) = (ask, sweep.ask_until.checked_duration_since(Instant::now())) {
            return Round::Again(left);
        }
        sweep.pause = (sweep.pause * 2).min(LONGEST);
        let pause = sweep.pause;
        self.end();
        Round::Again(pause)
    }

    fn leader_status(&self) -> Option<LeaderStatus> {
        self.leader_status
    }

    fn report(&mut self, proven: bool) -> GoneReport {
        let report = self.sweep.as_ref().and_then(|sweep| sweep.report.clone()).unwrap_or_default();
        let still_there = if proven { Vec::new() } else { descendants_of(self.init).1 };
        GoneReport { confirmed: proven, still_there, ..report }
    }
}
