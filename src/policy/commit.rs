//! How a result is committed, and the words of its message.

use serde::{Deserialize, Serialize};

/// How a result is committed on the user's branch; without it nothing is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitSpec {
    /// Message; `{id}`, `{run}`, `{iterations}` and `{reason}` are filled in.
    pub message: String,
}

/// What is known for a message.
#[derive(Debug, Clone, Copy)]
pub struct CommitFacts<'a> {
    /// The loop's name.
    pub id: &'a str,
    /// The run's id.
    pub run: &'a str,
    /// How many iterations it took.
    pub iterations: u32,
    /// Why the run ended.
    pub reason: &'a str,
}

impl CommitSpec {
    /// The message with everything filled in, in one pass: what is filled in is never read as a name again.
    pub fn filled(&self, facts: &CommitFacts<'_>) -> String {
        let mut filled = String::with_capacity(self.message.len());
        let mut rest = self.message.as_str();
        while let Some((before, name, after)) = next_name(rest) {
            filled.push_str(before);
            match name {
                "id" => filled.push_str(facts.id),
                "run" => filled.push_str(facts.run),
                "iterations" => filled.push_str(&facts.iterations.to_string()),
                "reason" => filled.push_str(facts.reason),
                other => filled.push_str(&format!("{{{other}}}")),
            }
            rest = after;
        }
        filled + rest
    }

    /// The first name in the message that nothing is known for.
    pub fn unknown(&self) -> Option<&str> {
        let mut rest = self.message.as_str();
        while let Some((_, name, after)) = next_name(rest) {
            if !["id", "run", "iterations", "reason"].contains(&name) {
                return Some(name);
            }
            rest = after;
        }
        None
    }
}

/// The text before the next `{name}`, the name, and the text after it. Braces around anything else are text.
fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|at| from + at) {
        let inside = &text[open + 1..];
        let length = inside.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(inside.len());
        if length > 0 && inside[length..].starts_with('}') {
            return Some((&text[..open], &inside[..length], &inside[length + 1..]));
        }
        from = open + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(message: &str) -> String {
        let facts = CommitFacts { id: "{run}", run: "20260101-1", iterations: 3, reason: "completed" };
        CommitSpec { message: message.into() }.filled(&facts)
    }

    #[test]
    fn each_name_is_filled_in_once() {
        assert_eq!(filled("{run}: {reason} after {iterations}"), "20260101-1: completed after 3");
        assert_eq!(filled("a loop called {id}"), "a loop called {run}");
        assert_eq!(filled("braces {} { } {X} {{run}} stay"), "braces {} { } {X} {20260101-1} stay");
    }

    #[test]
    fn a_name_that_nothing_is_known_for_is_found() {
        let unknown = |message: &str| CommitSpec { message: message.into() }.unknown().map(str::to_owned);
        assert_eq!(unknown("{id} {iteration}").as_deref(), Some("iteration"));
        assert_eq!(unknown("fix {} and f() { return }"), None);
    }
}
