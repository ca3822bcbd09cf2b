//! Hearing output without a process: for measuring, and for trying out what would be counted.

use super::hearing::Ear;
use super::patterns::PatternError;
use super::report::Counted;
use crate::mechanism::process::{Observer as _, Stream};
use crate::policy::Counting;

/// Hears output as a sensor would.
pub struct Rehearsal(Ear);

impl Rehearsal {
    /// Ready to hear what is to be counted so.
    ///
    /// # Errors
    /// A pattern that cannot be used.
    pub fn new(counting: &Counting) -> Result<Rehearsal, PatternError> {
        Ear::new(counting, "").map(Rehearsal)
    }

    /// The next bytes of standard output.
    pub fn hear(&mut self, bytes: &[u8]) {
        self.0.output(Stream::Stdout, bytes);
    }

    /// What was counted; `None` where nothing was recognised for sure.
    pub fn finish(self) -> Option<Counted> {
        self.0.finish()?.reporter.finish().ok().flatten()
    }
}
