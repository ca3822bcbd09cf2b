//! Negative knowledge: attempts that were rolled back, told to later prompts.
//!
//! Owns what is told of an attempt: what it changed and which checks it broke, as measured; never what an agent claims.

use std::collections::VecDeque;

use super::governor::TRIED_BYTES;
use crate::policy::ChangeSummary;

/// Attempts that are remembered.
const REMEMBERED: usize = 200;
/// Names that are told of files and of checks.
const NAMES: usize = 8;

#[derive(Debug, Clone, PartialEq)]
struct Attempt {
    iterations: Vec<u32>,
    agent: String,
    files: Vec<String>,
    more_files: u64,
    lines: u64,
    broke: Vec<String>,
    note: Option<String>,
}

/// The attempts of a loop.
#[derive(Debug, Clone, Default)]
pub(super) struct Tried {
    attempts: VecDeque<Attempt>,
}

impl Tried {
    pub(super) fn add(
        &mut self,
        iteration: u32,
        agent: Option<&str>,
        change: &ChangeSummary,
        broke: Vec<String>,
        note: Option<&str>,
    ) {
        let shown = change.files.len().min(NAMES);
        let mut attempt = Attempt {
            iterations: vec![iteration],
            agent: agent.unwrap_or("the agent").to_owned(),
            files: change.files[..shown].to_vec(),
            more_files: change.file_count.saturating_sub(shown as u64),
            lines: change.lines,
            broke,
            note: note.map(str::to_owned),
        };
        // The same files that broke the same checks are one piece of knowledge, however often it was tried.
        let like = self.attempts.iter().position(|old| old.files == attempt.files && old.broke == attempt.broke);
        if let Some(like) = like.and_then(|at| self.attempts.remove(at)) {
            attempt.iterations.splice(0..0, like.iterations);
        }
        self.attempts.push_back(attempt);
        if self.attempts.len() > REMEMBERED {
            self.attempts.pop_front();
        }
    }

    /// Newest first, whole attempts, as many as fit.
    pub(super) fn told(&self) -> String {
        let mut text = String::new();
        for (told, attempt) in self.attempts.iter().rev().enumerate() {
            let line = attempt.line();
            let left = self.attempts.len() - told;
            if text.len() + line.len() + 64 > TRIED_BYTES && told > 0 {
                text.push_str(&format!("\n({left} older attempts are left out)"));
                break;
            }
            if told > 0 {
                text.push('\n');
            }
            text.push_str(&line);
        }
        text
    }
}

impl Attempt {
    fn line(&self) -> String {
        let which = match self.iterations.as_slice() {
            [one] => format!("iteration {one}"),
            [first @ .., last] => {
                format!("iterations {} and {last}", first.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
            }
            [] => "an iteration".into(),
        };
        let files = match (self.files.as_slice(), self.more_files) {
            ([], _) => String::new(),
            (files, 0) => format!(" (touched {}, {} lines)", files.join(", "), self.lines),
            (files, more) => format!(" (touched {} and {more} more, {} lines)", files.join(", "), self.lines),
        };
        let was = if self.iterations.len() == 1 { "was" } else { "were" };
        let why = match (self.broke.as_slice(), &self.note) {
            ([], Some(note)) => note.clone(),
            ([], None) => "no reason given".into(),
            (broke, note) => {
                let names = broke[..broke.len().min(NAMES)].join(", ");
                let more = broke.len().saturating_sub(NAMES);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                let broke = format!("broke {names}{more}");
                match note {
                    Some(note) if !note.starts_with("broke ") => format!("{broke}; {note}"),
                    _ => broke,
                }
            }
        };
        format!("{which} by {}{files} {was} rolled back: {why}", self.agent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(file: &str) -> ChangeSummary {
        ChangeSummary { files: vec![file.into()], file_count: 1, lines: 3, ..ChangeSummary::default() }
    }

    #[test]
    fn attempts_are_told_newest_first_and_like_ones_once() {
        let mut tried = Tried::default();
        tried.add(1, Some("a"), &change("x"), vec!["t1".into()], Some("broke t1"));
        tried.add(2, Some("b"), &change("y"), vec![], Some("more failures"));
        tried.add(4, Some("a"), &change("x"), vec!["t1".into()], None);
        assert_eq!(
            tried.told(),
            "iterations 1 and 4 by a (touched x, 3 lines) were rolled back: broke t1\n\
             iteration 2 by b (touched y, 3 lines) was rolled back: more failures"
        );
    }

    #[test]
    fn what_does_not_fit_is_left_out_whole_and_that_is_told() {
        let mut tried = Tried::default();
        for n in 0..300 {
            tried.add(n, Some("a"), &change(&format!("some/long/path/to/a/file-{n}.txt")), vec![], Some("worse"));
        }
        let told = tried.told();
        assert!(told.len() <= TRIED_BYTES && told.starts_with("iteration 299 by a"), "{}", told.len());
        assert!(told.ends_with(" older attempts are left out)"), "{told}");
    }
}
