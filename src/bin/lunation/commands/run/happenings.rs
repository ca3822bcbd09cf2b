//! The words of a run under way: one plain line for each thing that happens.
//!
//! Owns which records are told, and the little memory that needs (the budget, who is at work). The words of a record are
//! [`event_line`]'s. Does not know where the lines go.

use lunation::journal::{Event, Record};
use lunation::policy::{Budget, UsageTotals};

use super::signals;
use crate::present::{Tone, clean, count, event_line, seconds, short};

/// One line for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// How it is meant.
    pub(crate) tone: Tone,
    /// Without a line end.
    pub(crate) text: String,
}

impl Line {
    /// A line.
    pub(crate) fn new(tone: Tone, text: impl Into<String>) -> Line {
        Line { tone, text: text.into() }
    }
}

/// What is told about a record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Lines to print.
    pub(crate) lines: Vec<Line>,
    /// What is going on from now on, nothing when empty; `None`: as before.
    pub(crate) busy: Option<String>,
}

/// Turns records into lines, in their order.
#[derive(Debug, Default)]
pub(crate) struct Happenings {
    budget: Option<Budget>,
    agent: String,
    in_iteration: bool,
}

/// Lines of a diagnosis that are shown.
const MOST_DIAGNOSIS: usize = 20;

impl Happenings {
    /// What to tell about this record.
    pub(crate) fn tell(&mut self, record: &Record) -> Told {
        Told { lines: self.lines(record), busy: self.busy(&record.event) }
    }

    fn lines(&mut self, record: &Record) -> Vec<Line> {
        let (tone, text) = event_line(&record.event);
        let indent = if self.in_iteration { "  " } else { "" };
        match &record.event {
            // The last words are told when the run is over.
            Event::RunEnded(_) | Event::Prompted { .. } => Vec::new(),
            // Nothing had to be put back.
            Event::RolledBack { restored: 0, conflicts, .. } if conflicts.is_empty() => Vec::new(),
            // The person at the keyboard was told by the handler, with what another one does.
            Event::Interrupted { by, .. } if signals::are_named(by) => Vec::new(),
            Event::RunStarted(_) => {
                vec![Line::new(Tone::Strong, format!("run {}", record.run)), Line::new(Tone::Plain, text)]
            }
            Event::LoopStarted { spec, .. } => {
                self.budget = Some(spec.budget.clone());
                vec![Line::new(tone, text)]
            }
            Event::IterationStarted { agent, .. } => {
                self.agent.clone_from(agent);
                self.in_iteration = true;
                vec![Line::new(tone, text)]
            }
            Event::IterationEnded { usage, .. } => {
                self.in_iteration = false;
                self.left(usage).into_iter().collect()
            }
            Event::BreakerOpened { diagnosis, .. } => {
                let lines = diagnosis.lines().skip(1).filter(|line| !line.trim().is_empty());
                let lines = lines.take(MOST_DIAGNOSIS).map(|line| Line::new(Tone::Plain, format!("  {}", clean(line))));
                std::iter::once(Line::new(tone, text)).chain(lines).collect()
            }
            _ => vec![Line::new(tone, format!("{indent}{text}"))],
        }
    }

    fn busy(&self, event: &Event) -> Option<String> {
        Some(match event {
            Event::RunEnded(_) | Event::IterationEnded { .. } => String::new(),
            Event::LoopStarted { .. } => "the checks are read before the first iteration".into(),
            Event::Prompted { .. } => format!("{} is at work", short(&self.agent, 40)),
            Event::TurnEnded { .. } => "looking at what it left".into(),
            Event::Changed { .. } => "the checks are read".into(),
            Event::BackedOff { .. } => "waiting".into(),
            _ => return None,
        })
    }

    fn left(&self, usage: &UsageTotals) -> Option<Line> {
        let left = self.budget.as_ref()?.left(usage);
        let mut parts = Vec::new();
        parts.extend(left.iterations.map(|left| count(u64::from(left), "iteration")));
        parts.extend(left.wall_s.map(seconds));
        parts.extend(left.tokens.map(|left| count(left, "token")));
        parts.extend(left.cost_usd.map(|dollars| format!("${dollars:.2}")));
        let used = seconds(usage.wall_s);
        (!parts.is_empty()).then(|| Line::new(Tone::Dim, format!("  {used} used; left: {}", parts.join(", "))))
    }
}
