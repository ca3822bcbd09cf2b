//! The end of a journal that an earlier process left: where to go on, and what a crash cut off.

use std::path::Path;

use super::error::JournalError;
use super::event::Event;
use super::line_file::LineFile;
use super::record::CHAIN_START;
use super::recording::{Item, RecordReader};
use super::run_id::RunId;

/// Where an earlier process stopped.
pub(super) struct End {
    pub(super) seq: u64,
    pub(super) prev: String,
    pub(super) awake_s: f64,
    pub(super) capped: bool,
    pub(super) torn: Option<Torn>,
    pub(super) needs_line_end: bool,
}

pub(super) struct Torn {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) text: String,
}

/// How much of a torn record is kept as a remark, in bytes.
const MOST_TORN: usize = 4096;

impl End {
    /// Reads the whole journal once.
    pub(super) fn find(lines: &LineFile, path: &Path, run: &RunId) -> Result<End, JournalError> {
        let mut reader = RecordReader::over(lines.read()?, path.to_owned(), Some(run.clone()));
        let mut end =
            End { seq: 0, prev: CHAIN_START.into(), awake_s: 0.0, capped: false, torn: None, needs_line_end: false };
        while let Some(item) = reader.next_item()? {
            match item {
                Item::Record(record) => {
                    end.seq = end.seq.max(record.seq);
                    end.awake_s = end.awake_s.max(record.awake_s);
                    end.capped |= matches!(record.event, Event::Capped { .. });
                }
                // A damaged line had a number too.
                Item::Problem(problem) if problem.is_damage() => end.seq += 1,
                Item::Problem(_) => {}
            }
        }
        end.prev = reader.last_digest().to_owned();
        if let Some((offset, bytes)) = reader.torn() {
            let shown = &bytes[..bytes.len().min(MOST_TORN)];
            let text = String::from_utf8_lossy(shown).into_owned();
            end.torn = Some(Torn { offset, bytes: bytes.len() as u64, text });
        }
        end.needs_line_end = reader.last_line_has_no_end() && end.torn.is_none();
        Ok(end)
    }
}
