//! `status`, `why` and `report`: where runs stand.

use lunation::policy::Reason;

use crate::recorded_run::{Step, run_id};
use crate::{Project, START};

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
