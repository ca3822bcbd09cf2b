//! What a sensor printed, heard while it runs: both streams line by line in the order in which they came.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::clean::LineCleaner;
use super::fingerprint::Print;
use crate::mechanism::process::{Observer, Stream, Wish};

/// How much of the beginning is kept.
const HEAD: usize = 256 * 1024;
/// How much of the end is kept.
const TAIL: usize = 1024 * 1024;

/// What was heard.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) print: Print,
    pub(super) output: Output,
}

/// Clean text, bounded: its beginning and its end.
#[derive(Debug, Default)]
pub(super) struct Output {
    head: String,
    tail: VecDeque<u8>,
    total: usize,
}

impl Output {
    fn push(&mut self, line: &str, ends: bool) {
        self.put(line);
        if ends {
            self.put("\n");
        }
    }

    fn put(&mut self, text: &str) {
        self.total += text.len();
        if self.tail.is_empty() && self.head.len() + text.len() <= HEAD {
            self.head.push_str(text);
            return;
        }
        self.tail.extend(text.as_bytes());
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
    }

    /// The beginning, the end, and how many bytes between them are missing.
    pub(super) fn parts(self) -> (String, String, usize) {
        let tail: Vec<u8> = self.tail.into();
        // The front may have been cut inside a character.
        let skip = tail.iter().take_while(|&&byte| byte & 0xc0 == 0x80).count();
        let tail = String::from_utf8_lossy(&tail[skip..]).into_owned();
        let gap = self.total - self.head.len() - tail.len();
        (self.head, tail, gap)
    }
}

/// Hears both streams. Clones share what was heard.
#[derive(Debug, Clone, Default)]
pub(super) struct Ear(Arc<Mutex<EarState>>);

#[derive(Debug, Default)]
struct EarState {
    out: LineCleaner,
    err: LineCleaner,
    heard: Heard,
}

impl Ear {
    /// Everything that was heard; what comes later is not.
    pub(super) fn finish(&self) -> Heard {
        let mut state = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let heard = &mut state.heard;
        let mut each = |line: &str, ends: bool| heard.line(line, ends);
        state.out.finish(&mut each);
        state.err.finish(&mut each);
        state.heard
    }
}

impl Heard {
    fn line(&mut self, line: &str, ends: bool) {
        self.print.add(line);
        self.output.push(line, ends);
    }
}

impl Observer for Ear {
    fn output(&mut self, stream: Stream, bytes: &[u8]) -> Wish {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let EarState { out, err, heard } = &mut *state;
        let cleaner = if stream == Stream::Stdout { out } else { err };
        cleaner.push(bytes, &mut |line, ends| heard.line(line, ends));
        Wish::GoOn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_streams_stand_in_their_order_and_are_never_mixed() {
        let mut ear = Ear::default();
        for (stream, bytes) in [
            (Stream::Stdout, &b"one\ntw"[..]),
            (Stream::Stderr, b"error: x\n"),
            (Stream::Stdout, b"o\n"),
            (Stream::Stderr, b"last"),
        ] {
            ear.output(stream, bytes);
        }
        let (head, tail, gap) = ear.finish().output.parts();
        assert_eq!((head.as_str(), tail.as_str(), gap), ("one\nerror: x\ntwo\nlast\n", "", 0));
    }

    #[test]
    fn memory_is_bounded_and_the_gap_is_counted() {
        let mut ear = Ear::default();
        let line = format!("{}\n", "ä".repeat(5000));
        for _ in 0..400 {
            ear.output(Stream::Stdout, line.as_bytes());
        }
        let (head, tail, gap) = ear.finish().output.parts();
        assert!(head.len() <= HEAD && tail.len() <= TAIL && gap > 0);
        assert_eq!(head.len() + tail.len() + gap, 400 * line.len());
        assert!(!tail.contains('\u{fffd}'));
    }
}
