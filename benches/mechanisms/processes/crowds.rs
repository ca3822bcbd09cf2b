//! Many processes at once: a thousand daemons against `killpg` of as many, and storms of forks.

use std::{
    io::Read,
    os::unix::process::CommandExt,
    process::Stdio,
    time::{Duration, Instant},
};

use lunation::mechanism::process::{Processes, Tier};
use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

use super::{
    super::table::{Row, median, ratio},
    evil,
};

const DAEMONS: usize = 1000;
const ROUNDS: usize = 7;
const REPEATS: usize = 20;

/// A thousand in one group, until the pipe that all of them hold ends.
fn group() -> anyhow::Result<Duration> {
    let mut leader = std::process::Command::new(evil::program())
        .args(["group", &evil::marker(), &DAEMONS.to_string()])
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut stdout = leader.stdout.take().ok_or_else(|| anyhow::anyhow!("no pipe"))?;
    let mut ready = [0; 6];
    stdout.read_exact(&mut ready)?;
    let began = Instant::now();
    // Our own child, not reaped: the group is its.
    killpg(Pid::from_raw(leader.id().try_into()?), Signal::SIGKILL)?;
    stdout.read_to_end(&mut Vec::new())?;
    leader.wait()?;
    Ok(began.elapsed())
}

pub(super) async fn daemons(tiers: &[Processes]) -> anyhow::Result<Vec<Row>> {
    let mut peer = Vec::new();
    let mut samples: Vec<Vec<Duration>> = vec![Vec::new(); tiers.len()];
    let mut survivors = vec![0; tiers.len()];
    for _ in 0..ROUNDS {
        peer.push(group()?);
        for (at, processes) in tiers.iter().enumerate() {
            let marker = evil::marker();
            let command = evil::command("daemons", &marker, &[&DAEMONS.to_string()]);
            let (done, took) = evil::end_when_ready(processes, command).await?;
            anyhow::ensure!(done.confirmed_gone && done.swept == DAEMONS as u64, "{} swept", done.swept);
            samples[at].push(took);
            survivors[at] += evil::alive(&marker)?.len();
        }
    }
    let peer = median(peer);
    let mut rows = Vec::new();
    for ((processes, samples), survivors) in tiers.iter().zip(samples).zip(survivors) {
        let (tier, mine) = (processes.tier().tier, median(samples));
        let figure = format!("1,000 setsid daemons to all gone, {tier}, against killpg of 1,000 in one group");
        let of = format!("{mine:.1?} against {peer:.1?}, {survivors} survivors");
        let mut row = Row::at_most_times(&figure, 1.5, ratio(mine, peer), &of);
        row.required += ", 0 survivors";
        row.ok &= survivors == 0;
        rows.push(row);
    }
    Ok(rows)
}

pub(super) async fn storms(tiers: &[Processes]) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for processes in tiers.iter().filter(|p| matches!(p.tier().tier, Tier::PidNamespace | Tier::ForkGate)) {
        let (mut longest, mut survivors, mut confirmed) = (Duration::ZERO, 0, true);
        for _ in 0..REPEATS {
            for (mode, count) in [("runners", "100"), ("runners", "500"), ("vm-runners", "20"), ("vm-runners", "200")] {
                let marker = evil::marker();
                let command = evil::command(mode, &marker, &[count]);
                let (done, took) = evil::end_when_ready(processes, command).await?;
                longest = longest.max(took);
                confirmed &= done.confirmed_gone;
                survivors += evil::alive(&marker)?.len();
            }
        }
        rows.push(Row::new(
            &format!("four fork storms, {REPEATS} repeats, {}", processes.tier().tier),
            "0 survivors, each ≤ 2 s".into(),
            format!("{survivors} survivors, longest {longest:.0?}"),
            survivors == 0 && confirmed && longest <= Duration::from_secs(2),
        ));
    }
    Ok(rows)
}
