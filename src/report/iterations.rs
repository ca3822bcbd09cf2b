//! The iterations of a run as rows of a table.

use serde::Serialize;

use crate::journal::{Event, Record};
use crate::policy::{Decision, Sense, SlotSize};

/// One iteration. A field is `None` while the journal does not tell it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IterationRow {
    /// The loop that it belongs to, as a path.
    pub path: String,
    /// Its number, from 1.
    pub iteration: u32,
    /// Rung of the ladder, from 1.
    pub rung: u32,
    /// The agent.
    pub agent: String,
    /// How the turn ended, by name.
    pub outcome: Option<String>,
    /// What was decided.
    pub decision: Option<Decision>,
    /// Why.
    pub note: Option<String>,
    /// Failing items after it, of the sensors that told.
    pub failing: Option<u64>,
    /// True when a sensor gave no verdict.
    pub broken: bool,
    /// True when the agent changed nothing.
    pub unchanged: Option<bool>,
    /// How many paths changed.
    pub files: Option<u64>,
    /// How many lines changed.
    pub lines: Option<u64>,
    /// Paths that the fence reverted.
    pub fenced: u64,
    /// Things that the guard put back.
    pub guarded: u64,
    /// Awake seconds of the agent.
    pub agent_s: Option<f64>,
    /// Awake seconds of sensors and fix commands, added up over those that ran at the same time; `None` when none ran.
    pub sensor_s: Option<f64>,
    /// Whether the loop was complete with it, and if so whether a check verified that.
    pub complete: Option<bool>,
    /// True when it was ended in order. False: it is under way, or a crash cut it off.
    pub ended: bool,
    /// Blob with the prompt.
    pub prompt: Option<String>,
    /// Its slots, with what was cut of each.
    pub slots: Vec<SlotSize>,
    /// Blob with the diff.
    pub diff: Option<String>,
    /// Blob with the agent's raw output.
    pub output: Option<String>,
    /// What the agent said in a line, or what went wrong.
    pub said: Option<String>,
}

impl IterationRow {
    fn new(path: &str, iteration: u32) -> IterationRow {
        IterationRow {
            path: path.to_owned(),
            iteration,
            rung: 1,
            agent: String::new(),
            outcome: None,
            decision: None,
            note: None,
            failing: None,
            broken: false,
            unchanged: None,
            files: None,
            lines: None,
            fenced: 0,
            guarded: 0,
            agent_s: None,
            sensor_s: None,
            complete: None,
            ended: false,
            prompt: None,
            slots: Vec::new(),
            diff: None,
            output: None,
            said: None,
        }
    }

    fn sensed(&mut self, sense: &Sense) {
        self.failing = told(sense);
        self.broken = sense.broken || sense.readings.iter().any(|reading| reading.failing.is_none());
    }

    fn add(&mut self, event: &Event) {
        match event {
            Event::IterationStarted { rung, agent, .. } => {
                self.rung = *rung;
                self.agent.clone_from(agent);
            }
            Event::Prompted { prompt, slots, .. } => {
                self.prompt = Some(prompt.clone());
                self.slots.clone_from(slots);
            }
            Event::TurnEnded { turn, .. } => {
                self.agent_s = Some(self.agent_s.unwrap_or(0.0) + turn.duration_s);
                self.outcome = Some(turn.outcome.name().to_owned());
                self.output.clone_from(&turn.output);
                self.said = Some(turn.error.clone().unwrap_or_else(|| turn.summary.clone()));
            }
            Event::Guarded { undone, .. } => self.guarded += undone.len() as u64,
            Event::Fenced { paths, .. } => self.fenced += paths.len() as u64,
            Event::Changed { change, .. } => {
                self.unchanged = Some(change.empty);
                self.files = Some(change.file_count);
                self.lines = Some(change.lines);
                self.diff.clone_from(&change.diff);
            }
            Event::Fixed { duration_s, .. } => self.sensor_s = Some(self.sensor_s.unwrap_or(0.0) + duration_s),
            Event::Sensed { sense, carried, .. } => {
                if !carried {
                    let seconds: f64 = sense.readings.iter().map(|reading| reading.duration_s).sum();
                    self.sensor_s = Some(self.sensor_s.unwrap_or(0.0) + seconds);
                }
                self.sensed(sense);
            }
            Event::Decided { verdict, complete, observation, .. } => {
                self.decision = Some(verdict.decision);
                self.note.clone_from(&verdict.note);
                self.complete = *complete;
                if let Some(sense) = &observation.sense {
                    self.sensed(sense);
                }
            }
            Event::IterationEnded { .. } => self.ended = true,
            _ => {}
        }
    }
}

/// Failing items of the sensors that told; `None` when none did.
pub(super) fn told(sense: &Sense) -> Option<u64> {
    sense.readings.iter().any(|reading| reading.failing.is_some()).then_some(sense.failing)
}

/// The iteration that an event belongs to.
fn iteration_of(event: &Event) -> Option<u32> {
    match event {
        Event::IterationStarted { iteration, .. }
        | Event::Prompted { iteration, .. }
        | Event::TurnEnded { iteration, .. }
        | Event::Guarded { iteration, .. }
        | Event::Fenced { iteration, .. }
        | Event::Changed { iteration, .. }
        | Event::Fixed { iteration, .. }
        | Event::Sensed { iteration, .. }
        | Event::Decided { iteration, .. }
        | Event::RolledBack { iteration, .. }
        | Event::IterationEnded { iteration, .. } => (*iteration > 0).then_some(*iteration),
        _ => None,
    }
}

/// All iterations, in the order in which they began. A number that begins again is a new row (the next loop of the same
/// name), unless the row before was left open by a crash: then it starts over.
pub(super) fn rows(records: &[Record]) -> Vec<IterationRow> {
    let mut rows: Vec<IterationRow> = Vec::new();
    for record in records {
        let Some(iteration) = iteration_of(&record.event) else { continue };
        let at = rows.iter().rposition(|row| row.iteration == iteration && row.path == record.path);
        let begins = matches!(record.event, Event::IterationStarted { .. });
        let at = match at {
            Some(at) if begins && !rows[at].ended => {
                rows[at] = IterationRow::new(&record.path, iteration);
                at
            }
            Some(at) if !begins => at,
            _ => {
                rows.push(IterationRow::new(&record.path, iteration));
                rows.len() - 1
            }
        };
        rows[at].add(&record.event);
    }
    rows
}
