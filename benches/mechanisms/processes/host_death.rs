//! The host is killed while a command with daemons runs: how long until all of it is gone.

use std::{
    io::{Read, Write},
    process::Stdio,
    time::{Duration, Instant},
};

use lunation::mechanism::process::{Processes, ProcessesConfig, Tier, WardenProgram};
use tokio_util::sync::CancellationToken;

use super::{super::table::Row, evil};

const ASKED: &str = "--act-as-host";
const REPEATS: usize = 11;

/// Whether this process is the host that is to be killed.
pub(crate) fn is_asked_to_act() -> bool {
    std::env::args().nth(1).is_some_and(|argument| argument == ASKED)
}

/// A host with one command; says `ready` when the command does.
pub(crate) fn act_as_host() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let [tier, program, marker] = &arguments[..] else { anyhow::bail!("it needs a tier, a program and a marker") };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let mut config = ProcessesConfig::new(WardenProgram::at(env!("CARGO_BIN_EXE_lunation")));
        config.force_tier = Tier::from_name(tier);
        let processes = Processes::start(config, tokio::runtime::Handle::current())?;
        let command = lunation::mechanism::process::Command::new(program, "/", evil::env());
        let command = command.args(["daemons", marker, "10"]);
        processes.run(command, CancellationToken::new(), Some(Box::new(Relay))).await?;
        Ok(())
    })
}

struct Relay;

impl lunation::mechanism::process::Observer for Relay {
    fn output(&mut self, _: lunation::mechanism::process::Stream, bytes: &[u8]) -> lunation::mechanism::process::Wish {
        // Nobody listening means that the bench is gone, and this host with it.
        let _ = std::io::stdout().write_all(bytes).and_then(|()| std::io::stdout().flush());
        lunation::mechanism::process::Wish::GoOn
    }
}

pub(super) async fn run(tiers: &[Processes]) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for processes in tiers {
        let tier = processes.tier().tier;
        let mut longest = Duration::ZERO;
        for _ in 0..REPEATS {
            longest = longest.max(kill_one(tier)?);
        }
        rows.push(Row::new(
            &format!("host SIGKILL to all gone, {tier}, longest of {REPEATS}"),
            "≤ 250 ms".into(),
            format!("{longest:.0?}"),
            longest <= Duration::from_millis(250),
        ));
    }
    Ok(rows)
}

fn kill_one(tier: Tier) -> anyhow::Result<Duration> {
    let marker = evil::marker();
    let mut host = std::process::Command::new(std::env::current_exe()?)
        .args([ASKED, tier.name()])
        .arg(evil::program())
        .arg(&marker)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut ready = [0; 6];
    host.stdout.as_mut().ok_or_else(|| anyhow::anyhow!("no pipe"))?.read_exact(&mut ready)?;
    host.kill()?;
    let began = Instant::now();
    host.wait()?;
    // The bench's own host has the marker in its arguments too, and is gone by now.
    while !evil::alive(&marker)?.is_empty() {
        anyhow::ensure!(began.elapsed() < Duration::from_secs(20), "somebody is left");
    }
    Ok(began.elapsed())
}
