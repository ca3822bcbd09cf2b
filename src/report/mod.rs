//! What happened, told from journals alone: one run, why it stands where it stands, and figures over all runs.
//!
//! Reads recordings and nothing else: no repository, no files, no clock. Must not change anything and prints nothing;
//! every value here can be written as JSON. Guarantees that what a journal does not tell is absent or `None`, never
//! zero, and that nothing is called verified without an end record that says so.

mod failure_modes;
mod figures;
mod iterations;
mod next_steps;
mod summary;
mod why;

pub use failure_modes::{failure_modes, mode_name};
pub use figures::Figures;
pub use iterations::IterationRow;
pub use next_steps::{NextStep, next_steps};
pub use summary::{Breaker, RunState, Summary};
pub use why::Why;
