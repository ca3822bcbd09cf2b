//! A GiB of output captured: how fast against a `cat` to nowhere, and how much the host grows.

use std::time::{Duration, Instant};

use lunation::mechanism::process::{Command, Processes};
use tokio_util::sync::CancellationToken;

use super::{
    super::table::{Row, median, ratio},
    evil,
};

const GIB: u64 = 1 << 30;
const ROUNDS: usize = 5;
const WRITER: &str = "head -c 1073741824 /dev/zero";

/// The peak of this process's memory since the last reset.
fn peak() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)).ok_or_else(|| anyhow::anyhow!("no VmHWM"))?;
    Ok(kib.parse::<u64>()? * 1024)
}

pub(super) async fn run(tiers: &[Processes]) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for processes in tiers {
        let (mut mine, mut peer, mut growth) = (Vec::new(), Vec::new(), 0);
        for _ in 0..ROUNDS {
            peer.push(cat()?);
            // 5 resets the peak to what is used now.
            std::fs::write("/proc/self/clear_refs", "5")?;
            let before = peak()?;
            let began = Instant::now();
            let command = Command::new("sh", "/", evil::env()).args(["-c", WRITER]);
            let done = processes.run(command, CancellationToken::new(), None).await?;
            mine.push(began.elapsed());
            anyhow::ensure!(done.is_success() && done.stdout.total == GIB, "{} bytes", done.stdout.total);
            growth = growth.max(peak()?.saturating_sub(before));
        }
        let (mine, peer) = (median(mine), median(peer));
        let throughput = ratio(peer, mine);
        let mib = growth as f64 / f64::from(1 << 20);
        rows.push(Row::new(
            &format!("1 GiB captured, {}, against `cat >/dev/null`", processes.tier().tier),
            "growth ≤ 8 MiB, ≥ 0.70 × throughput".into(),
            format!("{mib:.1} MiB, {throughput:.2} × ({mine:.0?} against {peer:.0?})"),
            growth <= 8 << 20 && throughput >= 0.7,
        ));
    }
    Ok(rows)
}

fn cat() -> anyhow::Result<Duration> {
    let began = Instant::now();
    let status = std::process::Command::new("sh").args(["-c", &format!("{WRITER} | cat >/dev/null")]).status()?;
    anyhow::ensure!(status.success(), "cat failed");
    Ok(began.elapsed())
}
