//! Bad input gets one clear error and exit code 4, and nothing is launched.

use crate::project::Project;

const FIXES: &str = "echo 'add() { echo $(($1 + $2)); }' > src/calc.sh; echo 'I fixed add.'";

/// Runs a script that is wrong, and returns what was said.
#[track_caller]
fn refused(options: &str) -> String {
    let project = Project::with_a_failing_test();
    refused_in(&project, options)
}

#[track_caller]
fn refused_in(project: &Project, options: &str) -> String {
    let agent = project.agent(FIXES);
    let options = options.replace("AGENT", &format!("agent = ln.agent {{ \"sh\", \"{agent}\" }}"));
    project.write("loop.lua", format!("local ln = require \"lunation\"\nreturn ln.loop {{\n  {options}\n}}\n"));
    let run = project.lunation(&["run", "--trust"]);
    run.exits_with(4);
    assert_eq!(run.out, "", "nothing but the error");
    assert_eq!(run.err.matches("error:").count(), 1, "one error: {}", run.err);
    project.launched_nothing();
    let check = project.lunation(&["check"]);
    check.exits_with(4);
    assert_eq!(check.err, run.err, "check and run say the same");
    run.err
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in {text}");
    }
}

#[test]
fn an_unknown_option_at_any_depth_names_the_nearest_and_the_line() {
    has(&refused("AGENT, prompt = \"x\", sensors = {}, promt = \"y\","), &["loop.lua:2", "promt", "prompt"]);
    has(
        &refused("AGENT, prompt = \"x\", budget = { iteration = 3 },"),
        &["loop.lua:2", "budget", "iteration", "iterations"],
    );
}

#[test]
fn a_wrong_type_or_unit_is_told_with_its_field() {
    has(&refused("AGENT, prompt = \"x\", budget = { iterations = \"many\" },"), &["budget.iterations"]);
    has(&refused("AGENT, prompt = \"x\", budget = { wall = \"2 fortnights\" },"), &["budget.wall", "2 fortnights"]);
}

#[test]
fn a_name_in_a_commit_message_that_is_not_known_is_refused() {
    let told = refused("AGENT, prompt = \"x\", sensors = { \"false\" }, commit = { message = \"{iteration}\" }");
    has(&told, &["commit.message", "nothing is known for {iteration}", "{id}, {run}, {iterations} and {reason}"]);
}

#[test]
fn an_empty_prompt_is_refused() {
    has(&refused("AGENT, prompt = \" \","), &["prompt", "empty"]);
    let project = Project::with_a_failing_test();
    project.write("PROMPT.md", "\n");
    has(&refused_in(&project, "AGENT, prompt = ln.prompt \"PROMPT.md\","), &["PROMPT.md", "empty"]);
}

#[test]
fn a_utf16_prompt_is_refused() {
    let project = Project::with_a_failing_test();
    project.write("PROMPT.md", b"\xff\xfeh\0i\0");
    has(&refused_in(&project, "AGENT, prompt = ln.prompt \"PROMPT.md\","), &["PROMPT.md", "UTF-16", "UTF-8"]);
}

#[test]
fn blank_sensors_and_sentinels_are_refused() {
    has(&refused("AGENT, prompt = \"x\", sensors = { \" \" },"), &["sensor"]);
    has(&refused("AGENT, prompt = \"x\", complete = ln.complete.sentinel \"\","), &["sentinel"]);
}

#[test]
fn a_cap_of_zero_is_refused() {
    has(&refused("AGENT, prompt = \"x\", budget = { iterations = 0 },"), &["budget.iterations"]);
}

#[test]
fn an_unknown_agent_is_refused_with_those_that_there_are() {
    has(&refused("agent = \"claud\", prompt = \"x\", sensors = { \"true\" },"), &["claud", "claude", "codex", "pi"]);
}

#[test]
fn an_agent_that_is_not_installed_is_refused_with_what_installs_it() {
    has(
        &refused("agent = \"codex\", prompt = \"x\", sensors = { \"true\" },"),
        &["codex", "npm install -g @openai/codex"],
    );
}

#[test]
fn a_script_that_does_not_load_is_refused_with_its_line() {
    let project = Project::with_a_failing_test();
    project.write("loop.lua", "local ln = require \"lunation\"\nreturn ln.loop {\n");
    let run = project.lunation(&["run", "--trust"]);
    run.exits_with(4).complains("loop.lua:");
    project.launched_nothing();
}

#[test]
fn no_script_says_where_it_was_looked_for_and_what_writes_one() {
    let project = Project::with_a_failing_test();
    let run = project.lunation(&["run"]);
    run.exits_with(4).complains("there is no loop.lua in").complains("lunation init");
    project.lunation(&["run", "other.lua"]).exits_with(4).complains("other.lua");
}

#[test]
fn no_repository_is_told_with_those_below() {
    let project = Project::without_a_repository();
    project.write("loop.lua", "return 1\n");
    for name in ["one", "two"] {
        std::fs::create_dir(project.root().join(name)).unwrap();
        git2::Repository::init(project.root().join(name)).unwrap();
    }
    let run = project.lunation(&["run", "--trust"]);
    run.exits_with(4).complains("no git repository at").complains("one").complains("two");
}

#[test]
fn wrong_arguments_are_exit_code_4_as_well() {
    let project = Project::with_a_failing_test();
    project.lunation(&["rum"]).exits_with(4).complains("run");
    project.lunation(&["run", "--wall"]).exits_with(4).complains("--wall");
}

#[test]
fn a_kill_switch_that_is_there_already_is_told() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "");
    project.write(".lunation/STOP", "");
    project.lunation(&["run", "--trust"]).exits_with(4).complains(".lunation/STOP").complains("remove it");
    project.launched_nothing();
}
