//! What real runners wrote, recorded in `tests/data/reports/`.

use std::path::Path;

use super::*;
use crate::policy::PatternSpec;

fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/reports").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn counted(name: &str, parse: &Parse, command: &str) -> Option<Counted> {
    let mut reporter = Reporter::new(parse, command);
    for line in sample(name).lines() {
        // As a terminal would show it.
        reporter.line(Stream::Stdout, &anstream::adapter::strip_str(line).to_string(), true);
    }
    reporter.finish().unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// File, format, failing, total, skipped, names of the failing items.
type Sample = (&'static str, Format, u64, u64, u64, &'static [&'static str]);

const TESTS: &[Sample] = &[
    ("libtest.txt", Format::Libtest, 1, 3, 1, &["tests::subtracts"]),
    ("libtest-q.txt", Format::Libtest, 1, 3, 1, &["tests::subtracts"]),
    ("libtest-none.txt", Format::Libtest, 0, 0, 0, &[]),
    ("nextest.txt", Format::Nextest, 1, 2, 1, &["calc tests::subtracts"]),
    ("nextest-none.txt", Format::Nextest, 0, 0, 3, &[]),
    (
        "pytest.txt",
        Format::Pytest,
        3,
        5,
        1,
        &["test_calc.py::test_sub", "test_calc.py::test_many[2]", "test_calc.py::test_fixture"],
    ),
    (
        "pytest-q.txt",
        Format::Pytest,
        3,
        5,
        1,
        &["test_calc.py::test_sub", "test_calc.py::test_many[2]", "test_calc.py::test_fixture"],
    ),
    (
        "pytest-v.txt",
        Format::Pytest,
        3,
        5,
        1,
        &["test_calc.py::test_sub", "test_calc.py::test_many[2]", "test_calc.py::test_fixture"],
    ),
    (
        "pytest--tbno-q.txt",
        Format::Pytest,
        3,
        5,
        1,
        &["test_calc.py::test_sub", "test_calc.py::test_many[2]", "test_calc.py::test_fixture"],
    ),
    ("pytest-knosuch.txt", Format::Pytest, 0, 0, 0, &[]),
    (
        "pytest.xml",
        Format::Junit,
        3,
        5,
        1,
        &["test_calc::test_sub", "test_calc::test_many[2]", "test_calc::test_fixture"],
    ),
    ("go.txt", Format::Go, 4, 5, 0, &["TestSub", "TestTable", "TestTable/two", "example.org/calc/sub [build failed]"]),
    (
        "go-v.txt",
        Format::Go,
        4,
        7,
        1,
        &["TestSub", "TestTable", "TestTable/two", "example.org/calc/sub [build failed]"],
    ),
    (
        "go-json.txt",
        Format::Go,
        4,
        7,
        1,
        &[
            "example.org/calc.TestSub",
            "example.org/calc.TestTable/two",
            "example.org/calc.TestTable",
            "example.org/calc/sub [build failed]",
        ],
    ),
    ("go-none.txt", Format::Go, 0, 0, 0, &[]),
    ("jest.txt", Format::Jest, 2, 3, 1, &["calc › subtracts", "top level fails"]),
    ("jest.json", Format::Jest, 2, 3, 1, &["calc subtracts", "top level fails"]),
    ("jest-none.txt", Format::Jest, 0, 0, 0, &[]),
    ("jest-filtered.txt", Format::Jest, 0, 0, 4, &[]),
    (
        "vitest.txt",
        Format::Vitest,
        2,
        3,
        1,
        &["vitest/calc.test.mjs > calc > subtracts", "vitest/calc.test.mjs > top level fails"],
    ),
    ("vitest.json", Format::Vitest, 2, 3, 1, &["calc subtracts", "top level fails"]),
    ("vitest-none.txt", Format::Vitest, 0, 0, 4, &[]),
    (
        "vitest.xml",
        Format::Junit,
        2,
        3,
        1,
        &["vitest/calc.test.mjs::calc > subtracts", "vitest/calc.test.mjs::top level fails"],
    ),
    ("mocha.txt", Format::Mocha, 2, 3, 1, &["top level fails", "calc subtracts"]),
    ("mocha.json", Format::Mocha, 2, 3, 1, &["top level fails", "calc subtracts"]),
    ("mocha.tap", Format::Tap, 2, 3, 1, &["top level fails", "calc subtracts"]),
    ("mocha-none.txt", Format::Mocha, 0, 0, 0, &[]),
    ("node-spec.txt", Format::Node, 2, 3, 1, &["subtracts", "top level fails"]),
    ("node.tap", Format::Tap, 2, 3, 1, &["calc > subtracts", "top level fails"]),
];

const FINDINGS: &[Sample] = &[
    (
        "cargo-json.txt",
        Format::Cargo,
        2,
        3,
        0,
        &["src/bad.rs:2: mismatched types", "src/bad.rs:3: cannot find function `undefined` in this scope"],
    ),
    (
        "libtest-compile.txt",
        Format::Cargo,
        2,
        3,
        0,
        &["src/bad.rs:2: mismatched types", "src/bad.rs:3: cannot find function `undefined` in this scope"],
    ),
    (
        "clippy.txt",
        Format::Cargo,
        3,
        3,
        0,
        &[
            "src/bad.rs:1: unused variable: `x`",
            "src/bad.rs:2: writing `&Vec` instead of `&[_]` involves a new object where a slice will do",
            "src/bad.rs:2: length comparison to zero",
        ],
    ),
    (
        "eslint.txt",
        Format::Eslint,
        2,
        3,
        0,
        &[
            "/project/lint/a.js:1: 'a' is assigned a value but never used no-unused-vars",
            "/project/lint/a.js:2: 'foo' is not defined no-undef",
        ],
    ),
    (
        "eslint.json",
        Format::Eslint,
        2,
        3,
        0,
        &[
            "/project/lint/a.js:1: 'a' is assigned a value but never used. no-unused-vars",
            "/project/lint/a.js:2: 'foo' is not defined. no-undef",
        ],
    ),
    ("ruff-concise.txt", Format::Ruff, 4, 4, 0, RUFF_TEXT),
    ("ruff-full.txt", Format::Ruff, 4, 4, 0, RUFF_TEXT),
    ("ruff-json.txt", Format::Ruff, 4, 4, 0, RUFF_JSON),
    (
        "ruff-github.txt",
        Format::Github,
        4,
        4,
        0,
        &[
            "/project/bad.py:1: bad.py:1:1: I001 Import block is un-sorted or un-formatted   help: Organize imports",
            "/project/bad.py:1: bad.py:1:8: F401 `os` imported but unused   help: Remove unused import: `os`",
            "/project/bad.py:2: bad.py:2:8: F401 `sys` imported but unused   help: Remove unused import: `sys`",
            "/project/bad.py:3: bad.py:3:3: F821 Undefined name `undefined`",
        ],
    ),
    (
        "ruff-sarif.txt",
        Format::Sarif,
        4,
        4,
        0,
        &[
            "file:///project/bad.py:1: I001 Import block is un-sorted or un-formatted",
            "file:///project/bad.py:1: F401 `os` imported but unused",
            "file:///project/bad.py:2: F401 `sys` imported but unused",
            "file:///project/bad.py:3: F821 Undefined name `undefined`",
        ],
    ),
    ("tsc.txt", Format::Tsc, 2, 2, 0, TSC),
    ("tsc-pretty.txt", Format::Tsc, 2, 2, 0, TSC),
];

const RUFF_TEXT: &[&str] = &[
    "bad.py:1: I001 Import block is un-sorted or un-formatted",
    "bad.py:1: F401 `os` imported but unused",
    "bad.py:2: F401 `sys` imported but unused",
    "bad.py:3: F821 Undefined name `undefined`",
];
const RUFF_JSON: &[&str] = &[
    "/project/bad.py:1: I001 Import block is un-sorted or un-formatted",
    "/project/bad.py:1: F401 `os` imported but unused",
    "/project/bad.py:2: F401 `sys` imported but unused",
    "/project/bad.py:3: F821 Undefined name `undefined`",
];
const TSC: &[&str] = &[
    "ts/a.ts:1: Type 'string' is not assignable to type 'number'. TS2322",
    "ts/a.ts:2: Type 'number' is not assignable to type 'string'. TS2322",
];

#[test]
fn every_recorded_report_is_counted_as_its_runner_counts() {
    for (name, format, failing, total, skipped, items) in TESTS.iter().chain(FINDINGS) {
        let Some(counted) = counted(name, &Parse::Format(*format), "") else {
            panic!("{name}: nothing was recognised")
        };
        assert_eq!(
            (counted.failing, counted.total, counted.skipped, counted.items.as_slice()),
            (*failing, *total, *skipped, &items.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..]),
            "{name}"
        );
        assert_eq!(counted.tests, format.counts_tests(), "{name}");
    }
}

#[test]
fn a_runner_is_recognised_by_its_output_alone_and_by_no_other() {
    for (name, format, failing, total, ..) in TESTS {
        // Documents are read where they are named or the command says whose they are.
        if name.ends_with(".json") || name.ends_with(".xml") {
            continue;
        }
        let Some(counted) = counted(name, &Parse::Auto, "npm test") else { panic!("{name}: nothing was recognised") };
        assert_eq!((counted.failing, counted.total), (*failing, *total), "{name} {format:?}");
    }
    for (name, ..) in FINDINGS {
        assert_eq!(counted(name, &Parse::Auto, "npm test"), None, "{name}");
    }
}

#[test]
fn what_is_said_about_failures_is_kept_without_backtraces() {
    for (name, format, has) in [
        ("libtest.txt", Format::Libtest, "assertion `left == right` failed"),
        ("nextest.txt", Format::Nextest, "assertion `left == right` failed"),
        ("pytest.txt", Format::Pytest, "E       assert 2 == 3"),
        ("pytest.xml", Format::Junit, "E       assert 2 == 3"),
        ("go.txt", Format::Go, "got 8, want 2"),
        ("go-json.txt", Format::Go, "got 8, want 2"),
        ("jest.txt", Format::Jest, "Received: 8"),
        ("jest.json", Format::Jest, "Received: 8"),
        ("vitest.txt", Format::Vitest, "AssertionError: expected 8 to be 2"),
        ("mocha.txt", Format::Mocha, "AssertionError [ERR_ASSERTION]: 8 == 2"),
        ("mocha.json", Format::Mocha, "AssertionError [ERR_ASSERTION]: 8 == 2"),
        ("node-spec.txt", Format::Node, "AssertionError [ERR_ASSERTION]: 8 == 2"),
        ("node.tap", Format::Tap, "error: '8 == 2'"),
        ("cargo-json.txt", Format::Cargo, "expected `i32`, found `&str`"),
        ("clippy.txt", Format::Cargo, "help: change this to"),
    ] {
        let details = counted(name, &Parse::Format(format), "").unwrap().details;
        assert!(details.contains(has), "{name}:\n{details}");
        assert!(!details.contains("rust_begin_unwind"), "{name}:\n{details}");
        assert!(details.len() <= MOST_DETAILS);
    }
}

#[test]
fn a_build_that_fails_is_told_and_counts_no_tests() {
    let mut reporter = Reporter::new(&Parse::Auto, "cargo test");
    sample("libtest-compile.txt").lines().for_each(|line| reporter.line(Stream::Stderr, line, true));
    assert_eq!(reporter.finish(), Ok(None));
    let build = reporter.build_errors().unwrap();
    assert_eq!((build.failing, build.items.len()), (2, 2));
}

#[test]
fn a_test_program_that_dies_is_a_failure_of_its_own() {
    let text = "     Running unittests src/lib.rs (target/debug/deps/calc-1)\n\nrunning 2 tests\ntest a ... ok\n\
                error: test failed, to rerun pass `--lib`\n";
    let counted = count(&Parse::Format(Format::Libtest), text).unwrap();
    assert_eq!((counted.failing, counted.total), (1, 1));
    assert!(counted.items[0].starts_with("unittests src/lib.rs") && counted.items[0].ends_with("did not finish"));
}

#[test]
fn tests_that_could_not_be_collected_did_not_run() {
    let text = "==== ERRORS ====\n____ ERROR collecting test_x.py ____\nE   SyntaxError: invalid syntax\n\
                ==== short test summary info ====\nERROR test_x.py\n\
                !!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!\n==== 1 error in 0.07s ====\n";
    let counted = count(&Parse::Format(Format::Pytest), text).unwrap();
    assert_eq!((counted.failing, counted.total, counted.did_not_run), (1, 0, true));
    assert_eq!(counted.line(), "the tests did not run: 1 error");
}

#[test]
fn planned_tests_that_did_not_come_are_failures() {
    for (text, failing, total) in [
        ("1..3\nok 1 - a\nok 2 - b\n", 1, 3),
        ("1..0 # SKIP nothing here\n", 0, 0),
        ("TAP version 13\nok 1 - a\nBail out! no database\n", 1, 2),
        ("1..2\nnot ok 1 - a # TODO later\nok 2\n", 0, 2),
        ("TAP version 14\n# Subtest: a\n    ok 1 - x\n    1..1\nnot ok 1 - a\n1..1\n", 1, 2),
    ] {
        let counted = count(&Parse::Format(Format::Tap), text).unwrap();
        assert_eq!((counted.failing, counted.total), (failing, total), "{text}");
    }
    assert_eq!(count(&Parse::Format(Format::Tap), "ok then\nnot okay\n1..\n"), None);
}

#[test]
fn several_reports_are_summed_where_the_command_says_so_and_not_sure_elsewhere() {
    let both = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 \
                filtered out; finished in 0.00s\nTests:       1 failed, 2 total\n";
    let read = |command: &str| {
        let mut reporter = Reporter::new(&Parse::Auto, command);
        both.lines().for_each(|line| reporter.line(Stream::Stdout, line, true));
        reporter.finish().unwrap().map(|counted| (counted.failing, counted.total))
    };
    assert_eq!(read("cargo test && npx jest"), Some((1, 2)));
    assert_eq!(read("make check"), None);
    assert_eq!(read("cargo test"), Some((0, 1)));
}

#[test]
fn patterns_count_numbers_and_lines() {
    let text = "FAIL a\nFAIL b\n3 of 10 checks failed\n";
    let spec = |failing: Option<&str>, total: Option<&str>, item: Option<&str>| {
        let own = |pattern: Option<&str>| pattern.map(str::to_owned);
        Parse::Pattern(PatternSpec { failing: own(failing), total: own(total), passed: None, item: own(item) })
    };
    let counted = count(&spec(Some(r"(\d+) of \d+"), Some(r"of (\d+)"), Some(r"^FAIL (.*)")), text).unwrap();
    assert_eq!((counted.failing, counted.total, counted.items), (3, 10, vec!["a".to_owned(), "b".to_owned()]));
    let counted = count(&spec(Some("^FAIL"), None, None), text).unwrap();
    assert_eq!((counted.failing, counted.tests), (2, false));
    assert_eq!(count(&spec(None, Some("nothing like it (\\d+)"), Some("^nothing")), text), None);
}

#[test]
fn names_and_details_are_bounded() {
    let mut text = String::from("running 5000 tests\n\nfailures:\n");
    (0..5000).for_each(|n| text.push_str(&format!("---- t{n} ----\n{}\n", "x".repeat(500))));
    text.push_str("\nfailures:\n");
    (0..5000).for_each(|n| text.push_str(&format!("    t{n}\n")));
    text.push_str("\ntest result: FAILED. 0 passed; 5000 failed; 0 ignored; 0 measured; 0 filtered out\n");
    let counted = count(&Parse::Format(Format::Libtest), &text).unwrap();
    assert_eq!((counted.failing, counted.items.len()), (5000, MOST_ITEMS));
    assert!(counted.details.len() <= MOST_DETAILS);
}

#[test]
fn a_document_that_is_cut_off_is_no_report() {
    let cut = &sample("jest.json")[..2000];
    let mut reporter = Reporter::new(&Parse::Format(Format::Jest), "");
    reporter.line(Stream::Stdout, cut, true);
    assert!(reporter.finish().unwrap_err().starts_with("its report cannot be read"));
    let mut reporter = Reporter::new(&Parse::Format(Format::Junit), "");
    sample("pytest.xml")[..800].lines().for_each(|line| reporter.line(Stream::Stdout, line, true));
    assert!(reporter.finish().is_err());
}

#[test]
fn a_long_line_in_pieces_is_one_document() {
    let mut reporter = Reporter::new(&Parse::Auto, "npx eslint --format=json .");
    let text = sample("eslint.json");
    for piece in text.trim_end().as_bytes().chunks(100) {
        reporter.line(Stream::Stdout, std::str::from_utf8(piece).unwrap(), false);
    }
    reporter.line(Stream::Stdout, "", true);
    assert_eq!(reporter.finish().unwrap().unwrap().failing, 2);
}

#[test]
fn report_files_are_read_when_they_are_new() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir_all(root.join("build/deep")).unwrap();
    let globs = ["build/**/*.xml".to_owned()];
    let before = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    let none = read_files(root, &globs, &Parse::Auto, before).unwrap_err();
    assert!(none.to_string().contains("nothing new matches build/**/*.xml"), "{none}");
    std::fs::write(root.join("build/a.xml"), sample("pytest.xml")).unwrap();
    std::fs::write(root.join("build/deep/b.xml"), sample("vitest.xml")).unwrap();
    let counted = read_files(root, &globs, &Parse::Auto, before).unwrap();
    assert_eq!((counted.failing, counted.total, counted.items.len()), (5, 8, 5));
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    assert!(read_files(root, &globs, &Parse::Auto, later).is_err(), "an old report says nothing");
    std::fs::write(root.join("build/c.xml"), "<testsuite><testcase name='x'>").unwrap();
    let cut = read_files(root, &globs, &Parse::Auto, before).unwrap_err().to_string();
    assert!(cut.starts_with("its report build/c.xml cannot be read"), "{cut}");
    for (name, globs) in
        [("eslint.json", "*.json"), ("ruff-sarif.txt", "*.sarif"), ("node.tap", "*.tap"), ("go-json.txt", "*.go")]
    {
        let file = format!("report{}", &globs[1..]);
        std::fs::write(root.join(&file), sample(name)).unwrap();
        assert!(read_files(root, &[globs.to_owned()], &Parse::Auto, before).unwrap().failing > 0, "{name}");
    }
}
