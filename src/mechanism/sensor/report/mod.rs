//! What test runners and linters report: how many items failed, of how many, and which.
//!
//! Owns the formats. Must not know exit codes, sensors or what a count leads to. Guarantees bounded memory whatever comes
//! in ([`MOST_ITEMS`] names, [`MOST_DETAILS`] bytes about failures), one pass over the lines, and that a report that was
//! not understood for sure is `None`, never a count.

mod cargo;
mod counted;
mod detect;
mod document;
mod eslint;
mod files;
mod github;
mod go;
mod jest;
mod junit;
mod libtest;
mod mocha;
mod nextest;
mod node;
mod pattern;
mod pytest;
mod ruff;
mod sarif;
mod tap;
mod tsc;
mod vitest;

#[cfg(test)]
mod tests;

pub use counted::{Counted, MOST_DETAILS, MOST_ITEMS};
pub(super) use detect::Reporter;
pub(super) use files::read_files;

use crate::mechanism::process::Stream;
use crate::policy::{Format, Parse};

/// Reads one report, line by line.
trait LineParser: Send {
    /// The next line, without colours. Continuations of very long lines are not given, but to documents.
    fn line(&mut self, line: &str);

    /// What was reported; `None` where nothing was, for sure.
    fn finish(&mut self) -> Option<Counted>;
}

/// Counts in a text that is at hand; `None` where the format is not recognised in it.
pub fn count(parse: &Parse, text: &str) -> Option<Counted> {
    let mut reporter = Reporter::new(parse, "");
    for line in text.lines() {
        reporter.line(Stream::Stdout, line, true);
    }
    reporter.finish().ok().flatten()
}

/// A parser of the lines of one format.
fn parser_of(format: Format) -> Box<dyn LineParser> {
    match format {
        Format::Libtest => Box::<libtest::Libtest>::default(),
        Format::Nextest => Box::<nextest::Nextest>::default(),
        Format::Pytest => Box::<pytest::Pytest>::default(),
        Format::Go => Box::<go::Go>::default(),
        Format::Jest => Box::<jest::Jest>::default(),
        Format::Vitest => Box::<vitest::Vitest>::default(),
        Format::Mocha => Box::<mocha::Mocha>::default(),
        Format::Node => Box::<node::Node>::default(),
        Format::Tap => Box::<tap::Tap>::default(),
        Format::Cargo => Box::<cargo::Cargo>::default(),
        Format::Eslint => Box::<eslint::Eslint>::default(),
        Format::Ruff => Box::<ruff::Ruff>::default(),
        Format::Tsc => Box::<tsc::Tsc>::default(),
        Format::Github => Box::<github::Github>::default(),
        // These are documents alone.
        Format::Junit | Format::Sarif => Box::new(NoLines),
    }
}

/// For formats that have no lines.
struct NoLines;

impl LineParser for NoLines {
    fn line(&mut self, _line: &str) {}

    fn finish(&mut self) -> Option<Counted> {
        None
    }
}
