//! No secret reaches the disk, and what is there is for its owner only.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lunation::journal::{Event, Journal, JournalOptions, Secrets, blob};
use lunation::policy::{AgentSpec, Decision, LoopSpec, Reason, SensorSource, SensorSpec};

use crate::recorded_run::{Step, Story, TestClock, note};
use crate::{Place, START, notes};

const SECRET: &str = "abcd1234\"se/cret";

fn secrets() -> Secrets {
    Secrets::from_env(&[("X_API_KEY".to_owned(), SECRET.to_owned())], &[])
}

/// Everything that lies in a folder, as bytes: packed blobs are unpacked.
fn all_bytes_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(all_bytes_below(&path));
            continue;
        }
        let bytes = match path.parent().unwrap().ends_with("blobs") {
            true => blob(folder.parent().unwrap(), path.file_name().unwrap().to_str().unwrap()).unwrap(),
            false => fs::read(&path).unwrap(),
        };
        found.push((path, bytes));
    }
    found
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

#[test]
fn state_05_no_form_of_a_secret_reaches_the_disk() {
    let place = Place::new();
    let options = JournalOptions { secrets: secrets(), ..place.options() };
    let journal = Journal::create(options).unwrap();
    let json = serde_json::to_string(SECRET).unwrap();
    let long = format!("{}{SECRET}{}", "x".repeat(600_000), "y".repeat(400_000));
    for text in [SECRET, &json, &serde_json::to_string(&json).unwrap(), "abcd1234%22se%2Fcret", &long] {
        journal.append(text, &note(&format!("it printed {text}."))).unwrap();
        journal.blob(format!("it printed {text}.").as_bytes()).unwrap();
    }
    // Split over two writes, joined by a stream on its way.
    let mut stream = journal.secrets().stream();
    let mut bytes = stream.push(&SECRET.as_bytes()[..7]);
    bytes.extend(stream.push(&SECRET.as_bytes()[7..]));
    bytes.extend(stream.finish());
    assert_eq!(bytes, b"[masked X_API_KEY]");
    journal.blob(&bytes).unwrap();
    assert_eq!(journal.mask(&format!("a prompt with {SECRET}")), "a prompt with [masked X_API_KEY]");
    drop(journal);
    let found = all_bytes_below(&place.dir());
    assert!(found.len() >= 7, "{found:?}");
    for (path, bytes) in found {
        for part in ["abcd1234", "cret"] {
            assert!(!contains(&bytes, part.as_bytes()), "{part} is in {}", path.display());
        }
    }
    let recording = place.read();
    assert_eq!(notes(&recording)[0], "it printed [masked X_API_KEY].");
    assert_eq!(recording.records[0].path, "[masked X_API_KEY]");
}

#[test]
fn state_05_environments_of_commands_are_recorded_by_name_only() {
    let place = Place::new();
    let journal = Journal::create(place.options()).unwrap();
    let mut spec = LoopSpec::new(AgentSpec::command(["agent"]), "Go.");
    let variable = || BTreeMap::from([("PLAIN".to_owned(), "harmless-value".to_owned())]);
    spec.agents[0].env = variable();
    let mut sensor = SensorSpec::shell("true");
    if let SensorSource::Command(command) = &mut sensor.source {
        command.env = variable();
    }
    spec.sensors.push(sensor);
    let event = Event::LoopStarted { spec: Box::new(spec), template_sha256: None, protected: vec![] };
    journal.append("loop", &event).unwrap();
    let text = fs::read_to_string(place.file()).unwrap();
    assert!(!text.contains("harmless-value"), "{text}");
    assert_eq!(text.matches("\"PLAIN\":\"[not recorded]\"").count(), 2, "{text}");
    assert_eq!(place.read().records.len(), 1);
}

#[test]
fn state_05_files_and_folders_are_for_their_owner_only() {
    let place = Place::new();
    let mut story = Story::begin(&place.dir(), TestClock::at(START), place.id.clone());
    story.iterate(Step::keep(0)).end(Reason::Completed, true);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for folder in [place.dir(), place.dir().join("blobs"), place.folder.path().join("lunation")] {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
    }
    let files = all_bytes_below(&place.dir());
    assert!(files.len() >= 4);
    for (path, _) in files {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_secret_that_is_a_word_of_the_format_leaves_the_record_readable() {
    let place = Place::new();
    let env = [("A_TOKEN".to_owned(), "rollback".to_owned()), ("B_KEY".to_owned(), "iteration".to_owned())];
    let story =
        &mut Story::begin_masked(&place.dir(), TestClock::at(START), place.id.clone(), Secrets::from_env(&env, &[]));
    story.iterate(Step::rollback(4, "a rollback it was"));
    let recording = place.read();
    assert_eq!(recording.problems, []);
    let verdict = recording.records.iter().find_map(|record| match &record.event {
        Event::Decided { verdict, .. } => Some(verdict.clone()),
        _ => None,
    });
    let verdict = verdict.unwrap();
    assert_eq!(verdict.decision, Decision::Rollback);
    assert_eq!(verdict.note.as_deref(), Some("a [masked A_TOKEN] it was"));
}

#[test]
fn limit_04_what_was_kept_from_the_agent_is_recorded_by_name() {
    let place = Place::new();
    Story::begin(&place.dir(), TestClock::at(START), place.id.clone()).iterate(Step::keep(1));
    let text = fs::read_to_string(place.file()).unwrap();
    assert!(text.contains("\"scrubbed\":[\"CLAUDECODE\"]"), "{text}");
}
