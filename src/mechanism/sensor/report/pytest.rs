//! `pytest`.

use super::LineParser;
use super::counted::{Counted, number_before};

#[derive(Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Tests,
    /// What failing tests say.
    Failures,
    /// The short summary.
    Names,
}

#[derive(Debug, Default)]
pub(super) struct Pytest {
    counted: Counted,
    part: Part,
    summed: bool,
    interrupted: bool,
}

/// The inside of `==== text ====`.
fn banner(line: &str) -> Option<&str> {
    let inside = line.strip_prefix("==")?.trim_matches('=');
    (inside.starts_with(' ') && inside.ends_with(' ')).then(|| inside.trim())
}

/// The parts of `2 failed, 3 passed in 0.12s`; empty for `no tests ran in 0.01s`.
fn summary(text: &str) -> Option<&str> {
    let (parts, time) = text.rsplit_once(" in ")?;
    let seconds = time.split_once('s')?.0;
    let is_time = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_time {
        return None;
    }
    if parts == "no tests ran" {
        return Some("");
    }
    const WORDS: [&str; 13] = [
        "failed",
        "passed",
        "skipped",
        "deselected",
        "xfailed",
        "xpassed",
        "warning",
        "warnings",
        "error",
        "errors",
        "rerun",
        "reruns",
        "subtests passed",
    ];
    let known = parts.split(", ").all(|part| {
        part.split_once(' ').is_some_and(|(number, word)| super::counted::is_number(number) && WORDS.contains(&word))
    });
    known.then_some(parts)
}

impl LineParser for Pytest {
    fn line(&mut self, line: &str) {
        let first = line.as_bytes().first().copied().unwrap_or(b' ');
        let inside = if first == b'=' { banner(line) } else { None };
        // The last line has its signs in `-q` mode too, but no banner.
        if (inside.is_some() || first.is_ascii_digit() || first == b'n')
            && let Some(parts) = summary(inside.unwrap_or(line))
        {
            let failing = number_before(parts, ',', &["failed", "error", "errors"]);
            self.counted.failing = failing;
            self.counted.total = failing + number_before(parts, ',', &["passed", "xfailed", "xpassed"]);
            self.counted.skipped = number_before(parts, ',', &["skipped"]);
            self.summed = true;
            self.part = Part::Tests;
            return;
        }
        match inside {
            Some("FAILURES" | "ERRORS") => self.part = Part::Failures,
            Some("short test summary info") => self.part = Part::Names,
            Some("test session starts") => {
                // Another session of the same command.
                self.part = Part::Tests;
            }
            Some(_) => self.part = Part::Tests,
            None if first == b'!' && line.contains("during collection") => self.interrupted = true,
            None => match self.part {
                Part::Tests => {}
                Part::Failures => self.counted.detail(line),
                Part::Names => {
                    if let Some(rest) = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")) {
                        self.counted.name(rest.split(" - ").next().unwrap_or(rest));
                    }
                }
            },
        }
    }

    fn finish(&mut self) -> Option<Counted> {
        self.counted.tests = true;
        self.counted.did_not_run = self.interrupted;
        if self.interrupted {
            self.counted.total = 0;
        }
        self.summed.then(|| std::mem::take(&mut self.counted))
    }
}
