//! Sensors: reading a command's verdict.
//!
//! Owns what an exit code means, what of the output the next prompt may show, and when two results are equal. Must not
//! know loops or what a reading leads to. Guarantees the three states: *passed* and *failed* are verdicts about the
//! work, *broken* (it did not start, was killed, gave no verdict) is none and is never told as something to fix.
//!
//! ```text
//!  stdout ─▶ lines ─┐            ┌─▶ print: order of lines and what changes from run to run left out
//!                   ├─▶ cleaned ─┤
//!  stderr ─▶ lines ─┘            └─▶ kept: head and tail ─▶ feedback: exit code, cut notice, 8 KiB
//! ```
//!
//! Bounds: 64 KiB of a line at a time, 256 KiB of head and 1 MiB of tail; the raw output goes to the log up to its cap.

mod clean;
mod command;
mod fingerprint;
mod hearing;
mod normal;

pub use command::{FEEDBACK_CAP, SensorError, SensorRequest, read_command};
pub use fingerprint::fingerprint;
