//! `init`, `check`, `plan`, `trust`, `types`, `doctor`: everything before the first run.

use serde_json::Value;

use crate::project::Project;

const FIXES: &str = "echo 'add() { echo $(($1 + $2)); }' > src/calc.sh; echo 'I fixed add.'";

#[test]
fn init_never_overwrites() {
    let project = Project::with_a_failing_test();
    project.write("loop.lua", "mine\n");
    project.lunation(&["init"]).exits_with(4).complains("loop.lua is there already").complains("--force");
    assert_eq!(project.status(), "?? loop.lua\n", "all or nothing");
    assert_eq!(project.read("loop.lua"), "mine\n");
    project.write("PROMPT.md", "my prompt\n");
    project.lunation(&["init", "--force"]).exits_with(0);
    assert!(project.read("loop.lua").contains("ln.loop"));
}

#[test]
fn init_keeps_a_prompt_that_is_there() {
    let project = Project::with_a_failing_test();
    project.write("PROMPT.md", "my prompt\n");
    project.lunation(&["init"]).exits_with(0);
    assert_eq!(project.read("PROMPT.md"), "my prompt\n");
}

#[test]
fn init_knows_the_stack_and_the_agents_that_are_there() {
    let project = Project::empty();
    project.write("Cargo.toml", "[package]\nname = \"x\"\n");
    project.write("tests/a.rs", "");
    project.on_path("codex", "exit 0");
    project.lunation(&["init"]).exits_with(0).says("agents found: codex").says("cargo test");
    let script = project.read("loop.lua");
    assert!(script.contains("agent   = \"codex\","), "{script}");
    assert!(script.contains("fence   = { \"**\", \"!tests/**\" },"), "{script}");
    project.lunation(&["check"]).exits_with(0).says("OK");
}

#[test]
fn what_init_writes_is_right_even_where_nothing_was_found() {
    let project = Project::empty();
    project.on_path("claude", "exit 0");
    project.lunation(&["init"]).exits_with(0).says("no check was found");
    project.lunation(&["check"]).exits_with(0).says("warning: the agent's word alone");
}

#[test]
fn init_sets_the_editor_up_when_asked() {
    let project = Project::with_a_failing_test();
    project.lunation(&["init", "--editor"]).exits_with(0).says("wrote .luarc.json");
    let settings: Value = serde_json::from_str(&project.read(".luarc.json")).unwrap();
    let library = settings["workspace.library"][0].as_str().unwrap().to_owned();
    assert!(project.read(&format!("{library}/lunation.lua")).starts_with("---@meta"));
}

#[test]
fn types_are_printed_or_written() {
    let project = Project::empty();
    let printed = project.lunation(&["types"]);
    printed.exits_with(0).says("---@meta");
    project.lunation(&["types", "--out", "types"]).exits_with(0).says("wrote ");
    assert_eq!(project.read("types/lunation.lua"), printed.out);
}

#[test]
fn check_launches_nothing_and_needs_no_trust() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "");
    project.lunation(&["check"]).exits_with(0).says("OK").says("next: lunation trust && lunation run");
    project.launched_nothing();
    let json: Value = serde_json::from_str(&project.lunation(&["check", "--json"]).out).unwrap();
    assert_eq!((&json["ok"], &json["trusted"]), (&Value::from(true), &Value::from(false)));
}

#[test]
fn check_warns_of_a_loop_that_nothing_can_complete() {
    let project = Project::with_a_failing_test();
    let agent = project.agent(FIXES);
    project.write(
        "loop.lua",
        format!("local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"sh\", \"{agent}\" }}, prompt = \"x\" }}\n"),
    );
    let answer = project.lunation(&["check"]);
    answer.exits_with(0).says("warning: nothing can complete this loop");
    assert_eq!(answer.out.matches("warning:").count(), 1, "{}", answer.out);
}

#[test]
fn check_warns_of_a_cost_budget_that_nobody_reports_to() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "budget = { cost_usd = 1 },");
    project.lunation(&["check"]).exits_with(0).says("warning: no agent of this loop tells what it uses");
}

#[test]
fn plan_shows_every_default_and_what_would_be_launched() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "fence = { \"src/**\" },");
    let plan = project.lunation(&["plan"]);
    plan.exits_with(0)
        .says("not trusted yet")
        .says("1. fake: /")
        .says(&format!("runs sh {}", project.outside("agent.sh").display()))
        .says("sh test.sh")
        .says("may write src/**")
        .says("never loop.lua")
        .says("10 iterations, 2h")
        .says("nothing was launched");
    project.launched_nothing();
    let json: Value = serde_json::from_str(&project.lunation(&["plan", "--json"]).out).unwrap();
    assert_eq!(json["spec"]["budget"]["iterations"], 10);
}

#[test]
fn an_untrusted_script_is_refused_with_the_exact_command() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "");
    let refused = project.lunation(&["run"]);
    let script = project.root().join("loop.lua").display().to_string();
    refused
        .exits_with(4)
        .complains(&format!("{script} is not trusted yet"))
        .complains(&format!("lunation trust {script}"));
    project.launched_nothing();

    project.lunation(&["trust", &script]).exits_with(0).says("loop.lua");
    project.lunation(&["run"]).exits_with(0);
}

#[test]
fn a_script_that_changed_is_not_trusted_any_more() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "");
    project.lunation(&["trust"]).exits_with(0);
    project.write("loop.lua", format!("{}-- changed\n", project.read("loop.lua")));
    project.lunation(&["run"]).exits_with(4).complains("is not trusted any more: loop.lua changed");
    project.launched_nothing();
}

#[test]
fn doctor_tells_tier_tools_and_agents() {
    let project = Project::empty();
    project.on_path("codex", "echo codex-cli 1.2.3");
    let doctor = project.lunation(&["doctor"]);
    doctor.exits_with(0).says("processes are held by: ").says("git").says("1.2.3").says("npm install").says("state: ");
    let json: Value = serde_json::from_str(&project.lunation(&["doctor", "--json"]).out).unwrap();
    assert_eq!(json["repository"], project.root().display().to_string());
    assert!(json["tier"]["tier"].is_string());
}

#[test]
fn a_tier_can_be_forced_and_an_unknown_one_is_refused() {
    let project = Project::empty();
    let doctor = |tier: &str| {
        let output = project.command(&["doctor"]).env("LUNATION_TIER", tier).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = doctor("process-group");
    assert!(code == Some(0) && said.contains("process_group"), "{said}");
    let (code, said) = doctor("jail");
    assert!(code == Some(4) && said.contains("LUNATION_TIER=jail is no tier"), "{said}");
}
