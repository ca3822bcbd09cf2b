//! How a command's output is read beyond its exit code: reports, floors, patterns.

use serde::{Deserialize, Serialize};

/// A kind of report that is understood, on the output or in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// `cargo test`, plain and quiet.
    Libtest,
    /// `cargo nextest run`.
    Nextest,
    /// `pytest`.
    Pytest,
    /// `go test`, plain or `-json`.
    Go,
    /// `jest`, plain or `--json`.
    Jest,
    /// `vitest`, plain or `--reporter=json`.
    Vitest,
    /// `mocha`, its spec or JSON reporter.
    Mocha,
    /// `node --test`, its spec reporter.
    Node,
    /// The Test Anything Protocol.
    Tap,
    /// JUnit's XML.
    Junit,
    /// `cargo check`, `build` or `clippy`: plain or `--message-format=json`.
    Cargo,
    /// `eslint`, plain or `--format json`.
    Eslint,
    /// `ruff check`, plain or JSON.
    Ruff,
    /// `tsc`.
    Tsc,
    /// Annotations as GitHub reads them: `::error file=…::message`.
    Github,
    /// SARIF 2.1.
    Sarif,
}

impl Format {
    /// All of them, with the names that scripts use.
    pub const NAMES: [(&'static str, Format); 16] = [
        ("libtest", Format::Libtest),
        ("nextest", Format::Nextest),
        ("pytest", Format::Pytest),
        ("go", Format::Go),
        ("jest", Format::Jest),
        ("vitest", Format::Vitest),
        ("mocha", Format::Mocha),
        ("node", Format::Node),
        ("tap", Format::Tap),
        ("junit", Format::Junit),
        ("cargo", Format::Cargo),
        ("eslint", Format::Eslint),
        ("ruff", Format::Ruff),
        ("tsc", Format::Tsc),
        ("github", Format::Github),
        ("sarif", Format::Sarif),
    ];

    /// The name that scripts use.
    pub fn name(self) -> &'static str {
        Format::NAMES.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// The format of this name.
    pub fn named(name: &str) -> Option<Format> {
        Format::NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// True where a report lists tests, so that none of them means that nothing ran; false where it lists findings, so
    /// that none of them is good.
    pub fn counts_tests(self) -> bool {
        !matches!(self, Format::Cargo | Format::Eslint | Format::Ruff | Format::Tsc | Format::Github | Format::Sarif)
    }
}

/// A function of the script that belongs to a sensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptFunction {
    /// Its number in the script, in the order in which they were named.
    pub number: u32,
    /// Where it stands: `loop.lua:12`.
    pub place: String,
}

/// Counts by regular expressions over lines. One with a group takes the number in it, the last match wins; one without
/// counts the lines that match.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PatternSpec {
    /// Failing items; default: the number of `item`s.
    pub failing: Option<String>,
    /// All items.
    pub total: Option<String>,
    /// Passed items; with `failing` they make the total.
    pub passed: Option<String>,
    /// Name of a failing item: its first group.
    pub item: Option<String>,
}

/// Who reads the output for counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parse {
    /// Whatever is recognised for sure, by the command and by the output itself; else the exit code alone.
    #[default]
    Auto,
    /// Nobody: the exit code alone.
    Off,
    /// This format.
    Format(Format),
    /// Patterns.
    Pattern(PatternSpec),
    /// A function of the script.
    Function(ScriptFunction),
}

/// What is read of a command beyond its exit code, and what is demanded of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counting {
    /// Who counts.
    pub parse: Parse,
    /// Globs, relative to the workspace, of the files that the command writes its report to; empty: its output.
    pub report: Vec<String>,
    /// The least number of items that must have been run; below it a pass is red.
    pub min_total: Option<u64>,
    /// Regular expressions that must each match a line, or a pass is red.
    pub must_match: Vec<String>,
    /// Regular expressions of lines that say that the sensor itself does not work: red becomes broken.
    pub broken_if: Vec<String>,
    /// Regular expressions of lines that feedback keeps whatever is cut.
    pub keep_lines: Vec<String>,
    /// The least `SCORE: n` that passes.
    pub threshold: Option<f64>,
}

impl Counting {
    /// True when nothing was said.
    pub fn is_default(&self) -> bool {
        *self == Counting::default()
    }
}
