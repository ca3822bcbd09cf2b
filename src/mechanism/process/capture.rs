//! Bounded capture of a stream: its beginning and its end. Knows nothing of processes.

use std::collections::VecDeque;

/// What was kept of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes; they follow directly on `head` when nothing was dropped.
    pub tail: Vec<u8>,
    /// Bytes that came in all.
    pub total: u64,
    /// Bytes between head and tail that were not kept.
    pub dropped: u64,
}

impl Captured {
    /// The text for people and prompts. Bytes that are not UTF-8 become U+FFFD. Where bytes are missing, head and tail
    /// are cut at a line border (at a character border if the line is very long) and the number of missing bytes is
    /// said between them.
    pub fn text(&self) -> String {
        if self.dropped == 0 {
            return String::from_utf8_lossy(&self.whole()).into_owned();
        }
        let head = &self.head[..end_of_last_line(&self.head)];
        let tail = &self.tail[start_of_first_line(&self.tail)..];
        let cut = self.total - head.len() as u64 - tail.len() as u64;
        let mut text = String::from_utf8_lossy(head).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[… {cut} bytes cut …]\n"));
        text.push_str(&String::from_utf8_lossy(tail));
        text
    }

    /// The bytes, if every one of them was kept.
    pub fn bytes_if_whole(&self) -> Option<Vec<u8>> {
        (self.dropped == 0).then(|| self.whole())
    }

    fn whole(&self) -> Vec<u8> {
        [self.head.as_slice(), self.tail.as_slice()].concat()
    }
}

/// How much of a line may be lost to a cut at its border; a longer one is cut at a character border instead.
const LONGEST_LINE_TO_DROP: usize = 4096;

fn end_of_last_line(bytes: &[u8]) -> usize {
    match bytes.iter().rposition(|&b| b == b'\n') {
        Some(at) if bytes.len() - at <= LONGEST_LINE_TO_DROP => at + 1,
        _ => end_of_last_char(bytes),
    }
}

fn start_of_first_line(bytes: &[u8]) -> usize {
    match bytes.iter().take(LONGEST_LINE_TO_DROP).position(|&b| b == b'\n') {
        // A tail that is nothing but the end of one line is worth more than nothing.
        Some(at) if at + 1 < bytes.len() => at + 1,
        _ => bytes.iter().take(3).take_while(|&&b| is_continuation(b)).count(),
    }
}

/// The end without a character that was cut off in its middle.
fn end_of_last_char(bytes: &[u8]) -> usize {
    let back = bytes.iter().rev().take(3).take_while(|&&b| is_continuation(b)).count();
    let Some(lead_at) = bytes.len().checked_sub(back + 1) else { return bytes.len() };
    let wanted = match bytes[lead_at] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    if wanted > back + 1 { lead_at } else { bytes.len() }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Takes a stream chunk by chunk and keeps `head_cap` bytes of its beginning and `tail_cap` of its end.
#[derive(Debug)]
pub(super) struct HeadTail {
    head: Vec<u8>,
    head_cap: usize,
    tail: VecDeque<u8>,
    tail_cap: usize,
    total: u64,
}

impl HeadTail {
    pub(super) fn new(head_cap: usize, tail_cap: usize) -> HeadTail {
        HeadTail { head: Vec::new(), head_cap, tail: VecDeque::new(), tail_cap, total: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_cap - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.tail_cap)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.tail_cap);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    pub(super) fn finish(self) -> Captured {
        let dropped = self.total - self.head.len() as u64 - self.tail.len() as u64;
        Captured { head: self.head, tail: self.tail.into(), total: self.total, dropped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn captured(head: usize, tail: usize, chunks: &[&[u8]]) -> Captured {
        let mut keep = HeadTail::new(head, tail);
        chunks.iter().for_each(|c| keep.push(c));
        keep.finish()
    }

    #[test]
    fn a_short_stream_is_whole() {
        let c = captured(4, 4, &[b"ab", b"cdef"]);
        assert_eq!(c.bytes_if_whole().unwrap(), b"abcdef");
        assert_eq!(c.text(), "abcdef");
    }

    #[test]
    fn a_long_stream_keeps_both_ends_at_line_borders_and_says_what_is_missing() {
        let c = captured(10, 10, &[b"one\ntwo\nthree\nfour\nfive\nsix\n"]);
        assert_eq!(c.bytes_if_whole(), None);
        assert_eq!(c.text(), "one\ntwo\n[… 11 bytes cut …]\nfive\nsix\n");
    }

    #[test]
    fn characters_are_never_cut_in_their_middle() {
        let line = "ä".repeat(40);
        for head in 0..8 {
            for tail in 0..8 {
                let text = captured(head, tail, &[line.as_bytes()]).text();
                assert!(!text.contains('\u{fffd}'), "{head} {tail}: {text}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_survive_as_replacement_characters() {
        assert_eq!(captured(100, 0, &[b"a\xff\xfeb"]).text(), "a\u{fffd}\u{fffd}b");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_invented(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20),
            head in 0usize..60, tail in 0usize..60,
        ) {
            let all: Vec<u8> = chunks.concat();
            let mut keep = HeadTail::new(head, tail);
            chunks.iter().for_each(|c| keep.push(c));
            let c = keep.finish();
            prop_assert_eq!(c.total, all.len() as u64);
            prop_assert_eq!(c.head.len() as u64 + c.tail.len() as u64 + c.dropped, c.total);
            prop_assert!(all.starts_with(&c.head));
            prop_assert!(all.ends_with(&c.tail));
            prop_assert!(c.head.len() <= head && c.tail.len() <= tail);
            let _ = c.text();
        }
    }
}
