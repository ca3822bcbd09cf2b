//! `vitest run`. Its JSON report is that of jest.

use super::LineParser;
use super::counted::{Counted, number_before};

#[derive(Debug, Default)]
pub(super) struct Vitest {
    counted: Counted,
    summed: bool,
    telling: bool,
    /// Files that failed as a whole.
    files: u64,
    errors: u64,
}

/// ` 2 failed | 1 passed | 1 skipped (4)`
fn parts(text: &str) -> &str {
    text.rsplit_once(" (").map_or(text, |(parts, _)| parts)
}

impl LineParser for Vitest {
    fn line(&mut self, line: &str) {
        if !line.starts_with(' ') {
            if line.starts_with("No test files found") {
                self.summed = true;
            } else if line.starts_with('⎯') {
                self.telling = line.contains("Failed ") || (self.telling && line.contains('['));
            } else if self.telling {
                self.counted.detail(line);
            }
            return;
        }
        let text = line.trim_start();
        if let Some(rest) = text.strip_prefix("Tests  ") {
            self.telling = false;
            self.summed = true;
            let failed = number_before(parts(rest), '|', &["failed"]);
            self.counted.failing = failed;
            self.counted.total = failed + number_before(parts(rest), '|', &["passed"]);
            self.counted.skipped = number_before(parts(rest), '|', &["skipped", "todo"]);
        } else if let Some(rest) = text.strip_prefix("Errors  ") {
            self.errors = rest.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        } else if text.starts_with("Test Files  ") {
            self.telling = false;
        } else if let Some(name) = line.strip_prefix(" FAIL  ") {
            // A file that failed as a whole is told as `path [ path ]`.
            if name.ends_with(" ]") && !name.contains(" > ") {
                self.files += 1;
            }
            self.counted.name(name.split(" [ ").next().unwrap_or(name));
            self.telling = true;
            self.counted.detail(line);
        } else if self.telling {
            self.counted.detail(line);
        }
    }

    fn finish(&mut self) -> Option<Counted> {
        self.counted.tests = true;
        let whole = self.files + self.errors;
        self.counted.did_not_run = self.counted.total == 0 && whole > 0;
        self.counted.failing += whole;
        if !self.counted.did_not_run {
            self.counted.total += whole;
        }
        self.summed.then(|| std::mem::take(&mut self.counted))
    }
}
