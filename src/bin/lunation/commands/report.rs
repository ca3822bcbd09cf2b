//! `lunation report`: one run as a table, or all runs with the figures over them.

use lunation::journal::{JournalError, Recording, RunEntry, RunsFolder};
use lunation::policy::{Decision, ExitCode};
use lunation::report::{Figures, IterationRow, Summary, mode_name};
use serde_json::json;

use super::status::tone;
use crate::args::Report;
use crate::present::{Output, Table, Tone, count, percent, seconds, short};
use crate::surroundings::Surroundings;

/// Longest note in a table, in characters.
const MOST_NOTE: usize = 60;

pub(crate) fn run(args: &Report, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let runs = around.runs()?;
    if args.all {
        return all(&runs, out);
    }
    let run = around.run(&args.run)?;
    let summary = read(&run)?;
    if out.json() {
        out.value(&summary)?;
        return Ok(ExitCode::Verified);
    }
    one(&summary, out)?;
    let others = runs.list()?.len().saturating_sub(1);
    if others > 0 {
        let what = count(others as u64, "other run");
        out.extra(&Tone::Dim.paint(&format!("next: lunation report --all    # {what} and the figures over all")))?;
    }
    Ok(ExitCode::Verified)
}

fn read(run: &RunEntry) -> Result<Summary, JournalError> {
    Ok(Summary::of(&Recording::read(&run.dir)?, Recording::is_being_written(&run.dir)))
}

fn one(summary: &Summary, out: &mut Output) -> anyhow::Result<()> {
    out.line(&format!("run {}: {}", summary.run, tone(summary).paint(&summary.headline())))?;
    if let Some(end) = summary.summary.as_ref().or(summary.error.as_ref()) {
        out.line(&format!("  {}", short(end, 200)))?;
    }
    out.line("")?;
    let mut table = Table::new([
        "iteration",
        "decision",
        "failing",
        "files",
        "lines",
        "agent",
        "sensors",
        "fence",
        "guard",
        "note",
    ]);
    if let Some(failing) = summary.baseline_failing {
        let mut cells = vec![(Tone::Dim, "start".to_owned()), (Tone::Plain, String::new())];
        cells.push((Tone::Plain, failing.to_string()));
        table.row(cells);
    }
    for row in &summary.iterations {
        table.row(cells(row));
    }
    for line in table.lines() {
        out.line(&line)?;
    }
    out.line("")?;
    let usage = &summary.usage;
    out.line(&format!(
        "time {}: agent {}, sensors {}",
        seconds(usage.wall_s),
        seconds(usage.agent_s),
        seconds(usage.sensor_s)
    ))?;
    out.line(&format!(
        "tokens {}, cost {}",
        known(usage.tokens.to_string(), usage.turns_without_tokens, summary),
        known(format!("${:.2}", usage.cost_usd), usage.turns_without_cost, summary)
    ))?;
    if !summary.failure_modes.is_empty() {
        let modes: Vec<&str> = summary.failure_modes.iter().map(|mode| mode_name(*mode)).collect();
        out.line(&format!("failure modes: {}", modes.join(", ")))?;
    }
    for problem in &summary.problems {
        out.line(&Tone::Bad.paint(&format!("record: {}", short(&problem.what, 300))))?;
    }
    for next in &summary.next {
        out.extra(&Tone::Dim.paint(&format!("next: {}    # {}", next.command, next.what)))?;
    }
    Ok(())
}

/// A sum, with how many turns it leaves out: unknown is not zero.
fn known(sum: String, without: u32, summary: &Summary) -> String {
    let turns = summary.iterations.iter().filter(|row| row.outcome.is_some()).count();
    match without as usize {
        0 => sum,
        without if without >= turns => "unknown".into(),
        without => format!("{sum} and {} that did not tell", count(without as u64, "turn")),
    }
}

fn cells(row: &IterationRow) -> Vec<(Tone, String)> {
    let (tone, decision) = match row.decision {
        Some(Decision::Keep) => (Tone::Good, "keep"),
        Some(Decision::Rollback) => (Tone::Bad, "rollback"),
        Some(decision) => (Tone::Warn, decision.name()),
        None => (Tone::Dim, "open"),
    };
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_else(|| "–".into());
    let some = |number: u64| if number == 0 { String::new() } else { number.to_string() };
    let time = |time: Option<f64>| time.map(seconds).unwrap_or_else(|| "–".into());
    let failing = if row.broken { "broken".to_owned() } else { number(row.failing) };
    let failed = row.outcome.as_ref().filter(|outcome| *outcome != "done").map(|outcome| format!("[{outcome}] "));
    let note = format!("{}{}", failed.unwrap_or_default(), row.note.clone().unwrap_or_default());
    let plain = |text: String| (Tone::Plain, text);
    vec![
        plain(row.iteration.to_string()),
        (tone, decision.to_owned()),
        plain(failing),
        plain(number(row.files)),
        plain(number(row.lines)),
        plain(time(row.agent_s)),
        plain(time(row.sensor_s)),
        (Tone::Warn, some(row.fenced)),
        (Tone::Warn, some(row.guarded)),
        plain(short(&note, MOST_NOTE)),
    ]
}

fn all(runs: &RunsFolder, out: &mut Output) -> anyhow::Result<ExitCode> {
    let mut summaries = Vec::new();
    let mut unreadable = Vec::new();
    for run in runs.list()? {
        match read(&run) {
            Ok(summary) => summaries.push(summary),
            // One record that cannot be read must not hide the others.
            Err(error) => unreadable.push((run.id, error.to_string())),
        }
    }
    let figures = Figures::over(&summaries);
    if out.json() {
        let unreadable: Vec<_> = unreadable.iter().map(|(run, error)| json!({ "run": run, "error": error })).collect();
        out.value(&json!({ "figures": figures, "runs": summaries, "unreadable": unreadable }))?;
        return Ok(ExitCode::Verified);
    }
    if summaries.is_empty() && unreadable.is_empty() {
        out.line("no runs here yet")?;
        return Ok(ExitCode::Verified);
    }
    let mut table = Table::new(["run", "end", "iterations", "failing", "time", "agent", "climbs", "failure modes"]);
    for summary in &summaries {
        table.row(run_cells(summary));
    }
    for line in table.lines() {
        out.line(&line)?;
    }
    for (run, error) in &unreadable {
        out.remark(Tone::Bad, &format!("run {run} is not counted: {error}"))?;
    }
    out.line("")?;
    for line in figure_lines(&figures) {
        out.line(&line)?;
    }
    Ok(ExitCode::Verified)
}

fn run_cells(summary: &Summary) -> Vec<(Tone, String)> {
    let end = match (summary.reason, summary.verified) {
        (Some(reason), true) => reason.to_owned(),
        (Some("completed"), false) => "completed, not verified".to_owned(),
        (Some(reason), false) => reason.to_owned(),
        (None, _) if summary.state == lunation::report::RunState::Running => "running".to_owned(),
        (None, _) => "unfinished".to_owned(),
    };
    let last = summary.iterations.iter().rev().find_map(|row| row.failing).or(summary.baseline_failing);
    let modes: Vec<&str> = summary.failure_modes.iter().map(|mode| mode_name(*mode)).collect();
    let plain = |text: String| (Tone::Plain, text);
    vec![
        plain(summary.run.to_string()),
        (tone(summary), end),
        plain(summary.iterations.len().to_string()),
        plain(last.map(|failing| failing.to_string()).unwrap_or_else(|| "–".into())),
        plain(seconds(summary.usage.wall_s)),
        plain(seconds(summary.usage.agent_s)),
        plain(summary.climbs.to_string()),
        plain(modes.join(", ")),
    ]
}

fn figure_lines(figures: &Figures) -> Vec<String> {
    let modes: Vec<String> = figures.failure_modes.iter().map(|(mode, runs)| format!("{mode} {runs}")).collect();
    let mut lines = vec![
        format!(
            "{}: {} passed ({}), {} running, {} unfinished",
            count(figures.runs, "run"),
            figures.passed,
            percent(figures.pass_rate),
            figures.running,
            figures.unfinished
        ),
        format!(
            "passed with the first iteration: {} ({} of those that passed)",
            figures.first_iteration_passes,
            percent(figures.first_iteration_share)
        ),
        format!(
            "{}: {} changed nothing ({})",
            count(figures.iterations, "iteration"),
            figures.unchanged_iterations,
            percent(figures.zero_change_share)
        ),
        format!(
            "time: agents {} ({}), sensors {}",
            seconds(figures.agent_s),
            percent(figures.agent_time_share),
            seconds(figures.sensor_s)
        ),
        format!("climbs: {} in {}", figures.climbs, count(figures.runs_with_climbs, "run")),
    ];
    if !modes.is_empty() {
        lines.push(format!("failure modes: {}", modes.join(", ")));
    }
    lines
}
