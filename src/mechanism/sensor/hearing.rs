//! What a sensor printed, heard while it runs: both streams line by line in the order in which they came.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::clean::LineCleaner;
use super::fingerprint::Print;
use super::patterns::PatternError;
use super::report::Reporter;
use super::watch::Watch;
use crate::mechanism::process::{Observer, Stream, Wish};
use crate::policy::Counting;

/// How much of the beginning is kept.
const HEAD: usize = 256 * 1024;
/// How much of the end is kept.
const TAIL: usize = 1024 * 1024;

/// What was heard.
pub(super) struct Heard {
    pub(super) print: Print,
    pub(super) output: Output,
    pub(super) reporter: Reporter,
    pub(super) watch: Watch,
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
        // Cut rarely: moving the front for each line would cost more than the line.
        if self.tail.len() > TAIL + TAIL / 4 {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
    }

    /// The beginning, the end, and how many bytes between them are missing.
    pub(super) fn parts(mut self) -> (String, String, usize) {
        self.cut();
        let tail: Vec<u8> = self.tail.into();
        // The front may have been cut inside a character.
        let skip = tail.iter().take_while(|&&byte| byte & 0xc0 == 0x80).count();
        let tail = String::from_utf8_lossy(&tail[skip..]).into_owned();
        let gap = self.total - self.head.len() - tail.len();
        (self.head, tail, gap)
    }
}

/// Hears both streams. Clones share what was heard.
#[derive(Clone)]
pub(super) struct Ear(Arc<Mutex<EarState>>);

struct EarState {
    out: LineCleaner,
    err: LineCleaner,
    /// Nothing once it was taken: what comes later is not heard.
    heard: Option<Heard>,
}

impl Ear {
    /// An ear for a command, as a person types it, and what is to be read of it.
    pub(super) fn new(counting: &Counting, command: &str) -> Result<Ear, PatternError> {
        let heard = Heard {
            print: Print::default(),
            output: Output::default(),
            reporter: Reporter::new(&counting.parse, command),
            watch: Watch::new(counting)?,
        };
        let state = EarState { out: LineCleaner::default(), err: LineCleaner::default(), heard: Some(heard) };
        Ok(Ear(Arc::new(Mutex::new(state))))
    }

    /// Everything that was heard; `None` when it was taken before.
    pub(super) fn finish(&self) -> Option<Heard> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let EarState { out, err, heard } = &mut *state;
        let mut heard = heard.take()?;
        out.finish(&mut |line, ends| heard.line(Stream::Stdout, line, ends));
        err.finish(&mut |line, ends| heard.line(Stream::Stderr, line, ends));
        Some(heard)
    }
}

impl Heard {
    fn line(&mut self, stream: Stream, line: &str, ends: bool) {
        self.print.add(line);
        self.output.push(line, ends);
        self.reporter.line(stream, line, ends);
        self.watch.line(line);
    }
}

impl Observer for Ear {
    fn output(&mut self, stream: Stream, bytes: &[u8]) -> Wish {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let EarState { out, err, heard } = &mut *state;
        if let Some(heard) = heard {
            let cleaner = if stream == Stream::Stdout { out } else { err };
            cleaner.push(bytes, &mut |line, ends| heard.line(stream, line, ends));
        }
        Wish::GoOn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_streams_stand_in_their_order_and_are_never_mixed() {
        let mut ear = Ear::new(&Counting::default(), "").unwrap();
        for (stream, bytes) in [
            (Stream::Stdout, &b"one\ntw"[..]),
            (Stream::Stderr, b"error: x\n"),
            (Stream::Stdout, b"o\n"),
            (Stream::Stderr, b"last"),
        ] {
            ear.output(stream, bytes);
        }
        let (head, tail, gap) = ear.finish().unwrap().output.parts();
        assert_eq!((head.as_str(), tail.as_str(), gap), ("one\nerror: x\ntwo\nlast\n", "", 0));
    }

    #[test]
    fn memory_is_bounded_and_the_gap_is_counted() {
        let mut ear = Ear::new(&Counting::default(), "").unwrap();
        let line = format!("{}\n", "ä".repeat(5000));
        for _ in 0..400 {
            ear.output(Stream::Stdout, line.as_bytes());
        }
        let (head, tail, gap) = ear.finish().unwrap().output.parts();
        assert!(head.len() <= HEAD && tail.len() <= TAIL && gap > 0);
        assert_eq!(head.len() + tail.len() + gap, 400 * line.len());
        assert!(!tail.contains('\u{fffd}'));
    }
}
