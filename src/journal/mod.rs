//! The record of a run: events, their file, and how both are read back.

mod event;

pub use event::{Event, FORMAT_VERSION, RunEnded, RunStarted, ScriptRecord};
