//! Standard output and standard error, and what happens when their reader goes away.

use std::io::{self, Write};

use serde::Serialize;

use super::{Tone, clean_lines};

/// The reader of standard output closed it, like `head` does. Not an error of ours, and told to nobody.
#[derive(Debug, thiserror::Error)]
#[error("standard output was closed")]
pub(crate) struct StdoutClosed;

/// Where a command writes.
pub(crate) struct Output {
    out: io::BufWriter<io::Stdout>,
    colour: bool,
    json: bool,
    quiet: bool,
    terminal: bool,
}

fn written(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(StdoutClosed.into()),
        Err(error) => Err(anyhow::Error::new(error).context("standard output could not be written")),
        Ok(()) => Ok(()),
    }
}

impl Output {
    /// `terminal`: a person looks at standard output.
    pub(crate) fn new(json: bool, quiet: bool, terminal: bool) -> Output {
        // The choice looks at NO_COLOR and its kin, and at what standard output is.
        let colour = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        Output { out: io::BufWriter::new(io::stdout()), colour, json, quiet, terminal }
    }

    /// True when a program reads.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// True when only the result is wanted.
    pub(crate) fn quiet(&self) -> bool {
        self.quiet
    }

    /// One line for people.
    pub(crate) fn line(&mut self, text: &str) -> anyhow::Result<()> {
        written(match self.colour {
            true => writeln!(self.out, "{text}"),
            false => writeln!(self.out, "{}", anstream::adapter::strip_str(text)),
        })?;
        // A person wants to see it now.
        if self.terminal { self.flush() } else { Ok(()) }
    }

    /// A heading or another line that `--quiet` leaves out.
    pub(crate) fn extra(&mut self, text: &str) -> anyhow::Result<()> {
        if self.quiet { Ok(()) } else { self.line(text) }
    }

    /// One line of JSON.
    pub(crate) fn value(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string(value)?;
        written(writeln!(self.out, "{text}"))
    }

    /// Bytes as they are when a program reads; without what a terminal acts on when a person looks.
    pub(crate) fn content(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        if self.terminal {
            let text = clean_lines(&String::from_utf8_lossy(bytes));
            return written(self.out.write_all(text.as_bytes()));
        }
        written(self.out.write_all(bytes))
    }

    /// A remark beside the result, on standard error, so that the result itself can be piped on. `--quiet` leaves it
    /// out.
    pub(crate) fn remark(&mut self, tone: Tone, text: &str) -> anyhow::Result<()> {
        if self.quiet {
            return Ok(());
        }
        self.flush()?;
        let mut err = anstream::stderr().lock();
        match writeln!(err, "{}", tone.paint(&clean_lines(text))) {
            // The result matters more than a remark that nobody reads.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Writes out what is held back.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        written(self.out.flush())
    }
}
