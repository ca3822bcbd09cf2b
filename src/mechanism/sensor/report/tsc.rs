//! `tsc`, plain and pretty.

use super::LineParser;
use super::counted::{Counted, is_number};

#[derive(Debug, Default)]
pub(super) struct Tsc(Counted);

/// `file(1,7): error TS2322: message`, `file:1:7 - error TS2322: message` or `error TS5023: message`.
fn error(line: &str) -> Option<String> {
    let (front, rest) = match line.strip_prefix("error TS") {
        Some(rest) => ("", rest),
        None => line.split_once("error TS")?,
    };
    let (code, message) = rest.split_once(": ")?;
    if !is_number(code) {
        return None;
    }
    let place = if front.is_empty() {
        String::new()
    } else if let Some(pretty) = front.strip_suffix(" - ") {
        format!("{}: ", pretty.rsplit_once(':')?.0)
    } else {
        let (file, row) = front.strip_suffix("): ")?.rsplit_once('(')?;
        format!("{file}:{}: ", row.split(',').next()?)
    };
    Some(format!("{place}{message} TS{code}"))
}

impl LineParser for Tsc {
    fn line(&mut self, line: &str) {
        if !line.starts_with(' ')
            && let Some(told) = error(line)
        {
            self.0.finding(true, &told);
        }
    }

    fn finish(&mut self) -> Option<Counted> {
        Some(std::mem::take(&mut self.0))
    }
}
