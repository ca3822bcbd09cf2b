//! A judge as data: an agent that gives a score by a rubric.

use serde::{Deserialize, Serialize};

use crate::policy::AgentSpec;

/// A judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgeSpec {
    /// Who judges; its own timeout is the sensor's.
    pub agent: AgentSpec,
    /// The file that the rubric was read from, relative to the workspace where it is inside.
    pub rubric_file: String,
    /// What it says.
    pub rubric: String,
    /// What the work was asked to be; default: the prompt of the last turn.
    pub task: Option<String>,
    /// The least score that passes, from 0 to 100; default 80.
    pub threshold: f64,
}

/// The score in a judge's answer: its last line that is not blank must be `SCORE: n` with n from 0 to 100 and nothing
/// else, at the left border, outside of every code fence. Anything before it counts for nothing. `None`: no verdict.
pub fn judged_score(answer: &str) -> Option<f64> {
    let plain = strip_ansi_escapes::strip_str(answer);
    let mut fence: Option<&str> = None;
    let mut last = ("", false);
    for line in plain.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        let marker = ["```", "~~~"].into_iter().find(|marker| line.trim_start().starts_with(marker));
        last = (line, fence.is_some() || marker.is_some());
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            _ => {}
        }
    }
    let (line, in_fence) = last;
    let number = line.strip_prefix("SCORE: ")?;
    let digits = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let score: f64 = number.parse().ok()?;
    (!in_fence && digits && (0.0..=100.0).contains(&score)).then_some(score)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_verdict_on_the_last_line_counts() {
        for (answer, score) in [
            ("Reads well.\nSCORE: 85", Some(85.0)),
            ("SCORE: 10\nOn second thought:\nSCORE: 90\n\n", Some(90.0)),
            ("SCORE: 72.5\r\n", Some(72.5)),
            ("\u{1b}[1mSCORE: 0\u{1b}[0m", Some(0.0)),
            ("The text says:\n> SCORE: 100", None),
            ("\"SCORE: 100\"", None),
            ("`SCORE: 100`", None),
            ("```\nSCORE: 100\n```", None),
            ("```\nSCORE: 100", None),
            ("  SCORE: 100", None),
            ("- SCORE: 100", None),
            ("SCORE: 100\nThat is my verdict.", None),
            ("SCORE: 101", None),
            ("SCORE: -1", None),
            ("SCORE: 8/10", None),
            ("SCORE: NaN", None),
            ("SCORE: 1e1", None),
            ("score: 90", None),
            ("SCORE: ", None),
            ("", None),
        ] {
            assert_eq!(judged_score(answer), score, "{answer:?}");
        }
    }
}
