//! The commands that read records, through the program itself, on runs that were recorded through the library.

mod recorded_run;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use lunation::journal::{Clock, Event, Journal, JournalOptions, RunId, RunsFolder, Secrets};
use lunation::mechanism::repo::{Repository, RepositoryOptions, state_folder};
use lunation::policy::{BreakerKind, Decision, Reason};
use recorded_run::{Step, Story, TestClock, note, run_id};

const START: &str = "2026-11-30T20:10:26Z";

/// A repository with a home of its own.
struct Project {
    folder: tempfile::TempDir,
}

/// What the program answered.
struct Answer {
    code: i32,
    out: String,
    err: String,
}

impl Project {
    fn new() -> Project {
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init(folder.path().join("project")).unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        Project { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn runs(&self) -> RunsFolder {
        RunsFolder::new(&self.root().join(".git"))
    }

    fn story(&self, start: &str, tail: u8) -> Story {
        let id = run_id(start, tail);
        Story::begin(&self.runs().run_dir(&id), TestClock::at(start), id)
    }

    /// A run that rolled back, was fenced, stalled, climbed and passed.
    fn with_a_run() -> Project {
        let project = Project::new();
        let mut story = project.story(START, 1);
        story.iterate(Step::rollback(4, "broke test_3"));
        story.iterate(Step { fenced: &["tests/a.rs"], guarded: &["HEAD"], ..Step::keep(1) });
        story.iterate(Step::stall()).climb(1, 2).iterate(Step { rung: 2, ..Step::keep(0) });
        story.end(Reason::Completed, true);
        project
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lunation"));
        command.args(args).current_dir(self.root()).env_clear().env("HOME", self.folder.path().join("home"));
        command.env("LUNATION_HOME", self.folder.path().join("home/state")).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Answer {
        answer(self.command(args).output().unwrap())
    }

    /// Standard output of a command that must succeed in silence.
    fn read(&self, args: &[&str]) -> String {
        let answer = self.run(args);
        assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{args:?}: {}", answer.out);
        answer.out
    }

    fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.read(args)).unwrap()
    }

    fn journal_file(&self) -> PathBuf {
        self.runs().latest().unwrap().dir.join("journal.jsonl")
    }
}

fn answer(output: Output) -> Answer {
    Answer {
        code: output.status.code().expect("an exit code, not a signal"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

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
        "   3m10s  loop  ladder: rung 1 to 2, because of 3 stalls\n",
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
    story.tell("loop", Event::Prompted { iteration: 1, prompt, bytes: 11 });
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
        story.tell(path, Event::Prompted { iteration: 1, prompt, bytes: 1 });
    }
    let told = project.run(&["prompt", "1"]);
    assert_eq!(told.code, 4);
    assert!(told.err.contains("have this iteration: build, plan\nhint: name one with --path"), "{}", told.err);
    assert_eq!(project.read(&["prompt", "1", "--path", "plan"]), "prompt of plan\n");
    let typo = project.run(&["prompt", "1", "--path", "plam"]);
    assert_eq!(typo.code, 4);
    assert!(typo.err.contains("hint: did you mean --path plan?"), "{}", typo.err);
}

#[test]
fn status_of_a_run_that_ended() {
    let project = Project::with_a_run();
    let id = run_id(START, 1);
    assert_eq!(
        project.read(&["status"]),
        format!(
            "\
run {id}: completed, verified, after 4 iterations (exit code 0)
  loop.lua on main, started 2026-11-30T20:10:26Z
  iteration 4: keep
  failing: 3 at the start, 0 now
  time: 4m15s
next: git diff    # shows the result, which is in the work tree
"
        )
    );
    assert_eq!(project.json(&["status", "--json"])["state"], "ended");
}

#[test]
fn status_tells_a_running_run_from_one_that_died() {
    let project = Project::new();
    let mut story = project.story(START, 1);
    story.iterate(Step::keep(2));
    let running = project.read(&["status"]);
    assert!(running.contains(": running, 1 iteration so far\n"), "{running}");
    assert!(running.contains("  time: 1m05s; left: 4 iterations, 1h58m\n"), "{running}");
    assert!(running.contains("next: lunation stop"), "{running}");
    drop(story);
    let died = project.read(&["status"]);
    assert!(died.contains(": crashed or killed: unfinished after 1 iteration, nothing was verified\n"), "{died}");
}

#[test]
fn status_without_runs_is_an_answer_and_the_others_say_what_to_type() {
    let project = Project::new();
    assert_eq!(project.read(&["status", "-q"]), "no runs here yet\n");
    assert_eq!(project.json(&["status", "--json"])["run"], serde_json::Value::Null);
    assert_eq!(project.read(&["report", "--all"]), "no runs here yet\n");
    for command in ["log", "why", "prompt", "diff", "report"] {
        let told = project.run(&[command]);
        assert_eq!((told.code, told.out.as_str()), (4, ""), "{command}");
        assert_eq!(told.err, "error: there are no runs here yet: `lunation run` makes the first one\n");
    }
}

#[test]
fn why_tells_the_decision_and_what_to_type_next() {
    let project = Project::new();
    let mut story = project.story(START, 1);
    story.iterate(Step::keep(2)).iterate(Step::rollback(4, "broke test_2, test_3"));
    story.end(Reason::MaxIterations, false);
    let out = project.read(&["why"]);
    for part in [
        ": max_iterations, not verified, after 2 iterations (exit code 2)\n",
        "\niteration 2 was rolled back: broke test_2, test_3\n",
        "\n  failing: 2 before, 4 after; new: test_2, test_3\n",
        "\ncompletion: not complete; the checks alone count (mode `override`)\n",
        "\nnext: lunation run    # ",
    ] {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
    assert!(project.read(&["why", "1"]).contains("iteration 1 was kept\n"));
    assert_eq!(project.run(&["why", "7"]).code, 4);
    let json = project.json(&["why", "--json"]);
    assert_eq!(json["next"][0]["command"], "lunation run");
    assert_eq!(json["iteration"], 2);
}

#[test]
fn the_report_of_a_run_is_a_table_of_its_iterations() {
    let project = Project::with_a_run();
    let id = run_id(START, 1);
    assert_eq!(
        project.read(&["report"]),
        format!(
            "\
run {id}: completed, verified, after 4 iterations (exit code 0)
  ended: completed

iteration  decision  failing  files  lines  agent  sensors  fence  guard  note
start                3
1          rollback  4        1      1      1m00s  5.0s                   broke test_3
2          keep      1        1      1      1m00s  5.0s     1      1
3          stall     3        0      0      1m00s  –                      nothing changed
4          keep      0        1      1      1m00s  5.0s

time 4m15s: agent 4m00s, sensors 15.0s
tokens 4800, cost unknown
failure modes: needed-escalation
next: git diff    # shows the result, which is in the work tree
"
        )
    );
    let json = project.json(&["report", "--json"]);
    assert_eq!(json["iterations"][0]["decision"], "rollback");
    assert_eq!(json["failure_modes"][0], "needed-escalation");
}

#[test]
fn the_report_of_all_runs_has_the_figures_over_them() {
    let project = Project::with_a_run();
    let mut capped = project.story("2026-11-30T21:00:00Z", 2);
    capped.iterate(Step::stall()).iterate(Step::stall()).end(Reason::MaxIterations, false);
    let mut first = project.story("2026-11-30T22:00:00Z", 3);
    first.iterate(Step::keep(0)).end(Reason::Completed, true);
    let out = project.read(&["report", "--all"]);
    let ids = [run_id(START, 1), run_id("2026-11-30T21:00:00Z", 2), run_id("2026-11-30T22:00:00Z", 3)];
    assert_eq!(
        out,
        format!(
            "\
run                         end             iterations  failing  time   agent  climbs  failure modes
{}  completed       1           0        1m05s  1m00s  0
{}  max_iterations  2           3        2m00s  2m00s  0       agent-silent, budget-exhausted
{}  completed       4           0        4m15s  4m00s  1       needed-escalation

3 runs: 2 passed (67 %), 0 running, 0 unfinished
passed with the first iteration: 1 (50 % of those that passed)
7 iterations: 3 changed nothing (43 %)
time: agents 7m00s (95 %), sensors 20.0s
climbs: 1 in 1 run
failure modes: agent-silent 1, budget-exhausted 1, needed-escalation 1
",
            ids[2], ids[1], ids[0]
        )
    );
    let json = project.json(&["report", "--all", "--json"]);
    assert_eq!(json["figures"]["passed"], 2);
    assert_eq!(json["runs"].as_array().unwrap().len(), 3);
    let one = project.read(&["report", "--run", "20261130-21"]);
    assert!(one.starts_with(&format!("run {}: max_iterations", ids[1])), "{one}");
    assert!(one.contains("next: lunation report --all    # 2 other runs and the figures over all\n"), "{one}");
}

#[test]
fn a_run_of_a_newer_lunation_is_refused_alone_and_told_among_others() {
    let project = Project::with_a_run();
    let newer = project.story("2026-12-01T10:00:00Z", 4);
    drop(newer);
    let file = project.journal_file();
    let mut text = fs::OpenOptions::new().append(true).open(&file).unwrap();
    text.write_all(b"{\"v\":9}\n").unwrap();
    let told = project.run(&["why"]);
    assert_eq!((told.code, told.out.as_str()), (5, ""));
    assert!(told.err.contains("has format version 9, this lunation reads versions up to 1"), "{}", told.err);
    let all = project.run(&["report", "--all"]);
    assert_eq!(all.code, 0);
    assert!(all.out.contains("1 run: 1 passed (100 %)"), "{}", all.out);
    assert!(all.err.contains("is not counted: "), "{}", all.err);
}

#[test]
fn a_run_is_found_by_the_beginning_of_its_name_and_a_typo_gets_a_hint() {
    let project = Project::with_a_run();
    let id = run_id(START, 1);
    assert!(project.read(&["status", "--run", &id.as_str()[..10]]).contains(id.as_str()));
    assert!(project.read(&["status", "--run", id.short()]).contains(id.as_str()));
    let typo = id.as_str().replace("-201026-", "-201036-");
    let told = project.run(&["status", "--run", &typo]);
    assert_eq!(told.code, 4);
    assert!(told.err.starts_with(&format!("error: there is no run `{typo}`: did you mean {id}?\n")), "{}", told.err);
    for nobody in ["", " "] {
        assert_eq!(project.run(&["status", "--run", nobody]).code, 4, "an empty name names nobody");
    }
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
    story.tell("loop", Event::Prompted { iteration: 2, prompt, bytes: 19 });
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
fn without_a_repository_there_is_one_clear_error() {
    let project = Project::new();
    let told = answer(project.command(&["status"]).current_dir(project.folder.path()).output().unwrap());
    assert_eq!((told.code, told.out.as_str()), (4, ""));
    assert!(told.err.starts_with("error: "), "{}", told.err);
    assert!(told.err.contains("no git repository"), "{}", told.err);
    let json = answer(project.command(&["status", "--json"]).current_dir(project.folder.path()).output().unwrap());
    let parsed: serde_json::Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!((json.code, parsed["exit_code"].as_u64()), (4, Some(4)));
    let gone = project.run(&["-C", "nowhere", "status"]);
    assert_eq!(gone.code, 4);
    assert_eq!(gone.err, "error: nowhere is no folder\nhint: name another one with -C\n");
}

#[test]
fn a_run_whose_record_left_the_git_folder_is_read_from_the_state_folder() {
    let project = Project::new();
    let options = RepositoryOptions::default();
    let repository = Repository::discover(&project.root(), &options).unwrap();
    let state = state_folder(&project.folder.path().join("home/state"), &repository).unwrap();
    let id = run_id(START, 1);
    let runs = project.runs().with_second_place(&state);
    let clock = TestClock::at(START);
    let options = JournalOptions {
        second_link: runs.second_dir(&id),
        ..JournalOptions::new(runs.run_dir(&id), id.clone(), clock.clone())
    };
    let mut story = Story::begin_with(options, clock);
    story.iterate(Step::keep(2));
    fs::remove_dir_all(project.root().join(".git/lunation")).unwrap();
    story.iterate(Step::keep(0)).end(Reason::Completed, true);
    assert!(project.read(&["status"]).contains("completed, verified, after 2 iterations"));
    assert_eq!(project.read(&["prompt", "1"]), "Fix the tests. (iteration 1)\n");
    assert_eq!(project.read(&["prompt", "2"]), "Fix the tests. (iteration 2)\n");
}

#[test]
fn runs_are_found_from_a_folder_below_and_from_a_linked_worktree() {
    let project = Project::with_a_run();
    let below = project.root().join("src/deep");
    fs::create_dir_all(&below).unwrap();
    let id = run_id(START, 1);
    let from = |folder: &Path| answer(project.command(&["status"]).current_dir(folder).output().unwrap()).out;
    assert!(from(&below).contains(id.as_str()));
    assert!(project.read(&["-C", "src/deep", "status"]).contains(id.as_str()));
    let repo = git2::Repository::open(project.root()).unwrap();
    let author = git2::Signature::new("A", "a@example.org", &git2::Time::new(0, 0)).unwrap();
    let tree = repo.find_tree(repo.treebuilder(None).unwrap().write().unwrap()).unwrap();
    repo.commit(Some("HEAD"), &author, &author, "first", &tree, &[]).unwrap();
    let linked = project.folder.path().join("linked");
    repo.worktree("linked", &linked, None).unwrap();
    assert!(from(&linked).contains(id.as_str()));
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

#[test]
fn tried_01_two_runs_of_one_second_in_two_clones_have_different_names_and_can_be_copied_together() {
    let (one, other) = (Project::new(), Project::new());
    let clock: Arc<dyn Clock> = TestClock::at(START);
    let start = |project: &Project| -> RunId {
        let id = RunId::fresh(clock.as_ref()).unwrap();
        Journal::create(JournalOptions::new(project.runs().run_dir(&id), id.clone(), clock.clone())).unwrap();
        id
    };
    let (first, second) = (start(&one), start(&other));
    assert_ne!(first, second);
    fs::rename(other.runs().run_dir(&second), one.runs().run_dir(&second)).unwrap();
    assert_eq!(one.runs().list().unwrap().len(), 2);
    let all = one.read(&["report", "--all"]);
    assert!(all.contains("2 runs: 0 passed (0 %), 0 running, 2 unfinished"), "{all}");
}
