//! What sensors said: one reading each, and all readings of one pass combined.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::completion::Strategy;
use super::feedback::cap_feedback;

/// The three states. Broken is never red: it says nothing about the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadingState {
    /// The check holds.
    Passed,
    /// The check ran and does not hold.
    Failed,
    /// The check could not say: it did not start, died, or gave no verdict.
    Broken,
}

/// One sensor's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The sensor's name.
    pub id: String,
    /// Passed, failed or broken.
    pub state: ReadingState,
    /// Number of failing items; 1 or 0 where no report tells. `None` when broken: unknown is never zero.
    pub failing: Option<u64>,
    /// A score where the sensor gives one; higher is better.
    pub score: Option<f64>,
    /// Names of failing items where a report tells.
    pub items: Vec<String>,
    /// Equal for equal results; constant when the sensor timed out.
    pub fingerprint: String,
    /// One line for people.
    pub summary: String,
    /// What the next prompt may show of it, capped.
    pub feedback: String,
    /// Exit code, where there was one.
    pub exit: Option<i32>,
    /// True when its time ran out.
    pub timed_out: bool,
    /// Awake seconds that it took.
    pub duration_s: f64,
    /// Blob with the whole output, where kept.
    pub output: Option<String>,
    /// Remarks that are not the verdict: leaked processes, a dirtied tree.
    pub notes: Vec<String>,
    /// True when it came out differently on the same tree: it says nothing reliable, so its `failing` is unknown.
    #[serde(default)]
    pub flaky: bool,
    /// How it stands against the reading before the first iteration, where there was one.
    #[serde(default)]
    pub attribution: Option<Attribution>,
}

/// A reading against the baseline: whose failure is it?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribution {
    /// Passed before, passes now.
    Clean,
    /// Passed before, fails now: the loop broke it.
    Regressed,
    /// Failed before the loop did anything, and still does.
    BaselineBroken,
    /// Failed before, passes now.
    FixedBaseline,
}

impl Attribution {
    /// Compares two readings of one sensor; `None` where either says nothing.
    pub fn of(before: &Reading, now: &Reading) -> Option<Attribution> {
        use ReadingState::{Failed, Passed};
        if before.flaky || now.flaky {
            return None;
        }
        match (before.state, now.state) {
            (Passed, Passed) => Some(Attribution::Clean),
            (Passed, Failed) => Some(Attribution::Regressed),
            (Failed, Failed) => Some(Attribution::BaselineBroken),
            (Failed, Passed) => Some(Attribution::FixedBaseline),
            _ => None,
        }
    }
}

impl Reading {
    /// True when the check holds.
    pub fn ok(&self) -> bool {
        self.state == ReadingState::Passed
    }
}

/// All readings of one pass over one tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sense {
    /// The tree that was sensed.
    pub tree: String,
    /// One per sensor, in the order of the spec.
    pub readings: Vec<Reading>,
    /// True when the strategy over the sensors holds and at least one of them passed.
    pub ok: bool,
    /// True when the strategy cannot be judged because of broken readings.
    pub broken: bool,
    /// Sum of failing items over readings that tell.
    pub failing: u64,
    /// Sum of scores, where any sensor gives one.
    pub score: Option<f64>,
    /// Equal for equal results of all sensors.
    pub fingerprint: String,
    /// What the next prompt shows, capped.
    pub feedback: String,
}

impl Sense {
    /// Combines readings of one pass. `feedback_cap` in bytes bounds the feedback of all sensors together.
    pub fn combine(tree: String, readings: Vec<Reading>, strategy: Strategy, feedback_cap: usize) -> Sense {
        let verdict = strategy.judge(&readings);
        let failing = readings.iter().filter_map(|reading| reading.failing).sum();
        let scores: Vec<f64> = readings.iter().filter_map(|reading| reading.score).collect();
        let mut hash = Sha256::new();
        for reading in &readings {
            hash.update(reading.id.as_bytes());
            hash.update([0]);
            hash.update(reading.fingerprint.as_bytes());
            hash.update([0]);
        }
        let failed: Vec<&Reading> = readings.iter().filter(|r| r.state == ReadingState::Failed).collect();
        // Every failing sensor gets its share, so that a loud one cannot hide the others.
        let share = feedback_cap / failed.len().max(1);
        let feedback = failed
            .iter()
            .map(|reading| cap_feedback(&reading.feedback, share.saturating_sub(1), None))
            .collect::<Vec<_>>()
            .join("\n");
        Sense {
            tree,
            ok: verdict == Some(true),
            broken: verdict.is_none(),
            failing,
            score: (!scores.is_empty()).then(|| scores.iter().sum()),
            fingerprint: hex(&hash.finalize()),
            feedback,
            readings,
        }
    }

    /// What fails now and did not fail in `before`: names of items where a report tells, else sensor names; a sensor
    /// that fails more than before is named with both counts.
    pub fn newly_failing(&self, before: &Sense) -> Vec<String> {
        let failing = self.readings.iter().filter(|reading| reading.state == ReadingState::Failed && !reading.flaky);
        failing
            .flat_map(|now| {
                let old = before.readings.iter().find(|old| old.id == now.id);
                let old = old.filter(|old| old.state == ReadingState::Failed && !old.flaky);
                match (now.items.as_slice(), old) {
                    ([], None) => vec![now.id.clone()],
                    ([], Some(old)) if now.failing > old.failing => {
                        let count = |failing: Option<u64>| failing.map_or_else(|| "?".to_owned(), |n| n.to_string());
                        vec![format!("{} ({} failing, {} before)", now.id, count(now.failing), count(old.failing))]
                    }
                    ([], Some(_)) => Vec::new(),
                    (items, old) => {
                        let known = old.map(|old| old.items.as_slice()).unwrap_or_default();
                        items.iter().filter(|item| !known.contains(item)).cloned().collect()
                    }
                }
            })
            .collect()
    }
}

/// Lower-case hexadecimal digits of `bytes`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
