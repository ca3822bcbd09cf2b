//! What a caller may do with the output while it comes. Owns the two traits; knows nothing of parsing or masking.

use std::time::Duration;

/// Which of the two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What an observer wants after a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Nothing special.
    GoOn,
    /// The program said its final word: give it this long to exit by itself, then end it and report
    /// [`Ending::FinishedAsAsked`](super::Ending::FinishedAsAsked). Of several wishes the earliest moment counts.
    FinishWithin(Duration),
}

/// Sees the output as it comes, for parsers and progress.
///
/// It is called on the runtime that [`Processes`](super::Processes) was given, so it must not block.
pub trait Observer: Send {
    /// Takes the next raw bytes of `stream`: whole and in order per stream, cut at arbitrary places. Says what is wished.
    fn output(&mut self, stream: Stream, bytes: &[u8]) -> Wish;
}

/// Rewrites the bytes that go to the log file, for masking secrets; one per stream.
///
/// It may hold bytes back to join what was split over two chunks; [`finish`](LogFilter::finish) gives the rest.
pub trait LogFilter: Send {
    /// Takes the next raw bytes and appends what may be written to `out`.
    fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>);
    /// The stream ended: appends what was held back.
    fn finish(&mut self, out: &mut Vec<u8>);
}
