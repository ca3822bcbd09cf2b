//! From spawn to exit of `true`, with its output captured, against `timeout 5 true`; and with a large host.

use std::{
    hint::black_box,
    process::Stdio,
    time::{Duration, Instant},
};

use lunation::mechanism::process::{Command, Processes, Tier};
use tokio_util::sync::CancellationToken;

use super::{
    super::table::{Row, median, ratio, say},
    evil,
};

const ROUNDS: usize = 301;
const BALLAST: usize = 1 << 30;

fn timeout() -> anyhow::Result<Duration> {
    let began = Instant::now();
    let output = std::process::Command::new("timeout").args(["5", "true"]).stdin(Stdio::null()).output()?;
    anyhow::ensure!(output.status.success(), "timeout failed");
    Ok(began.elapsed())
}

async fn ours(processes: &Processes) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let done = processes.run(Command::new("true", "/", evil::env()), CancellationToken::new(), None).await?;
    anyhow::ensure!(done.is_success() && done.confirmed_gone, "{done:?}");
    Ok(began.elapsed())
}

pub(super) async fn run(tiers: &[Processes]) -> anyhow::Result<Vec<Row>> {
    let mut peer = Vec::new();
    let mut samples: Vec<Vec<Duration>> = vec![Vec::new(); tiers.len()];
    for round in 0..ROUNDS + 10 {
        let (theirs, mut mine) = (timeout()?, Vec::new());
        for processes in tiers {
            mine.push(ours(processes).await?);
        }
        // The first ones warm up.
        if round >= 10 {
            peer.push(theirs);
            samples.iter_mut().zip(mine).for_each(|(all, one)| all.push(one));
        }
    }
    let peer = median(peer);
    let mut rows = Vec::new();
    for (processes, samples) in tiers.iter().zip(samples) {
        let (tier, mine) = (processes.tier().tier, median(samples));
        let limit = if tier == Tier::PidNamespace { 1.3 } else { 1.0 };
        let figure = format!("spawn to exit of `true`, captured, {tier}, against `timeout 5 true`");
        rows.push(Row::at_most_times(&figure, limit, ratio(mine, peer), &format!("{mine:.0?} against {peer:.0?}")));
    }
    for processes in tiers {
        rows.push(with_ballast(processes).await?);
    }
    Ok(rows)
}

async fn with_ballast(processes: &Processes) -> anyhow::Result<Row> {
    let (mut light, mut heavy) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        for _ in 0..40 {
            light.push(ours(processes).await?);
        }
        // Written to, page by page, so that it is really there.
        let mut ballast = vec![0u8; BALLAST];
        ballast.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        for _ in 0..40 {
            heavy.push(ours(processes).await?);
        }
        black_box(&ballast);
    }
    let (light, heavy) = (median(light), median(heavy));
    let tier = processes.tier().tier;
    say(&format!("{tier}: {light:.0?} without, {heavy:.0?} with 1 GiB"));
    let figure = format!("the same with 1 GiB of host heap against none, {tier}");
    Ok(Row::at_most_times(&figure, 1.3, ratio(heavy, light), &format!("{heavy:.0?} against {light:.0?}")))
}
