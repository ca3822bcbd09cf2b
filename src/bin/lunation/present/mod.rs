//! Words and colour. Commands say what; how it looks on a terminal, in a pipe or without colour is decided here.

mod event_line;
mod output;
mod style;
mod table;

pub(crate) use event_line::event_line;
pub(crate) use output::{Output, StdoutClosed};
pub(crate) use style::{Tone, error};
pub(crate) use table::Table;

use std::time::Duration;

use lunation::policy::units::{seconds_to_duration, show_duration};

/// Text on one line, without anything that a terminal would act on: agents and tests write it.
pub(crate) fn clean(text: &str) -> String {
    clean_lines(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text with its lines, without anything that a terminal would act on.
pub(crate) fn clean_lines(text: &str) -> String {
    text.chars()
        .filter_map(|letter| match letter {
            '\n' | '\t' => Some(letter),
            '\r' => None,
            // Also turns that make right look left.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Some('\u{fffd}'),
            letter if letter.is_control() => Some('\u{fffd}'),
            letter => Some(letter),
        })
        .collect()
}

/// Text on one line of at most `most` characters.
pub(crate) fn short(text: &str, most: usize) -> String {
    let clean = clean(text);
    match clean.char_indices().nth(most) {
        Some(_) => clean.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        None => clean,
    }
}

/// Seconds of a journal for people.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds_to_duration(seconds).unwrap_or(Duration::ZERO) {
        Duration::ZERO => "0s".into(),
        duration => show_duration(duration),
    }
}

/// A share for people.
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// A number with its noun.
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_gets_through() {
        assert_eq!(clean("a\x1b[31mred\x07\r\n b\u{202e}c"), "a\u{fffd}[31mred\u{fffd} b\u{fffd}c");
        assert_eq!(clean_lines("a\r\n\tb\x1bc"), "a\n\tb\u{fffd}c");
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(short("äöüäöü", 4), "äöü…");
        assert_eq!(short("äöü", 3), "äöü");
    }

    #[test]
    fn figures_are_shown_short() {
        assert_eq!((seconds(0.0), seconds(65.0)), ("0s".into(), "1m05s".into()));
        assert_eq!((percent(Some(0.375)), percent(None)), ("38 %".into(), "–".into()));
        assert_eq!((count(1, "run"), count(0, "run")), ("1 run".into(), "0 runs".into()));
    }
}
