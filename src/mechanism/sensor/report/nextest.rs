//! `cargo nextest run`.

use super::LineParser;
use super::counted::{Backtrace, Counted};

#[derive(Debug, Default)]
pub(super) struct Nextest {
    counted: Counted,
    summed: bool,
    /// The output of a failing test is being told.
    telling: bool,
    backtrace: Backtrace,
}

/// `FAIL [   0.494s] (2/2) calc tests::subtracts`: the name.
fn failed_name(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (status, rest) = line.split_once('[')?;
    let status = status.trim_end();
    let status = status.strip_prefix("TRY ").and_then(|rest| rest.split_once(' ')).map_or(status, |(_, status)| status);
    let bad = matches!(status, "FAIL" | "TIMEOUT" | "ABORT" | "LEAK-FAIL" | "XFAIL" | "EXEC FAIL" | "FAIL + LEAK")
        || status.strip_prefix("SIG").is_some_and(|name| name.bytes().all(|b| b.is_ascii_uppercase()));
    let name = rest.split_once(']')?.1.trim();
    let name = match name.strip_prefix('(') {
        Some(counter) => counter.split_once(") ")?.1,
        None => name,
    };
    bad.then_some(name.trim())
}

/// `2 tests run: 1 passed (1 slow), 1 failed, 1 skipped`, also `5/10 tests run: …`.
fn summary(line: &str) -> Option<(u64, u64, u64)> {
    let rest = line.trim_start().strip_prefix("Summary [")?.split_once(']')?.1.trim();
    let (run, parts) = rest.split_once(" run: ")?;
    let run = run.strip_suffix(" tests").or_else(|| run.strip_suffix(" test"))?;
    let run: u64 = run.split('/').next()?.parse().ok()?;
    let of = |word| super::counted::number_before(parts, ',', &[word]);
    Some((run, of("passed"), of("skipped")))
}

impl LineParser for Nextest {
    fn line(&mut self, line: &str) {
        if !line.starts_with(' ') {
            self.telling &= line.is_empty();
            return;
        }
        if line.starts_with("     Summary [")
            && let Some((run, passed, skipped)) = summary(line)
        {
            self.summed = true;
            self.telling = false;
            (self.counted.total, self.counted.failing) = (run, run.saturating_sub(passed));
            self.counted.skipped = skipped;
            // A test that passed on its second try is told before the summary too.
            self.counted.items.clear();
            return;
        }
        // Names and states stand to the right of column 4, what tests printed to the left of column 8.
        if line.starts_with("    ")
            && line.contains('[')
            && let Some(name) = failed_name(line)
        {
            self.counted.name(name);
            if !self.summed {
                self.telling = true;
                self.counted.detail(&format!("---- {name} ----"));
            }
            return;
        }
        let state = line.trim_start();
        if ["PASS [", "SKIP [", "SLOW [", "LEAK ["].iter().any(|start| state.starts_with(start)) {
            self.telling = false;
        } else if self.telling && !self.backtrace.has(line) {
            self.counted.detail(line.strip_prefix("    ").unwrap_or(line));
        }
    }

    fn finish(&mut self) -> Option<Counted> {
        self.counted.tests = true;
        self.summed.then(|| std::mem::take(&mut self.counted))
    }
}
