//! The record of a run on disk: what survives crashes, full caps, hostile hands and curious secrets.

mod bounds;
mod damage;
mod places;
mod reading_back;
#[path = "../recorded_run/mod.rs"]
mod recorded_run;
mod secrets;

use std::path::PathBuf;

use lunation::journal::{Event, Journal, JournalOptions, Record, Recording, RunId};
use recorded_run::{TestClock, note, run_id};

const START: &str = "2026-11-30T20:10:26Z";

/// A folder for one run, removed with the test.
struct Place {
    folder: tempfile::TempDir,
    id: RunId,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap(), id: run_id(START, 1) }
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("lunation/runs").join(self.id.as_str())
    }

    fn file(&self) -> PathBuf {
        self.dir().join("journal.jsonl")
    }

    fn options(&self) -> JournalOptions {
        JournalOptions::new(self.dir(), self.id.clone(), TestClock::at(START))
    }

    fn write(&self, notes: &[&str]) {
        let journal = Journal::create(self.options()).unwrap();
        notes.iter().for_each(|text| journal.append("", &note(text)).unwrap());
    }

    fn read(&self) -> Recording {
        Recording::read(&self.dir()).unwrap()
    }
}

fn notes(recording: &Recording) -> Vec<&str> {
    recording.records.iter().filter_map(note_of).collect()
}

fn note_of(record: &Record) -> Option<&str> {
    match &record.event {
        Event::Noted { text, .. } => Some(text),
        _ => None,
    }
}
