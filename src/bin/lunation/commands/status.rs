//! `lunation status`: where a run is now, from files alone.

use lunation::journal::{FindError, Recording};
use lunation::policy::ExitCode;
use lunation::report::{IterationRow, RunState, Summary};
use serde_json::json;

use crate::args::Status;
use crate::present::{Output, Tone, clean, count, seconds};
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &Status, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let run = match around.run(&args.run) {
        Err(error) if args.run.run.is_none() && matches!(error.downcast_ref(), Some(FindError::NoRuns)) => {
            return none(out);
        }
        found => found?,
    };
    let recording = Recording::read(&run.dir)?;
    let summary = Summary::of(&recording, Recording::is_being_written(&run.dir));
    if out.json() {
        out.value(&summary)?;
        return Ok(ExitCode::Verified);
    }
    out.line(&format!("run {}: {}", summary.run, tone(&summary).paint(&summary.headline())))?;
    for line in details(&summary) {
        out.line(&format!("  {line}"))?;
    }
    for next in &summary.next {
        out.extra(&Tone::Dim.paint(&format!("next: {}    # {}", next.command, next.what)))?;
    }
    Ok(ExitCode::Verified)
}

/// That there are no runs is an answer, not an error.
fn none(out: &mut Output) -> anyhow::Result<ExitCode> {
    if out.json() {
        out.value(&json!({ "run": null }))?;
    } else {
        out.line("no runs here yet")?;
        out.extra(&Tone::Dim.paint("next: lunation run    # starts the first one"))?;
    }
    Ok(ExitCode::Verified)
}

/// The colour of a run as a whole.
pub(super) fn tone(summary: &Summary) -> Tone {
    match summary.state {
        RunState::Running => Tone::Strong,
        _ if summary.passed() => Tone::Good,
        _ => Tone::Bad,
    }
}

fn details(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    let script = summary.script.as_deref().map_or_else(|| "a policy in Rust".to_owned(), clean);
    let branch = summary.branch.as_deref().map(|branch| format!(" on {}", clean(branch))).unwrap_or_default();
    let started = summary.started.as_deref().map(|at| format!(", started {}", to_the_second(at))).unwrap_or_default();
    lines.push(format!("{script}{branch}{started}"));
    if let Some(row) = summary.iterations.last() {
        lines.push(stage(row));
    }
    let before = summary.baseline_failing;
    let now = summary.iterations.iter().rev().find_map(|row| row.failing);
    if before.is_some() || now.is_some() {
        let show = |failing: Option<u64>| failing.map_or_else(|| "unknown".to_owned(), |failing| failing.to_string());
        lines.push(format!("failing: {} at the start, {} now", show(before), show(now.or(before))));
    }
    let mut time = format!("time: {}", seconds(summary.usage.wall_s));
    if let (Some(left), RunState::Running) = (&summary.left, summary.state) {
        let iterations = left.iterations.map(|left| count(u64::from(left), "iteration"));
        let wall = left.wall_s.map(seconds);
        let left: Vec<String> = iterations.into_iter().chain(wall).collect();
        if !left.is_empty() {
            time.push_str(&format!("; left: {}", left.join(", ")));
        }
    }
    lines.push(time);
    lines.extend(summary.problems.iter().map(|problem| format!("record: {}", clean(&problem.what))));
    lines
}

/// How far an iteration is.
fn stage(row: &IterationRow) -> String {
    let what = match (&row.decision, &row.outcome, row.unchanged) {
        (Some(decision), ..) => {
            let note = row.note.as_ref().map(|note| format!(": {}", clean(note))).unwrap_or_default();
            format!("{}{note}", decision.name())
        }
        (None, Some(_), Some(_)) => "the sensors are read, or were when it stopped".into(),
        (None, Some(outcome), None) => format!("the agent ended as {outcome}"),
        (None, None, _) => format!("turn of {}", clean(&row.agent)),
    };
    format!("iteration {}: {what}", row.iteration)
}

/// A time of the record without the parts of a second, for people.
fn to_the_second(at: &str) -> String {
    match at.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => at.to_owned(),
    }
}
