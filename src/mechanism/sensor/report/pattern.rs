//! Counts by the user's own patterns.

use regex::Regex;

use super::LineParser;
use super::counted::Counted;
use crate::mechanism::sensor::patterns::compile;
use crate::policy::PatternSpec;

/// One pattern and what it counted.
#[derive(Debug, Default)]
struct Counter {
    pattern: Option<Regex>,
    count: Option<u64>,
}

impl Counter {
    /// A pattern that does not compile was refused when the script was loaded; from elsewhere it counts nothing.
    fn new(pattern: Option<&String>) -> Counter {
        Counter { pattern: pattern.and_then(|pattern| compile(pattern).ok()), count: None }
    }

    fn line(&mut self, line: &str) {
        let Some(pattern) = &self.pattern else { return };
        if pattern.captures_len() > 1 {
            let number = pattern.captures(line).and_then(|found| found.get(1)?.as_str().trim().parse().ok());
            self.count = number.or(self.count);
        } else if pattern.is_match(line) {
            self.count = Some(self.count.unwrap_or(0) + 1);
        }
    }
}

#[derive(Debug)]
pub(super) struct Pattern {
    counted: Counted,
    failing: Counter,
    total: Counter,
    passed: Counter,
    item: Option<Regex>,
    items: u64,
}

impl Pattern {
    pub(super) fn new(spec: &PatternSpec) -> Pattern {
        Pattern {
            counted: Counted::tests(),
            failing: Counter::new(spec.failing.as_ref()),
            total: Counter::new(spec.total.as_ref()),
            passed: Counter::new(spec.passed.as_ref()),
            item: spec.item.as_ref().and_then(|pattern| compile(pattern).ok()),
            items: 0,
        }
    }
}

impl LineParser for Pattern {
    fn line(&mut self, line: &str) {
        for counter in [&mut self.failing, &mut self.total, &mut self.passed] {
            counter.line(line);
        }
        if let Some(found) = self.item.as_ref().and_then(|item| item.captures(line)) {
            self.items += 1;
            self.counted.name(found.get(1).or_else(|| found.get(0)).map_or("", |name| name.as_str()));
        }
    }

    fn finish(&mut self) -> Option<Counted> {
        let counts_total = self.total.pattern.is_some() || self.passed.pattern.is_some();
        let failing = self.failing.count.or_else(|| (self.items > 0).then_some(self.items));
        let passed = self.passed.count;
        let total = self.total.count.or_else(|| Some(passed? + failing.unwrap_or(0)));
        // Nothing that was asked for was there: nobody counted.
        if failing.is_none() && total.is_none() && counts_total {
            return None;
        }
        let failing = failing.unwrap_or(0);
        let counted = std::mem::take(&mut self.counted);
        Some(Counted {
            failing,
            total: total.unwrap_or(failing).max(failing),
            // Where nobody was asked for a total, none of them is no proof of anything.
            tests: counts_total,
            ..counted
        })
    }
}
