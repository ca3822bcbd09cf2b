//! What a policy is asked about: everything that is known after an iteration, frozen, exactly what the journal keeps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::budget::Left;
use super::change::ChangeSummary;
use super::decision::Decision;
use super::reading::{Reading, Sense};
use super::turn::{TurnSummary, UsageTotals};

/// One earlier iteration in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// Its number.
    pub iteration: u32,
    /// What was decided.
    pub decision: Decision,
    /// Failing items after it, where it was sensed.
    pub failing: Option<u64>,
    /// Why.
    pub note: Option<String>,
}

/// Plain data; the same value in the live, the replayed and the simulated world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Number of the iteration, from 1; 0 before the first.
    pub iteration: u32,
    /// True when the sensors' strategy holds.
    pub ok: bool,
    /// Position on the ladder, from 1.
    pub rung: u32,
    /// Rungs of the ladder.
    pub rungs: u32,
    /// Stalls in a row so far; a lateral step counts half.
    pub stalls: f64,
    /// The turn of this iteration; none before the first.
    pub turn: Option<TurnSummary>,
    /// What it changed.
    pub change: ChangeSummary,
    /// What the sensors say of the tree as it is; carried over when nothing changed; none without sensors.
    pub sense: Option<Sense>,
    /// The same readings by sensor name.
    pub sensor: BTreeMap<String, Reading>,
    /// The best sense so far, the baseline included.
    pub best: Option<Sense>,
    /// What the next prompt will show, capped.
    pub feedback: String,
    /// What was tried and rolled back, capped.
    pub tried: String,
    /// Used so far, this iteration included.
    pub usage: UsageTotals,
    /// What remains.
    pub left: Left,
    /// Earlier iterations, oldest first, at most the last 200.
    pub history: Vec<HistoryEntry>,
    /// Fingerprints of results seen so far, at most the last 200.
    pub seen: Vec<String>,
}
