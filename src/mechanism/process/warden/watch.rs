//! The warden's main loop: one command from fork to proof. Owns the ladder and its deadlines.

use std::{
    any::Any,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use nix::sys::{
    signal::{SigSet, Signal},
    signalfd::{SfdFlags, SignalFd},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::Timespec,
};

use super::{
    super::{
        LeaderStatus, Tier,
        protocol::{FromWarden, GoneReport, Order, SWEEP_BOUND, Stage, ToWarden},
        sys,
    },
    control::Control,
    descendants::Descendants,
    leader::{Launch, Standard, Starting},
    muster::Muster,
    namespace::Namespace,
    sweep::Round,
    tree::{News, Tree},
};

/// The end was not confirmed within the bound.
const UNCONFIRMED: i32 = 3;
/// How long a warden goes on sweeping after it had to say that it can't confirm the end.
const STUBBORN: Duration = Duration::from_secs(60);
/// The shortest pause between its rounds.
const UNHURRIED: Duration = Duration::from_millis(5);

/// Where the command stands. The leader stays unreaped until the sweep, as the anchor of its group.
enum Phase {
    /// Forked; exec has not been reported yet.
    Starting(Starting),
    /// Running.
    Running,
    /// The leader ended; what it left may write until then.
    Ended { sweep_at: Instant },
    /// Nothing is left to wait for.
    Sweep { late: bool },
}

/// One command under watch.
pub(super) struct Watch {
    control: Control,
    signals: SignalFd,
    /// `None` when the start failed before there was any process.
    tree: Option<Box<dyn Tree>>,
    leader_status: Option<LeaderStatus>,
    phase: Phase,
    /// When TERM was sent: the moment of the sweep.
    kill_at: Option<Instant>,
    late: Duration,
    /// Children may have ended that the last look did not come to.
    busy: bool,
    muster: Muster,
}

impl Watch {
    /// Starts the command. `Err` is an exit code: the host was told why.
    pub(super) fn new(mut control: Control, order: Order, descriptors: Vec<OwnedFd>) -> Result<Watch, i32> {
        let mut refuse = |message: &str| {
            control.say(&FromWarden::Failed { message: message.into() });
            2
        };
        let mut descriptors = descriptors.into_iter();
        let (Some(stdout), Some(stderr), Some(stdin)) = (descriptors.next(), descriptors.next(), descriptors.next())
        else {
            return Err(refuse("the descriptors of the command did not arrive"));
        };
        let Some(muster) = Muster::new(&order, descriptors) else {
            return Err(refuse("the descriptors of the host's death did not arrive"));
        };
        if order.tier == Tier::ProcessGroup && nix::sys::prctl::set_child_subreaper(false).is_err() {
            return Err(refuse("the kernel refused to change the subreaper"));
        }
        let Ok(signals) = child_signals() else { return Err(refuse("no signal descriptor can be had")) };
        let mut watch = Watch {
            control,
            signals,
            tree: None,
            leader_status: None,
            phase: Phase::Sweep { late: false },
            kill_at: None,
            late: Duration::from_millis(order.late_ms),
            busy: false,
            muster,
        };
        match start(&order, Standard { stdin, stdout, stderr }) {
            Ok((tree, starting)) => {
                watch.tree = Some(tree);
                watch.phase = Phase::Starting(starting);
            }
            Err((stage, errno)) => watch.control.say(&FromWarden::NotStarted { stage, errno }),
        }
        Ok(watch)
    }

    /// Watches until everything is gone; gives the exit code.
    pub(super) fn run(&mut self) -> i32 {
        let late = loop {
            if let Phase::Sweep { late } = self.phase {
                break late;
            }
            if !self.wait() {
                continue;
            }
            // An end by itself is noticed before an order to end it.
            self.hear_of_exec();
            self.look_at_children();
            self.obey();
            self.look_at_clock();
        };
        self.control.say(&FromWarden::Sweeping { late });
        self.sweep()
    }

    /// The watch itself failed: say so, and sweep from scratch.
    pub(super) fn after_panic(&mut self, panic: &(dyn Any + Send)) -> i32 {
        let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        self.control.say(&FromWarden::Failed { message: format!("it panicked: {text}") });
        self.sweep()
    }

    /// Waits until there is something to do; false when all that was done already.
    fn wait(&mut self) -> bool {
        let until = match &self.phase {
            Phase::Ended { sweep_at } => Some(*sweep_at),
            _ => self.kill_at,
        };
        let limit = until.map(|at| at.saturating_duration_since(Instant::now()));
        let limit = if std::mem::take(&mut self.busy) { Some(Duration::ZERO) } else { limit }.map(timespec);
        let ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let mut fds = vec![
            PollFd::new(&self.control, PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
        ];
        if let Phase::Starting(starting) = &self.phase {
            fds.push(PollFd::new(starting, PollFlags::IN));
        }
        let others = fds.len();
        fds.extend(
            self.tree.as_ref().and_then(|tree| tree.also()).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
        );
        // An interrupted or failed poll is a look around too early, no more.
        let polled = poll(&mut fds, limit.as_ref());
        let (signal, also) = (ready(&fds[1]), fds.get(others).is_some_and(ready));
        let only_also = also && !fds[..others].iter().any(ready);
        drop(fds);
        if signal || polled.is_err() {
            while let Ok(Some(_)) = self.signals.read_signal() {}
        }
        let Some(tree) = self.tree.as_mut().filter(|_| also) else { return true };
        // A gate is asked thousands of times a second by a program that forks a lot: the rest can wait meanwhile.
        !tree.attend() || !only_also || until.is_some_and(|at| at <= Instant::now())
    }

    fn obey(&mut self) {
        match self.control.messages() {
            Ok(messages) => messages.into_iter().for_each(|m| self.obey_one(m)),
            // A host that can't be understood can't be obeyed either: nothing may go on unwatched.
            Err(message) => {
                self.control.say(&FromWarden::Failed { message });
                self.phase = Phase::Sweep { late: false };
            }
        }
        if self.control.host_gone() {
            self.muster.host_died();
            self.phase = Phase::Sweep { late: false };
        }
    }

    fn obey_one(&mut self, message: ToWarden) {
        match message {
            ToWarden::Sweep { farewell } => {
                if farewell {
                    self.muster.farewell();
                }
                self.phase = Phase::Sweep { late: false };
            }
            ToWarden::Stop { grace_ms } => self.stop(Duration::from_millis(grace_ms)),
            ToWarden::Start(_) | ToWarden::Probe => {}
        }
    }

    /// TERM to the leader's group, and CONT so that a stopped one hears it.
    fn stop(&mut self, grace: Duration) {
        let at = Instant::now() + grace;
        self.kill_at = Some(self.kill_at.map_or(at, |before| before.min(at)));
        if let (Some(tree), Phase::Starting(_) | Phase::Running) = (&mut self.tree, &self.phase) {
            tree.term();
        }
    }

    fn hear_of_exec(&mut self) {
        let Phase::Starting(starting) = &mut self.phase else { return };
        let mut fds = [PollFd::new(starting, PollFlags::IN)];
        if !matches!(poll(&mut fds, Some(&timespec(Duration::ZERO))), Ok(n) if n > 0) {
            return;
        }
        match starting.outcome() {
            Some((stage, errno)) => {
                self.control.say(&FromWarden::NotStarted { stage, errno });
                self.phase = Phase::Sweep { late: false };
            }
            None => {
                self.control.say(&FromWarden::Started);
                self.phase = Phase::Running;
            }
        }
    }

    fn look_at_children(&mut self) {
        let Some(tree) = &mut self.tree else { return };
        if let Phase::Sweep { .. } = self.phase {
            return;
        }
        match tree.look() {
            News::Nothing => {}
            News::More => self.busy = true,
            News::LeaderEnded(status) => self.leader_ended(status),
            News::Alone => self.phase = Phase::Sweep { late: false },
            News::Nobody => {
                // Before the sweep, which would begin with words about an end: was it ever running?
                self.hear_of_exec();
                self.phase = Phase::Sweep { late: false };
            }
        }
    }

    fn leader_ended(&mut self, status: LeaderStatus) {
        if let Phase::Starting(_) = self.phase {
            // Its report is whole by now, for the writer is gone.
            self.hear_of_exec();
            if let Phase::Sweep { .. } = self.phase {
                return;
            }
        }
        self.leader_status = Some(status);
        self.control.say(&FromWarden::LeaderEnded { status, asked: self.kill_at.is_some() });
        let late = Instant::now() + self.late;
        self.phase = Phase::Ended { sweep_at: self.kill_at.map_or(late, |at| at.min(late)) };
        self.look_at_children();
    }

    fn look_at_clock(&mut self) {
        let now = Instant::now();
        match self.phase {
            Phase::Starting(_) | Phase::Running if self.kill_at.is_some_and(|at| at <= now) => {
                self.phase = Phase::Sweep { late: false };
            }
            Phase::Ended { sweep_at } if sweep_at <= now => self.phase = Phase::Sweep { late: self.kill_at.is_none() },
            _ => {}
        }
    }

    /// Sweeps until the proof or the bound, tells the host, and in the second case goes on for a while.
    fn sweep(&mut self) -> i32 {
        let Some(mut tree) = self.tree.take() else {
            self.control.say(&FromWarden::Gone(GoneReport { confirmed: true, ..GoneReport::default() }));
            return 0;
        };
        let began = Instant::now();
        let mut told = false;
        let proven = loop {
            match tree.round(self.control.host_gone()) {
                Round::Nobody => break true,
                // Once the end can't be confirmed any more, there is no hurry that would be worth a processor.
                Round::Again(pause) => self.rest(tree.also(), if told { pause.max(UNHURRIED) } else { pause }),
            }
            if began.elapsed() > SWEEP_BOUND && !told {
                self.tell(&mut *tree, false);
                told = true;
            }
            if began.elapsed() > SWEEP_BOUND + STUBBORN {
                break false;
            }
        };
        if !told {
            self.tell(&mut *tree, proven);
        }
        sys::go_along();
        self.muster.finish();
        if proven { 0 } else { UNCONFIRMED }
    }

    /// Sleeps until a child ends or the time is over (not at all for zero), still noticing the end of the host.
    fn rest(&mut self, also: Option<BorrowedFd<'_>>, pause: Duration) {
        if !pause.is_zero() {
            let mut fds = vec![PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
            fds.extend(also.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            let _ = poll(&mut fds, Some(&timespec(pause)));
            while let Ok(Some(_)) = self.signals.read_signal() {}
        }
        let said_farewell =
            self.control.messages().is_ok_and(|m| m.iter().any(|m| matches!(m, ToWarden::Sweep { farewell: true })));
        if said_farewell {
            self.muster.farewell();
        }
        if self.control.host_gone() {
            self.muster.host_died();
        }
    }

    fn tell(&mut self, tree: &mut dyn Tree, proven: bool) {
        if self.leader_status.is_none()
            && let Some(status) = tree.leader_status()
        {
            self.leader_status = Some(status);
            self.control.say(&FromWarden::LeaderEnded { status, asked: true });
        }
        self.control.say(&FromWarden::Gone(tree.report(proven)));
    }
}

/// Starts the leader as the tier wants it.
fn start(order: &Order, standard: Standard) -> Result<(Box<dyn Tree>, Starting), (Stage, i32)> {
    let (launch, starting) = Launch::new(order, standard)?;
    let tree: Box<dyn Tree> = match order.tier {
        Tier::PidNamespace => Box::new(Namespace::start(launch)?),
        Tier::ForkGate => Box::new(Descendants::start_gated(launch)?),
        Tier::Subreaper => Box::new(Descendants::start(launch, true)?),
        Tier::ProcessGroup => Box::new(Descendants::start(launch, false)?),
    };
    Ok((tree, starting))
}

pub(super) fn child_signals() -> nix::Result<SignalFd> {
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    mask.thread_block()?;
    SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
