//! `cargo test`: the test harness of Rust, plain and quiet.

use super::LineParser;
use super::counted::{Backtrace, Counted, number_before};

/// Where in the output of one test program.
#[derive(Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Outside,
    /// Between `running n tests` and the result.
    Tests,
    /// What the failing tests printed.
    Output,
    /// The list of failing names.
    Names,
}

#[derive(Debug, Default)]
pub(super) struct Libtest {
    counted: Counted,
    part: Part,
    seen: bool,
    /// The program that runs now, for one that never tells its result.
    program: String,
    backtrace: Backtrace,
}

impl Libtest {
    fn result(&mut self, parts: &str) {
        let failed = number_before(parts, ';', &["failed"]);
        self.counted.failing += failed;
        self.counted.total += failed + number_before(parts, ';', &["passed", "measured"]);
        self.counted.skipped += number_before(parts, ';', &["ignored"]);
        self.part = Part::Outside;
    }

    /// A program that ran tests and did not tell its result was killed, or left by itself.
    fn unfinished(&mut self) {
        if self.part != Part::Outside {
            self.counted.failing += 1;
            self.counted.total += 1;
            let program = if self.program.is_empty() { "a test program" } else { &self.program };
            let name = format!("{program} did not finish");
            self.counted.name(&name);
            self.part = Part::Outside;
        }
    }
}

impl LineParser for Libtest {
    fn line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("running ") {
            if rest.ends_with(" tests") || rest == "1 test" {
                self.unfinished();
                self.seen = true;
                self.part = Part::Tests;
            }
            return;
        }
        if let Some(program) = line.strip_prefix("     Running ").or_else(|| line.strip_prefix("   Doc-tests ")) {
            self.unfinished();
            self.program = program.to_owned();
            return;
        }
        match self.part {
            Part::Outside => {}
            Part::Tests | Part::Output | Part::Names if line.starts_with("test result: ") => {
                let parts = line.trim_start_matches("test result: ").split_once(". ").map_or("", |(_, parts)| parts);
                self.result(parts);
            }
            Part::Tests => {
                if line == "failures:" {
                    self.part = Part::Output;
                } else if let Some(name) = line.strip_suffix(" ... FAILED").and_then(|l| l.strip_prefix("test ")) {
                    self.counted.name(name.trim_end_matches(" - should panic"));
                }
            }
            Part::Output if line == "failures:" => self.part = Part::Names,
            Part::Output => {
                if !self.backtrace.has(line) {
                    self.counted.detail(line);
                }
            }
            Part::Names => {
                if let Some(name) = line.strip_prefix("    ") {
                    self.counted.name(name);
                }
            }
        }
    }

    fn finish(&mut self) -> Option<Counted> {
        self.unfinished();
        self.counted.tests = true;
        self.seen.then(|| std::mem::take(&mut self.counted))
    }
}
