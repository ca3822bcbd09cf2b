//! PID 1 of a command's namespace. Owns the reaping inside, the way of TERM, and the count at the end.
//!
//! It passes on no signal that it gets: those from inside do not reach it (but for those that it ignores), and what is
//! to be sent it is told over the line. It opens no file that the command could have made.

use std::{
    io::{self, Read, Write},
    os::{fd::AsFd, unix::net::UnixStream},
    time::Duration,
};

use nix::{
    sys::{
        prctl,
        signal::{Signal, kill},
        signalfd::SignalFd,
    },
    unistd::Pid,
};
use rustix::event::{PollFd, PollFlags, poll};

use super::{
    super::{
        super::{
            LeaderStatus,
            protocol::{GoneReport, Inbox, MOST_NAMES, Stage, line},
            sys::{self, Found},
        },
        children::describe,
        descendants::Descendants,
        leader::{Launch, errno},
        tree::{News, Tree},
        watch::{child_signals, timespec},
    },
    FromInit, ToInit,
    enter::{self, Entry},
};

/// The first process of a namespace has this number in it.
const INIT: Pid = Pid::from_raw(1);
/// How long the killed may take before they are killed again.
const AGAIN: Duration = Duration::from_millis(20);

/// Does everything that PID 1 does. Comes back when it should end.
pub(super) fn run(entry: Entry, line: UnixStream, mut launch: Launch) {
    if let Err((_, error)) = enter::prepare(&entry, &line) {
        return launch.failed(Stage::Namespace, errno(&error));
    }
    // The command is of the same user: it may not look into this process or change it.
    if let Err(error) = prctl::set_dumpable(false) {
        return launch.failed(Stage::Namespace, error as i32);
    }
    let leader = match sys::fork(|| launch.become_leader(INIT, || Ok(()))) {
        Ok(leader) => leader,
        Err(error) => return launch.failed(Stage::Fork, errno(&error)),
    };
    // Its descriptors are the leader's alone from here on; above all the report, whose end says that it runs.
    drop(launch);
    // Without it there would be no order and no news; the end of this process is noticed.
    let _ = Init { line, inbox: Inbox::default(), tree: Descendants::of(leader, true), leader }.live();
}

struct Init {
    line: UnixStream,
    inbox: Inbox,
    tree: Descendants,
    leader: i32,
}

impl Init {
    fn live(mut self) -> io::Result<()> {
        let signals = child_signals()?;
        self.line.set_nonblocking(true)?;
        let (mut alone, mut busy) = (false, true);
        loop {
            let limit = std::mem::take(&mut busy).then(|| timespec(Duration::ZERO));
            let mut fds =
                [PollFd::new(&self.line, PollFlags::IN), PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
            // An interrupted poll is a look around too early, no more.
            let _ = poll(&mut fds, limit.as_ref());
            while let Ok(Some(_)) = signals.read_signal() {}
            if !alone {
                match self.tree.look() {
                    News::LeaderEnded(status) => {
                        self.say(&FromInit::LeaderEnded(status))?;
                        busy = true;
                    }
                    News::Alone => {
                        alone = true;
                        self.say(&FromInit::Alone)?;
                    }
                    News::More => busy = true,
                    News::Nothing => {}
                    News::Nobody => return Ok(()),
                }
            }
            if !self.read()? {
                return Ok(());
            }
            while let Some(message) = self.inbox.next().map_err(io::Error::other)? {
                match message {
                    ToInit::Term => self.tree.term(),
                    ToInit::Sweep => return self.sweep(&signals),
                }
            }
        }
    }

    fn say(&mut self, message: &FromInit) -> io::Result<()> {
        self.line.write_all(&line(message))
    }

    /// False at the end of the line: the warden is gone.
    fn read(&mut self) -> io::Result<bool> {
        let mut buffer = [0u8; 1024];
        match self.line.read(&mut buffer) {
            Ok(0) => Ok(false),
            Ok(n) => {
                self.inbox.push(&buffer[..n]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Kills everybody at one stroke, which no fork can escape, and counts whom that ended.
    fn sweep(&mut self, signals: &SignalFd) -> io::Result<()> {
        let (mut report, mut leader) = (GoneReport::default(), None);
        loop {
            // Everybody in the namespace but this process. It fails only when there is nobody.
            let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
            loop {
                match sys::peek()? {
                    Found::Ended(ended) => {
                        if ended.pid == self.leader {
                            leader = Some(ended.status);
                        } else if ended.status == LeaderStatus::Signaled(libc::SIGKILL) {
                            report.swept += 1;
                            if report.left_behind.len() < MOST_NAMES {
                                // Ended but not reaped, so the name is still its own.
                                report.left_behind.push(describe(ended.pid));
                            }
                        }
                        sys::reap(ended.pid)?;
                    }
                    Found::NoneEnded => break,
                    Found::NoChild => return self.say(&FromInit::Swept { report, leader }),
                }
            }
            let mut fds = [PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
            let _ = poll(&mut fds, Some(&timespec(AGAIN)));
            while let Ok(Some(_)) = signals.read_signal() {}
        }
    }
}
