//! `log`, `prompt` and `diff`: what is in a record.

use std::fs;

use lunation::journal::Event;

use crate::recorded_run::run_id;
use crate::{Project, START};

#[test]
fn log_shows_one_line_for_each_record() {
    let project = Project::with_a_run();
    let id = run_id(START, 1);
    let out = project.read(&["log"]);
    let expected = format!(
        "\
run {id}
      0s  run started: loop.lua, containment: subreaper
      0s  loop  loop `loop` started: fake, 1 sensor
      0s  loop  before the first iteration: cargo test: 3 failing
      0s  loop  iteration 1: fake
      0s  loop  prompt of 29 bytes
   1m00s  loop  turn ended as done after 1m00s: I did it.
   1m00s  loop  changed 1 file and 1 line: src/lib.rs
   1m05s  loop  cargo test: 4 failing
   1m05s  loop  iteration 1 rolled back: broke test_3
   1m05s  loop  put back 1 path
   1m05s  loop  iteration ended, 1m05s so far
"
    );
    assert!(out.starts_with(&expected), "{out}");
    for line in [
        "   2m05s  loop  guard put back: HEAD\n",
        "   2m05s  loop  fence reverted: tests/a.rs\n",
        "   3m10s  loop  nothing changed\n",
        "   3m10s  loop  ladder: rung 1 to 2: 3 stalls\n",
        "   3m10s  loop  iteration 4: fake-2 (rung 2)\n",
        "   4m15s  loop  iteration 4 kept, complete and verified\n",
    ] {
        assert!(out.contains(line), "{line} is not in\n{out}");
    }
    assert!(out.ends_with("   4m15s  run ended: completed, verified: ended: completed\n"), "{out}");
}

#[test]
fn log_as_json_is_the_journal_line_by_line() {
    let project = Project::with_a_run();
    assert!(project.read(&["log", "--json"]) == fs::read_to_string(project.journal_file()).unwrap());
}

#[test]
fn log_can_be_narrowed_to_kinds_and_to_the_last() {
    let project = Project::with_a_run();
    let decided = project.read(&["log", "--kind", "decided", "--quiet"]);
    assert_eq!(decided.lines().count(), 4, "{decided}");
    let last = project.read(&["log", "--kind", "decided", "--kind", "fenced", "-n", "2", "-q"]);
    assert_eq!(last.lines().count(), 2, "{last}");
    assert!(last.lines().next().unwrap().contains("iteration 3 no progress: nothing changed"), "{last}");
    let wrong = project.run(&["log", "--kind", "decide"]);
    assert_eq!((wrong.code, wrong.out.as_str()), (4, ""));
    assert!(wrong.err.contains("there is no kind of record called `decide`"), "{}", wrong.err);
    assert!(wrong.err.contains("hint: did you mean decided?"), "{}", wrong.err);
}

#[test]
fn the_prompt_of_an_iteration_is_printed_byte_for_byte() {
    let project = Project::with_a_run();
    assert_eq!(project.read(&["prompt", "2"]), "Fix the tests. (iteration 2)\n");
    assert_eq!(project.read(&["prompt"]), "Fix the tests. (iteration 4)\n");
    let json = project.json(&["prompt", "3", "--json"]);
    assert_eq!(json["prompt"], "Fix the tests. (iteration 3)\n");
    assert_eq!((json["iteration"].as_u64(), json["bytes"].as_u64()), (Some(3), Some(29)));
}

#[test]
fn terminal_codes_in_a_prompt_are_kept_in_a_pipe() {
    let project = Project::new();
    let story = project.story(START, 1);
    let prompt = story.journal.blob(b"\x1b[31mred\xff\r\n").unwrap();
    story.tell("loop", Event::Prompted { iteration: 1, prompt, bytes: 11, slots: vec![] });
    let output = project.command(&["prompt", "1"]).output().unwrap();
    assert_eq!(output.stdout, b"\x1b[31mred\xff\r\n");
}

#[test]
fn the_diff_of_an_iteration_can_be_piped_and_its_fate_is_told_beside_it() {
    let project = Project::with_a_run();
    let diff = "diff --git a/src/lib.rs b/src/lib.rs\n+iteration 1\n";
    let told = project.run(&["diff", "1"]);
    assert_eq!((told.code, told.out.as_str()), (0, diff));
    assert_eq!(told.err, "iteration 1 was rolled back: broke test_3\n");
    assert_eq!(project.read(&["diff", "1", "--quiet"]), diff);
    assert_eq!(project.run(&["diff", "2"]).err, "iteration 2 was kept\n");
    let nothing = project.run(&["diff", "3"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (0, ""));
    assert_eq!(nothing.err, "iteration 3 changed nothing: nothing changed\n");
    let json = project.json(&["diff", "1", "--json"]);
    assert_eq!(json["decision"], "rollback");
    assert_eq!(json["note"], "broke test_3");
    assert_eq!(json["diff"], diff);
}

#[test]
fn an_iteration_that_is_not_there_is_a_usage_error_with_the_last_number() {
    let project = Project::with_a_run();
    for command in ["prompt", "diff"] {
        let told = project.run(&[command, "9"]);
        assert_eq!((told.code, told.out.as_str()), (4, ""));
        let expected = format!(
            "error: run {} has no iteration 9: its last one is 4\nhint: `lunation log` shows all of it\n",
            run_id(START, 1)
        );
        assert_eq!(told.err, expected);
    }
    for wrong in ["0", "-1", "x", "1.5"] {
        assert_eq!(project.run(&["prompt", wrong]).code, 4, "{wrong}");
    }
}

#[test]
fn where_several_loops_have_an_iteration_the_path_must_be_named() {
    let project = Project::new();
    let story = project.story(START, 1);
    for path in ["plan", "build"] {
        let prompt = story.journal.blob(format!("prompt of {path}\n").as_bytes()).unwrap();
        story.tell(path, Event::Prompted { iteration: 1, prompt, bytes: 1, slots: vec![] });
    }
    let told = project.run(&["prompt", "1"]);
    assert_eq!(told.code, 4);
    assert!(told.err.contains("have this iteration: build, plan\nhint: name one with --path"), "{}", told.err);
    assert_eq!(project.read(&["prompt", "1", "--path", "plan"]), "prompt of plan\n");
    let typo = project.run(&["prompt", "1", "--path", "plam"]);
    assert_eq!(typo.code, 4);
    assert!(typo.err.contains("hint: did you mean --path plan?"), "{}", typo.err);
}
