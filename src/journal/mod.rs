//! The record of a run: events, their file, and how both are read back.
//!
//! Owns the format on disk, the writer, the reader, the folder with all runs, and the masking of secrets, which happens
//! here and nowhere else. Must not know Lua, git or processes, and decides nothing: what an event means is for others.
//!
//! What holds after a crash at any moment: every record that was appended is readable, at most the one that was being
//! written is lost, and a journal can be continued. What holds always: files belong to their owner only, a changed line
//! is noticed by the chain of digests, and no known secret is on the disk.
//!
//! A folder of a run: `journal.jsonl` (one [`Record`] a line), `blobs/<sha256>` (gzip), `run.toml` (a card for people),
//! and while it runs `reserve` (room for the last record on a full disk).

mod blobs;
mod clock;
mod error;
mod event;
mod folders;
mod line_file;
mod masking;
mod record;
mod recording;
mod reserve;
mod run_card;
mod run_id;
mod runs_folder;
mod secrets;
mod tail;
mod writer;

pub use blobs::blob;
pub use clock::Clock;
pub use error::JournalError;
pub use event::{Event, FORMAT_VERSION, RunEnded, RunStarted, ScriptRecord};
pub use record::{MOST_STRING_BYTES, Record};
pub use recording::{Item, Problem, ProblemKind, RecordReader, Recording};
pub use run_id::{BadRunId, RunId};
pub use runs_folder::{FindError, RunEntry, RunsFolder};
pub use secrets::{MaskStream, SHORTEST_SECRET, Secrets};
pub use writer::{Journal, JournalOptions, Listener};
