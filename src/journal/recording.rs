//! Reading a journal back: every whole record, and what is wrong with the rest, by line.
//!
//! Knows the chain and the format, not what events mean. Guarantees that each complete record comes out, wherever a
//! crash cut the file; that damage in the middle is named and never passed over; and that memory stays bounded by the
//! longest line (32 MiB) when records are taken one by one.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::error::JournalError;
use super::event::FORMAT_VERSION;
use super::folders::JOURNAL;
use super::line_file;
use super::record::{CHAIN_START, Record, Unreadable, hex};
use super::run_id::RunId;

/// Longest line that is kept in memory; a longer one is damage.
const MOST_LINE_BYTES: usize = 32 << 20;

/// Something wrong with a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Line of the file, from 1.
    pub line: u64,
    /// What is wrong, for people.
    pub what: String,
    /// Kind of trouble.
    pub kind: ProblemKind,
}

/// Kinds of trouble in a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProblemKind {
    /// The line is no record.
    Damaged,
    /// The line is not the one that its successor was written after.
    Chain,
    /// Records are missing before this line.
    Gap,
    /// The record belongs to another run and is not used.
    OtherRun,
}

impl Problem {
    /// True when a record was lost in this line.
    pub(super) fn is_damage(&self) -> bool {
        self.kind == ProblemKind::Damaged
    }
}

/// One thing that a reader finds.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A whole record.
    Record(Box<Record>),
    /// Trouble at a line.
    Problem(Problem),
}

/// A journal, whole, in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// The run.
    pub id: RunId,
    /// Every complete record, in the order of the file.
    pub records: Vec<Record>,
    /// What is wrong with the file, in the order of its lines.
    pub problems: Vec<Problem>,
    /// True when the last line was cut off; nothing else is lost by that.
    pub torn_tail: bool,
}

impl Recording {
    /// Reads the journal in the folder of a run.
    ///
    /// # Errors
    /// When there is none, it cannot be read, or a newer lunation wrote it. Damage is not an error: see `problems`.
    pub fn read(run_dir: &Path) -> Result<Recording, JournalError> {
        let mut reader = RecordReader::open(run_dir)?;
        let mut records = Vec::new();
        let mut problems = Vec::new();
        while let Some(item) = reader.next_item()? {
            match item {
                Item::Record(record) => records.push(*record),
                Item::Problem(problem) => problems.push(problem),
            }
        }
        let torn_tail = reader.torn().is_some();
        let id = reader.run.ok_or_else(|| JournalError::NotARun { path: run_dir.to_owned() })?;
        Ok(Recording { id, records, problems, torn_tail })
    }

    /// True while a living process writes the journal in this folder.
    pub fn is_being_written(run_dir: &Path) -> bool {
        line_file::is_locked(&run_dir.join(JOURNAL))
    }
}

/// Reads records one by one.
pub struct RecordReader {
    source: BufReader<File>,
    path: PathBuf,
    /// From the name of the folder, else from the first record.
    run: Option<RunId>,
    line: u64,
    offset: u64,
    /// Digest of the last line that was read.
    digest: String,
    /// True when the last line was damaged, so that its successor cannot be blamed.
    after_damage: bool,
    seq: u64,
    pending: Option<Item>,
    torn: Option<(u64, Vec<u8>)>,
    unended: bool,
}

/// A line as found.
struct Line {
    bytes: Vec<u8>,
    length: u64,
    ended: bool,
    digest: String,
}

impl RecordReader {
    /// Opens the journal in the folder of a run.
    ///
    /// # Errors
    /// When there is none or it cannot be opened.
    pub fn open(run_dir: &Path) -> Result<RecordReader, JournalError> {
        let path = run_dir.join(JOURNAL);
        let file = File::open(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => JournalError::NotARun { path: run_dir.to_owned() },
            _ => JournalError::from_io("read", &path, error),
        })?;
        let run = run_dir.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        Ok(RecordReader::over(file, path, run))
    }

    pub(super) fn over(file: File, path: PathBuf, run: Option<RunId>) -> RecordReader {
        RecordReader {
            source: BufReader::with_capacity(64 << 10, file),
            path,
            run,
            line: 0,
            offset: 0,
            digest: CHAIN_START.into(),
            after_damage: false,
            seq: 0,
            pending: None,
            torn: None,
            unended: false,
        }
    }

    /// The next record or problem; nothing at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or a record was written by a newer lunation.
    pub fn next_item(&mut self) -> Result<Option<Item>, JournalError> {
        if let Some(item) = self.pending.take() {
            return Ok(Some(item));
        }
        let Some(line) = self.next_line()? else { return Ok(None) };
        let start = self.offset;
        self.line += 1;
        self.offset += line.length;
        let read = match line.length as usize > line.bytes.len() + 1 {
            true => Err(Unreadable::Damaged(format!("longer than {MOST_LINE_BYTES} bytes"))),
            false => Record::from_line(&line.bytes),
        };
        match read {
            Ok(record) => {
                self.unended = !line.ended;
                Ok(Some(self.judge(record, line.digest)))
            }
            Err(Unreadable::Newer(version)) => {
                Err(JournalError::NewerFormat { path: self.path.clone(), version, ours: FORMAT_VERSION })
            }
            // What has no line end is what a crash left of the last record.
            Err(Unreadable::Damaged(_)) if !line.ended => {
                self.torn = Some((start, line.bytes));
                Ok(None)
            }
            Err(Unreadable::Damaged(why)) => {
                self.digest = line.digest;
                self.after_damage = true;
                Ok(Some(self.problem(ProblemKind::Damaged, self.line, format!("line {} is damaged: {why}", self.line))))
            }
        }
    }

    /// Checks a record against its place. When there is something to say, that comes first and the record next.
    fn judge(&mut self, record: Record, digest: String) -> Item {
        let line = self.line;
        let broken_chain = record.prev != self.digest;
        let after_damage = std::mem::replace(&mut self.after_damage, false);
        self.digest = digest;
        let owner = self.run.get_or_insert_with(|| record.run.clone());
        if record.run != *owner {
            let what = format!("line {line} belongs to run {} and is not used", record.run);
            return self.problem(ProblemKind::OtherRun, line, what);
        }
        let expected = self.seq + 1;
        let gap = record.seq != expected && !after_damage;
        let seq = record.seq;
        self.seq = seq;
        let problem = if gap && seq > expected {
            let what = format!("before line {line}, records {expected} to {} are missing", seq - 1);
            Some(self.problem(ProblemKind::Gap, line, what))
        } else if gap {
            let what = format!("line {line} has the number {seq}, {expected} was due: it was put there later");
            Some(self.problem(ProblemKind::Gap, line, what))
        } else if broken_chain && !after_damage {
            let before = line.saturating_sub(1).max(1);
            let what = format!("line {before} was changed after it was written: the chain breaks at line {line}");
            Some(self.problem(ProblemKind::Chain, before, what))
        } else {
            None
        };
        let record = Item::Record(Box::new(record));
        match problem {
            Some(problem) => {
                self.pending = Some(record);
                problem
            }
            None => record,
        }
    }

    fn problem(&self, kind: ProblemKind, line: u64, what: String) -> Item {
        Item::Problem(Problem { line, what, kind })
    }

    fn next_line(&mut self) -> Result<Option<Line>, JournalError> {
        let mut line = Line { bytes: Vec::new(), length: 0, ended: false, digest: String::new() };
        let mut hash = Sha256::new();
        while !line.ended {
            let chunk = match self.source.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(JournalError::from_io("read", &self.path, error)),
            };
            if chunk.is_empty() {
                break;
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let body = &chunk[..end.unwrap_or(chunk.len())];
            hash.update(body);
            let room = MOST_LINE_BYTES.saturating_sub(line.bytes.len());
            line.bytes.extend_from_slice(&body[..body.len().min(room)]);
            let used = body.len() + usize::from(end.is_some());
            line.length += used as u64;
            line.ended = end.is_some();
            self.source.consume(used);
        }
        line.digest = hex(&hash.finalize());
        Ok((line.length > 0).then_some(line))
    }

    /// The run whose journal this is, once it is known.
    pub fn run(&self) -> Option<&RunId> {
        self.run.as_ref()
    }

    /// At the end: offset and bytes of a last line that was cut off.
    pub(super) fn torn(&self) -> Option<(u64, &[u8])> {
        self.torn.as_ref().map(|(offset, bytes)| (*offset, bytes.as_slice()))
    }

    /// True at the end when the last line was cut off.
    pub fn torn_tail(&self) -> bool {
        self.torn.is_some()
    }

    pub(super) fn last_line_has_no_end(&self) -> bool {
        self.unended
    }

    pub(super) fn last_digest(&self) -> &str {
        &self.digest
    }
}

impl Iterator for RecordReader {
    type Item = Result<Item, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_item().transpose()
    }
}
