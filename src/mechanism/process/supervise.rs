//! One command, from its start to its [`Finished`]: budgets, capture, and the host's half of the ladder.
//!
//! This is a task of its own on the runtime of the table. It must not know how processes are ended; it tells the warden
//! when, and believes nothing but the warden's report.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    Captured, Command, Ending, Finished, LeaderStatus, Observer, ProcessError, Stamp, Stream, Tier, TimeoutKind, Wish,
    link::Link,
    log::Log,
    private_tmp::PrivateTmp,
    protocol::{FromWarden, GoneReport, SWEEP_BOUND, Stage, ToWarden, line},
    reader::Reader,
    start::{self, Launched, millis},
    table::{Registration, Shared},
    times::{Times, WAKE_EVERY, after},
    verdict::{Cause, ending},
};

/// How much later than it should the warden may say that it can't confirm the end.
const SLACK: Duration = Duration::from_secs(5);
/// A timer that fires this late means that this very process stood still; then output may be waiting unread.
const STOOD_STILL: Duration = Duration::from_millis(500);

/// Runs a command to its end.
pub(super) async fn run(
    shared: Arc<Shared>,
    command: Command,
    cancel: CancellationToken,
    observer: Option<Box<dyn Observer>>,
) -> Result<Finished, ProcessError> {
    let tier = shared.tier.tier;
    if cancel.is_cancelled() {
        return Ok(never_started(tier));
    }
    let began = Stamp::now();
    let Some(launched) = start::launch(&shared, &command).await? else { return Ok(never_started(tier)) };
    let Launched { program, link, child, registration, stdout, stderr, log, tmp } = launched;
    let mut run = Run {
        command: &command,
        link,
        registration,
        stdout: Reader::new(stdout, &command),
        stderr: Reader::new(stderr, &command),
        log,
        observer,
        times: Times::new(&command),
        facts: Facts::default(),
    };
    run.watch(&cancel).await;
    let Run { link, registration, stdout, stderr, log, facts, .. } = run;

    let gone = facts.gone.unwrap_or_default();
    registration.over(gone.confirmed);
    let killed = registration.was_killed();
    if gone.confirmed {
        // It exits right after its report; should it not, the runtime reaps it later.
        reap(child).await;
    }
    drop(link);
    drop(registration);
    let tmp_left = remove(tmp, gone.confirmed || facts.not_started.is_some()).await;
    let log = log.map(Log::finish);
    if let Some((stage, errno)) = facts.not_started {
        return Err(start::start_error(&command, program, stage, errno));
    }
    if let (false, Some(refusal)) = (facts.started, &facts.refusal) {
        return Err(shared.image.failed(refusal));
    }
    if let Some(trouble) = facts.refusal.or(facts.trouble.map(str::to_owned)) {
        tracing::warn!(program = %program.display(), trouble, "the warden of a command failed");
    }
    let end = Stamp::now();
    let until_gone = facts.gone_at.unwrap_or(end).since(began);
    Ok(Finished {
        ending: ending(facts.leader, facts.cause.or(killed.then_some(Cause::Cancelled)), facts.lost),
        leader_status: facts.leader.map(|(status, _)| status),
        stdout: stdout.capture.finish(),
        stderr: stderr.capture.finish(),
        wall: facts.leader_ended_at.map_or(until_gone.awake, |at| at.since(began).awake),
        until_gone: until_gone.awake,
        suspended: until_gone.suspended,
        left_behind: gone.left_behind,
        swept: gone.swept,
        still_there: gone.still_there,
        confirmed_gone: gone.confirmed,
        held_pipe: facts.held_pipe,
        tier,
        log,
        tmp_left,
    })
}

fn never_started(tier: Tier) -> Finished {
    Finished {
        ending: Ending::Cancelled,
        leader_status: None,
        stdout: Captured::default(),
        stderr: Captured::default(),
        wall: Duration::ZERO,
        until_gone: Duration::ZERO,
        suspended: Duration::ZERO,
        left_behind: Vec::new(),
        swept: 0,
        still_there: Vec::new(),
        confirmed_gone: true,
        held_pipe: false,
        tier,
        log: None,
        tmp_left: None,
    }
}

async fn reap(mut child: tokio::process::Child) {
    if !matches!(timeout(SLACK, child.wait()).await, Ok(Ok(_))) {
        tracing::warn!(pid = child.id(), "a warden that reported the end is still there");
    }
}

async fn remove(tmp: Option<PrivateTmp>, nobody_left: bool) -> Option<String> {
    let tmp = tmp?;
    if !nobody_left {
        return Some("it was not removed, because processes that use it may be alive".into());
    }
    match tokio::task::spawn_blocking(move || tmp.remove()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(error) => Some(format!("its removal failed: {error}")),
    }
}

/// What is known so far.
#[derive(Default)]
struct Facts {
    started: bool,
    not_started: Option<(Stage, i32)>,
    leader: Option<(LeaderStatus, bool)>,
    leader_ended_at: Option<Stamp>,
    cause: Option<Cause>,
    cancel_seen: bool,
    sweep_sent: bool,
    held_pipe: bool,
    gone: Option<GoneReport>,
    gone_at: Option<Stamp>,
    /// The socket ended without a report, or the warden hangs.
    lost: bool,
    /// What the warden itself said about why it can't do its work.
    refusal: Option<String>,
    /// What was noticed about it.
    trouble: Option<&'static str>,
}

enum Event {
    Message(Option<Result<FromWarden, String>>),
    Cancelled,
    Time,
    Chunk(Stream, usize),
}

struct Run<'a> {
    command: &'a Command,
    link: Link,
    registration: Registration,
    stdout: Reader,
    stderr: Reader,
    log: Option<Log>,
    observer: Option<Box<dyn Observer>>,
    times: Times,
    facts: Facts,
}

impl Run<'_> {
    async fn watch(&mut self, cancel: &CancellationToken) {
        while !self.is_over() {
            let due = self.times.next(self.budgets_count());
            let event = tokio::select! {
                biased;
                message = self.link.next(), if !self.link_is_over() => Event::Message(message),
                () = cancel.cancelled(), if !self.facts.cancel_seen => Event::Cancelled,
                () = sleep_until(due) => Event::Time,
                // The two streams take turns, so that a flood on one does not block the other's writer.
                event = async { tokio::select! {
                    n = self.stdout.chunk() => Event::Chunk(Stream::Stdout, n),
                    n = self.stderr.chunk() => Event::Chunk(Stream::Stderr, n),
                } } => event,
            };
            match event {
                Event::Message(message) => self.hear(message).await,
                Event::Cancelled => self.cancelled().await,
                Event::Time => self.look_at_clock(due).await,
                Event::Chunk(stream, n) => self.take(stream, n).await,
            }
        }
    }

    fn is_over(&self) -> bool {
        let pipes_over = !self.stdout.is_open() && !self.stderr.is_open();
        self.link_is_over() && (pipes_over || self.times.linger_at.is_some_and(|at| at <= Instant::now()))
    }

    fn link_is_over(&self) -> bool {
        self.facts.gone.is_some() || self.facts.lost
    }

    fn budgets_count(&self) -> bool {
        self.facts.cause.is_none() && self.facts.leader.is_none() && !self.link_is_over()
    }

    async fn hear(&mut self, message: Option<Result<FromWarden, String>>) {
        let facts = &mut self.facts;
        match message {
            Some(Ok(FromWarden::Started)) => {
                facts.started = true;
                if facts.cause.is_none() {
                    self.times.give_up_at = None;
                }
            }
            Some(Ok(FromWarden::NotStarted { stage, errno })) => {
                facts.not_started = Some((stage, errno));
                self.expect_gone(Duration::ZERO);
            }
            Some(Ok(FromWarden::LeaderEnded { status, asked })) => {
                facts.leader = Some((status, asked));
                facts.leader_ended_at = Some(Stamp::now());
                self.expect_gone(self.command.late_output);
                self.sweep_when_quiet().await;
            }
            Some(Ok(FromWarden::Sweeping { late })) => {
                self.facts.held_pipe |= late && (self.stdout.is_open() || self.stderr.is_open());
                self.expect_gone(Duration::ZERO);
            }
            Some(Ok(FromWarden::Gone(report))) => {
                facts.gone = Some(report);
                self.over();
            }
            Some(Ok(FromWarden::Failed { message })) => facts.refusal = Some(message),
            // What can't be understood is no report of an end; when nothing better comes, the warden counts as lost.
            Some(Ok(FromWarden::Abilities(_)) | Err(_)) => facts.trouble = Some("it says what it should not say"),
            None => {
                // It may have started the program and been killed by it before it could tell: nothing is known.
                facts.lost = true;
                facts.trouble.get_or_insert("it ended before it could report the end");
                self.over();
            }
        }
    }

    /// Nothing more will be heard from the warden; what is in the pipes may be read for a while.
    fn over(&mut self) {
        let now = Instant::now();
        self.facts.gone_at = Some(Stamp::now());
        self.times.give_up_at = None;
        self.times.linger_at = Some(after(now, self.command.linger));
    }

    fn expect_gone(&mut self, first: Duration) {
        self.times.give_up_at = Some(after(Instant::now(), first + SWEEP_BOUND + SLACK));
    }

    async fn cancelled(&mut self) {
        self.facts.cancel_seen = true;
        if self.facts.leader.is_some() {
            // It ended by itself; no need to wait for late output any more.
            self.sweep().await;
        } else {
            self.stop(Cause::Cancelled).await;
        }
    }

    async fn look_at_clock(&mut self, due: Instant) {
        let now = Instant::now();
        if self.times.wake_at <= now {
            self.times.wake_at = now + WAKE_EVERY;
            self.registration.wake();
        }
        if self.times.give_up_at.is_some_and(|at| at <= now) {
            self.facts.lost = true;
            self.facts.trouble.get_or_insert("it does not answer");
            return self.over();
        }
        if self.budgets_count() {
            self.look_at_budgets(now, now.duration_since(due) > STOOD_STILL).await;
        }
    }

    async fn look_at_budgets(&mut self, now: Instant, stood_still: bool) {
        if self.times.wall_at <= now {
            self.stop(Cause::Budget(TimeoutKind::Wall)).await;
        } else if self.times.finish_at.is_some_and(|at| at <= now) {
            self.stop(Cause::FinalWord).await;
        } else if self.times.silence_at().is_some_and(|at| at <= now) {
            if stood_still {
                // We were not listening, and what was said meanwhile waits in the pipes: the silence counts anew.
                self.times.heard_at = now;
            } else {
                self.stop(Cause::Budget(TimeoutKind::Silence)).await;
            }
        }
    }

    async fn stop(&mut self, cause: Cause) {
        if self.facts.cause.is_some() || self.link_is_over() {
            return;
        }
        self.facts.cause = Some(cause);
        let grace = self.command.term_grace;
        self.expect_gone(grace + self.command.late_output);
        self.tell(&ToWarden::Stop { grace_ms: millis(grace) }).await;
    }

    async fn sweep(&mut self) {
        if !self.facts.sweep_sent && !self.link_is_over() {
            self.facts.sweep_sent = true;
            self.tell(&ToWarden::Sweep { farewell: false }).await;
        }
    }

    /// After the leader's end there is nothing to wait for once both pipes are closed.
    async fn sweep_when_quiet(&mut self) {
        if self.facts.leader.is_some() && !self.stdout.is_open() && !self.stderr.is_open() {
            self.sweep().await;
        }
    }

    async fn tell(&mut self, message: &ToWarden) {
        // A warden that was stopped is woken so that it listens. One that is gone shows as the end of the socket, and
        // one that does not read is given up at its time.
        self.registration.wake();
        let _ = timeout(Duration::from_secs(1), self.link.send(&line(message))).await;
    }

    async fn take(&mut self, stream: Stream, n: usize) {
        let reader = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        if n == 0 {
            reader.receiver = None;
            return self.sweep_when_quiet().await;
        }
        let bytes = &reader.buffer[..n];
        let now = Instant::now();
        self.times.heard_at = now;
        reader.capture.push(bytes);
        if let Some(log) = &mut self.log {
            log.push(stream, bytes);
        }
        if let Some(Wish::FinishWithin(grace)) = self.observer.as_mut().map(|o| o.output(stream, bytes)) {
            let at = after(now, grace);
            self.times.finish_at = Some(self.times.finish_at.map_or(at, |before| before.min(at)));
        }
    }
}
