//! Two runs in one repository, and the end of one by the stop command.

use crate::project::{Project, eventually, processes_with};

/// Works until somebody makes `$here/go`.
const WAITS: &str = r#"
echo changed >> src/calc.sh
until [ -e "$here/go" ]; do sleep 0.1; done
echo "I waited."
"#;

#[test]
fn the_second_run_is_refused_and_told_who_holds_the_repository() {
    let project = Project::with_a_failing_test().with_a_loop(WAITS, "budget = { iterations = 1 },");
    let mut first = project.start(&["run", "--trust"]);
    eventually("the first agent is at work", || project.outside("prompt").exists());

    let second = project.lunation(&["run", "--trust"]);
    second.exits_with(5).complains("holds this repository").complains("lunation status");
    assert_eq!(project.runs(), 1, "the second one left no record");
    project.lunation(&["restore", "0"]).exits_with(5).complains("holds this repository");

    std::fs::write(project.outside("go"), "").unwrap();
    first.ends_with(2);
}

#[test]
fn stop_ends_a_run_after_its_iteration() {
    let project = Project::with_a_failing_test().with_a_loop(WAITS, "");
    project.lunation(&["stop"]).exits_with(1).says("nothing to stop");
    let mut run = project.start(&["run", "--trust"]);
    eventually("the agent is at work", || project.outside("prompt").exists());
    project.lunation(&["stop"]).exits_with(0).says("to end after its current iteration");
    run.until_it_says("asked to end after this iteration");
    std::fs::write(project.outside("go"), "").unwrap();
    run.ends_with(1);
    assert!(run.said().contains("ended: killed"), "{}", run.said());
    assert_eq!(project.status(), " M src/calc.sh\n", "the iteration that was under way counts");
}

#[test]
fn stop_now_rolls_the_iteration_back() {
    let project = Project::with_a_failing_test().with_a_loop(WAITS, "");
    let before = project.everything();
    let mut run = project.start(&["run", "--trust"]);
    eventually("the agent is at work", || project.outside("prompt").exists());
    project.lunation(&["stop", "--now"]).exits_with(0).says("to abort its iteration");
    run.ends_with(1);
    assert!(run.said().contains("not completed: killed"), "{}", run.said());
    assert!(!run.said().contains("cancelled"), "an end that was asked for is no error\n{}", run.said());
    assert_eq!(project.everything(), before);
    let agent = project.outside("agent.sh").display().to_string();
    assert_eq!(processes_with(&agent), [""; 0]);
}
