//! Lines that are looked for in a sensor's output: the user's patterns, and scores.

use regex::RegexSet;

use super::patterns::{PatternError, compile_all};
use crate::policy::Counting;

/// Bytes of the lines that are kept whatever is cut.
const MOST_KEPT: usize = 3 << 10;
/// Bytes of one of them.
const MOST_LINE: usize = 500;

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Watch {
    must_match: Option<(RegexSet, Vec<bool>)>,
    broken_if: Option<RegexSet>,
    keep_lines: Option<RegexSet>,
    /// The first line that says that the sensor itself does not work.
    pub(super) broken_by: Option<String>,
    /// Lines that are kept, each ended by a line feed.
    pub(super) kept: String,
    /// Lines that there was no room for.
    pub(super) not_kept: u64,
    /// The last `SCORE: n`.
    pub(super) score: Option<f64>,
}

impl Watch {
    pub(super) fn new(counting: &Counting) -> Result<Watch, PatternError> {
        let set = |patterns: &[String]| match patterns {
            [] => Ok(None),
            patterns => compile_all(patterns).map(Some),
        };
        Ok(Watch {
            must_match: set(&counting.must_match)?.map(|set| (set, vec![false; counting.must_match.len()])),
            broken_if: set(&counting.broken_if)?,
            keep_lines: set(&counting.keep_lines)?,
            ..Watch::default()
        })
    }

    pub(super) fn line(&mut self, line: &str) {
        if line.starts_with("SCORE:") {
            self.score = score_of(line).or(self.score);
        }
        if let Some((set, found)) = &mut self.must_match {
            set.matches(line).into_iter().for_each(|at| found[at] = true);
        }
        if self.broken_by.is_none() && self.broken_if.as_ref().is_some_and(|set| set.is_match(line)) {
            self.broken_by = Some(shorten(line));
        }
        if self.keep_lines.as_ref().is_some_and(|set| set.is_match(line)) {
            let line = shorten(line);
            if self.kept.len() + line.len() < MOST_KEPT {
                self.kept.push_str(&line);
                self.kept.push('\n');
            } else {
                self.not_kept += 1;
            }
        }
    }

    /// Places in the list of the patterns that must match and did not.
    pub(super) fn missing(&self) -> Vec<usize> {
        let Some((_, found)) = &self.must_match else { return Vec::new() };
        (0..found.len()).filter(|&at| !found[at]).collect()
    }
}

/// The number of a line that is `SCORE: n` and nothing else.
fn score_of(line: &str) -> Option<f64> {
    let number = line.strip_prefix("SCORE:")?.trim();
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E'));
    number.parse::<f64>().ok().filter(|score| plain && score.is_finite())
}

/// A line as it is told: no control characters, and not longer than is good for anybody.
pub(super) fn shorten(line: &str) -> String {
    let mut end = line.len().min(MOST_LINE);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    let cut = if end < line.len() { "…" } else { "" };
    format!("{}{cut}", line[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_a_line_of_its_own() {
        for (line, score) in [
            ("SCORE: 0.75", Some(0.75)),
            ("SCORE:12", Some(12.0)),
            ("SCORE: -3e2  ", Some(-300.0)),
            (" SCORE: 1", None),
            ("SCORE: 1 of 2", None),
            ("SCORE: nan", None),
            ("SCORE: inf", None),
            ("the SCORE: 1", None),
        ] {
            let mut watch = Watch::default();
            watch.line(line);
            assert_eq!(watch.score, score, "{line}");
        }
    }

    #[test]
    fn patterns_find_their_lines() {
        let list = |patterns: &[&str]| patterns.iter().map(|text| (*text).to_owned()).collect();
        let counting = Counting {
            must_match: list(&["^ok", "done$"]),
            broken_if: list(&["connection refused"]),
            keep_lines: list(&["^E "]),
            ..Counting::default()
        };
        let mut watch = Watch::new(&counting).unwrap();
        for line in ["ok so far", "E one", "dial: connection refused", "noise", "E two"] {
            watch.line(line);
        }
        assert_eq!(watch.missing(), [1]);
        assert_eq!(watch.broken_by.as_deref(), Some("dial: connection refused"));
        assert_eq!(watch.kept, "E one\nE two\n");
        (0..10_000).for_each(|n| watch.line(&format!("E {n} {}", "x".repeat(1000))));
        assert!(watch.kept.len() <= MOST_KEPT && watch.not_kept > 9_000);
        assert!(Watch::new(&Counting { keep_lines: list(&["("]), ..Counting::default() }).is_err());
    }
}
