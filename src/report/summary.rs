//! One run in short.

use serde::Serialize;

use super::failure_modes::failure_modes;
use super::iterations::{IterationRow, rows};
use super::next_steps::{NextStep, next_steps};
use crate::journal::{Event, Problem, Record, Recording, RunEnded, RunId, RunStarted};
use crate::policy::{BreakerKind, ChangeSummary, FailureMode, Left, Reason, Status, UsageTotals};

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// A living process writes its journal.
    Running,
    /// It has an end record.
    Ended,
    /// It has no end record, and nobody writes it any more: killed or crashed.
    Unfinished,
}

/// A breaker that opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Breaker {
    /// Which one.
    pub kind: BreakerKind,
    /// The written diagnosis.
    pub diagnosis: String,
}

/// One run, as its journal tells it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The run.
    pub run: RunId,
    /// Whether it goes on.
    pub state: RunState,
    /// How it ended, in a word; none without an end record.
    pub status: Option<Status>,
    /// Why it ended, by name: `completed`, `breaker:thrash`; none without an end record.
    pub reason: Option<&'static str>,
    /// True only when the end record says that a check that ran holds on the final tree.
    pub verified: bool,
    /// Exit code of the program.
    pub exit_code: Option<u8>,
    /// The end in a line, as the run itself told it.
    pub summary: Option<String>,
    /// Error, where there was one.
    pub error: Option<String>,
    /// Time of day of the first record.
    pub started: Option<String>,
    /// Time of day of the last record.
    pub last_seen: Option<String>,
    /// The script.
    pub script: Option<String>,
    /// Branch at the start.
    pub branch: Option<String>,
    /// Root of the work tree.
    pub root: Option<String>,
    /// Checkpoint of the tree as found.
    pub start_checkpoint: Option<String>,
    /// Tier of process containment.
    pub tier: Option<String>,
    /// Failing items before the first iteration.
    pub baseline_failing: Option<u64>,
    /// The iterations.
    pub iterations: Vec<IterationRow>,
    /// Climbs of the ladder.
    pub climbs: u32,
    /// Sums: of the end record, else as far as the journal goes.
    pub usage: UsageTotals,
    /// What remained of the budget after the last iteration that was decided.
    pub left: Option<Left>,
    /// What changed over the whole run; none without an end record.
    pub change: Option<ChangeSummary>,
    /// A breaker that opened.
    pub breaker: Option<Breaker>,
    /// Commit that the result went into.
    pub commit: Option<String>,
    /// What went wrong, by name; see [`failure_modes`] for the rules.
    pub failure_modes: Vec<FailureMode>,
    /// Damage of the journal.
    pub problems: Vec<Problem>,
    /// True when the last record was cut off.
    pub torn_tail: bool,
    /// True when the journal reached its cap, so that records are missing before the end.
    pub capped: bool,
    /// What to type next.
    pub next: Vec<NextStep>,
}

impl Summary {
    /// Sums a run up. `is_being_written`: a living process holds the journal, so that a missing end means that the run
    /// goes on.
    pub fn of(recording: &Recording, is_being_written: bool) -> Summary {
        let records = &recording.records;
        let ended = find(records, |event| match event {
            Event::RunEnded(ended) => Some(ended.as_ref()),
            _ => None,
        });
        let state = match (ended, is_being_written) {
            (Some(_), _) => RunState::Ended,
            (None, true) => RunState::Running,
            (None, false) => RunState::Unfinished,
        };
        let started = records.iter().find_map(|record| match &record.event {
            Event::RunStarted(started) => Some(started.as_ref()),
            _ => None,
        });
        let mut summary = Summary::empty(recording, state);
        summary.add_start(started);
        summary.add_course(records);
        summary.add_end(ended);
        summary.failure_modes = failure_modes(records, ended.map(|end| end.reason));
        summary.next = next_steps(&summary, ended.map(|end| end.reason));
        summary
    }

    fn empty(recording: &Recording, state: RunState) -> Summary {
        Summary {
            run: recording.id.clone(),
            state,
            status: None,
            reason: None,
            verified: false,
            exit_code: None,
            summary: None,
            error: None,
            started: recording.records.first().map(|record| record.at.to_string()),
            last_seen: recording.records.last().map(|record| record.at.to_string()),
            script: None,
            branch: None,
            root: None,
            start_checkpoint: None,
            tier: None,
            baseline_failing: None,
            iterations: rows(&recording.records),
            climbs: 0,
            usage: UsageTotals::default(),
            left: None,
            change: None,
            breaker: None,
            commit: None,
            failure_modes: Vec::new(),
            problems: recording.problems.clone(),
            torn_tail: recording.torn_tail,
            capped: recording.records.iter().any(|record| matches!(record.event, Event::Capped { .. })),
            next: Vec::new(),
        }
    }

    fn add_start(&mut self, started: Option<&RunStarted>) {
        let Some(started) = started else { return };
        self.script = started.script.as_ref().map(|script| script.path.clone());
        self.branch.clone_from(&started.branch);
        self.root = Some(started.root.clone());
        self.start_checkpoint = Some(started.checkpoint.clone());
        self.tier = Some(started.tier.clone());
    }

    fn add_course(&mut self, records: &[Record]) {
        for record in records {
            match &record.event {
                Event::Baseline { sense } => {
                    self.baseline_failing = self.baseline_failing.or_else(|| super::iterations::told(sense));
                    self.usage.sensor_s += sense.readings.iter().map(|reading| reading.duration_s).sum::<f64>();
                }
                Event::TurnEnded { turn, .. } => self.usage.add_turn(&turn.usage, turn.duration_s),
                Event::RungChanged { from, to, .. } => self.climbs += u32::from(to > from),
                Event::BreakerOpened { breaker, diagnosis } => {
                    self.breaker = Some(Breaker { kind: *breaker, diagnosis: diagnosis.clone() });
                }
                Event::Committed { commit, .. } => self.commit = Some(commit.clone()),
                Event::Decided { observation, .. } => self.left = Some(observation.left),
                Event::IterationEnded { .. } => self.usage.iterations += 1,
                _ => {}
            }
        }
        self.usage.sensor_s += self.iterations.iter().filter_map(|row| row.sensor_s).sum::<f64>();
        self.usage.wall_s = records.last().map_or(0.0, |record| record.awake_s);
    }

    fn add_end(&mut self, ended: Option<&RunEnded>) {
        let Some(ended) = ended else { return };
        self.status = Some(ended.status);
        self.reason = Some(ended.reason.name());
        self.verified = ended.verified;
        self.exit_code = Some(ended.exit_code);
        self.summary = Some(ended.summary.clone());
        self.error.clone_from(&ended.error);
        self.climbs = self.climbs.max(ended.escalations);
        self.usage = ended.usage;
        self.change = Some(ended.change.clone());
    }

    /// True when the run completed and a check verified it.
    pub fn passed(&self) -> bool {
        self.reason == Some(Reason::Completed.name()) && self.verified
    }

    /// Where the run stands, in a line: `completed, verified (exit code 0)`.
    pub fn headline(&self) -> String {
        let iterations = match self.iterations.len() {
            1 => "1 iteration".to_owned(),
            n => format!("{n} iterations"),
        };
        match (self.state, self.reason) {
            (RunState::Running, _) => format!("running, {iterations} so far"),
            (RunState::Unfinished, _) | (RunState::Ended, None) => {
                format!("crashed or killed: unfinished after {iterations}, nothing was verified")
            }
            (RunState::Ended, Some(reason)) => {
                let verified = if self.verified { "verified" } else { "not verified" };
                let code = self.exit_code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
                format!("{reason}, {verified}, after {iterations}{code}")
            }
        }
    }
}

/// The last event of a kind.
fn find<'r, T>(records: &'r [Record], pick: impl Fn(&'r Event) -> Option<T>) -> Option<T> {
    records.iter().rev().find_map(|record| pick(&record.event))
}
