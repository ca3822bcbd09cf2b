//! `go test`, plain, `-v` and `-json`.
//!
//! Without `-v` and `-json` passing tests are not told one by one: a package that is ok counts as one item.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;

use super::LineParser;
use super::counted::Counted;

/// Tests whose output is held while it is not known how they end, and bytes of each.
const MOST_HELD: usize = 64;
const MOST_HELD_BYTES: usize = 4 << 10;

#[derive(Debug, Default)]
pub(super) struct Go {
    counted: Counted,
    seen: bool,
    passed: u64,
    packages_ok: u64,
    /// What follows is about a failing test.
    telling: bool,
    /// A test of the package that is running has failed.
    package_has_failed: bool,
    held: HashMap<String, String>,
    failed_packages: HashMap<String, bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event<'a> {
    #[serde(borrow)]
    action: Cow<'a, str>,
    #[serde(borrow, default)]
    package: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    test: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    output: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    import_path: Option<Cow<'a, str>>,
}

impl Go {
    fn event(&mut self, event: Event<'_>) {
        self.seen = true;
        let package = event.package.as_deref().or(event.import_path.as_deref()).unwrap_or_default();
        let name = match &event.test {
            Some(test) => format!("{package}.{test}"),
            None => package.to_owned(),
        };
        match (&*event.action, event.test.is_some()) {
            ("pass", true) => {
                self.passed += 1;
                self.held.remove(&name);
            }
            ("skip", true) => {
                self.counted.skipped += 1;
                self.held.remove(&name);
            }
            ("fail", true) => {
                self.counted.failing += 1;
                self.counted.name(&name);
                self.failed_packages.insert(package.to_owned(), true);
                self.tell(&name);
            }
            // A package that fails without a failing test: it did not build, or it left by itself.
            ("fail", false) if !self.failed_packages.contains_key(package) => {
                self.counted.failing += 1;
                self.counted.name(&name);
                self.tell(&name);
            }
            ("output" | "build-output", _) => {
                if let Some(output) = &event.output {
                    self.hold(name, output);
                }
            }
            _ => {}
        }
    }

    fn hold(&mut self, name: String, output: &str) {
        let is_new = !self.held.contains_key(&name);
        if is_new && self.held.len() >= MOST_HELD {
            return;
        }
        let held = self.held.entry(name).or_default();
        if held.len() + output.len() <= MOST_HELD_BYTES {
            held.push_str(output);
        }
    }

    fn tell(&mut self, name: &str) {
        if let Some(held) = self.held.remove(name) {
            self.counted.detail(&format!("---- {name} ----"));
            held.lines().for_each(|line| self.counted.detail(line));
        }
    }

    fn plain(&mut self, line: &str) {
        let indented = line.trim_start();
        if let Some(rest) = indented.strip_prefix("--- ") {
            self.telling = false;
            let name = |rest: &str| rest.split(" (").next().unwrap_or(rest).to_owned();
            if let Some(rest) = rest.strip_prefix("FAIL: ") {
                self.seen = true;
                self.telling = true;
                self.package_has_failed = true;
                self.counted.failing += 1;
                self.counted.name(&name(rest));
                self.counted.detail(line);
            } else if rest.starts_with("PASS: ") {
                self.seen = true;
                self.passed += 1;
            } else if rest.starts_with("SKIP: ") {
                self.seen = true;
                self.counted.skipped += 1;
            }
            return;
        }
        if let Some(rest) = line.strip_prefix("ok  \t") {
            self.seen = true;
            self.telling = false;
            self.package_has_failed = false;
            if !rest.contains("[no tests to run]") {
                self.packages_ok += 1;
            }
        } else if let Some(rest) = line.strip_prefix("FAIL\t") {
            self.seen = true;
            self.telling = false;
            if !self.package_has_failed {
                self.counted.failing += 1;
                let (package, why) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
                let why = if why.starts_with('[') { format!(" {why}") } else { String::new() };
                self.counted.name(&format!("{package}{why}"));
            }
            self.package_has_failed = false;
        } else if line.starts_with("?   \t") {
            self.seen = true;
            self.telling = false;
        } else if line.starts_with("panic: ") || line.starts_with("# ") {
            self.telling = true;
            self.counted.detail(line);
        } else if line.starts_with("=== ") || line == "FAIL" || line == "PASS" {
            self.telling = false;
        } else if self.telling {
            self.counted.detail(line);
        }
    }
}

impl LineParser for Go {
    fn line(&mut self, line: &str) {
        if line.starts_with("{\"") && line.contains("\"Action\"") {
            if let Ok(event) = serde_json::from_str(line) {
                self.event(event);
            }
            return;
        }
        self.plain(line);
    }

    fn finish(&mut self) -> Option<Counted> {
        self.counted.tests = true;
        let passed = if self.passed > 0 { self.passed } else { self.packages_ok };
        self.counted.total = self.counted.failing + passed;
        self.seen.then(|| std::mem::take(&mut self.counted))
    }
}
