//! Where records are, who writes them, and how they are found again.

use std::fs;

use lunation::journal::{FindError, Journal, JournalError, JournalOptions, Recording, RunId, RunsFolder, blob};

use crate::recorded_run::{Story, TestClock, note, run_id};
use crate::{Place, START, notes};

#[test]
fn a_run_never_writes_over_another_one() {
    let place = Place::new();
    place.write(&["one"]);
    assert!(matches!(Journal::create(place.options()), Err(JournalError::Exists { .. })));
    assert_eq!(notes(&place.read()), ["one"]);
}

#[test]
fn a_planted_link_is_not_followed() {
    let place = Place::new();
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), place.folder.path().join("lunation")).unwrap();
    assert!(matches!(Journal::create(place.options()), Err(JournalError::NotAFolder { .. })));
}

#[test]
fn only_one_process_writes_and_readers_see_that_it_lives() {
    let place = Place::new();
    let journal = Journal::create(place.options()).unwrap();
    assert!(Recording::is_being_written(&place.dir()));
    assert!(matches!(Journal::reopen(place.options()), Err(JournalError::InUse { .. })));
    drop(journal);
    assert!(!Recording::is_being_written(&place.dir()));
    Journal::reopen(place.options()).unwrap().append("", &note("mine now")).unwrap();
}

#[test]
fn awake_time_goes_on_where_the_earlier_process_stopped() {
    let place = Place::new();
    let story = Story::begin(&place.dir(), TestClock::at(START), place.id.clone());
    story.clock.advance(90.0);
    story.tell("", note("before"));
    drop(story);
    let clock = TestClock::at("2026-11-30T23:00:00Z");
    let journal = Journal::reopen(JournalOptions::new(place.dir(), place.id.clone(), clock.clone())).unwrap();
    clock.advance(10.0);
    journal.append("", &note("after")).unwrap();
    assert_eq!(place.read().records.last().unwrap().awake_s, 100.0);
}

/// A run with a second place in another folder, as in the state folder of a user.
struct TwoPlaces {
    place: Place,
    state: tempfile::TempDir,
    journal: Journal,
}

impl TwoPlaces {
    fn new() -> TwoPlaces {
        let place = Place::new();
        let state = tempfile::tempdir().unwrap();
        let second_link = Some(state.path().join("runs").join(place.id.as_str()));
        let journal = Journal::create(JournalOptions { second_link, ..place.options() }).unwrap();
        TwoPlaces { place, state, journal }
    }

    fn runs(&self) -> RunsFolder {
        RunsFolder::new(self.place.folder.path()).with_second_place(self.state.path())
    }
}

#[test]
fn a_record_outlives_the_removal_of_the_git_folder() {
    let two = TwoPlaces::new();
    two.journal.append("", &note("before")).unwrap();
    let early = two.journal.blob(b"early").unwrap();
    fs::remove_dir_all(two.place.folder.path().join("lunation")).unwrap();
    two.journal.append("", &note("after")).unwrap();
    let late = two.journal.blob(b"late").unwrap();
    let found = two.runs().latest().unwrap();
    assert!(found.dir.starts_with(two.state.path()));
    assert_eq!(notes(&Recording::read(&found.dir).unwrap()), ["before", "after"]);
    assert_eq!(blob(&found.dir, &early).unwrap(), b"early");
    assert_eq!(blob(&found.dir, &late).unwrap(), b"late");

    assert!(two.journal.repair().unwrap());
    assert!(!two.journal.repair().unwrap());
    two.journal.append("", &note("at the end")).unwrap();
    let found = two.runs().latest().unwrap();
    assert_eq!(found.dir, two.place.dir());
    assert_eq!(notes(&two.place.read()), ["before", "after", "at the end"]);
    assert_eq!(blob(&found.dir, &early).unwrap(), b"early");
    assert_eq!(blob(&found.dir, &late).unwrap(), b"late");
}

#[test]
fn a_record_whose_every_name_was_removed_is_written_anew() {
    let two = TwoPlaces::new();
    two.journal.append("", &note("before")).unwrap();
    fs::remove_file(two.place.file()).unwrap();
    fs::remove_file(two.state.path().join("runs").join(two.place.id.as_str()).join("journal.jsonl")).unwrap();
    assert!(two.journal.repair().unwrap());
    two.journal.append("", &note("after")).unwrap();
    assert_eq!(notes(&two.place.read()), ["before", "after"]);
    assert!(Recording::is_being_written(&two.place.dir()));
    let second = two.state.path().join("runs").join(two.place.id.as_str());
    assert_eq!(notes(&Recording::read(&second).unwrap()), ["before", "after"]);
}

#[test]
fn tried_01_runs_of_the_same_second_are_listed_newest_first_and_found_by_what_is_typed() {
    let folder = tempfile::tempdir().unwrap();
    let runs = RunsFolder::new(folder.path());
    assert!(matches!(runs.latest(), Err(FindError::NoRuns)));
    assert!(matches!(runs.find(""), Err(FindError::NoRuns)));
    let ids: Vec<RunId> = [("2026-11-30T20:10:26.1Z", 5), ("2026-11-30T20:10:26.8Z", 1), ("2026-12-01T08:00:00Z", 3)]
        .into_iter()
        .map(|(start, tail)| run_id(start, tail))
        .collect();
    for id in &ids {
        Journal::create(JournalOptions::new(runs.run_dir(id), id.clone(), TestClock::at(START))).unwrap();
    }
    fs::create_dir(folder.path().join("lunation/runs/20261201-080000-0000000000")).unwrap();
    fs::create_dir(folder.path().join("lunation/runs/notes")).unwrap();
    let listed: Vec<RunId> = runs.list().unwrap().into_iter().map(|run| run.id).collect();
    assert_eq!(listed, [ids[2].clone(), ids[1].clone(), ids[0].clone()]);
    assert_eq!(runs.latest().unwrap().id, ids[2]);
    assert_eq!(runs.find("20261201").unwrap().id, ids[2]);
    assert_eq!(runs.find(ids[0].short()).unwrap().id, ids[0]);
    assert_eq!(
        runs.find("20261130").unwrap_err().to_string(),
        format!("`20261130` fits 2 runs, the newest of them {}: write more of the name", ids[1])
    );
    let typo = ids[0].as_str().replace("-201026-", "-201036-");
    assert_eq!(
        runs.find(&typo).unwrap_err().to_string(),
        format!("there is no run `{typo}`: did you mean {}?", ids[0])
    );
    assert_eq!(runs.find("zzz").unwrap_err().to_string(), "there is no run `zzz`");
    for nobody in ["", "  "] {
        assert!(matches!(runs.find(nobody), Err(FindError::Unknown { .. })));
    }
}
