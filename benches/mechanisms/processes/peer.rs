//! The programs that try to outlive their turn, under process-wrap (a session and a process group) and under lunation.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use lunation::mechanism::process::{Processes, Tier};
use process_wrap::std::{ChildWrapper, CommandWrap, ProcessGroup, ProcessSession};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio_util::sync::CancellationToken;

use super::{
    super::table::{Row, say},
    evil,
};

/// Mode and argument of each program; all of them leave somebody behind, or would.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("daemon", &[]),
    ("groups", &[]),
    ("wiped", &[]),
    ("odd-name", &[]),
    ("nested-subreaper", &[]),
    ("stopped", &[]),
    ("hundred-daemons", &[]),
    ("phoenix", &[]),
    ("tree", &[]),
    ("exit-stop", &[]),
    ("raw-forks", &[]),
    ("daemons", &["20"]),
];

const WALL: Duration = Duration::from_millis(700);

/// Ends it as process-wrap does: waits for the leader within the budget, then kills what it holds.
fn under_process_wrap(mode: &str, marker: &str, more: &[&str], session: bool) -> anyhow::Result<()> {
    let mut wrap = CommandWrap::with_new(evil::program(), |command| {
        command.args([mode, marker]).args(more).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    });
    if session {
        wrap.wrap(ProcessSession);
    } else {
        wrap.wrap(ProcessGroup::leader());
    }
    let mut child: Box<dyn ChildWrapper> = wrap.spawn()?;
    let until = Instant::now() + WALL;
    while child.try_wait()?.is_none() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    // Refused when the group is empty already.
    let _ = child.kill();
    let _ = child.wait();
    Ok(())
}

/// Ends the survivors, which are of our own making: each is held first and looked at again then.
fn clean_up(marker: &str) -> anyhow::Result<()> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let alive = evil::alive(marker)?;
        if alive.is_empty() {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < until, "survivors of the peer can't be ended");
        for pid in alive {
            let Some(held) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
                continue;
            };
            if evil::alive(marker)?.contains(&pid) {
                // It may have ended meanwhile.
                let _ = pidfd_send_signal(&held, Signal::KILL);
            }
        }
    }
}

pub(super) async fn run(tiers: &[Processes]) -> anyhow::Result<Vec<Row>> {
    let (mut of_group, mut of_session) = (0, 0);
    for (session, leaks) in [(false, &mut of_group), (true, &mut of_session)] {
        for (mode, more) in PROGRAMS {
            let marker = evil::marker();
            under_process_wrap(mode, &marker, more, session)?;
            let survivors = evil::alive(&marker)?.len();
            say(&format!("process-wrap, {}: {mode}: {survivors} survivors", if session { "session" } else { "group" }));
            *leaks += survivors;
            clean_up(&marker)?;
        }
    }
    let mut rows = Vec::new();
    for processes in tiers.iter().filter(|p| matches!(p.tier().tier, Tier::PidNamespace | Tier::ForkGate)) {
        let mut survivors = 0;
        for (mode, more) in PROGRAMS {
            let marker = evil::marker();
            let command = evil::command(mode, &marker, more).wall(WALL).term_grace(Duration::ZERO);
            let done = processes.run(command, CancellationToken::new(), None).await?;
            anyhow::ensure!(done.confirmed_gone, "{mode}: {done:?}");
            survivors += evil::alive(&marker)?.len();
        }
        rows.push(Row::new(
            &format!("survivors of {} programs, {}", PROGRAMS.len(), processes.tier().tier),
            "0, while process-wrap leaks".into(),
            format!("{survivors}; process-wrap {of_group} (group), {of_session} (session)"),
            survivors == 0 && of_group > 0 && of_session > 0,
        ));
    }
    Ok(rows)
}
