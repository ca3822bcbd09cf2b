//! `mocha`: its spec reporter; its JSON reporter is a document.

use serde::Deserialize;

use super::LineParser;
use super::counted::Counted;
use super::document::{Fold, Summary};

#[derive(Debug, Default)]
pub(super) struct Mocha {
    counted: Counted,
    seen: bool,
    passing: u64,
    /// After the sums: what failed.
    listing: bool,
    /// The title of a failure, which goes on until a line ends with a colon.
    title: Option<String>,
}

/// `2) rest`: the rest.
fn numbered(text: &str) -> Option<&str> {
    let (number, rest) = text.split_once(") ")?;
    super::counted::is_number(number).then_some(rest)
}

impl Mocha {
    fn sum(&mut self, line: &str) -> bool {
        let Some(text) = line.strip_prefix("  ") else { return false };
        let Some((number, word)) = text.split_once(' ') else { return false };
        let Ok(number) = number.parse::<u64>() else { return false };
        let word = word.split(" (").next().unwrap_or(word);
        match word {
            "passing" => (self.seen, self.passing) = (true, number),
            "pending" if self.seen => self.counted.skipped = number,
            "failing" if self.seen => (self.counted.failing, self.listing) = (number, true),
            _ => return false,
        }
        true
    }

    fn title(&mut self, part: &str) {
        let mut title = self.title.take().unwrap_or_default();
        if !title.is_empty() {
            title.push(' ');
        }
        match part.trim().strip_suffix(':') {
            Some(last) => {
                title.push_str(last);
                self.counted.name(&title);
            }
            None => {
                title.push_str(part.trim());
                self.title = Some(title);
            }
        }
    }
}

impl LineParser for Mocha {
    fn line(&mut self, line: &str) {
        if line.starts_with("  ") && self.sum(line) {
            return;
        }
        if !self.listing {
            return;
        }
        self.counted.detail(line);
        if let Some(title) = line.strip_prefix("  ").and_then(numbered) {
            self.title = None;
            self.title(title);
        } else if self.title.is_some() {
            if line.trim().is_empty() { self.title = None } else { self.title(line) }
        }
    }

    fn finish(&mut self) -> Option<Counted> {
        self.counted.tests = true;
        self.counted.total = self.passing + self.counted.failing;
        self.seen.then(|| std::mem::take(&mut self.counted))
    }
}

/// The report of mocha's JSON reporter.
#[derive(Deserialize)]
pub(super) struct Document {
    stats: Stats,
    failures: Fold<Failures>,
}

#[derive(Deserialize)]
struct Stats {
    passes: u64,
    pending: u64,
    failures: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Failure {
    full_title: String,
    #[serde(default)]
    err: Problem,
}

#[derive(Deserialize, Default)]
struct Problem {
    #[serde(default)]
    stack: String,
}

#[derive(Default)]
struct Failures(Counted);

impl Summary for Failures {
    type Item = Failure;

    fn add(&mut self, failure: Failure) {
        self.0.name(&failure.full_title);
        self.0.detail(&format!("---- {} ----", failure.full_title));
        failure.err.stack.lines().for_each(|line| self.0.detail(line));
    }
}

impl Document {
    pub(super) fn counted(self) -> Counted {
        let Failures(counted) = self.failures.0;
        Counted {
            failing: self.stats.failures,
            total: self.stats.passes + self.stats.failures,
            skipped: self.stats.pending,
            tests: true,
            ..counted
        }
    }
}
