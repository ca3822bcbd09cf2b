//! `eslint`: its stylish output; its JSON is a document.

use serde::Deserialize;

use super::LineParser;
use super::counted::{Counted, is_number};
use super::document::{Fold, Summary};

#[derive(Debug, Default)]
pub(super) struct Eslint {
    counted: Counted,
    file: String,
}

/// `  1:7   error    message  rule`: line, whether it is an error, message.
fn problem(line: &str) -> Option<(&str, bool, &str)> {
    let text = line.strip_prefix("  ")?.trim_start();
    let (place, rest) = text.split_once(' ')?;
    let (row, column) = place.split_once(':')?;
    let (level, message) = rest.trim_start().split_once(' ')?;
    let known = is_number(row) && is_number(column);
    match level {
        "error" if known => Some((row, true, message.trim())),
        "warning" if known => Some((row, false, message.trim())),
        _ => None,
    }
}

impl LineParser for Eslint {
    fn line(&mut self, line: &str) {
        if let Some((row, is_error, message)) = problem(line) {
            let message = message.split("  ").filter(|part| !part.trim().is_empty()).map(str::trim);
            let message = message.collect::<Vec<_>>().join(" ");
            let told = format!("{}:{row}: {message}", self.file);
            self.counted.finding(is_error, &told);
        } else if !line.is_empty() && !line.starts_with([' ', '✖']) {
            line.trim_end().clone_into(&mut self.file);
        }
    }

    fn finish(&mut self) -> Option<Counted> {
        Some(std::mem::take(&mut self.counted))
    }
}

/// One file of the JSON report.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileReport {
    file_path: String,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    severity: u8,
    message: String,
    #[serde(default)]
    rule_id: Option<String>,
    #[serde(default)]
    line: u64,
}

#[derive(Default)]
pub(super) struct Files(Counted);

impl Summary for Files {
    type Item = FileReport;

    fn add(&mut self, file: FileReport) {
        for message in file.messages {
            let rule = message.rule_id.map(|rule| format!(" {rule}")).unwrap_or_default();
            let told = format!("{}:{}: {}{rule}", file.file_path, message.line, message.message);
            self.0.finding(message.severity >= 2, &told);
        }
    }
}

pub(super) type Document = Fold<Files>;

impl Document {
    pub(super) fn counted(self) -> Counted {
        self.0.0
    }
}
