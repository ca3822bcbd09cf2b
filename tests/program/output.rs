//! What the program prints, for people and for programs.

use std::process::Stdio;

use serde_json::Value;

use crate::project::{Project, eventually};

const FIXES: &str = "echo 'add() { echo $(($1 + $2)); }' > src/calc.sh; echo 'I fixed add.'";
const TRIES: &str = "date +%N >> src/calc.sh; echo 'I tried.'";

#[test]
fn a_cap_that_is_reached_is_never_a_success_and_the_last_line_says_what_to_type() {
    let project = Project::with_a_failing_test().with_a_loop(TRIES, "budget = { iterations = 2 },");
    let run = project.lunation(&["run", "--trust"]);
    run.exits_with(2).says("iteration 2").says("not completed");
    assert_eq!(
        run.last_line(),
        "ended: max_iterations, nothing verified, budget-exhausted (exit code 2); next: lunation run"
    );
}

#[test]
fn each_happening_has_a_plain_line() {
    let agent =
        "echo broken > test.sh; git commit --allow-empty -qm mine; (sleep 600 > /dev/null 2>&1 &)\n".to_owned() + FIXES;
    let project = Project::with_a_failing_test().with_a_loop(&agent, "fence = { \"src/**\" },");
    let run = project.lunation(&["run", "--trust"]);
    run.exits_with(0)
        .says("\niteration 1: fake\n")
        .says("  turn ended as done after ")
        .says("ended what it left behind: sleep")
        .says("  guard put back: ")
        .says("  fence reverted: ")
        .says("test.sh")
        .says("  changed 1 file and ")
        .says("  sh test.sh: passed\n")
        .says("  iteration 1 kept")
        .says("left: 9 iterations");
    assert!(!run.out.contains('\x1b'), "no colour in a pipe");
}

#[test]
fn a_reader_that_leaves_does_not_end_the_run() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "");
    let mut child = project.command(&["run", "--trust"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // As `head -1` does, only sooner.
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(project.status(), " M src/calc.sh\n");
}

#[test]
fn a_reader_that_does_not_read_does_not_hold_up_the_run() {
    let project = Project::with_a_failing_test().with_a_loop(
        FIXES,
        "on_iteration = function() for n = 1, 5000 do ln.log.info((\"line %d \"):rep(10):format(n, n, n, n, n, n, n, n, n, n)) end end,",
    );
    let mut child = project.command(&["run", "--trust"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut code = None;
    eventually("the end of the run", || {
        code = child.try_wait().unwrap();
        code.is_some()
    });
    assert_eq!(code.unwrap().code(), Some(0));
    assert!(project.records().len() > 5000, "the record is whole");
}

#[test]
fn json_is_one_document_and_people_are_told_on_standard_error() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "");
    let run = project.lunation(&["run", "--trust", "--json"]);
    run.exits_with(0).complains("iteration 1");
    let summary: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&summary["reason"], &summary["verified"]), (&Value::from("completed"), &Value::from(true)));
    assert_eq!(summary["iterations"].as_array().unwrap().len(), 1);
}

#[test]
fn events_are_the_records_of_the_journal() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "");
    let run = project.lunation(&["run", "--trust", "--events", "jsonl", "--quiet"]);
    run.exits_with(0);
    let events: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events, project.records());
    assert_eq!(events[0]["kind"], "run_started");
    assert_eq!(events.last().unwrap()["kind"], "run_ended");
}

#[test]
fn quiet_leaves_the_last_line() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "");
    let run = project.lunation(&["run", "--trust", "--quiet"]);
    run.exits_with(0);
    assert_eq!(run.out.lines().count(), 1, "{}", run.out);
    assert!(run.out.starts_with("ended: completed, verified"), "{}", run.out);
}

#[test]
fn colour_can_be_forced_and_switched_off() {
    let project = Project::with_a_failing_test().with_a_loop(TRIES, "budget = { iterations = 1 },");
    let coloured = |name: &str, value: &str| {
        let output = project.command(&["run", "--trust"]).env(name, value).output().unwrap();
        String::from_utf8(output.stdout).unwrap().contains('\x1b')
    };
    assert!(coloured("CLICOLOR_FORCE", "1"));
    assert!(!coloured("NO_COLOR", "1"));
}

#[test]
fn the_log_of_the_program_never_mixes_with_its_output() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "");
    let output = project.command(&["run", "--trust", "--json"]).env("LUNATION_LOG", "trace").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    serde_json::from_slice::<Value>(&output.stdout).unwrap();
}

#[test]
fn input_reaches_the_script() {
    let project = Project::with_a_failing_test();
    let agent = project.agent(FIXES);
    project.write(
        "loop.lua",
        format!(
            "local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"sh\", \"{agent}\" }}, \
             prompt = \"Fix ticket \" .. ln.input.ticket, sensors = {{ \"sh test.sh\" }} }}\n"
        ),
    );
    project.lunation(&["run", "--trust", "--input", "ticket=4711"]).exits_with(0);
    project.lunation(&["prompt", "1"]).exits_with(0).says("Fix ticket 4711");
    project.lunation(&["check", "--input", "ticket"]).exits_with(4).complains("KEY=VALUE");
}

#[test]
fn what_cannot_be_covered_is_told_at_the_end() {
    use std::os::unix::fs::FileTypeExt as _;
    let project = Project::with_a_failing_test().with_a_loop("sed -i 's/-/+/' src/calc.sh; echo fixed", "");
    let socket = project.root().join("src/socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(std::fs::symlink_metadata(&socket).unwrap().file_type().is_socket());
    project.lunation(&["run", "--trust"]).exits_with(0).says("not covered: src/socket (");
}
