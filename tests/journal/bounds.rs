//! Caps, blobs and full disks.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use lunation::journal::{Event, Journal, JournalError, JournalOptions, blob};
use lunation::policy::Reason;

use crate::recorded_run::{Step, Story, TestClock, note};
use crate::{Place, START, notes};

#[test]
fn beyond_its_cap_a_journal_holds_a_marker_and_the_end() {
    let place = Place::new();
    let clock = TestClock::at(START);
    let options =
        JournalOptions { cap_bytes: 20_000, ..JournalOptions::new(place.dir(), place.id.clone(), clock.clone()) };
    let mut story = Story::begin_with(options, clock);
    for n in 0..400 {
        story.tell("loop", note(&format!("{n} {}", "x".repeat(100))));
    }
    let left_out = story.journal.blob(&[b'z'; 5000]).unwrap();
    story.iterate(Step::keep(0)).end(Reason::Completed, true);
    let size = fs::metadata(place.file()).unwrap().len();
    assert!((20_000..24_000).contains(&size), "{size}");
    let recording = place.read();
    assert_eq!(recording.problems, []);
    let last: Vec<&Event> = recording.records.iter().rev().take(2).map(|record| &record.event).collect();
    assert!(matches!(last[0], Event::RunEnded(_)));
    assert!(matches!(last[1], Event::Capped { cap: 20_000 }));
    let marker = blob(&place.dir(), &left_out).unwrap();
    assert_eq!(marker, b"[left out: the record of this run reached its cap of 20000 bytes]\n");
}

#[test]
fn a_reopened_journal_still_knows_that_it_is_capped() {
    let place = Place::new();
    let options = || JournalOptions { cap_bytes: 2000, ..place.options() };
    let journal = Journal::create(options()).unwrap();
    (0..20).for_each(|n| journal.append("", &note(&format!("{n} {}", "x".repeat(100)))).unwrap());
    drop(journal);
    let before = place.read().records.len();
    Journal::reopen(options()).unwrap().append("", &note("left out")).unwrap();
    assert_eq!(place.read().records.len(), before);
}

#[test]
fn a_long_blob_keeps_head_and_tail_and_says_what_was_cut() {
    let place = Place::new();
    let journal = Journal::create(JournalOptions { blob_cap_bytes: 1000, ..place.options() }).unwrap();
    let bytes = format!("HEAD{}TAIL", "-".repeat(100_000));
    let kept = String::from_utf8(blob(&place.dir(), &journal.blob(bytes.as_bytes()).unwrap()).unwrap()).unwrap();
    assert!(kept.len() <= 1000 && kept.starts_with("HEAD-") && kept.ends_with("-TAIL"), "{kept}");
    assert!(kept.contains("of 100008 bytes cut: a blob holds at most 1000"), "{kept}");
}

#[test]
fn equal_blobs_are_kept_once_and_read_back_exactly() {
    let place = Place::new();
    let journal = Journal::create(place.options()).unwrap();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let id = journal.blob(&bytes).unwrap();
    assert_eq!(journal.blob(&bytes).unwrap(), id);
    assert_eq!(blob(&place.dir(), &id).unwrap(), bytes);
    assert_eq!(blob(&place.dir(), &journal.blob(b"").unwrap()).unwrap(), b"");
    assert_eq!(fs::read_dir(place.dir().join("blobs")).unwrap().count(), 2);
}

#[test]
fn a_blob_that_is_missing_damaged_or_a_link_is_an_error_that_says_so() {
    let place = Place::new();
    let journal = Journal::create(place.options()).unwrap();
    let id = journal.blob(b"right").unwrap();
    let path = place.dir().join("blobs").join(&id);
    let other = journal.blob(b"wrong").unwrap();
    fs::copy(place.dir().join("blobs").join(other), &path).unwrap();
    assert!(matches!(blob(&place.dir(), &id), Err(JournalError::DamagedBlob { .. })));
    fs::write(&path, "not gzip").unwrap();
    assert!(matches!(blob(&place.dir(), &id), Err(JournalError::DamagedBlob { .. })));
    fs::remove_file(&path).unwrap();
    assert!(matches!(blob(&place.dir(), &id), Err(JournalError::NoBlob { .. })));
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    assert!(matches!(blob(&place.dir(), &id), Err(JournalError::DamagedBlob { .. })));
    for name in ["", "../journal.jsonl", &id[1..], &id.to_uppercase()] {
        assert!(matches!(blob(&place.dir(), name), Err(JournalError::BadBlobName { .. })), "{name}");
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "a test that is left out says so")]
fn state_04_a_full_disk_is_a_kind_of_its_own_and_rollback_and_end_are_still_written() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: needs root to mount a small file system");
        return;
    }
    let place = Place::new();
    let mount = place.folder.path().join("lunation");
    fs::create_dir(&mount).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&mount).status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("left out: no file system can be mounted here");
        return;
    }
    let _unmount = Unmount(mount);
    let mut story = Story::begin(&place.dir(), TestClock::at(START), place.id.clone());
    let error =
        (0..100_000).find_map(|n| story.journal.append("", &note(&format!("{n} {}", "x".repeat(500)))).err()).unwrap();
    assert!(error.is_disk_full(), "{error}");
    assert!(error.to_string().contains("the disk is full"), "{error}");
    let noise: Vec<u8> = (0..2_000_000u64).map(|n| (n.wrapping_mul(6_364_136_223_846_793_005) >> 33) as u8).collect();
    assert!(story.journal.blob(&noise).unwrap_err().is_disk_full());
    let checkpoint = "c".repeat(40);
    story.tell("loop", Event::RolledBack { iteration: 1, checkpoint, restored: 1, conflicts: vec![] });
    story.end(Reason::DiskFull, false);
    let recording = place.read();
    assert_eq!(recording.problems, []);
    assert!(!recording.torn_tail);
    assert!(matches!(recording.records.last().unwrap().event, Event::RunEnded(_)));
    assert!(recording.records.len() > 500);
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.0).status().unwrap();
    }
}

#[test]
fn a_long_string_is_cut_and_the_record_is_kept() {
    let place = Place::new();
    place.write(&[&"long ".repeat(1 << 20)]);
    let recording = place.read();
    assert!(notes(&recording)[0].len() <= 1 << 20);
    assert!(notes(&recording)[0].contains("bytes cut"));
}
