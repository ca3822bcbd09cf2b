//! What was written is read back.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use lunation::journal::{Event, Item, Journal, JournalError, JournalOptions, Record, RecordReader, Recording, blob};
use lunation::policy::{BreakerKind, Decision, Outcome, Reason};

use crate::recorded_run::{Step, Story, TestClock, note, run_id};
use crate::{Place, START, note_of, notes};

#[test]
fn what_was_appended_is_read_back_in_order() {
    let place = Place::new();
    place.write(&["one", "two ü\n", "three"]);
    let recording = place.read();
    assert_eq!(notes(&recording), ["one", "two ü\n", "three"]);
    assert_eq!(recording.id, place.id);
    assert_eq!(recording.records.iter().map(|r| r.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(recording.problems, []);
    assert!(!recording.torn_tail);
}

#[test]
fn a_whole_run_is_read_back_equal() {
    let place = Place::new();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = heard.clone();
    let clock = TestClock::at(START);
    let options = JournalOptions {
        listener: Some(Arc::new(move |record: &Record| ear.lock().unwrap().push(record.clone()))),
        ..JournalOptions::new(place.dir(), place.id.clone(), clock.clone())
    };
    let mut story = Story::begin_with(options, clock);
    story.iterate(Step::rollback(4, "broke test_3")).climb(1, 2);
    for outcome in [Outcome::UsageLimit { reset_at: Some(9) }, Outcome::Crashed { signal: 9 }, Outcome::Auth] {
        story.iterate(Step { outcome, rung: 2, ..Step::keep(2) });
    }
    story.end(Reason::Breaker(BreakerKind::Thrash), false);
    let recording = place.read();
    assert_eq!(recording.problems, []);
    assert_eq!(recording.records, *heard.lock().unwrap());
    let times: Vec<f64> = recording.records.iter().map(|record| record.awake_s).collect();
    assert!(times.is_sorted() && times.last() == Some(&260.0), "{times:?}");
}

#[test]
fn records_from_many_threads_make_one_chain() {
    let place = Place::new();
    let journal = Journal::create(place.options()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let journal = journal.clone();
            scope.spawn(move || (0..50).for_each(|n| journal.append("", &note(&format!("{thread}/{n}"))).unwrap()));
        }
    });
    let recording = place.read();
    assert_eq!(recording.records.len(), 400);
    assert_eq!(recording.problems, []);
}

#[test]
fn a_journal_of_a_newer_lunation_is_refused_by_version() {
    let place = Place::new();
    place.write(&["one"]);
    let text = fs::read_to_string(place.file()).unwrap();
    fs::write(place.file(), format!("{text}{{\"v\":2,\"whatever\":true}}\n")).unwrap();
    for error in [Recording::read(&place.dir()).unwrap_err(), Journal::reopen(place.options()).unwrap_err()] {
        let shown = error.to_string();
        assert!(matches!(error, JournalError::NewerFormat { version: 2, ours: 1, .. }), "{shown}");
        assert!(
            shown.ends_with("has format version 2, this lunation reads versions up to 1: update lunation to read it")
        );
    }
}

#[test]
fn the_sample_of_format_1_is_still_read() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/journal-v1/20261130-201026-00040g2081");
    let recording = Recording::read(&dir).unwrap();
    assert_eq!(recording.problems, []);
    let kinds: Vec<String> = recording
        .records
        .iter()
        .map(|record| serde_json::to_value(&record.event).unwrap()["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds.first().map(String::as_str), Some("run_started"));
    assert_eq!(kinds.last().map(String::as_str), Some("run_ended"));
    let prompts: Vec<Vec<u8>> = recording
        .records
        .iter()
        .filter_map(|record| match &record.event {
            Event::Prompted { prompt, .. } => Some(blob(&dir, prompt).unwrap()),
            _ => None,
        })
        .collect();
    assert_eq!(prompts[1], b"Fix the tests. (iteration 2)\n");
    for (record, kind) in recording.records.iter().zip(&kinds) {
        assert_eq!(record.event.kind(), kind);
        assert!(Event::KINDS.contains(&kind.as_str()));
    }
    let Event::RunEnded(end) = &recording.records[recording.records.len() - 1].event else { panic!("no end") };
    assert_eq!((end.reason, end.verified, end.iterations, end.exit_code), (Reason::Completed, true, 4, 0));
    let decisions: Vec<Decision> = recording
        .records
        .iter()
        .filter_map(|record| match &record.event {
            Event::Decided { verdict, observation, .. } if observation.iteration > 0 => Some(verdict.decision),
            _ => None,
        })
        .collect();
    assert_eq!(decisions, [Decision::Rollback, Decision::Keep, Decision::Stall, Decision::Keep]);
}

#[test]
fn reading_and_writing_again_gives_the_same_bytes() {
    let place = Place::new();
    let mut story = Story::begin(&place.dir(), TestClock::at(START), place.id.clone());
    story.iterate(Step::rollback(4, "broke test_3")).iterate(Step::keep(0)).end(Reason::Completed, true);
    let records = place.read().records;
    let again: String = records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect();
    assert!(again == fs::read_to_string(place.file()).unwrap(), "the bytes differ");
}

/// The story of the sample, told into this folder.
fn tell_the_sample(dir: &Path) {
    let mut story = Story::begin(dir, TestClock::at(START), run_id(START, 1));
    story.iterate(Step::rollback(4, "broke test_3"));
    story.iterate(Step { fenced: &["tests/a.rs (modified)"], guarded: &["HEAD moved to 123"], ..Step::keep(1) });
    story.iterate(Step::stall()).climb(1, 2).iterate(Step { rung: 2, ..Step::keep(0) });
    story.end(Reason::Completed, true);
}

/// The sample of a version is made once and then kept as it is. When the format gets a new version:
/// `MAKE_JOURNAL_SAMPLE=tests/data/journal-v2 cargo test --test journal` makes that one's.
#[test]
fn the_story_of_the_sample_is_told_in_the_same_kinds_of_records_today() {
    if let Some(folder) = std::env::var_os("MAKE_JOURNAL_SAMPLE") {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(run_id(START, 1).as_str());
        assert!(!dir.exists(), "a sample that is there is never made anew");
        tell_the_sample(&dir);
    }
    let place = Place::new();
    let dir = place.dir().with_file_name(run_id(START, 1).as_str());
    tell_the_sample(&dir);
    let kinds = |dir: &Path| -> Vec<String> {
        let recording = Recording::read(dir).unwrap();
        recording.records.iter().map(|record| record.event.kind().to_owned()).collect()
    };
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/journal-v1/20261130-201026-00040g2081");
    assert_eq!(kinds(&dir), kinds(&sample));
}

#[test]
fn a_big_journal_is_read_record_by_record() {
    let place = Place::new();
    let journal = Journal::create(place.options()).unwrap();
    (0..2000).for_each(|n| journal.append("", &note(&n.to_string())).unwrap());
    let reader = RecordReader::open(&place.dir()).unwrap();
    let mut expected = 0..2000;
    for item in reader {
        let Item::Record(record) = item.unwrap() else { panic!("a problem") };
        assert_eq!(note_of(&record), expected.next().map(|n| n.to_string()).as_deref());
    }
    assert_eq!(expected.next(), None);
}
