//! The final message of a turn, bounded.
//!
//! Owns the cutting of long messages. Guarantees that a cut never changes what a reader of the tail concludes: it falls
//! on the border of a line where one is near, never inside a character, and a code fence that is open at the cut is
//! opened again in the tail.

/// How much of a message is kept: its last bytes, in whole lines.
pub(super) const MESSAGE_CAP: usize = 64 * 1024;

/// A code fence, by the rule of [`crate::policy::says_sentinel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Fence(Option<&'static str>);

impl Fence {
    fn pass(&mut self, line: &str) {
        let line = line.trim();
        let marker = ["```", "~~~"].into_iter().find(|marker| line.starts_with(marker));
        match (self.0, marker) {
            (None, Some(marker)) => self.0 = Some(marker),
            (Some(open), Some(marker)) if open == marker => self.0 = None,
            _ => {}
        }
    }
}

/// The tail of a message that is longer than [`MESSAGE_CAP`]; a shorter one stays as it is. May be four bytes longer
/// than the cap, for an opened fence.
pub(super) fn tail_of_message(text: String) -> String {
    if text.len() <= MESSAGE_CAP {
        return text;
    }
    let cut = line_start_near(&text, text.len() - MESSAGE_CAP);
    let mut fence = Fence::default();
    text[..cut].lines().for_each(|line| fence.pass(line));
    fence.open(&text[cut..])
}

impl Fence {
    fn open(self, tail: &str) -> String {
        match self.0 {
            Some(marker) => format!("{marker}\n{tail}"),
            None => tail.to_owned(),
        }
    }
}

/// The first start of a line in the kilobyte after `at`, else the first border of a character.
fn line_start_near(text: &str, at: usize) -> usize {
    let at = (at..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    let window = (at + 1024).min(text.len());
    let window = (window..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    text[at..window].find('\n').map_or(at, |found| at + found + 1)
}

/// Takes the plain text output of an agent as it comes and keeps its end.
#[derive(Debug, Default)]
pub(super) struct TextTail {
    kept: Vec<u8>,
    fence: Fence,
    total: u64,
}

/// Terminal codes are taken out at the end, so more bytes are kept than a message may have.
const KEPT: usize = 4 * MESSAGE_CAP;

impl TextTail {
    /// Takes the next bytes. Holds at most twice [`KEPT`] of them.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        // A chunk that would not even fit by itself: only its lines matter for fences.
        for part in bytes.chunks(KEPT) {
            self.kept.extend_from_slice(part);
            if self.kept.len() > 2 * KEPT {
                self.drop_front();
            }
        }
    }

    fn drop_front(&mut self) {
        let least = self.kept.len() - KEPT;
        let cut = match self.kept[least..].iter().position(|&byte| byte == b'\n') {
            Some(found) => least + found + 1,
            None => least,
        };
        for line in self.kept[..cut].split(|&byte| byte == b'\n') {
            self.fence.pass(&plain(line));
        }
        self.kept.drain(..cut);
    }

    /// Bytes that came in all.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The message: the end of the output, without terminal codes.
    pub(super) fn message(&self) -> String {
        tail_of_message(self.fence.open(&plain(&self.kept)))
    }
}

/// Text without terminal codes (CSI, OSC and two-byte escapes); what is not UTF-8 becomes U+FFFD. Tabs stay.
pub(super) fn plain(bytes: &[u8]) -> String {
    anstream::adapter::strip_str(&String::from_utf8_lossy(bytes)).to_string()
}

/// The first line that is not blank, for one-line summaries: at most 200 characters, control characters left out.
pub(super) fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut short: String = line.chars().filter(|c| !c.is_control()).take(200).collect();
    if line.chars().count() > 200 {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::says_sentinel;

    #[test]
    fn a_short_message_stays_byte_for_byte() {
        let text = "C:\\new\\table\u{7}\n\tDONE\n".to_owned();
        assert_eq!(tail_of_message(text.clone()), text);
    }

    #[test]
    fn a_long_message_keeps_its_last_lines() {
        let text: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        let tail = tail_of_message(text);
        assert!(tail.len() <= MESSAGE_CAP);
        assert!(tail.starts_with("line ") && tail.ends_with("line 19999\n"));
    }

    #[test]
    fn a_fence_that_is_open_at_the_cut_stays_open() {
        let filler = "x\n".repeat(MESSAGE_CAP);
        let inside = tail_of_message(format!("```\n{filler}DONE"));
        assert!(!says_sentinel(&inside, "DONE"));
        let closed = tail_of_message(format!("```\n```\n{filler}DONE"));
        assert!(says_sentinel(&closed, "DONE"));
    }

    #[test]
    fn a_stream_of_text_keeps_its_end_and_its_fence_in_bounded_memory() {
        for (opening, said) in [("```\n", false), ("~~~\n~~~\n", true)] {
            let mut tail = TextTail::default();
            tail.push(opening.as_bytes());
            for _ in 0..200 {
                tail.push("abcdefgh\n".repeat(2000).as_bytes());
                assert!(tail.kept.len() <= 2 * KEPT);
            }
            tail.push(b"DO");
            tail.push(b"NE\r\n");
            assert_eq!(says_sentinel(&tail.message(), "DONE"), said);
            assert!(tail.message().len() <= MESSAGE_CAP + 4);
        }
    }

    #[test]
    fn terminal_codes_go_and_tabs_stay() {
        for (bytes, text) in [
            (&b"\x1b[1;32mDONE\x1b[0m"[..], "DONE"),
            (b"\x1b]8;;http://x\x1b\\DONE\x1b]8;;\x1b\\", "DONE"),
            (b"\x1b]0;title\x07a\tb", "a\tb"),
            (b"\x1bcDONE", "DONE"),
            (b"a\xffb", "a\u{fffd}b"),
        ] {
            assert_eq!(plain(bytes), text);
        }
    }

    #[test]
    fn a_summary_is_one_short_line() {
        assert_eq!(first_line("\n  \n All\u{7} good.\nMore"), "All good.");
        assert_eq!(first_line(&"ä".repeat(300)).chars().count(), 201);
        assert_eq!(first_line(""), "");
    }
}
