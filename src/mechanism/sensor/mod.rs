//! Sensors: reading a command's verdict, a metric, a picture.
//!
//! Owns what an exit code means, what reports say, what of the output the next prompt may show, and when two results are
//! equal. Must not know loops or what a reading leads to. Guarantees the three states: *passed* and *failed* are verdicts about the
//! work, *broken* (it did not start, was killed, gave no verdict) is none and is never told as something to fix.
//!
//! ```text
//!  stdout ─▶ lines ─┐            ┌─▶ print: order of lines and what changes from run to run left out
//!                   ├─▶ cleaned ─┼─▶ report: how many failed, of how many, which
//!  stderr ─▶ lines ─┘            ├─▶ watch: the user's patterns, scores
//!                                └─▶ kept: head and tail ─▶ feedback: exit code, what failed, 8 KiB
//! ```
//!
//! Bounds: 64 KiB of a line at a time, 256 KiB of head and 1 MiB of tail; the raw output goes to the log up to its cap.

mod clean;
mod command;
mod feedback;
mod fingerprint;
mod hearing;
mod http;
mod metric;
mod normal;
mod patterns;
mod picture;
mod rehearsal;
mod report;
mod verdict;
mod watch;

pub use command::{Observed, SensorError, SensorRequest, observe_command, read_command};
pub use feedback::{FEEDBACK_CAP, add_hint};
pub use fingerprint::fingerprint;
pub use http::is_served;
pub use metric::read_metric;
pub use patterns::{PatternError, check_pattern};
pub use picture::{Compared, MOST_PIXELS, Region, compare_pictures};
pub use rehearsal::Rehearsal;
pub use report::{Counted, MOST_DETAILS, MOST_ITEMS, count};
pub use verdict::Parsed;
