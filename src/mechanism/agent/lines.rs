//! Cutting a byte stream into lines, with a bound on each.
//!
//! Lines end with LF only: other characters that some libraries take for line ends stand unescaped inside JSON strings.
//! Guarantees that no more than the cap is ever held, and that lines of ignored types are not even collected.

/// The longest line that is looked at; longer ones are skipped and counted.
pub(super) const LONGEST_LINE: usize = 8 * 1024 * 1024;

/// How much of a line is collected before it is asked whether it is worth it.
const PREFIX: usize = 256;

/// Cuts a stream into lines.
#[derive(Debug)]
pub(super) struct LineSplitter {
    cap: usize,
    ignore: Vec<String>,
    line: Vec<u8>,
    state: State,
    /// Lines that were longer than the cap.
    pub(super) too_long: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In a line whose beginning was not looked at yet.
    Fresh,
    /// In a line that is wanted.
    Wanted,
    /// In a line that is not collected any more.
    Skipping,
}

impl LineSplitter {
    /// Lines of at most `cap` bytes; those whose first field is a `type` of `ignore` are dropped.
    pub(super) fn new(cap: usize, ignore: Vec<String>) -> LineSplitter {
        LineSplitter { cap, ignore, line: Vec::new(), state: State::Fresh, too_long: 0 }
    }

    /// Takes the next bytes and calls `each` with every line that is whole now, without its line end.
    pub(super) fn push(&mut self, mut bytes: &[u8], each: &mut dyn FnMut(&[u8])) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            self.collect(&bytes[..end]);
            self.end_line(each);
            bytes = &bytes[end + 1..];
        }
        self.collect(bytes);
    }

    /// The stream ended: a last line without a line end counts too.
    pub(super) fn finish(&mut self, each: &mut dyn FnMut(&[u8])) {
        self.end_line(each);
    }

    fn collect(&mut self, bytes: &[u8]) {
        if self.state == State::Skipping {
            return;
        }
        if self.line.len() + bytes.len() > self.cap {
            let room = self.cap - self.line.len();
            self.line.extend_from_slice(&bytes[..room]);
            if !self.is_ignored() {
                self.too_long += 1;
            }
            self.skip();
            return;
        }
        self.line.extend_from_slice(bytes);
        if self.state == State::Fresh && self.line.len() >= PREFIX {
            self.state = State::Wanted;
            if self.is_ignored() {
                self.skip();
            }
        }
    }

    fn skip(&mut self) {
        self.line = Vec::new();
        self.state = State::Skipping;
    }

    fn end_line(&mut self, each: &mut dyn FnMut(&[u8])) {
        if self.state != State::Skipping && !self.is_ignored() {
            let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
            if !line.trim_ascii().is_empty() {
                each(line);
            }
        }
        self.line.clear();
        // One huge line must not keep its memory for the rest of the turn.
        self.line.shrink_to(64 * 1024);
        self.state = State::Fresh;
    }

    fn is_ignored(&self) -> bool {
        !self.ignore.is_empty()
            && type_at_start(&self.line).is_some_and(|found| self.ignore.iter().any(|name| name.as_bytes() == found))
    }
}

/// The value of `type` where it is the first field of the object.
fn type_at_start(line: &[u8]) -> Option<&[u8]> {
    let rest = line.trim_ascii_start().strip_prefix(b"{")?;
    let rest = rest.trim_ascii_start().strip_prefix(b"\"type\"")?;
    let rest = rest.trim_ascii_start().strip_prefix(b":")?;
    let rest = rest.trim_ascii_start().strip_prefix(b"\"")?;
    let end = rest.iter().take(PREFIX).position(|&byte| byte == b'"')?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(splitter: &mut LineSplitter, chunks: &[&[u8]]) -> Vec<String> {
        let mut seen = Vec::new();
        let mut each = |line: &[u8]| seen.push(String::from_utf8_lossy(line).into_owned());
        chunks.iter().for_each(|chunk| splitter.push(chunk, &mut each));
        splitter.finish(&mut each);
        seen
    }

    #[test]
    fn lines_are_joined_over_chunks_and_the_last_needs_no_end() {
        let mut splitter = LineSplitter::new(100, vec![]);
        assert_eq!(
            lines(&mut splitter, &[b"DO", "NE\r\n\n  \nx\u{2028}y".as_bytes(), b"\nlast"]),
            ["DONE", "x\u{2028}y", "last"]
        );
    }

    #[test]
    fn a_line_over_the_cap_is_skipped_and_counted_and_the_next_is_read() {
        let mut splitter = LineSplitter::new(10, vec![]);
        assert_eq!(lines(&mut splitter, &[b"short\n01234567", b"89ab", b"cd\nnext\n"]), ["short", "next"]);
        assert_eq!(splitter.too_long, 1);
    }

    #[test]
    fn ignored_types_are_dropped_without_being_collected() {
        let mut splitter = LineSplitter::new(1000, vec!["message_update".into()]);
        let huge = format!("{{\"type\":\"message_update\",\"x\":\"{}\"}}\n", "a".repeat(5000));
        let seen =
            lines(&mut splitter, &[huge.as_bytes(), b"{\"type\": \"message_end\"}\n{\"type\":\"message_update\"}\n"]);
        assert_eq!(seen, ["{\"type\": \"message_end\"}"]);
        assert_eq!(splitter.too_long, 0);
    }

    #[test]
    fn a_type_that_is_not_the_first_field_is_left_to_the_parser() {
        let mut splitter = LineSplitter::new(1000, vec!["noise".into()]);
        assert_eq!(lines(&mut splitter, &[b"{\"a\":{\"type\":\"noise\"}}"]).len(), 1);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_stream_is_cut(text in "[a-z\n]{0,80}", cuts in proptest::collection::vec(0usize..80, 0..6)) {
            let mut at: Vec<usize> = cuts.into_iter().filter(|&cut| cut <= text.len()).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let chunks: Vec<&[u8]> = at.windows(2).map(|w| &text.as_bytes()[w[0]..w[1]]).collect();
            let wanted: Vec<&str> = text.split('\n').filter(|line| !line.is_empty()).collect();
            prop_assert_eq!(lines(&mut LineSplitter::new(100, vec![]), &chunks), wanted);
        }
    }
}
