//! Limits: budgets of a run and the circuit breaker.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::turn::UsageTotals;
use super::units;

/// What a run may use. Reached means that no further iteration starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Iterations; default 10. `None` only when another hard limit is set.
    pub iterations: Option<u32>,
    /// Awake time; default 2 hours. It also ends the turn that is running.
    #[serde(with = "units::optional_seconds")]
    pub wall: Option<Duration>,
    /// Tokens, over the turns that tell them.
    pub tokens: Option<u64>,
    /// US dollars, over the turns that tell them.
    pub cost_usd: Option<f64>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { iterations: Some(10), wall: Some(Duration::from_secs(2 * 3600)), tokens: None, cost_usd: None }
    }
}

impl Budget {
    /// What remains after `used`; never negative.
    pub fn left(&self, used: &UsageTotals) -> Left {
        Left {
            iterations: self.iterations.map(|cap| cap.saturating_sub(used.iterations)),
            wall_s: self.wall.map(|cap| (cap.as_secs_f64() - used.wall_s).max(0.0)),
            tokens: self.tokens.map(|cap| cap.saturating_sub(used.tokens)),
            cost_usd: self.cost_usd.map(|cap| (cap - used.cost_usd).max(0.0)),
        }
    }
}

/// What remains of a budget; `None` where there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Left {
    /// Iterations.
    pub iterations: Option<u32>,
    /// Awake seconds.
    pub wall_s: Option<f64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
}

/// When to stop a loop that goes nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breaker {
    /// Failed turns in a row; default 3.
    pub failures: u32,
    /// Iterations without a change in a row; default 3, or three times the patience where an agent has a ladder.
    pub unchanged: u32,
    /// Failed or silent turns of under `instant_s` seconds in a row; default 3. Between them the loop backs off.
    pub instant: u32,
    /// What counts as instant, in seconds; default 5.
    pub instant_s: u32,
    /// Trouble of the provider or the machine in a row (rate limits, overload, network); default 8, with back-off.
    pub transient: u32,
    /// Iterations in a row that reached a state (tree and failing count) that was seen before; default 3.
    #[serde(default = "three")]
    pub thrash: u32,
    /// File below the root for the written diagnosis; default: only in the run's folder.
    pub diagnosis: Option<String>,
}

fn three() -> u32 {
    3
}

impl Default for Breaker {
    fn default() -> Breaker {
        Breaker { failures: 3, unchanged: 3, instant: 3, instant_s: 5, transient: 8, thrash: 3, diagnosis: None }
    }
}
