//! `cargo check`, `build` and `clippy`: messages as JSON lines, or as people read them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::Deserialize;

use super::LineParser;
use super::counted::Counted;

/// Messages that are told apart; a library and its tests bring the same ones.
const MOST_TOLD_APART: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Cargo {
    counted: Counted,
    known: HashSet<u64>,
    /// A message of the plain output: whether it is an error, its title, and its lines so far.
    open: Option<(bool, String, bool)>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    reason: Cow<'a, str>,
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    level: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow, default)]
    rendered: Option<Cow<'a, str>>,
    #[serde(default)]
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    line_start: u64,
    is_primary: bool,
}

/// Lines that only sum up.
fn is_sum(title: &str) -> bool {
    title.starts_with("could not compile")
        || title.starts_with("aborting due to")
        || title.starts_with("build failed")
        || title.starts_with("test failed")
        || title.starts_with("doctest failed")
        || title.contains(" generated ")
        || title.contains("target failed:")
        || title.contains("targets failed:")
}

impl Cargo {
    fn is_new(&mut self, told: &str) -> bool {
        let mut hash = DefaultHasher::new();
        told.hash(&mut hash);
        self.known.len() < MOST_TOLD_APART && self.known.insert(hash.finish())
    }

    fn json(&mut self, line: &str) {
        let Ok(line) = serde_json::from_str::<Line<'_>>(line) else { return };
        let (Some(message), "compiler-message") = (line.message, &*line.reason) else { return };
        let is_error = message.level.starts_with("error");
        if !(is_error || message.level == "warning") || is_sum(&message.message) {
            return;
        }
        // "1 warning emitted" and its like have no place in the code.
        let place = message.spans.iter().find(|span| span.is_primary).or_else(|| message.spans.first());
        if place.is_none() && !is_error {
            return;
        }
        let told = match place {
            Some(span) => format!("{}:{}: {}", span.file_name, span.line_start, message.message),
            None => message.message.clone().into_owned(),
        };
        if self.is_new(&told) {
            self.counted.finding(is_error, &told);
            if is_error {
                message.rendered.as_deref().unwrap_or(&told).lines().for_each(|line| self.counted.detail(line));
            }
        }
    }

    /// The title is told with the place that follows it.
    fn close(&mut self, place: Option<&str>) {
        let Some((is_error, title, _)) = self.open.take() else { return };
        // Without a place it is a remark of cargo's; an error is one all the same.
        let told = match place {
            Some(place) => {
                let file_and_line = place.rsplit_once(':').map_or(place, |(front, _)| front);
                format!("{file_and_line}: {title}")
            }
            None if is_error => title.clone(),
            None => return,
        };
        let is_new = self.is_new(&told);
        if is_new {
            self.counted.finding(is_error, &told);
            if is_error {
                self.counted.detail(&format!("error: {title}"));
            }
        }
        self.open = place.map(|_| (is_error && is_new, String::new(), true));
    }

    fn plain(&mut self, line: &str) {
        if let Some((tells, _, true)) = &self.open {
            if line.is_empty() {
                self.open = None;
            } else {
                if *tells {
                    self.counted.detail(line);
                }
                return;
            }
        }
        let starts = |word: &str| {
            let rest = line.strip_prefix(word)?;
            let rest = match rest.strip_prefix('[') {
                Some(coded) => coded.split_once(']')?.1,
                None => rest,
            };
            rest.strip_prefix(": ")
        };
        if let Some(place) = line.trim_start().strip_prefix("--> ") {
            if self.open.is_some() {
                self.close(Some(place));
                if let Some((true, ..)) = self.open {
                    self.counted.detail(line);
                }
            }
        } else if let Some((is_error, title)) =
            starts("error").map(|title| (true, title)).or_else(|| starts("warning").map(|title| (false, title)))
        {
            self.close(None);
            if !is_sum(title) {
                self.open = Some((is_error, title.to_owned(), false));
            }
        } else if line.is_empty() {
            self.close(None);
        }
    }
}

impl LineParser for Cargo {
    fn line(&mut self, line: &str) {
        if line.starts_with("{\"reason\":") { self.json(line) } else { self.plain(line) }
    }

    fn finish(&mut self) -> Option<Counted> {
        if self.open.as_ref().is_some_and(|(_, _, told)| !told) {
            self.close(None);
        }
        Some(std::mem::take(&mut self.counted))
    }
}
