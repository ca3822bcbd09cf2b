//! The loop's memory and its limits: totals, streaks, the ladder, what was tried, and when to stop. Pure.
//!
//! Owns everything that outlives an iteration. Must not know how anything is done. Guarantees that the cap never
//! relabels the iteration that just ended, and that unknown usage never counts as zero cost.

use std::collections::VecDeque;
use std::time::Duration;

use super::tried::Tried;

use crate::policy::{
    Breaker, BreakerKind, Budget, ChangeSummary, Decision, HistoryEntry, Observation, Outcome, Reading, Reason, Sense,
    TurnSummary, UsageTotals, cap_feedback,
};

/// How many results, history entries and rolled-back attempts are remembered.
const REMEMBERED: usize = 200;
/// Bytes of negative knowledge that a prompt may show.
pub(super) const TRIED_BYTES: usize = 4 << 10;
/// Bytes of the last iterations that a prompt may show, and how many of them.
pub(super) const WINDOW_BYTES: usize = 2 << 10;
const WINDOW: usize = 10;
/// Bytes of notes about fence, guard and time that a prompt may show.
pub(super) const NOTES_BYTES: usize = 4 << 10;

/// The limits that a governor holds.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Budget of the loop.
    pub budget: Budget,
    /// When to stop a loop that goes nowhere.
    pub breaker: Breaker,
    /// Stalls before a climb.
    pub patience: u32,
    /// Good iterations before a step down.
    pub step_down: u32,
    /// Rungs of the ladder.
    pub rungs: u32,
    /// Bytes of feedback that a prompt may show.
    pub feedback_bytes: usize,
}

/// A climb or a step down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RungChange {
    /// From, counted from 1.
    pub from: u32,
    /// To.
    pub to: u32,
    /// Why.
    pub why: String,
}

/// What follows from an iteration that ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Aftermath {
    /// The loop ends, for this reason.
    pub stop: Option<Reason>,
    /// The ladder moved.
    pub rung: Option<RungChange>,
    /// Wait before the next iteration.
    pub back_off: Option<Duration>,
}

/// The state of a loop between iterations.
#[derive(Debug, Clone)]
pub struct Governor {
    limits: Limits,
    /// Sums over the loop so far.
    pub totals: UsageTotals,
    started: Duration,
    iteration: u32,
    rung: u32,
    stalls: f64,
    good: u32,
    /// Climbs so far.
    pub escalations: u32,
    failures: u32,
    unchanged: u32,
    instant: u32,
    transient: u32,
    baseline: Option<Sense>,
    best: Option<Sense>,
    last: Option<Sense>,
    /// Trees with their failing counts, newest last: a state that comes again is no progress.
    states: VecDeque<(String, u64)>,
    thrash: u32,
    seen: VecDeque<String>,
    history: VecDeque<HistoryEntry>,
    tried: Tried,
    warned: Vec<&'static str>,
    notes: Vec<String>,
}

impl Governor {
    /// A loop that starts at this awake time.
    pub fn new(limits: Limits, awake: Duration) -> Governor {
        Governor {
            limits,
            totals: UsageTotals::default(),
            started: awake,
            iteration: 0,
            rung: 1,
            stalls: 0.0,
            good: 0,
            escalations: 0,
            failures: 0,
            unchanged: 0,
            instant: 0,
            transient: 0,
            baseline: None,
            best: None,
            last: None,
            states: VecDeque::new(),
            thrash: 0,
            seen: VecDeque::new(),
            history: VecDeque::new(),
            tried: Tried::default(),
            warned: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Number of the iteration that is open or ended last.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// Position on the ladder, from 1.
    pub fn rung(&self) -> u32 {
        self.rung
    }

    /// The sense of the tree as it is, where one is known.
    pub fn last_sense(&self) -> Option<&Sense> {
        self.last.as_ref()
    }

    /// The best sense so far.
    pub fn best_sense(&self) -> Option<&Sense> {
        self.best.as_ref()
    }

    /// The reading of a sensor before the first iteration.
    pub fn baseline_of(&self, sensor: &str) -> Option<&Reading> {
        self.baseline.as_ref()?.readings.iter().find(|reading| reading.id == sensor)
    }

    /// Keeps the clock of the totals.
    pub fn tick(&mut self, awake: Duration) {
        self.totals.wall_s = awake.saturating_sub(self.started).as_secs_f64();
    }

    /// Awake time that is left, `None` without a limit.
    pub fn wall_left(&self, awake: Duration) -> Option<Duration> {
        self.limits.budget.wall.map(|cap| cap.saturating_sub(awake.saturating_sub(self.started)))
    }

    /// The cap that forbids a further iteration, if any.
    pub fn cap(&self) -> Option<Reason> {
        let left = self.limits.budget.left(&self.totals);
        if left.wall_s.is_some_and(|seconds| seconds <= 0.0) {
            Some(Reason::MaxWall)
        } else if left.cost_usd.is_some_and(|dollars| dollars <= 0.0) {
            Some(Reason::MaxCost)
        } else if left.tokens == Some(0) {
            Some(Reason::MaxTokens)
        } else if left.iterations == Some(0) {
            Some(Reason::MaxIterations)
        } else {
            None
        }
    }

    /// A new iteration begins; returns its number.
    pub fn open_iteration(&mut self) -> u32 {
        self.iteration += 1;
        self.iteration
    }

    /// Sensors were read outside of an iteration: that is the base to compare with.
    pub fn baseline(&mut self, sense: Sense) {
        self.remember(&sense.fingerprint);
        self.states.push_back((sense.tree.clone(), sense.failing));
        self.baseline.get_or_insert_with(|| sense.clone());
        self.best = Some(sense.clone());
        self.last = Some(sense);
    }

    /// A turn ended; adds to the totals. Call once for each launch.
    pub fn add_turn(&mut self, turn: &TurnSummary) {
        self.totals.add_turn(&turn.usage, turn.duration_s);
    }

    /// Time spent in sensors and fix commands.
    pub fn add_sensor_time(&mut self, seconds: f64) {
        self.totals.sensor_s += seconds;
    }

    /// A note for the next prompt.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The notes for the next prompt, capped; they are told once.
    pub fn take_notes(&mut self) -> String {
        cap_feedback(&std::mem::take(&mut self.notes).join("\n"), NOTES_BYTES, None)
    }

    /// Feedback for the next prompt: what the sensors say of the tree as it is.
    pub fn feedback(&self) -> String {
        match &self.last {
            Some(sense) if !sense.ok => cap_feedback(&sense.feedback, self.limits.feedback_bytes, None),
            _ => String::new(),
        }
    }

    /// What was tried and rolled back, newest first, like ones told once, capped. Only what was measured.
    pub fn tried(&self) -> String {
        self.tried.told()
    }

    /// The last iterations, one line each, oldest first.
    pub fn window(&self) -> String {
        let line = |entry: &HistoryEntry| {
            let failing = entry.failing.map_or_else(|| "not sensed".to_owned(), |n| format!("{n} failing"));
            let note = entry.note.as_deref().map(|note| format!(": {note}")).unwrap_or_default();
            format!("iteration {}: {}, {failing}{note}", entry.iteration, entry.decision.name())
        };
        let from = self.history.len().saturating_sub(WINDOW);
        self.history.iter().skip(from).map(line).collect::<Vec<_>>().join("\n")
    }

    /// Limits of which four fifths are used up, each told once.
    pub fn warnings(&mut self) -> Vec<String> {
        let (budget, used) = (&self.limits.budget, &self.totals);
        let all = [
            ("iterations", f64::from(used.iterations), budget.iterations.map(f64::from)),
            ("wall", used.wall_s, budget.wall.map(|wall| wall.as_secs_f64())),
            ("tokens", used.tokens as f64, budget.tokens.map(|tokens| tokens as f64)),
            ("cost_usd", used.cost_usd, budget.cost_usd),
        ];
        let mut told = Vec::new();
        for (name, used, cap) in all {
            let Some(cap) = cap else { continue };
            // A cap of a few iterations is in sight anyway.
            let worth_telling = name != "iterations" || cap >= 5.0;
            if used >= cap * 0.8 && worth_telling && !self.warned.contains(&name) {
                self.warned.push(name);
                told.push(format!("budget.{name}: {:.0} % are used up", used / cap * 100.0));
            }
        }
        told
    }

    /// Everything that a policy may know now.
    pub fn observe(&self, turn: Option<&TurnSummary>, change: &ChangeSummary, sense: Option<&Sense>) -> Observation {
        let sense = sense.or(if change.empty { self.last.as_ref() } else { None });
        Observation {
            iteration: self.iteration,
            ok: sense.is_some_and(|sense| sense.ok),
            rung: self.rung,
            rungs: self.limits.rungs,
            stalls: self.stalls,
            turn: turn.cloned(),
            change: change.clone(),
            sensor: sense.map(|s| s.readings.iter().map(|r| (r.id.clone(), r.clone())).collect()).unwrap_or_default(),
            feedback: sense.map(|s| s.feedback.clone()).unwrap_or_default(),
            sense: sense.cloned(),
            best: self.best.clone(),
            tried: self.tried(),
            usage: UsageTotals { iterations: self.iteration, ..self.totals },
            left: self.limits.budget.left(&UsageTotals { iterations: self.iteration, ..self.totals }),
            history: self.history.iter().cloned().collect(),
            seen: self.seen.iter().cloned().collect(),
        }
    }

    /// Trouble of the provider or the machine before anything changed: how long to wait before the same iteration is
    /// tried again, or the breaker that opens. `jitter` is between 0 and 1.
    pub fn transient(&mut self, outcome: &Outcome, jitter: f64) -> Result<Duration, Reason> {
        self.transient += 1;
        if self.transient >= self.limits.breaker.transient {
            return Err(Reason::Breaker(BreakerKind::Failures));
        }
        let told = match outcome {
            Outcome::RateLimited { retry_after } => *retry_after,
            _ => None,
        };
        let exponential = (2.0_f64 * 2.0_f64.powi(self.transient.min(16) as i32 - 1)).min(300.0);
        let seconds = told.unwrap_or(exponential).clamp(0.0, 86_400.0);
        Ok(Duration::from_secs_f64(seconds * (1.0 + 0.1 * jitter.clamp(0.0, 1.0))))
    }

    /// An iteration ended with this decision.
    pub fn close_iteration(
        &mut self,
        turn: Option<&TurnSummary>,
        change: &ChangeSummary,
        sense: Option<&Sense>,
        decision: Decision,
        note: Option<&str>,
    ) -> Aftermath {
        self.totals.iterations = self.iteration;
        self.history.push_back(HistoryEntry {
            iteration: self.iteration,
            decision,
            failing: sense.map(|sense| sense.failing),
            note: note.map(str::to_owned),
        });
        if self.history.len() > REMEMBERED {
            self.history.pop_front();
        }
        let improved = self.learn(turn, change, sense, decision, note);
        let mut aftermath = Aftermath { rung: self.move_on_ladder(decision, improved), ..Aftermath::default() };
        self.count_streaks(turn, change);
        self.count_thrash(change, sense);
        if aftermath.rung.is_some() {
            self.unchanged = 0;
            self.thrash = 0;
        }
        aftermath.stop = self.open_breaker(turn);
        if aftermath.stop.is_none() && self.instant > 0 {
            aftermath.back_off = Some(Duration::from_secs(1 << (self.instant - 1).min(5)));
        }
        aftermath
    }

    /// Updates best, last, seen and tried; says whether the iteration was a step forward.
    fn learn(
        &mut self,
        turn: Option<&TurnSummary>,
        change: &ChangeSummary,
        sense: Option<&Sense>,
        decision: Decision,
        note: Option<&str>,
    ) -> Option<bool> {
        if let Some(sense) = sense {
            self.remember(&sense.fingerprint);
        }
        match decision {
            Decision::Rollback => {
                let broke = match (sense, &self.best) {
                    (Some(now), Some(best)) => now.newly_failing(best),
                    _ => Vec::new(),
                };
                self.tried.add(self.iteration, turn.map(|turn| turn.agent.as_str()), change, broke, note);
                None
            }
            _ if change.empty => None,
            _ => {
                let improved = match (sense, &self.best) {
                    (Some(now), Some(best)) => {
                        now.failing < best.failing || now.ok && !best.ok || now.score > best.score
                    }
                    _ => true,
                };
                if let Some(now) = sense {
                    if improved || decision == Decision::Keep {
                        self.best = Some(now.clone());
                    }
                    self.last = Some(now.clone());
                } else {
                    // The tree is another one now, and nobody has looked at it.
                    self.last = None;
                }
                Some(improved)
            }
        }
    }

    fn move_on_ladder(&mut self, decision: Decision, improved: Option<bool>) -> Option<RungChange> {
        match decision {
            Decision::Keep if improved == Some(true) => {
                self.stalls = 0.0;
                self.good += 1;
            }
            // A lateral step counts as half a stall.
            Decision::Keep if improved == Some(false) => self.stalls += 0.5,
            Decision::Stop => {}
            _ => {
                self.stalls += 1.0;
                self.good = 0;
            }
        }
        let why = if decision == Decision::Escalate {
            Some("the policy asked for it".to_owned())
        } else if self.stalls >= f64::from(self.limits.patience) {
            Some(format!("no progress, {} of {} stalls", self.stalls, self.limits.patience))
        } else {
            None
        };
        if let Some(why) = why
            && self.rung < self.limits.rungs
        {
            let from = self.rung;
            self.rung += 1;
            self.stalls = 0.0;
            self.good = 0;
            self.escalations += 1;
            return Some(RungChange { from, to: self.rung, why });
        }
        if self.good >= self.limits.step_down && self.rung > 1 {
            let from = self.rung;
            self.rung -= 1;
            self.good = 0;
            return Some(RungChange { from, to: self.rung, why: format!("{} good iterations", self.limits.step_down) });
        }
        None
    }

    /// The same states again and again (A, B, A, B): found by tree and failing count.
    fn count_thrash(&mut self, change: &ChangeSummary, sense: Option<&Sense>) {
        let (Some(sense), false) = (sense, change.empty) else { return };
        let state = (change.tree.clone(), sense.failing);
        if self.states.contains(&state) {
            self.thrash += 1;
            return;
        }
        self.thrash = 0;
        self.states.push_back(state);
        if self.states.len() > REMEMBERED {
            self.states.pop_front();
        }
    }

    fn count_streaks(&mut self, turn: Option<&TurnSummary>, change: &ChangeSummary) {
        self.transient = 0;
        self.unchanged = if change.empty { self.unchanged + 1 } else { 0 };
        let Some(turn) = turn else { return };
        // A turn that changed something did work, whatever it said.
        let failed = turn.failed() && change.empty;
        self.failures = if failed { self.failures + 1 } else { 0 };
        let at_once = failed && turn.duration_s < f64::from(self.limits.breaker.instant_s);
        self.instant = if at_once { self.instant + 1 } else { 0 };
    }

    fn open_breaker(&self, turn: Option<&TurnSummary>) -> Option<Reason> {
        let breaker = &self.limits.breaker;
        if turn.is_some_and(|turn| turn.outcome == Outcome::Auth) {
            return Some(Reason::AgentAuth);
        }
        if turn.is_some_and(|turn| turn.outcome == Outcome::SpawnFailed { transient: false }) {
            return Some(Reason::AgentMissing);
        }
        if self.instant >= breaker.instant {
            Some(Reason::Breaker(BreakerKind::Instant))
        } else if self.failures >= breaker.failures {
            Some(Reason::Breaker(BreakerKind::Failures))
        } else if self.unchanged >= breaker.unchanged {
            Some(Reason::Breaker(BreakerKind::Unchanged))
        } else if self.thrash >= breaker.thrash {
            Some(Reason::Breaker(BreakerKind::Thrash))
        } else {
            None
        }
    }

    fn remember(&mut self, fingerprint: &str) {
        if !self.seen.iter().any(|seen| seen == fingerprint) {
            self.seen.push_back(fingerprint.to_owned());
            if self.seen.len() > REMEMBERED {
                self.seen.pop_front();
            }
        }
    }
}

#[cfg(test)]
#[path = "governor_tests.rs"]
mod tests;
