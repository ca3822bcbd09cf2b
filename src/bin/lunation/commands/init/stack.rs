//! What kind of project a folder holds, told by its files: the commands that check it, and the tests that an agent must
//! not edit. Looks, and runs nothing.

use std::path::Path;

use serde_json::Value;

/// A project as `init` sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Stack {
    /// What it was told by, for people: `Cargo.toml`.
    pub(super) found: Vec<String>,
    /// Commands for `sensors`, the quickest to tell first.
    pub(super) sensors: Vec<String>,
    /// Globs of tests, for the fence to take out.
    pub(super) tests: Vec<String>,
}

/// Scripts that are taken for the project's own check, when nothing else tells, in this order.
const CHECKS: &[&str] =
    &[".ci/run", "ci/run", "script/test", "scripts/test.sh", "run-tests.sh", "run_tests.sh", "test.sh", "tests/run.sh"];

impl Stack {
    /// Looks at a folder.
    pub(super) fn of(folder: &Path) -> Stack {
        let mut stack = Stack::default();
        for look in [cargo, node, python, go, make] {
            look(folder, &mut stack);
        }
        if stack.sensors.is_empty() {
            script(folder, &mut stack);
        }
        for name in ["tests", "test", "spec", "__tests__"] {
            if folder.join(name).is_dir() {
                stack.test(&format!("{name}/**"));
            }
        }
        stack
    }

    fn check(&mut self, by: &str, sensors: &[&str]) {
        self.found.push(by.to_owned());
        self.sensors.extend(sensors.iter().map(|sensor| (*sensor).to_owned()));
    }

    fn test(&mut self, glob: &str) {
        if !self.tests.iter().any(|known| known == glob) {
            self.tests.push(glob.to_owned());
        }
    }
}

fn cargo(folder: &Path, stack: &mut Stack) {
    if folder.join("Cargo.toml").is_file() {
        stack.check("Cargo.toml", &["cargo test"]);
    }
}

/// The scripts of package.json that check something, without npm's placeholder.
fn node(folder: &Path, stack: &mut Stack) {
    let Some(package) = json(&folder.join("package.json")) else { return };
    let lock = |name: &str| folder.join(name).is_file();
    let runner = match () {
        () if lock("pnpm-lock.yaml") => "pnpm",
        () if lock("yarn.lock") => "yarn",
        () if lock("bun.lockb") || lock("bun.lock") => "bun",
        () => "npm",
    };
    let script = |name: &str| package["scripts"][name].as_str().filter(|text| !text.contains("no test specified"));
    let mut sensors = Vec::new();
    for name in ["typecheck", "test", "lint"] {
        if script(name).is_some() {
            sensors.push(format!("{runner} run {name}"));
        }
    }
    if !sensors.is_empty() {
        stack.check("package.json", &sensors.iter().map(String::as_str).collect::<Vec<_>>());
        stack.test("**/*.test.*");
    }
}

fn python(folder: &Path, stack: &mut Stack) {
    let told = ["pytest.ini", "tox.ini", "pyproject.toml", "setup.cfg", "setup.py"];
    let Some(by) = told.iter().find(|name| folder.join(name).is_file()) else { return };
    let pytest = by.starts_with("pytest")
        || ["pyproject.toml", "setup.cfg", "tox.ini"].iter().any(|name| text(&folder.join(name)).contains("pytest"))
        || ["tests", "test"].iter().any(|name| folder.join(name).is_dir());
    if pytest {
        stack.check(by, &["python -m pytest -q"]);
        stack.test("**/test_*.py");
    }
}

fn go(folder: &Path, stack: &mut Stack) {
    if folder.join("go.mod").is_file() {
        stack.check("go.mod", &["go vet ./...", "go test ./..."]);
        stack.test("**/*_test.go");
    }
}

/// The first of `test` and `check` that the Makefile has.
fn make(folder: &Path, stack: &mut Stack) {
    if !stack.sensors.is_empty() {
        return;
    }
    for name in ["GNUmakefile", "makefile", "Makefile"] {
        let rules = text(&folder.join(name));
        let has = |target: &str| {
            rules.lines().any(|line| line.split(':').next().is_some_and(|t| t.trim() == target) && line.contains(':'))
        };
        if let Some(target) = ["test", "check"].into_iter().find(|target| has(target)) {
            stack.check(name, &[&format!("make {target}")]);
            return;
        }
    }
}

fn script(folder: &Path, stack: &mut Stack) {
    if let Some(check) = CHECKS.iter().find(|check| folder.join(check).is_file()) {
        let first = text(&folder.join(check));
        let shell = if first.starts_with("#!") && first.lines().next().is_some_and(|line| line.contains("bash")) {
            "bash"
        } else {
            "sh"
        };
        stack.check(check, &[&format!("{shell} {check}")]);
        stack.test(check);
    }
}

/// The text of a small file; nothing when it is none, or is not there.
fn text(path: &Path) -> String {
    let small = std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() < 1 << 20);
    if small { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() }
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_str(&text(path)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &str)]) -> Stack {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        Stack::of(folder.path())
    }

    #[test]
    fn each_stack_is_told_by_its_files() {
        assert_eq!(project(&[("Cargo.toml", "")]).sensors, ["cargo test"]);
        assert_eq!(project(&[("go.mod", "module x")]).sensors, ["go vet ./...", "go test ./..."]);
        assert_eq!(project(&[("pyproject.toml", "[tool.pytest.ini_options]")]).sensors, ["python -m pytest -q"]);
        assert_eq!(project(&[("pyproject.toml", "[project]")]).sensors, [""; 0]);
        assert_eq!(project(&[("Makefile", "all:\n\ttrue\ncheck: all\n\ttrue\n")]).sensors, ["make check"]);
        assert_eq!(project(&[("test.sh", "#!/usr/bin/env bash\n")]).sensors, ["bash test.sh"]);
        assert_eq!(project(&[("README", "")]), Stack::default());
    }

    #[test]
    fn the_scripts_of_a_package_are_run_by_its_own_runner() {
        let package = r#"{ "scripts": { "test": "vitest", "lint": "eslint .", "build": "tsc" } }"#;
        let stack = project(&[("package.json", package), ("pnpm-lock.yaml", ""), ("test/a.js", "")]);
        assert_eq!(stack.sensors, ["pnpm run test", "pnpm run lint"]);
        assert_eq!(stack.tests, ["**/*.test.*", "test/**"]);
    }

    #[test]
    fn a_placeholder_is_no_test() {
        let package = r#"{ "scripts": { "test": "echo \"Error: no test specified\" && exit 1" } }"#;
        assert_eq!(project(&[("package.json", package)]), Stack::default());
    }
}
