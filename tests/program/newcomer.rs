//! From nothing to a verified fix, and then looking at what happened.

use crate::project::Project;

/// Fixes the bug on its third turn; before that it fails in two different ways.
const THIRD_TURN: &str = r##"
n=$(($(cat "$here/turns" 2> /dev/null || echo 0) + 1))
echo "$n" > "$here/turns"
case $n in
1) echo "# looked at it" >> src/calc.sh; echo "I had a look." ;;
2) echo "I did nothing." ;;
*) echo 'add() { echo $(($1 + $2)); }' > src/calc.sh; echo "I fixed add." ;;
esac
"##;

#[test]
fn init_edit_the_agent_line_check_trust_run_and_look_at_what_happened() {
    let project = Project::with_a_failing_test();
    project.lunation(&["init"]).exits_with(0).says("wrote loop.lua").says("wrote PROMPT.md").says("sh test.sh");
    assert_eq!(project.status(), "?? PROMPT.md\n?? loop.lua\n");

    let agent = project.agent(THIRD_TURN);
    let script = project.read("loop.lua");
    assert!(script.lines().count() <= 12, "{script}");
    let (line, edited): (Vec<_>, Vec<_>) = script.lines().partition(|line| line.trim_start().starts_with("agent"));
    assert_eq!(line.len(), 1, "{script}");
    let edited =
        edited.join("\n").replace("ln.loop {", &format!("ln.loop {{\n  agent = ln.agent {{ \"sh\", \"{agent}\" }},"));
    project.write("loop.lua", edited);

    project.lunation(&["check"]).exits_with(0).says("OK").says("1 agent and 1 sensor");
    project.lunation(&["trust"]).exits_with(0).says("trusted as it is now");
    let run = project.lunation(&["run"]);
    run.exits_with(0).says("iteration 3").says("completed and verified");
    assert!(run.last_line().starts_with("ended: completed, verified (exit code 0); next: "), "{}", run.last_line());

    // Only the fix, beside the two files that init was asked to write.
    assert_eq!(project.status(), " M src/calc.sh\n?? PROMPT.md\n?? loop.lua\n");
    assert_eq!(project.read("src/calc.sh"), "add() { echo $(($1 + $2)); }\n");
    assert_eq!(project.git(&["rev-list", "--count", "HEAD"]), "1\n", "nothing was committed");

    project.lunation(&["report"]).exits_with(0).says("completed");
    project.lunation(&["why"]).exits_with(0).says("iteration 3 was kept").says("sh test.sh: passed");
    project.lunation(&["prompt", "2"]).exits_with(0).says("Make the failing checks pass.").says("add is wrong");
    project.lunation(&["diff", "3"]).exits_with(0).says("+add() { echo $(($1 + $2)); }");
    project.lunation(&["log"]).exits_with(0).says("iteration 1").says("run ended: completed");
    project.lunation(&["status"]).exits_with(0).says("completed");
}

#[test]
fn what_the_run_says_at_its_end_can_be_typed() {
    let project = Project::with_a_failing_test()
        .with_a_loop("echo 'add() { echo $(($1 + $2)); }' > src/calc.sh; echo > 'a new file'; echo done", "");
    let run = project.lunation(&["run", "--trust"]);
    run.exits_with(0).says("in your work tree; nothing was committed");
    let typed = |what: &str| {
        let line =
            run.out.lines().find_map(|line| line.trim().strip_prefix(what)).unwrap_or_else(|| panic!("{}", run.out));
        line.trim().to_owned()
    };
    let (keep, drop) = (typed("keep it:"), typed("drop it:"));
    assert_eq!(keep, "git add -A -- 'a new file' src/calc.sh && git commit");

    let before = project.git(&["rev-parse", "HEAD"]);
    let words: Vec<&str> = drop.split_whitespace().skip(1).collect();
    project.lunation(&words).exits_with(0).says("put back 2 paths");
    assert_eq!(project.status(), "", "as the run found it");
    assert_eq!(project.git(&["rev-parse", "HEAD"]), before);
}

#[test]
fn a_result_is_committed_only_where_the_script_asks_for_it() {
    let project = Project::with_a_failing_test().with_a_loop(
        "echo 'add() { echo $(($1 + $2)); }' > src/calc.sh; echo done",
        "commit = { message = \"{id}: {reason} after {iterations}\\n\\nRun: {run}\" },",
    );
    project.write("notes.txt", "mine\n");
    let run = project.lunation(&["run", "--trust"]);
    run.exits_with(0).says("committed as ");
    assert!(run.last_line().ends_with("next: git show"), "{}", run.last_line());
    assert_eq!(project.git(&["log", "-1", "--format=%s"]), "loop: completed after 1\n");
    let run_id = project.records()[0]["run"].as_str().unwrap().to_owned();
    assert_eq!(project.git(&["log", "-1", "--format=%b"]), format!("Run: {run_id}\n\n"));
    assert_eq!(project.git(&["show", "--name-only", "--format="]), "src/calc.sh\n");
    assert_eq!(project.status(), "?? notes.txt\n");
}

#[test]
fn a_dirty_start_stays_the_users_own() {
    let project =
        Project::with_a_failing_test().with_a_loop("echo 'add() { echo $(($1 + $2)); }' > src/calc.sh; echo done", "");
    project.write("notes.txt", "mine\n");
    project.write("test.sh", format!("# mine\n{}", project.read("test.sh")));
    project.git(&["add", "test.sh"]);
    let before = project.everything();
    let run = project.lunation(&["run", "--trust"]);
    run.exits_with(0).says("changes of your own").says("keep it: git add -A -- src/calc.sh && git commit");
    assert_eq!(
        project.status(),
        "M  test.sh\n M src/calc.sh\n?? notes.txt\n"
            .replace("M  test.sh\n M src/calc.sh\n", " M src/calc.sh\nM  test.sh\n")
    );
    project.lunation(&["restore", "0"]).exits_with(0);
    assert_eq!(project.everything(), before);
}

#[test]
fn from_a_sub_folder_the_commands_at_the_end_still_fit() {
    let project = Project::with_a_failing_test()
        .with_a_loop("echo 'add() { echo $(($1 + $2)); }' > src/calc.sh; echo > 'a[1].txt'; echo done", "");
    let mut command = project.command(&["run", "--trust"]);
    let output = command.current_dir(project.root().join("src")).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).unwrap();
    let root = project.root().display().to_string();
    let keep =
        format!("keep it: git -C {root} --literal-pathspecs add -A -- 'a[1].txt' src/calc.sh && git -C {root} commit");
    assert!(said.contains(&keep), "{said}");
}
