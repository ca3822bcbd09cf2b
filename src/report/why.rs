//! Why a run stands where it stands, in plain words.

use std::fmt::Write as _;

use serde::Serialize;

use super::iterations::told;
use super::next_steps::NextStep;
use super::summary::Summary;
use crate::journal::{Event, Record, Recording, RunId};
use crate::policy::{
    Completion, Decision, LoopSpec, Mode, Observation, Reading, ReadingState, Sense, Strategy, Verdict, says_sentinel,
};

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// The run.
    pub run: RunId,
    /// Where it stands, in a line.
    pub headline: String,
    /// The end in the run's own words, with its error.
    pub end: Vec<String>,
    /// The iteration that this is about: the one that was asked for, else the last one that was decided.
    pub iteration: Option<u32>,
    /// What was decided about it, and what the decision was based on.
    pub decision: Vec<String>,
    /// How completion was judged, and what was missing.
    pub completion: Vec<String>,
    /// The breaker's diagnosis, where one opened.
    pub breaker: Option<String>,
    /// Trouble with the record itself.
    pub record: Vec<String>,
    /// What to type next.
    pub next: Vec<NextStep>,
}

struct Decided<'r> {
    path: &'r str,
    iteration: u32,
    verdict: &'r Verdict,
    complete: Option<bool>,
    observation: &'r Observation,
}

impl Why {
    /// The answer for a run, or for one of its iterations: `None` when that iteration was never decided.
    pub fn of(recording: &Recording, summary: &Summary, iteration: Option<u32>) -> Option<Why> {
        let all: Vec<Decided> = recording.records.iter().filter_map(decided).collect();
        let last = match iteration {
            Some(number) => Some(all.iter().rposition(|decided| decided.iteration == number)?),
            None => all.len().checked_sub(1),
        };
        let decided = last.map(|at| &all[at]);
        // What it is compared with: the state that the iteration before left.
        let before = last.and_then(|at| sense_before(&recording.records, &all[at]));
        let spec = decided.and_then(|decided| spec_of(&recording.records, decided.path));
        let is_about_end = iteration.is_none();
        Some(Why {
            run: summary.run.clone(),
            headline: summary.headline(),
            end: if is_about_end { end_lines(summary) } else { Vec::new() },
            iteration: decided.map(|decided| decided.iteration),
            decision: decided.map(|decided| decision_lines(decided, before)).unwrap_or_default(),
            completion: match (decided, spec) {
                (Some(decided), Some(spec)) => completion_lines(decided, spec),
                _ => Vec::new(),
            },
            breaker: summary.breaker.as_ref().filter(|_| is_about_end).map(|breaker| breaker.diagnosis.clone()),
            record: record_lines(summary),
            next: if is_about_end { summary.next.clone() } else { Vec::new() },
        })
    }

    /// The answer as text, in paragraphs, without colour.
    pub fn to_text(&self) -> String {
        let mut text = format!("run {}: {}\n", self.run, self.headline);
        let mut paragraph = |lines: &[String]| {
            if !lines.is_empty() {
                // Writing to a string cannot fail.
                let _ = write!(text, "\n{}\n", lines.join("\n"));
            }
        };
        paragraph(&self.end);
        paragraph(&self.decision);
        paragraph(&self.completion);
        paragraph(&self.breaker.iter().map(|diagnosis| diagnosis.trim_end().to_owned()).collect::<Vec<_>>());
        paragraph(&self.record);
        let next: Vec<String> =
            self.next.iter().map(|next| format!("next: {}    # {}", next.command, next.what)).collect();
        paragraph(&next);
        text
    }
}

fn decided(record: &Record) -> Option<Decided<'_>> {
    match &record.event {
        Event::Decided { iteration, verdict, complete, observation } => {
            Some(Decided { path: &record.path, iteration: *iteration, verdict, complete: *complete, observation })
        }
        _ => None,
    }
}

fn spec_of<'r>(records: &'r [Record], path: &str) -> Option<&'r LoopSpec> {
    records.iter().rev().find_map(|record| match &record.event {
        Event::LoopStarted { spec, .. } if record.path == path => Some(spec.as_ref()),
        _ => None,
    })
}

/// What the checks said of the tree that the iteration began with: the last kept iteration's, else the baseline.
fn sense_before<'r>(records: &'r [Record], of: &Decided) -> Option<&'r Sense> {
    let mut before = None;
    for record in records.iter().filter(|record| record.path == of.path) {
        match &record.event {
            Event::Baseline { sense } => before = Some(sense.as_ref()),
            Event::Decided { iteration, .. } if *iteration == of.iteration => break,
            Event::Decided { verdict, observation, .. } if verdict.decision != Decision::Rollback => {
                before = observation.sense.as_ref().or(before);
            }
            _ => {}
        }
    }
    before
}

fn end_lines(summary: &Summary) -> Vec<String> {
    let mut lines: Vec<String> = summary.summary.iter().cloned().collect();
    if let Some(error) = &summary.error
        && summary.summary.as_ref() != Some(error)
    {
        lines.push(format!("error: {error}"));
    }
    if let Some(open) = summary.iterations.iter().rev().find(|row| !row.ended)
        && summary.reason.is_none()
    {
        let stage = match (&open.decision, &open.outcome) {
            (Some(decision), _) => format!("`{}` was decided and may not have been carried out", decision.name()),
            (None, Some(_)) => "the agent had ended, and nothing was decided".to_owned(),
            (None, None) => "the agent had not ended".to_owned(),
        };
        lines.push(format!("iteration {} is open: {stage}", open.iteration));
    }
    lines
}

fn decision_lines(decided: &Decided, before: Option<&Sense>) -> Vec<String> {
    let Decided { iteration, verdict, observation, .. } = decided;
    let what = match verdict.decision {
        Decision::Keep => "was kept",
        Decision::Rollback => "was rolled back",
        Decision::Stall => "counted as a stall",
        Decision::Escalate => "counted as a stall, and the ladder was climbed",
        Decision::Stop => "was the last, by decision of the policy",
    };
    let note = verdict.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
    let mut lines = vec![format!("iteration {iteration} {what}{note}")];
    if let Some(turn) = &observation.turn {
        let error = turn.error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
        lines.push(format!("  turn: {} ended as `{}`{error}", turn.agent, turn.outcome.name()));
    }
    let change = &observation.change;
    lines.push(match change.empty {
        true => "  change: none".to_owned(),
        false => format!("  change: {} and {}", count(change.file_count, "file"), count(change.lines, "line")),
    });
    for (what, paths) in [("fence reverted", &change.fenced), ("guard put back", &change.guarded)] {
        if !paths.is_empty() {
            lines.push(format!("  {what}: {}", listed(paths)));
        }
    }
    match &observation.sense {
        Some(sense) => lines.push(format!("  failing: {}", compared(before, sense))),
        None => lines.push("  failing: not known, nothing was sensed".into()),
    }
    lines
}

fn compared(before: Option<&Sense>, now: &Sense) -> String {
    let show = |failing: Option<u64>| failing.map_or_else(|| "unknown".to_owned(), |failing| failing.to_string());
    let mut text = match before {
        Some(before) => format!("{} before, {} after", show(told(before)), show(told(now))),
        None => show(told(now)),
    };
    let new = before.map(|before| now.newly_failing(before)).unwrap_or_default();
    if !new.is_empty() {
        let _ = write!(text, "; new: {}", listed(&new));
    }
    text
}

fn completion_lines(decided: &Decided, spec: &LoopSpec) -> Vec<String> {
    let Completion { sentinel, strategy, mode } = &spec.completion;
    if spec.callbacks.complete {
        let said = match decided.complete {
            Some(true) => "complete, and verified by a check",
            Some(false) => "complete, without a check that verified it",
            None => "not complete",
        };
        return vec![format!("completion is judged by the script's own function: {said}")];
    }
    let who = match mode {
        Mode::Verify => "the agent must say it and the checks must hold (mode `verify`)",
        Mode::Override => "the checks alone count (mode `override`)",
        Mode::LlmOnly => "the agent's word alone counts, unverified (mode `llm-only`)",
    };
    let verdict = match decided.complete {
        Some(true) => "complete, and verified",
        Some(false) => "complete, not verified",
        None => "not complete",
    };
    let mut lines = vec![format!("completion: {verdict}; {who}")];
    if let Some(sentinel) = sentinel {
        let said = decided.observation.turn.as_ref().is_some_and(|turn| says_sentinel(&turn.text, sentinel));
        let how = if said { "is" } else { "is not" };
        lines.push(format!("  the last line of the agent's message {how} `{sentinel}`"));
    }
    match &decided.observation.sense {
        Some(sense) => {
            let needed = match strategy {
                Strategy::All => "all".to_owned(),
                Strategy::Any => "any".to_owned(),
                Strategy::NOf(n) => format!("{n} of {}", sense.readings.len()),
            };
            lines.push(format!("  checks ({needed} must pass):"));
            lines.extend(sense.readings.iter().map(reading_line));
        }
        None if spec.sensors.is_empty() => lines.push("  there are no checks".into()),
        None => lines.push("  the checks did not run".into()),
    }
    lines
}

fn reading_line(reading: &Reading) -> String {
    let state = match reading.state {
        ReadingState::Passed => "passed",
        ReadingState::Failed if reading.timed_out => "failed, out of time",
        ReadingState::Failed => "failed",
        ReadingState::Broken => "broken, no verdict",
    };
    let summary = if reading.summary.is_empty() { String::new() } else { format!(" ({})", reading.summary) };
    format!("    {}: {state}{summary}", reading.id)
}

fn record_lines(summary: &Summary) -> Vec<String> {
    let mut lines: Vec<String> = summary.problems.iter().map(|problem| format!("record: {}", problem.what)).collect();
    if summary.torn_tail {
        lines.push("record: the last record was cut off; all before it is whole".into());
    }
    if summary.capped {
        lines.push("record: the journal reached its cap; what came after it is missing".into());
    }
    lines
}

fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// How many names are shown before the rest is counted.
const MOST_LISTED: usize = 5;

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(MOST_LISTED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
