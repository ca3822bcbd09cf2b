//! Figures over many runs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::failure_modes::mode_name;
use super::summary::{RunState, Summary};

/// What many runs say together. A share is `None` when there is nothing to take it of.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Figures {
    /// All runs.
    pub runs: u64,
    /// Those that go on; they are in no share.
    pub running: u64,
    /// Those that were killed or crashed; they count as not passed.
    pub unfinished: u64,
    /// Those that completed and were verified.
    pub passed: u64,
    /// Passed, of all that do not go on; 0 to 1.
    pub pass_rate: Option<f64>,
    /// Passed with their first iteration, or before it.
    pub first_iteration_passes: u64,
    /// Those, of all that passed.
    pub first_iteration_share: Option<f64>,
    /// Iterations.
    pub iterations: u64,
    /// Iterations that changed nothing.
    pub unchanged_iterations: u64,
    /// Those, of all iterations whose change is known.
    pub zero_change_share: Option<f64>,
    /// Iterations by decision.
    pub decisions: BTreeMap<&'static str, u64>,
    /// Iterations in which the fence reverted something.
    pub fenced_iterations: u64,
    /// Iterations in which the guard put something back.
    pub guarded_iterations: u64,
    /// Awake seconds of all runs.
    pub wall_s: f64,
    /// Awake seconds of agents.
    pub agent_s: f64,
    /// Awake seconds of sensors.
    pub sensor_s: f64,
    /// Agents, of agents and sensors together.
    pub agent_time_share: Option<f64>,
    /// Climbs of ladders.
    pub climbs: u64,
    /// Runs that climbed.
    pub runs_with_climbs: u64,
    /// Tokens of the turns that told.
    pub tokens: u64,
    /// Turns that did not tell their tokens.
    pub turns_without_tokens: u64,
    /// Dollars of the turns that told.
    pub cost_usd: f64,
    /// Turns that did not tell their cost.
    pub turns_without_cost: u64,
    /// Runs by the reason of their end.
    pub reasons: BTreeMap<&'static str, u64>,
    /// Runs by failure mode; a run can have several.
    pub failure_modes: BTreeMap<&'static str, u64>,
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Figures {
    /// Counts over these runs, in any order.
    pub fn over<'s>(summaries: impl IntoIterator<Item = &'s Summary>) -> Figures {
        let mut figures = Figures::default();
        let mut known_changes = 0;
        for summary in summaries {
            figures.add_run(summary);
            for row in &summary.iterations {
                figures.iterations += 1;
                known_changes += u64::from(row.unchanged.is_some());
                figures.unchanged_iterations += u64::from(row.unchanged == Some(true));
                figures.fenced_iterations += u64::from(row.fenced > 0);
                figures.guarded_iterations += u64::from(row.guarded > 0);
                if let Some(decision) = row.decision {
                    *figures.decisions.entry(decision.name()).or_default() += 1;
                }
            }
        }
        figures.pass_rate = share(figures.passed, figures.runs - figures.running);
        figures.first_iteration_share = share(figures.first_iteration_passes, figures.passed);
        figures.zero_change_share = share(figures.unchanged_iterations, known_changes);
        let worked = figures.agent_s + figures.sensor_s;
        figures.agent_time_share = (worked > 0.0).then(|| figures.agent_s / worked);
        figures
    }

    fn add_run(&mut self, summary: &Summary) {
        self.runs += 1;
        self.running += u64::from(summary.state == RunState::Running);
        self.unfinished += u64::from(summary.state == RunState::Unfinished);
        if summary.passed() {
            self.passed += 1;
            self.first_iteration_passes += u64::from(summary.iterations.len() <= 1);
        }
        self.wall_s += summary.usage.wall_s;
        self.agent_s += summary.usage.agent_s;
        self.sensor_s += summary.usage.sensor_s;
        self.climbs += u64::from(summary.climbs);
        self.runs_with_climbs += u64::from(summary.climbs > 0);
        self.tokens += summary.usage.tokens;
        self.turns_without_tokens += u64::from(summary.usage.turns_without_tokens);
        self.cost_usd += summary.usage.cost_usd;
        self.turns_without_cost += u64::from(summary.usage.turns_without_cost);
        if let Some(reason) = summary.reason {
            *self.reasons.entry(reason).or_default() += 1;
        }
        for mode in &summary.failure_modes {
            *self.failure_modes.entry(mode_name(*mode)).or_default() += 1;
        }
    }
}
