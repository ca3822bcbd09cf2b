//! All problems of one call, told together.

use crate::script::error::{ErrorKind, Place, Raised};

/// Problems with their field paths, in the order in which they were found.
#[derive(Debug, Default)]
pub(in crate::script) struct Problems(Vec<(String, String)>);

/// More than these are counted, not told.
const MOST_TOLD: usize = 25;

impl Problems {
    pub(in crate::script) fn add(&mut self, path: &str, problem: impl Into<String>) {
        self.0.push((path.to_owned(), problem.into()));
    }

    pub(in crate::script) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether something is already said about this field or about something in it.
    pub(in crate::script) fn mention(&self, path: &str) -> bool {
        self.0.iter().any(|(known, _)| known.starts_with(path))
    }

    /// The error for the whole call, if there is anything to say.
    pub(in crate::script) fn into_result(self, call: &str, place: Option<Place>) -> Result<(), Raised> {
        if self.is_empty() {
            return Ok(());
        }
        let count = self.0.len();
        let mut lines: Vec<String> =
            self.0.into_iter().take(MOST_TOLD).map(|(path, problem)| line(&path, &problem)).collect();
        if count > MOST_TOLD {
            lines.push(format!("and {} more", count - MOST_TOLD));
        }
        let message = match lines.as_slice() {
            [only] => format!("{call}: {only}"),
            _ => format!("{call} has {count} problems:\n  {}", lines.join("\n  ")),
        };
        Err(Raised::new(ErrorKind::Options, place, message))
    }
}

fn line(path: &str, problem: &str) -> String {
    match path {
        "" => problem.to_owned(),
        _ if problem.contains(": unknown") => problem.to_owned(),
        _ => format!("{path}: {problem}"),
    }
}
