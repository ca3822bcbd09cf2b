//! Agents: one turn of one agent, from a prompt to an outcome.
//!
//! Owns how a prompt reaches an agent, how its output is read while it comes, and what the turn came to. Must not know
//! loops, budgets or what to do about an outcome: that is policy. Presets are data ([`crate::policy::AgentSpec`]); all
//! that they say is interpreted here by one engine of rules.
//!
//! ```text
//!  AgentSpec + prompt                                             one turn
//! ┌──────────────────┐  argv    ┌────────────┐ bytes  ┌───────┐ lines ┌───────┐ fields ┌──────┐
//! │ check · resolve  ├─────────▶│ process    ├───────▶│ lines ├──────▶│ sieve ├───────▶│ told │
//! └──────────────────┘ no shell │ (a warden) │        └───────┘ ≤8MiB └───────┘        └──┬───┘
//!                               └─────┬──────┘  how it ended, stderr                      ▼
//!                                     └─────────────────────────────────────────────▶ classify ──▶ Outcome
//! ```
//!
//! * **Success needs proof**: a line that says that the turn ended well, exit code 0 and a message that is not empty.
//!   An exit code alone proves nothing, and a missing last line is always a failure. Plain commands have only their
//!   exit code and their output, and are judged by both.
//! * **Evidence has an order**: structured status, terminal or last error line, the preset's own patterns before the
//!   general ones, the tail of stderr, the signal. What tools print and what echoes the prompt is no evidence.
//! * **After its last word** an agent gets its settling time and is then ended; the turn is judged by what it said.
//! * **Bounds**: lines of at most 8 MiB, of which only the fields that rules name are kept; a final message of 64 KiB;
//!   32 retries; 4 KiB of an error message and of stderr. The raw output goes to the log file, up to its cap.
//! * **Unknown is not zero**: counts that were not told, and nothing but zeros, are `None`.

mod argv;
mod classify;
mod error;
mod field;
mod lines;
mod message;
mod patterns;
mod reset;
mod rules;
mod start_checks;
mod told;
mod transcript;
mod turn;
mod usage;

pub use crate::mechanism::process::LogFilters as LogMask;
pub use error::AgentError;
pub use start_checks::{check, resolve, version};
pub use transcript::{Transcript, judge_transcript};
pub use turn::{MOST_ARGUMENT_BYTES, TurnReport, TurnRequest, take_turn};
