//! The writer of a journal: the one place that all records and blobs of a run pass, and where secrets are masked.
//!
//! Owns sequence, chain, caps and the moment of flushing. Does not know what the events mean, except for the few that
//! bear on itself (the start, the end, a reached cap). Guarantees: a record is in the file completely or not at all;
//! records stand in the order of their numbers, from any thread; a decision that was appended durably survives a power
//! cut; no known secret and no value of a command's environment is ever on the disk.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::blobs::{BlobStore, cap_blob};
use super::clock::Clock;
use super::error::JournalError;
use super::event::Event;
use super::folders::{self, JOURNAL};
use super::line_file::LineFile;
use super::masking::masked;
use super::record::{CHAIN_START, Frame, MOST_LINE_BYTES, Record, line_digest};
use super::run_id::RunId;
use super::secrets::Secrets;
use super::tail::End;
use super::{reserve, run_card};

/// Called with every record, in order, after it was written.
pub type Listener = Arc<dyn Fn(&Record) + Send + Sync>;

/// Where and how a run is recorded.
#[derive(Clone)]
pub struct JournalOptions {
    /// Folder of the run; made by [`Journal::create`].
    pub run_dir: PathBuf,
    /// A second folder that gets the same files under a second name (copies where links cannot cross), so that the
    /// record outlives the first one. Default: none.
    pub second_link: Option<PathBuf>,
    /// The run.
    pub run: RunId,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// What is masked; default: nothing.
    pub secrets: Secrets,
    /// Most bytes on the disk for one run, records and packed blobs together. Default 256 MiB. Beyond it one marker
    /// is written, and then nothing but the end.
    pub cap_bytes: u64,
    /// Most bytes of one blob before packing; longer ones lose their middle. Default 8 MiB.
    pub blob_cap_bytes: usize,
    /// Sees every record, masked as it was written; also those that the cap left out of the file. It is called while
    /// the journal is locked: it must not append, and should be quick. Default: none.
    pub listener: Option<Listener>,
}

impl JournalOptions {
    /// Options with the defaults.
    pub fn new(run_dir: impl Into<PathBuf>, run: RunId, clock: Arc<dyn Clock>) -> JournalOptions {
        JournalOptions {
            run_dir: run_dir.into(),
            second_link: None,
            run,
            clock,
            secrets: Secrets::none(),
            cap_bytes: 256 << 20,
            blob_cap_bytes: 8 << 20,
            listener: None,
        }
    }
}

/// The journal of a run that is under way. Clones write to the same file.
#[derive(Clone)]
pub struct Journal {
    shared: Arc<Shared>,
}

struct Shared {
    options: JournalOptions,
    writer: Mutex<Writer>,
}

struct Writer {
    lines: LineFile,
    blobs: BlobStore,
    /// Number of the last record; 0 before the first.
    seq: u64,
    prev: String,
    /// What the clock showed when this process took over, and the awake seconds of the run at that moment.
    awake_start: Duration,
    awake_base: f64,
    blob_bytes: u64,
    capped: bool,
}

impl Journal {
    /// Starts the journal of a new run.
    ///
    /// # Errors
    /// When there is such a run already, or its folder cannot be made or written.
    pub fn create(options: JournalOptions) -> Result<Journal, JournalError> {
        folders::create(&options.run_dir)?;
        if let Some(second) = &options.second_link {
            folders::create(second)?;
        }
        let lines = LineFile::create(options.run_dir.join(JOURNAL), options.second_file())?;
        let writer = Writer {
            lines,
            blobs: options.blob_store()?,
            seq: 0,
            prev: CHAIN_START.into(),
            awake_start: options.clock.awake(),
            awake_base: 0.0,
            blob_bytes: 0,
            capped: false,
        };
        let journal = Journal { shared: Arc::new(Shared { options, writer: Mutex::new(writer) }) };
        reserve::keep(journal.run_dir())?;
        Ok(journal)
    }

    /// Continues the journal of an earlier process. A last line that was torn is taken out of the file and kept as a
    /// remark; whole records stay as they are, and the next one begins on a line of its own.
    ///
    /// # Errors
    /// When there is no such run, a living process writes it, or a newer lunation wrote it.
    pub fn reopen(options: JournalOptions) -> Result<Journal, JournalError> {
        let path = options.run_dir.join(JOURNAL);
        if !path.exists() {
            return Err(JournalError::NotARun { path: options.run_dir.clone() });
        }
        folders::complete(&options.run_dir)?;
        if let Some(second) = &options.second_link {
            folders::complete(second)?;
        }
        let mut lines = LineFile::open(path, options.second_file())?;
        let end = End::find(&lines, &options.run_dir.join(JOURNAL), &options.run)?;
        if let Some(torn) = &end.torn {
            lines.cut(torn.offset)?;
        } else if end.needs_line_end {
            lines.append(b"\n")?;
        }
        let blobs = options.blob_store()?;
        let writer = Writer {
            lines,
            seq: end.seq,
            prev: end.prev,
            awake_start: options.clock.awake(),
            awake_base: end.awake_s,
            blob_bytes: blobs.size()?,
            blobs,
            capped: end.capped,
        };
        let journal = Journal { shared: Arc::new(Shared { options, writer: Mutex::new(writer) }) };
        reserve::keep(journal.run_dir())?;
        if let Some(torn) = end.torn {
            let text = format!("torn: the last record was cut off after {} bytes: {}", torn.bytes, torn.text);
            journal.append("", &Event::Noted { level: "warn".into(), text })?;
        }
        Ok(journal)
    }

    /// The run that is recorded.
    pub fn run(&self) -> &RunId {
        &self.shared.options.run
    }

    /// Folder of the run.
    pub fn run_dir(&self) -> &std::path::Path {
        &self.shared.options.run_dir
    }

    /// What is masked, for output that is kept elsewhere too, and for streams.
    pub fn secrets(&self) -> &Secrets {
        &self.shared.options.secrets
    }

    /// Text without the known secrets; for everything that leaves the run by another way, prompts first of all.
    pub fn mask(&self, text: &str) -> String {
        self.secrets().mask(text).into_owned()
    }

    /// Records an event. `path` says which nested loop, node or branch it belongs to: names with `/` between them, or
    /// nothing for the run itself.
    ///
    /// # Errors
    /// When it could not be written; the file is then as it was before. [`JournalError::DiskFull`] is a kind of its
    /// own. How a run is rolled back and ends is written also on a full disk, into room that was kept for it.
    pub fn append(&self, path: &str, event: &Event) -> Result<(), JournalError> {
        self.shared.append(path, event, false)
    }

    /// The same, and returns only when it is on the disk: for decisions and for the end.
    pub fn append_durable(&self, path: &str, event: &Event) -> Result<(), JournalError> {
        self.shared.append(path, event, true)
    }

    /// Keeps `bytes` as a blob and returns its name: the SHA-256 of what was kept, which is masked and at most
    /// `blob_cap_bytes` long. Equal content is kept once.
    ///
    /// Beyond the cap of the run, only a line that says so is kept, and its name is returned.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn blob(&self, bytes: &[u8]) -> Result<String, JournalError> {
        let options = &self.shared.options;
        let masked = options.secrets.mask_bytes(bytes);
        let cut = cap_blob(&masked, options.blob_cap_bytes);
        let bytes = cut.as_deref().unwrap_or(&masked);
        let mut writer = self.shared.writer();
        if writer.capped || writer.used() >= options.cap_bytes {
            let cap = options.cap_bytes;
            let marker = format!("[left out: the record of this run reached its cap of {cap} bytes]\n");
            return Ok(writer.blobs.put(marker.as_bytes())?.0);
        }
        let (id, added) = writer.blobs.put(bytes)?;
        writer.blob_bytes += added;
        Ok(id)
    }

    /// Puts files and folders of the record back that somebody removed meanwhile, out of the second place or of what is
    /// still open. Call it when the git folder is whole again after a turn.
    ///
    /// Returns true when something had to be put back.
    ///
    /// # Errors
    /// When that failed; the record itself goes on where it still can.
    pub fn repair(&self) -> Result<bool, JournalError> {
        let mut writer = self.shared.writer();
        let options = &self.shared.options;
        let dirs: Vec<_> = std::iter::once(&options.run_dir).chain(&options.second_link).collect();
        let missing = dirs.iter().any(|dir| !dir.join(super::blobs::FOLDER).is_dir());
        if missing {
            for dir in dirs {
                folders::complete(dir)?;
            }
            writer.blobs = options.blob_store()?;
            writer.blobs.refill()?;
        }
        Ok(writer.lines.repair()? || missing)
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("run_dir", &self.shared.options.run_dir).finish_non_exhaustive()
    }
}

impl JournalOptions {
    fn second_file(&self) -> Option<PathBuf> {
        self.second_link.as_ref().map(|dir| dir.join(JOURNAL))
    }

    /// The second place comes first: it is out of reach of whoever removes the repository's own folder.
    fn blob_store(&self) -> Result<BlobStore, JournalError> {
        let dirs: Vec<_> = self.second_link.iter().chain([&self.run_dir]).map(PathBuf::as_path).collect();
        BlobStore::open(&dirs)
    }
}

impl Shared {
    fn writer(&self) -> MutexGuard<'_, Writer> {
        // A panic of another thread leaves the writer between two records, which is a fine place to go on.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, path: &str, event: &Event, durable: bool) -> Result<(), JournalError> {
        let (json, event) = masked(event, &self.options.secrets)?;
        let path = self.options.secrets.mask(path);
        let mut writer = self.writer();
        if !matches!(event, Event::RunEnded(_)) && self.reached_cap(&mut writer)? {
            writer.tell_listener(&self.options, &path, event);
            return Ok(());
        }
        let record = match writer.write(&self.options, &path, json.clone(), &event) {
            Err(JournalError::DiskFull { .. }) if closes(&event) && reserve::free(&self.options.run_dir) => {
                writer.write(&self.options, &path, json, &event)?
            }
            written => written?,
        };
        if durable {
            writer.lines.sync()?;
        }
        if let Some(listener) = &self.options.listener {
            listener(&record);
        }
        match &record.event {
            Event::RunStarted(started) => run_card::write(&self.options.run_dir, &record, started),
            Event::RunEnded(_) => {
                reserve::free(&self.options.run_dir);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// True when only the end of the run is written any more. Writes the marker when the cap is reached now.
    fn reached_cap(&self, writer: &mut Writer) -> Result<bool, JournalError> {
        let cap = self.options.cap_bytes;
        if !writer.capped && writer.used() >= cap {
            let event = Event::Capped { cap };
            let (json, event) = masked(&event, &self.options.secrets)?;
            let record = writer.write(&self.options, "", json, &event)?;
            writer.capped = true;
            if let Some(listener) = &self.options.listener {
                listener(&record);
            }
        }
        Ok(writer.capped)
    }
}

/// True for what is still worth recording on a full disk: that something is being put back, and how it ended.
fn closes(event: &Event) -> bool {
    matches!(
        event,
        Event::Interrupted { .. } | Event::RolledBack { .. } | Event::IterationEnded { .. } | Event::RunEnded(_)
    )
}

impl Writer {
    fn used(&self) -> u64 {
        self.lines.len() + self.blob_bytes
    }

    fn awake_s(&self, options: &JournalOptions) -> f64 {
        let awake = options.clock.awake().saturating_sub(self.awake_start).as_secs_f64();
        // Microseconds are plenty, and keep lines short.
        ((self.awake_base + awake) * 1e6).round() / 1e6
    }

    fn record(&self, options: &JournalOptions, path: &str, event: Event) -> Record {
        Record {
            version: super::event::FORMAT_VERSION,
            seq: self.seq + 1,
            at: options.clock.wall(),
            awake_s: self.awake_s(options),
            run: options.run.clone(),
            path: path.to_owned(),
            event,
            prev: self.prev.clone(),
        }
    }

    fn tell_listener(&self, options: &JournalOptions, path: &str, event: Event) {
        if let Some(listener) = &options.listener {
            listener(&self.record(options, path, event));
        }
    }

    fn write(
        &mut self,
        options: &JournalOptions,
        path: &str,
        json: Value,
        event: &Event,
    ) -> Result<Record, JournalError> {
        let record = self.record(options, path, event.clone());
        let Record { seq, at, awake_s, run, path, prev, .. } = &record;
        let line = Frame { seq: *seq, at: *at, awake_s: *awake_s, run, path, prev }.around(json);
        let kind = line["kind"].as_str().unwrap_or("unknown").to_owned();
        let mut line = line.to_string().into_bytes();
        if line.len() > MOST_LINE_BYTES {
            return Err(JournalError::TooLong { kind, bytes: line.len(), cap: MOST_LINE_BYTES });
        }
        let digest = line_digest(&line);
        line.push(b'\n');
        let foreign = self.lines.append(&line)?;
        self.seq += 1;
        self.prev = digest;
        if foreign != 0 {
            self.note_foreign(options, foreign)?;
        }
        Ok(record)
    }

    /// Says in the journal that somebody else wrote to it.
    fn note_foreign(&mut self, options: &JournalOptions, foreign: i64) -> Result<(), JournalError> {
        let text = match foreign {
            0.. => format!("somebody else added {foreign} bytes to this journal; they were taken out"),
            _ => format!("somebody else cut {} bytes off this journal; those records are lost", -foreign),
        };
        let event = Event::Noted { level: "warn".into(), text };
        let json =
            serde_json::to_value(&event).map_err(|source| JournalError::NotJson { kind: "noted".into(), source })?;
        self.write(options, "", json, &event)?;
        Ok(())
    }
}
