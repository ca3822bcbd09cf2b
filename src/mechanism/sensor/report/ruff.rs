//! `ruff check`: concise and full output; its JSON is a document.

use serde::Deserialize;

use super::LineParser;
use super::counted::{Counted, is_number};
use super::document::{Fold, Summary};

#[derive(Debug, Default)]
pub(super) struct Ruff {
    counted: Counted,
    /// A title of the full output, whose place follows.
    title: Option<String>,
    telling: bool,
}

/// `F401`, `PLR2004`, or `invalid-syntax`.
fn is_code(word: &str) -> bool {
    let letters = word.bytes().take_while(u8::is_ascii_uppercase).count();
    (letters > 0 && is_number(&word[letters..])) || word == "invalid-syntax" || word == "SyntaxError"
}

/// `path:1:8: F401 [*] message`
fn concise(line: &str) -> Option<String> {
    let (place, message) = line.split_once(": ")?;
    let mut parts = place.rsplitn(3, ':');
    let (column, row, path) = (parts.next()?, parts.next()?, parts.next()?);
    let code = message.split([' ', ':']).next()?;
    let known = is_number(column) && is_number(row) && is_code(code);
    known.then(|| format!("{path}:{row}: {}", message.replace("[*] ", "")))
}

impl LineParser for Ruff {
    fn line(&mut self, line: &str) {
        if let Some(told) = concise(line) {
            self.counted.finding(true, &told);
        } else if let Some(place) = line.trim_start().strip_prefix("--> ") {
            if let Some(title) = self.title.take() {
                let place = place.rsplit_once(':').map_or(place, |(front, _)| front);
                self.counted.finding(true, &format!("{place}: {title}"));
                self.telling = true;
                self.counted.detail(&title);
                self.counted.detail(line);
            }
        } else if line.is_empty() || line.starts_with("Found ") {
            self.telling = false;
        } else if line.split([' ', ':']).next().is_some_and(is_code) {
            self.title = Some(line.replace("[*] ", ""));
        } else if self.telling {
            self.counted.detail(line);
        }
    }

    fn finish(&mut self) -> Option<Counted> {
        Some(std::mem::take(&mut self.counted))
    }
}

/// One finding of the JSON report.
#[derive(Deserialize)]
pub(super) struct Finding {
    code: Option<String>,
    filename: String,
    message: String,
    location: Location,
}

#[derive(Deserialize)]
struct Location {
    row: u64,
}

#[derive(Default)]
pub(super) struct Findings(Counted);

impl Summary for Findings {
    type Item = Finding;

    fn add(&mut self, finding: Finding) {
        let code = finding.code.map(|code| format!("{code} ")).unwrap_or_default();
        self.0.finding(true, &format!("{}:{}: {code}{}", finding.filename, finding.location.row, finding.message));
    }
}

pub(super) type Document = Fold<Findings>;

impl Document {
    pub(super) fn counted(self) -> Counted {
        self.0.0
    }
}
