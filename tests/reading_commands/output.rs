//! What comes out: in pipes, without secrets, with the right exit codes.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use lunation::journal::{Event, Secrets};
use lunation::policy::{BreakerKind, Decision, Reason};

use crate::recorded_run::{Step, Story, TestClock, note, run_id};
use crate::{Project, START, answer};

#[test]
fn state_04_a_reader_that_goes_away_is_no_error() {
    let project = Project::new();
    let story = project.story(START, 1);
    for n in 0..20_000 {
        story.tell("loop", note(&format!("line {n}")));
    }
    for args in [&["log"][..], &["log", "--json"]] {
        let mut child =
            project.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut first = String::new();
        BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(first.contains(run_id(START, 1).as_str()), "{first}");
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let status = child.wait().unwrap();
        assert_eq!((status.code(), err.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_full_standard_output_is_an_error_that_says_so() {
    let project = Project::with_a_run();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let told = answer(project.command(&["log"]).stdout(full).output().unwrap());
    assert_eq!(told.code, 1);
    assert!(told.err.starts_with("error: standard output could not be written: "), "{}", told.err);
}

#[test]
fn state_01_damage_is_told_by_line_and_the_rest_is_shown() {
    let project = Project::with_a_run();
    let file = project.journal_file();
    let text = fs::read_to_string(&file).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[4] = "{\"v\":1,\"seq\":5,";
    fs::write(&file, lines.join("\n") + "\n{\"v\":1,\"torn").unwrap();
    let told = project.run(&["log"]);
    assert_eq!(told.code, 0);
    assert!(told.err.starts_with("record: line 5 is damaged: not JSON: "), "{}", told.err);
    assert!(told.err.ends_with("record: the last record was cut off; all before it is whole\n"), "{}", told.err);
    assert!(told.out.ends_with("run ended: completed, verified: ended: completed\n"), "{}", told.out);
    assert!(project.read(&["why"]).contains("\nrecord: line 5 is damaged: "));
    assert!(project.read(&["status"]).contains("\n  record: line 5 is damaged: "));
}

#[test]
fn state_05_no_reading_command_shows_a_secret() {
    let project = Project::new();
    let secrets = Secrets::from_env(&[("X_API_KEY".into(), "abcd1234secret".into())], &[]);
    let id = run_id(START, 1);
    let mut story = Story::begin_masked(&project.runs().run_dir(&id), TestClock::at(START), id.clone(), secrets);
    story.iterate(Step::rollback(4, "it printed abcd1234secret"));
    let prompt = story.journal.blob(b"key abcd1234secret\n").unwrap();
    story.tell("loop", Event::Prompted { iteration: 2, prompt, bytes: 19, slots: vec![] });
    story.end(Reason::Breaker(BreakerKind::Failures), false);
    for args in [&["log"][..], &["log", "--json"], &["why"], &["status"], &["report"], &["prompt", "2"], &["diff", "1"]]
    {
        let told = project.run(args);
        assert_eq!(told.code, 0, "{args:?}");
        assert!(!told.out.contains("abcd1234") && !told.err.contains("abcd1234"), "{args:?}: {}", told.out);
    }
    assert_eq!(project.read(&["prompt", "2"]), "key [masked X_API_KEY]\n");
}

#[test]
fn text_of_agents_cannot_drive_the_terminal() {
    let project = Project::new();
    let mut story = project.story(START, 1);
    story.iterate(Step { note: Some("a\x1b]0;title\x07b\nc"), decision: Decision::Keep, ..Step::keep(1) });
    for args in [&["log"][..], &["why"], &["status"], &["report"]] {
        let out = project.read(args);
        assert!(!out.contains(['\x1b', '\x07']), "{args:?}: {out:?}");
    }
}

#[test]
fn output_has_colour_only_where_it_is_wanted() {
    let project = Project::with_a_run();
    assert!(!project.read(&["log"]).contains('\x1b'), "a pipe");
    let coloured = |name: &str, value: &str| {
        let output = project.command(&["log"]).env("CLICOLOR_FORCE", "1").env(name, value).output().unwrap();
        String::from_utf8(output.stdout).unwrap().contains('\x1b')
    };
    assert!(coloured("LANG", "C"));
    assert!(!coloured("NO_COLOR", "1"));
}

#[test]
fn arguments_that_are_wrong_end_with_4_and_help_with_0() {
    let project = Project::with_a_run();
    for wrong in [
        &["frobnicate"][..],
        &["log", "--knid", "decided"],
        &[],
        &["report", "--all", "--run", "x"],
        &["log", "-n", "0"],
        &["status", "extra"],
    ] {
        let told = project.run(wrong);
        assert_eq!((told.code, told.out.as_str()), (4, ""), "{wrong:?}");
        assert!(!told.err.is_empty());
    }
    for right in [&["--help"][..], &["-h"], &["--version"], &["log", "--help"], &["prompt", "-h"]] {
        let told = project.run(right);
        assert_eq!((told.code, told.err.as_str()), (0, ""), "{right:?}");
        assert!(!told.out.is_empty());
    }
}

#[test]
fn the_log_of_the_program_goes_to_standard_error_only() {
    let project = Project::with_a_run();
    let told = answer(project.command(&["log", "--json"]).env("LUNATION_LOG", "trace").output().unwrap());
    assert_eq!(told.code, 0);
    assert!(told.out == fs::read_to_string(project.journal_file()).unwrap());
    let wrong = answer(project.command(&["log"]).env("LUNATION_LOG", "no=such=filter").output().unwrap());
    assert_eq!(wrong.code, 4);
    assert!(wrong.err.contains("LUNATION_LOG=no=such=filter is no log filter"), "{}", wrong.err);
}
