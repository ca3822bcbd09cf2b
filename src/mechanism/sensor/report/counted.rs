//! What a report says, bounded.

/// Names of failing items that are kept.
pub const MOST_ITEMS: usize = 200;
/// Bytes about failures that are kept.
pub const MOST_DETAILS: usize = 24 << 10;
/// Bytes of one name.
const MOST_NAME: usize = 300;

/// What a report says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// Items that failed: tests, or findings that are errors.
    pub failing: u64,
    /// Items that were run: tests that passed or failed, or all findings. Skipped ones are not among them.
    pub total: u64,
    /// Items that were skipped.
    pub skipped: u64,
    /// Findings that are only warnings.
    pub warnings: u64,
    /// Names of the failing items, each once, at most [`MOST_ITEMS`].
    pub items: Vec<String>,
    /// What is said about the failures, at most [`MOST_DETAILS`] bytes.
    pub details: String,
    /// True: tests are counted, so that none of them is no proof. False: findings.
    pub tests: bool,
    /// True when nothing could be run, and `failing` counts what stood in the way.
    pub did_not_run: bool,
}

impl Counted {
    /// An empty report of tests.
    pub(super) fn tests() -> Counted {
        Counted { tests: true, ..Counted::default() }
    }

    /// One line: `2 of 57 tests failed`.
    pub fn line(&self) -> String {
        let plural = |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        if !self.tests {
            return match (self.failing, self.warnings) {
                (0, 0) => "nothing found".into(),
                (errors, 0) => plural(errors, "error"),
                (0, warnings) => plural(warnings, "warning"),
                (errors, warnings) => format!("{}, {}", plural(errors, "error"), plural(warnings, "warning")),
            };
        }
        match (self.failing, self.total) {
            _ if self.did_not_run => format!("the tests did not run: {}", plural(self.failing, "error")),
            (0, 0) => "no test ran".into(),
            (0, total) => format!("{} passed", plural(total, "test")),
            (failing, total) => format!("{failing} of {} failed", plural(total, "test")),
        }
    }

    /// Adds a name, once.
    pub(super) fn name(&mut self, name: &str) {
        let name = name.trim();
        let mut end = name.len().min(MOST_NAME);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let name = &name[..end];
        if !name.is_empty() && self.items.len() < MOST_ITEMS && !self.items.iter().any(|known| known == name) {
            self.items.push(name.to_owned());
        }
    }

    /// Adds a line about failures while there is room.
    pub(super) fn detail(&mut self, line: &str) {
        if self.details.len() + line.len() < MOST_DETAILS {
            self.details.push_str(line);
            self.details.push('\n');
        }
    }

    /// Adds what another report of the same run says.
    pub(super) fn add(&mut self, other: &Counted) {
        self.failing += other.failing;
        self.total += other.total;
        self.skipped += other.skipped;
        self.warnings += other.warnings;
        self.tests |= other.tests;
        self.did_not_run |= other.did_not_run;
        other.items.iter().for_each(|name| self.name(name));
        other.details.lines().for_each(|line| self.detail(line));
    }

    /// One finding, told as `file:line: message`.
    pub(super) fn finding(&mut self, is_error: bool, told: &str) {
        self.total += 1;
        if is_error {
            self.failing += 1;
            self.name(told);
        } else {
            self.warnings += 1;
        }
    }
}

/// Lines that only say where a program was, not what is wrong.
#[derive(Debug, Default)]
pub(super) struct Backtrace(bool);

impl Backtrace {
    /// True when the line belongs to a backtrace of Rust.
    pub(super) fn has(&mut self, line: &str) -> bool {
        let line = line.trim_start();
        if line == "stack backtrace:" {
            self.0 = true;
        } else if self.0 {
            let is_frame =
                line.starts_with("at ") || line.split_once(": ").is_some_and(|(number, _)| is_number(number));
            self.0 = is_frame;
        }
        self.0
            || line.starts_with("note: Some details are omitted")
            || line.starts_with("note: run with `RUST_BACKTRACE")
    }
}

/// True for digits alone.
pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The number before a word in `"2 failed, 3 passed"`, by the separator; 0 where the word is not there.
pub(super) fn number_before(parts: &str, separator: char, words: &[&str]) -> u64 {
    parts
        .split(separator)
        .filter_map(|part| {
            let (number, word) = part.trim().split_once(' ')?;
            let word = word.split(" (").next()?.trim();
            words.contains(&word).then(|| number.parse::<u64>().ok()).flatten()
        })
        .sum()
}
