//! Crashes and hostile hands: torn tails, damaged lines, changed lines, foreign bytes.

use std::fs;
use std::io::Write;

use lunation::journal::{Journal, ProblemKind};

use crate::recorded_run::{note, run_id};
use crate::{Place, START, notes};

#[test]
fn state_01_a_journal_torn_at_any_byte_goes_on_without_losing_a_whole_record() {
    let whole = Place::new();
    whole.write(&["first", "second", "letters of many bytes: äß€😀"]);
    let bytes = fs::read(whole.file()).unwrap();
    let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in last..=bytes.len() {
        let place = Place::new();
        fs::create_dir_all(place.dir()).unwrap();
        fs::write(place.file(), &bytes[..cut]).unwrap();
        // The record is complete with its last brace; the line end may be missing.
        let complete = cut >= bytes.len() - 1;
        let mut expected = vec!["first", "second"];
        if complete {
            expected.push("letters of many bytes: äß€😀");
        }
        let torn = place.read();
        assert_eq!(notes(&torn), expected, "cut at {cut}");
        assert_eq!(torn.torn_tail, cut > last && !complete, "cut at {cut}");
        assert_eq!(torn.problems, [], "cut at {cut}");

        let journal = Journal::reopen(place.options()).unwrap();
        journal.append("", &note("after the crash")).unwrap();
        let read = place.read();
        let texts: Vec<&str> = notes(&read).into_iter().filter(|text| !text.starts_with("torn: ")).collect();
        expected.push("after the crash");
        assert_eq!(texts, expected, "cut at {cut}");
        assert_eq!(read.problems, [], "cut at {cut}");
        let kept = notes(&read).iter().any(|text| text.starts_with("torn: "));
        assert_eq!(kept, cut > last && !complete, "cut at {cut}: {:?}", notes(&read));
    }
}

#[test]
fn state_01_every_whole_record_is_read_wherever_the_file_is_cut() {
    let place = Place::new();
    place.write(&["one", "zwei ä", "three 😀", "four"]);
    let bytes = fs::read(place.file()).unwrap();
    for cut in 0..=bytes.len() {
        fs::write(place.file(), &bytes[..cut]).unwrap();
        // A record is whole with its last brace.
        let whole = bytes[..cut].split_inclusive(|byte| *byte == b'\n').filter(|line| {
            let body = line.strip_suffix(b"\n").unwrap_or(line);
            serde_json::from_slice::<serde_json::Value>(body).is_ok()
        });
        let recording = place.read();
        assert_eq!(recording.records.len(), whole.count(), "cut at {cut}");
        assert_eq!(recording.problems, [], "cut at {cut}");
    }
}

#[test]
fn state_01_the_torn_piece_is_kept_as_a_remark() {
    let place = Place::new();
    place.write(&["first", "second"]);
    let bytes = fs::read(place.file()).unwrap();
    fs::write(place.file(), &bytes[..bytes.len() - 90]).unwrap();
    Journal::reopen(place.options()).unwrap();
    let recording = place.read();
    let kept = notes(&recording)[1];
    assert!(kept.starts_with("torn: the last record was cut off after "), "{kept}");
    assert!(kept.contains("\"seq\":2"), "{kept}");
}

#[test]
fn state_01_a_damaged_middle_line_is_told_by_its_number() {
    let place = Place::new();
    place.write(&["one", "two", "three", "four"]);
    let text = fs::read(place.file()).unwrap();
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    for damage in [&b"{\"v\":1,\"seq\":2\n"[..], b"\xff\xfe\n", b"\n", b"null\n", b"{\"v\":1}\n"] {
        fs::write(place.file(), [lines[0], damage, lines[2], lines[3]].concat()).unwrap();
        let recording = place.read();
        assert_eq!(notes(&recording), ["one", "three", "four"]);
        assert_eq!(recording.problems.len(), 1, "{:?}", recording.problems);
        assert_eq!(recording.problems[0].line, 2);
        assert_eq!(recording.problems[0].kind, ProblemKind::Damaged);
        assert!(recording.problems[0].what.starts_with("line 2 is damaged: "), "{:?}", recording.problems);
    }
}

#[test]
fn a_journal_with_a_damaged_middle_can_be_continued() {
    let place = Place::new();
    place.write(&["one", "two", "three"]);
    let text = fs::read_to_string(place.file()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for damaged in [format!("{}garbage\n{}", lines[0], lines[2]), format!("{}{}garbage\n", lines[0], lines[1])] {
        fs::write(place.file(), damaged).unwrap();
        Journal::reopen(place.options()).unwrap().append("", &note("later")).unwrap();
        let recording = place.read();
        assert_eq!(recording.records.last().map(|record| record.seq), Some(4));
        assert_eq!(notes(&recording).last(), Some(&"later"));
        assert_eq!(recording.problems.len(), 1, "{:?}", recording.problems);
    }
}

#[test]
fn a_changed_line_breaks_the_chain_and_is_named() {
    let place = Place::new();
    place.write(&["one", "two", "three"]);
    let text = fs::read_to_string(place.file()).unwrap().replace("\"two\"", "\"TWO\"");
    fs::write(place.file(), text).unwrap();
    let recording = place.read();
    assert_eq!(notes(&recording), ["one", "TWO", "three"]);
    assert_eq!(recording.problems.len(), 1);
    assert_eq!(recording.problems[0].what, "line 2 was changed after it was written: the chain breaks at line 3");
}

#[test]
fn a_missing_line_is_named() {
    let place = Place::new();
    place.write(&["one", "two", "three", "four"]);
    let text = fs::read_to_string(place.file()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    fs::write(place.file(), [lines[0], lines[3]].concat()).unwrap();
    let recording = place.read();
    assert_eq!(recording.problems[0].what, "before line 2, records 2 to 3 are missing");
    assert_eq!(recording.problems[0].kind, ProblemKind::Gap);
}

#[test]
fn loop_03_records_of_another_run_are_not_used() {
    let place = Place::new();
    place.write(&["mine"]);
    let other = Place { folder: tempfile::tempdir().unwrap(), id: run_id(START, 9) };
    other.write(&["not mine"]);
    let mut file = fs::OpenOptions::new().append(true).open(place.file()).unwrap();
    file.write_all(&fs::read(other.file()).unwrap()).unwrap();
    let recording = place.read();
    assert_eq!(notes(&recording), ["mine"]);
    assert_eq!(recording.problems[0].kind, ProblemKind::OtherRun);
    assert!(recording.problems[0].what.contains(other.id.as_str()), "{:?}", recording.problems);
}

#[test]
fn what_somebody_else_writes_into_a_journal_is_taken_out_and_told() {
    let place = Place::new();
    let journal = Journal::create(place.options()).unwrap();
    journal.append("", &note("one")).unwrap();
    fs::OpenOptions::new().append(true).open(place.file()).unwrap().write_all(b"{\"v\":1,\"forged").unwrap();
    journal.append("", &note("two")).unwrap();
    let recording = place.read();
    assert_eq!(notes(&recording), ["one", "two", "somebody else added 14 bytes to this journal; they were taken out"]);
    assert_eq!(recording.problems, []);
}

#[test]
fn what_somebody_else_cuts_off_a_journal_is_told_and_nothing_is_glued() {
    let place = Place::new();
    let journal = Journal::create(place.options()).unwrap();
    journal.append("", &note("one")).unwrap();
    journal.append("", &note("two")).unwrap();
    let size = fs::metadata(place.file()).unwrap().len();
    fs::OpenOptions::new().write(true).open(place.file()).unwrap().set_len(size - 10).unwrap();
    journal.append("", &note("three")).unwrap();
    let recording = place.read();
    assert_eq!(
        notes(&recording),
        ["one", "three", "somebody else cut 10 bytes off this journal; those records are lost"]
    );
    assert_eq!(recording.problems[0].kind, ProblemKind::Damaged);
    assert_eq!(recording.problems[0].line, 2);
}
