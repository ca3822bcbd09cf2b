//! What counts as done.

use serde::{Deserialize, Serialize};

use super::reading::{Reading, ReadingState};

/// A truth value with *unknown*.
pub type Ternary = Option<bool>;

/// How many sensors must pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Every one.
    #[default]
    All,
    /// At least one.
    Any,
    /// At least this many.
    NOf(u32),
}

impl Strategy {
    /// `Some(true)` when it holds, `Some(false)` when it cannot hold, `None` when broken readings decide.
    /// No readings at all never hold: nothing-ran is not green.
    pub fn judge(self, readings: &[Reading]) -> Ternary {
        if readings.is_empty() {
            return Some(false);
        }
        let passed = readings.iter().filter(|r| r.state == ReadingState::Passed && !r.flaky).count();
        let broken = readings.iter().filter(|r| r.state == ReadingState::Broken).count();
        let needed = match self {
            Strategy::All => readings.len(),
            Strategy::Any => 1,
            Strategy::NOf(n) => n as usize,
        };
        if passed >= needed {
            Some(true)
        } else if passed + broken >= needed {
            None
        } else {
            Some(false)
        }
    }
}

/// Who is believed (source A: the network's validation modes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The agent says complete *and* the checks pass.
    Verify,
    /// The checks alone.
    Override,
    /// The agent's word alone; reported as unverified.
    LlmOnly,
}

/// When a loop is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The exact last line of the agent's final message that says "done"; never blank.
    pub sentinel: Option<String>,
    /// How many sensors must pass.
    pub strategy: Strategy,
    /// Who is believed.
    pub mode: Mode,
}

impl Completion {
    /// The default for what is configured: sensors alone are `override`, a sentinel with sensors is `verify`,
    /// a sentinel alone is `llm-only`. With neither, nothing ever completes.
    pub fn default_for(sentinel: Option<String>, has_sensors: bool) -> Completion {
        let mode = match (&sentinel, has_sensors) {
            (Some(_), true) => Mode::Verify,
            (Some(_), false) => Mode::LlmOnly,
            (None, _) => Mode::Override,
        };
        Completion { sentinel, strategy: Strategy::All, mode }
    }

    /// Judges an iteration: did the agent say the word, do the checks hold (`None`: nothing was sensed).
    /// Returns whether it is complete and whether that was verified by a check that ran.
    pub fn judge(&self, said: bool, checks: Option<bool>) -> Option<bool> {
        let verified = checks == Some(true);
        let complete = match self.mode {
            Mode::Verify => said && verified,
            Mode::Override => verified,
            Mode::LlmOnly => said,
        };
        complete.then_some(verified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(state: ReadingState) -> Reading {
        Reading {
            id: "t".into(),
            state,
            failing: (state != ReadingState::Broken).then_some(u64::from(state == ReadingState::Failed)),
            score: None,
            items: vec![],
            fingerprint: String::new(),
            summary: String::new(),
            feedback: String::new(),
            exit: None,
            timed_out: false,
            duration_s: 0.0,
            output: None,
            notes: vec![],
            flaky: false,
            attribution: None,
        }
    }

    #[test]
    fn strategies_count_passes_and_leave_broken_ones_open() {
        use ReadingState::{Broken, Failed, Passed};
        for (strategy, states, verdict) in [
            (Strategy::All, vec![], Some(false)),
            (Strategy::Any, vec![], Some(false)),
            (Strategy::All, vec![Passed, Passed], Some(true)),
            (Strategy::All, vec![Passed, Failed], Some(false)),
            (Strategy::All, vec![Passed, Broken], None),
            (Strategy::All, vec![Failed, Broken], Some(false)),
            (Strategy::Any, vec![Failed, Passed], Some(true)),
            (Strategy::Any, vec![Failed, Broken], None),
            (Strategy::Any, vec![Passed, Broken], Some(true)),
            (Strategy::NOf(2), vec![Passed, Failed, Passed], Some(true)),
            (Strategy::NOf(2), vec![Passed, Failed, Failed], Some(false)),
            (Strategy::NOf(2), vec![Passed, Failed, Broken], None),
        ] {
            let readings: Vec<Reading> = states.iter().map(|&state| reading(state)).collect();
            assert_eq!(strategy.judge(&readings), verdict, "{strategy:?} {states:?}");
        }
    }

    #[test]
    fn modes_say_who_is_believed() {
        let of = |mode| Completion { sentinel: Some("DONE".into()), strategy: Strategy::All, mode };
        assert_eq!(of(Mode::Verify).judge(true, Some(false)), None);
        assert_eq!(of(Mode::Verify).judge(false, Some(true)), None);
        assert_eq!(of(Mode::Verify).judge(true, None), None, "nothing ran is never green");
        assert_eq!(of(Mode::Verify).judge(true, Some(true)), Some(true));
        assert_eq!(of(Mode::Override).judge(false, Some(true)), Some(true));
        assert_eq!(of(Mode::Override).judge(true, None), None);
        assert_eq!(of(Mode::LlmOnly).judge(true, Some(false)), Some(false), "complete, and not verified");
        assert_eq!(of(Mode::LlmOnly).judge(true, None), Some(false));
        assert_eq!(of(Mode::LlmOnly).judge(false, Some(true)), None);
    }
}
