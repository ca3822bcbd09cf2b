//! Signals, and the death of the host: nothing is left running, and nothing of the user's is lost.

use nix::sys::signal::Signal;

use crate::project::{Project, eventually, processes_with};
use crate::running::Running;

/// Changes the tree, the index and a branch, leaves a daemon, and works until `$here/go` exists.
const AT_WORK: &str = r#"
echo changed >> src/calc.sh
echo new > new.txt
rm -f ignored.log
git add --all
git commit --quiet --message "mine" || true
git branch --force stray
git config user.name Somebody
printf '%s\n' 'while :; do sleep 1; done' > "$here/daemon.sh"
(setsid sh "$here/daemon.sh" < /dev/null > /dev/null 2>&1 &)
echo > "$here/at-work"
until [ -e "$here/go" ]; do sleep 0.1; done
echo "I am done."
"#;

/// A project with something of every kind that must survive.
fn project() -> Project {
    let project = Project::with_a_failing_test().with_a_loop(AT_WORK, "");
    project.write("stashed.txt", "stashed\n");
    project.git(&["stash", "push", "--include-untracked", "--quiet"]);
    project.git(&["branch", "other"]);
    project.write("untracked.txt", "untracked\n");
    project.write("ignored.log", "ignored\n");
    project.write("staged.txt", "staged\n");
    project.git(&["add", "staged.txt"]);
    project
}

fn at_work(project: &Project) {
    eventually("the agent is at work", || project.outside("at-work").exists());
}

#[track_caller]
fn nothing_is_left(project: &Project) {
    for script in ["agent.sh", "daemon.sh"] {
        let path = project.outside(script).display().to_string();
        assert_eq!(processes_with(&path), [""; 0], "{script} is still running");
    }
}

#[test]
fn one_ctrl_c_ends_after_the_iteration_and_says_so() {
    let project = project();
    let mut run = project.start(&["run", "--trust"]);
    at_work(&project);
    run.gets(Signal::SIGINT);
    run.until_it_says("the run ends after this iteration");
    std::fs::write(project.outside("go"), "").unwrap();
    run.ends_with(130);
    nothing_is_left(&project);
    assert!(run.said().contains("ended: interrupted"), "{}", run.said());
    assert_eq!(project.read("new.txt"), "new\n", "the iteration counts");
    assert_eq!(project.records().iter().filter(|record| record["kind"] == "iteration_started").count(), 1);
}

#[test]
fn two_ctrl_c_abort_the_iteration_and_roll_it_back() {
    let project = project();
    let before = project.everything();
    let mut run = project.start(&["run", "--trust"]);
    at_work(&project);
    run.gets(Signal::SIGINT);
    run.until_it_says("the run ends after this iteration");
    run.gets(Signal::SIGINT);
    run.until_it_says("aborted and rolled back");
    run.ends_with(130);
    nothing_is_left(&project);
    assert_eq!(project.everything(), before);
}

#[test]
fn three_ctrl_c_leave_at_once_also_from_an_agent_that_does_not_want_to_end() {
    let project = project();
    let agent = project.agent(&format!("trap '' TERM INT HUP\n{AT_WORK}"));
    assert!(project.read("loop.lua").contains(&agent));
    let before = project.everything();
    let mut run = project.start(&["run", "--trust"]);
    at_work(&project);
    let started = std::time::Instant::now();
    run.gets(Signal::SIGINT);
    run.until_it_says("the run ends after this iteration");
    run.gets(Signal::SIGINT);
    run.until_it_says("aborted and rolled back");
    run.gets(Signal::SIGINT);
    run.ends_with(130);
    assert!(started.elapsed().as_secs() < 20, "that was not at once: {:?}", started.elapsed());
    nothing_is_left(&project);
    // What it could not put back in that time, the next one who comes does.
    project.lunation(&["restore", "0"]).exits_with(0);
    assert_eq!(project.everything(), before);
}

#[test]
fn term_aborts_and_rolls_back() {
    ended_by(Signal::SIGTERM, 143);
}

#[test]
fn hup_aborts_and_rolls_back() {
    ended_by(Signal::SIGHUP, 129);
}

#[track_caller]
fn ended_by(signal: Signal, code: i32) {
    let project = project();
    let before = project.everything();
    let mut run = project.start(&["run", "--trust"]);
    at_work(&project);
    run.gets(signal);
    run.ends_with(code);
    nothing_is_left(&project);
    assert_eq!(project.everything(), before);
    assert!(run.said().contains(&format!("ended: interrupted, nothing verified (exit code {code})")), "{}", run.said());
}

#[test]
fn the_host_killed_in_the_middle_leaves_no_process_and_everything_as_it_was() {
    let project = project();
    let before = project.everything();
    let mut run = project.start(&["run", "--trust"]);
    at_work(&project);
    run.gets(Signal::SIGKILL);
    run.ends();
    for script in ["agent.sh", "daemon.sh"] {
        let path = project.outside(script).display().to_string();
        eventually("what the run had started is gone", || processes_with(&path).is_empty());
    }
    eventually("the iteration is rolled back", || project.read("src/calc.sh") == "add() { echo $(($1 - $2)); }\n");
    eventually("everything is as it was", || project.everything() == before);
    project.lunation(&["status"]).exits_with(0).says("crashed or killed");
    // And the next run is not in its way.
    std::fs::write(project.outside("go"), "").unwrap();
    project.lunation(&["run", "--trust", "--quiet"]);
    assert_eq!(project.runs(), 2);
}

/// Misbehaves in every way that leaves a line, and ends.
const MISBEHAVES: &str = r#"
echo changed >> src/calc.sh
echo edited >> test.sh
rm -f ignored.log untracked.txt
git add --all
git commit --quiet --message "mine" || true
git stash clear
echo "I did all I could."
"#;

#[test]
fn the_host_killed_at_any_moment_loses_nothing() {
    for moment in [
        "run started",
        "loop `loop` started",
        "before the first iteration",
        "iteration 1",
        "turn ended",
        "guard put back",
        "fence reverted",
        "changed 1 file",
        "sh test.sh: 1 failing",
        "iteration 1 kept",
        "used; left",
        "iteration 2",
    ] {
        let project = Project::with_a_failing_test().with_a_loop(MISBEHAVES, "fence = { \"src/**\" },");
        project.write("stashed.txt", "stashed\n");
        project.git(&["stash", "push", "--include-untracked", "--quiet"]);
        project.write("untracked.txt", "untracked\n");
        project.write("ignored.log", "ignored\n");
        let before = project.everything();
        let mut run = project.start(&["run", "--trust"]);
        run.until_it_says(moment);
        run.gets(Signal::SIGKILL);
        run.ends();
        // Whoever comes next waits for the wardens, and finds the last iteration that was decided.
        project.lunation(&["restore", "0"]).exits_with(0);
        nothing_is_left(&project);
        assert_eq!(project.everything(), before, "killed at `{moment}`");
    }
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let project = project();
    let program = env!("CARGO_BIN_EXE_lunation");
    let mut command = project.command(&[]);
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" run --trust", program]).current_dir(project.root()).env_clear();
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command = shell;
    let mut run = Running::start(command);
    at_work(&project);
    run.gets(Signal::SIGHUP);
    project.lunation(&["stop"]).exits_with(0);
    run.until_it_says("asked to end after this iteration, by stop command");
    assert!(!run.said().contains("HUP"), "{}", run.said());
    std::fs::write(project.outside("go"), "").unwrap();
    run.ends_with(1);
}
