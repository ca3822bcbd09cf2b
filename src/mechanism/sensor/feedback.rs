//! What the next prompt may show of a reading: what matters first, within the cap.
//!
//! ```text
//! exit code 101; 2320123 bytes of output, cut to 8192; whole output: …/sensor.log
//! 2 of 57 tests failed:
//!   a::b
//!   c::d
//! <lines that are kept whatever is cut>
//! <what the report says about the failures>
//! <head and tail of the output>
//! ```

use super::report::Counted;
use crate::policy::{Reading, cap_feedback, cap_feedback_with_gap};

/// The most that one sensor may show the next prompt, in bytes.
pub const FEEDBACK_CAP: usize = 8 * 1024;

/// Names that are shown; how many more there are is said.
const MOST_NAMES: usize = 40;
/// Bytes of the names.
const MOST_NAME_BYTES: usize = 2 << 10;
/// Bytes of a hint.
const MOST_HINT: usize = 1 << 10;
/// What is left of the output beside details is not worth less than this.
const LEAST_REST: usize = 512;

/// What there is to show.
pub(super) struct Shown<'a> {
    pub(super) what: &'a str,
    pub(super) counted: Option<&'a Counted>,
    pub(super) items: &'a [String],
    pub(super) failing: Option<u64>,
    pub(super) kept: &'a str,
    pub(super) not_kept: u64,
    pub(super) head: &'a str,
    pub(super) tail: &'a str,
    pub(super) gap: usize,
    pub(super) log: &'a str,
}

pub(super) fn feedback(shown: &Shown<'_>) -> String {
    let Shown { what, head, tail, gap, log, .. } = shown;
    let total = head.len() + gap + tail.len();
    let names = names(shown);
    let plain = format!("{what}\n{names}");
    if plain.len() + total <= FEEDBACK_CAP {
        return format!("{plain}{head}{tail}");
    }
    let mut text = format!("{what}; {total} bytes of output, cut to {FEEDBACK_CAP}; whole output: {log}\n{names}");
    if !shown.kept.is_empty() {
        text.push_str(&cap_feedback(shown.kept, FEEDBACK_CAP.saturating_sub(text.len()), None));
        if shown.not_kept > 0 {
            text.push_str(&format!("[{} more lines like these]\n", shown.not_kept));
        }
    }
    let room = FEEDBACK_CAP.saturating_sub(text.len());
    let details = shown.counted.map_or("", |counted| counted.details.trim_end());
    if details.is_empty() {
        text.push_str(&cap_feedback_with_gap(head, tail, *gap, room));
        return cap_feedback(&text, FEEDBACK_CAP, None);
    }
    // The beginning of what is said about failures is worth more than its end.
    let told = cut_end(details, room.saturating_sub(LEAST_REST));
    text.push_str(told);
    text.push('\n');
    let room = FEEDBACK_CAP.saturating_sub(text.len());
    if room >= LEAST_REST / 2 {
        text.push_str(&cap_feedback_with_gap("", tail_of(head, tail), total, room));
    }
    cap_feedback(&text, FEEDBACK_CAP, None)
}

/// The end of the output.
fn tail_of<'a>(head: &'a str, tail: &'a str) -> &'a str {
    if tail.is_empty() { head } else { tail }
}

/// At most so many bytes from the beginning, cut at the border of a line where there is one.
fn cut_end(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..text[..end].rfind('\n').unwrap_or(end)]
}

/// How many failed, and which.
fn names(shown: &Shown<'_>) -> String {
    if shown.items.is_empty() {
        return String::new();
    }
    let line = match (shown.counted, shown.failing) {
        (Some(counted), _) => counted.line(),
        (None, Some(failing)) => format!("{failing} failed"),
        (None, None) => "failed".into(),
    };
    let mut text = format!("{line}:\n");
    let mut told = 0;
    for item in shown.items.iter().take(MOST_NAMES) {
        if text.len() + item.len() > MOST_NAME_BYTES && told > 0 {
            break;
        }
        text.push_str(&format!("  {item}\n"));
        told += 1;
    }
    let all = shown.counted.map_or(shown.items.len() as u64, |counted| counted.failing).max(shown.items.len() as u64);
    let more = all.saturating_sub(told);
    if more > 0 {
        text.push_str(&format!("  and {more} more\n"));
    }
    text
}

/// Puts a hint behind the first line of a reading's feedback.
pub fn add_hint(reading: &mut Reading, hint: &str) {
    let hint = cap_feedback(hint.trim_end(), MOST_HINT, None);
    let (first, rest) = reading.feedback.split_once('\n').unwrap_or((&reading.feedback, ""));
    let text = format!("{first}\nhint: {hint}\n{rest}");
    reading.feedback = cap_feedback(&text, FEEDBACK_CAP, None);
}
