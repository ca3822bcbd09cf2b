//! `jest`. Its JSON report, which vitest writes too, is a document.

use serde::Deserialize;

use super::LineParser;
use super::counted::{Counted, number_before};
use super::document::{Fold, Summary};

#[derive(Debug, Default)]
pub(super) struct Jest {
    counted: Counted,
    summed: bool,
    telling: bool,
    /// The file whose tests are told.
    file: String,
    not_run: u64,
}

const NOT_RUN: &str = "Test suite failed to run";

impl LineParser for Jest {
    fn line(&mut self, line: &str) {
        if let Some(parts) = line.strip_prefix("Tests: ") {
            self.telling = false;
            if !parts.trim_end().ends_with(" total") {
                return;
            }
            self.summed = true;
            let failed = number_before(parts, ',', &["failed"]) + self.not_run;
            self.counted.failing = failed;
            self.counted.total = failed + number_before(parts, ',', &["passed"]);
            self.counted.skipped = number_before(parts, ',', &["skipped", "todo"]);
        } else if let Some(name) = line.strip_prefix("  ● ") {
            let is_title = !name.starts_with("Console") && !name.contains("Deprecation Warning");
            self.telling = is_title;
            if name == NOT_RUN {
                let told = format!("{} ({NOT_RUN})", self.file);
                // The list of all failures at the end repeats what was told before.
                if !self.counted.items.contains(&told) {
                    self.not_run += 1;
                    self.counted.name(&told);
                    self.counted.detail(&told);
                }
            } else if is_title {
                let known = self.counted.items.iter().any(|item| item == name.trim());
                self.telling = !known;
                self.counted.name(name);
                if !known {
                    self.counted.detail(line);
                }
            }
        } else if let Some(file) = line.strip_prefix("FAIL ").or_else(|| line.strip_prefix("PASS ")) {
            self.telling = false;
            self.file = file.split(" (").next().unwrap_or(file).trim().to_owned();
        } else if line.starts_with("Test Suites: ") || line.starts_with("Summary of all failing tests") {
            self.telling = false;
        } else if line.starts_with("No tests found, exiting with code") {
            self.summed = true;
        } else if self.telling {
            self.counted.detail(line);
        }
    }

    fn finish(&mut self) -> Option<Counted> {
        self.counted.tests = true;
        self.summed.then(|| std::mem::take(&mut self.counted))
    }
}

/// The JSON report of jest and vitest.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document {
    num_total_tests: u64,
    #[serde(default)]
    num_runtime_error_test_suites: u64,
    test_results: Fold<Suites>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Suite {
    #[serde(default)]
    assertion_results: Fold<Tests>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Test {
    #[serde(default)]
    full_name: String,
    status: String,
    #[serde(default)]
    failure_messages: Vec<String>,
}

#[derive(Default)]
struct Suites(Counted);

#[derive(Default)]
struct Tests(Counted);

impl Summary for Tests {
    type Item = Test;

    fn add(&mut self, test: Test) {
        match test.status.as_str() {
            "passed" => self.0.total += 1,
            "failed" => {
                self.0.total += 1;
                self.0.failing += 1;
                self.0.name(&test.full_name);
                self.0.detail(&format!("---- {} ----", test.full_name));
                test.failure_messages.iter().flat_map(|text| text.lines()).for_each(|line| self.0.detail(line));
            }
            _ => self.0.skipped += 1,
        }
    }
}

impl Summary for Suites {
    type Item = Suite;

    fn add(&mut self, suite: Suite) {
        let tests = suite.assertion_results.0.0;
        if suite.status == "failed" && tests.failing == 0 {
            self.0.failing += 1;
            self.0.total += 1;
            self.0.name(&format!("{} ({NOT_RUN})", suite.name));
            suite.message.lines().for_each(|line| self.0.detail(line));
        }
        self.0.add(&tests);
    }
}

impl Document {
    pub(super) fn counted(self) -> Counted {
        let Suites(mut counted) = self.test_results.0;
        counted.tests = true;
        counted.did_not_run = self.num_total_tests == 0 && self.num_runtime_error_test_suites > 0;
        counted
    }
}
