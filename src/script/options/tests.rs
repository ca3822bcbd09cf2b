//! LUA-01, LUA-04, LOOP-08, DONE-05: wrong options are refused by name, path and line, and nothing is launched.

use crate::script::{ErrorKind, Source, Vm, VmOptions};

/// The message of a script whose second line is the given call.
fn refused(call: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("local ln = require \"lunation\"\nreturn {call}");
    let source = Source::text("loop.lua", &text, folder.path()).unwrap();
    let vm = Vm::start(VmOptions::default()).unwrap();
    let error = match vm.load(&source) {
        Ok(_) => panic!("this must be refused: {call}"),
        Err(error) => error,
    };
    assert_eq!(error.kind, ErrorKind::Options, "{call}\n{error}");
    assert_eq!((error.file(), error.line()), (Some("loop.lua"), Some(2)), "{call}\n{error}");
    error.message
}

fn loop_with(options: &str) -> String {
    refused(&format!("ln.loop {{ agent = 'claude', prompt = 'x', {options} }}"))
}

fn accepted(options: &str) {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("return ln.loop {{ agent = 'claude', prompt = 'x', {options} }}");
    let source = Source::text("loop.lua", &text, folder.path()).unwrap();
    Vm::start(VmOptions::default()).unwrap().load(&source).unwrap_or_else(|error| panic!("{options}\n{error}"));
}

#[test]
fn lua_01_misspelt_options_are_told_with_the_nearest_one_at_every_depth() {
    for (options, message) in [
        ("max_iteratons = 5", "ln.loop: max_iteratons: unknown option; did you mean `max_iterations`?"),
        (
            "budget = { wal_s = 60 }",
            "ln.loop: budget.wal_s: unknown option; did you mean `wall`? (a duration: \"90s\", \"20m\", or seconds)",
        ),
        (
            "sensors = { ln.sensor { comand = 'x' } }",
            "ln.sensor: comand: unknown option; write the command itself, first: ln.sensor{ \"cargo test\" }",
        ),
        ("sensors = { { 'x', timout = '1m' } }", "ln.loop: sensors[1].timout: unknown option; did you mean `timeout`?"),
        ("breaker = { failure = 1 }", "ln.loop: breaker.failure: unknown option; did you mean `failures`?"),
        ("fence = { alow = { 'x' } }", "ln.loop: fence.alow: unknown option; did you mean `allow`?"),
    ] {
        assert_eq!(loop_with(options), message, "{options}");
    }
}

#[test]
fn lua_01_the_right_name_in_the_wrong_table_is_told_where_it_belongs() {
    for (options, says) in [
        ("wall = '1h'", "wall: unknown option here; it belongs in budget = { iterations = 10, wall = \"2h\" }"),
        ("iterations = 5", "iterations: unknown option here; it belongs in budget ="),
        ("timeout = '5m'", "timeout: unknown option here; it belongs in ln.agent{"),
        ("budget = { patience = 2 }", "budget.patience: unknown option here; it belongs in ln.loop{…}"),
        ("budget = { max_iterations = 2 }", "budget.max_iterations: unknown option; write `iterations`"),
        ("iteratons = 5", "did you mean `max_iterations`?"),
        ("cost_usdd = 5", "did you mean `cost_usd`, which belongs in budget ="),
        ("checks = { 'x' }", "checks: unknown option; write `sensors`"),
        ("workspace = 1", "lunation 0.1.0 has no `workspace` here yet"),
    ] {
        let message = loop_with(options);
        assert!(message.contains(says), "{options}\n{message}");
    }
}

#[test]
fn lua_01_wrong_types_and_units_are_told_with_what_to_write() {
    for (options, says) in [
        ("max_iterations = '5'", "max_iterations: must be a whole number, got \"5\": write 5 without quotes"),
        ("max_iterations = 2.5", "max_iterations: must be a whole number, got 2.5"),
        (
            "budget = { wall = '1 hour' }",
            "budget.wall: `1 hour` is not a duration: write a number of seconds, or \"500ms\", \"90s\"",
        ),
        ("budget = { wall = 0 }", "budget.wall: must be more than 0; leave it out for the default of \"2h\""),
        ("budget = { wall = -5 }", "budget.wall: `-5` is not a duration"),
        ("budget = { wall = true }", "budget.wall: must be a duration like"),
        ("budget = { cost_usd = 0 }", "budget.cost_usd: must be more than 0, got 0"),
        ("budget = 5", "budget: must be a table like budget = {"),
        ("sensors = 'cargo test'", "sensors: must be a list or a table by names"),
        (
            "fence = 'src/**'",
            "fence: must be a list, each a string, or a table like fence = { allow = { \"src/**\" } }, got \"src/**\": write { \"src/**\" }",
        ),
        ("decide = 'keep'", "decide: must be a function, got \"keep\""),
        ("decide = ln.decide.default", "decide: must be a function, got a table: this is a policy"),
        ("complete = 'DONE'", "complete: must be made by ln.complete.sentinel"),
        ("feedback_bytes = '4 KiB'", "feedback_bytes: `4 KiB` is not a size"),
        ("id = ''", "id: must not be blank"),
        ("patience = 0", "patience: must be at least 1, got 0; leave it out for the default of 3"),
        ("seed = -1", "seed: must be at least 0, got -1"),
        ("context = 'git log'", "context: must be a list"),
        ("commit = {}", "commit.message: is missing"),
        ("max_iterations = 5, budget = { iterations = 6 }", "they are the same option, write one of them"),
    ] {
        let message = loop_with(options);
        assert!(message.contains(says), "{options}\n{message}");
    }
}

#[test]
fn loop_08_a_cap_of_nothing_is_refused() {
    for number in ["0", "-1", "2.5", "'10'", "1e300", "0/0"] {
        loop_with(&format!("max_iterations = {number}"));
        loop_with(&format!("budget = {{ iterations = {number} }}"));
    }
    accepted("max_iterations = 1e9");
    accepted("max_iterations = nil");
}

#[test]
fn done_05_a_blank_sentinel_is_refused() {
    for call in [
        "ln.complete.sentinel ''",
        "ln.complete.sentinel ' '",
        "ln.complete { sentinel = ' ' }",
        "ln.complete.sentinel(nil)",
        "ln.complete.sentinel 'a\\nb'",
    ] {
        refused(&format!("ln.loop {{ agent = 'claude', prompt = 'x', complete = {call} }}"));
    }
    accepted("complete = ln.complete.sentinel 'do'");
}

#[test]
fn completions_that_cannot_hold_are_refused() {
    for (options, says) in [
        ("complete = ln.complete.sensors()", "hangs on sensors, and this loop has none"),
        ("complete = ln.complete { sentinel = 'X', mode = 'verify' }", "hangs on sensors"),
        ("sensors = { 't' }, complete = ln.complete { mode = 'llm-only' }", "this mode needs a sentinel"),
        (
            "sensors = { 't' }, complete = ln.complete { strategy = { n_of = 2 } }",
            "wants 2 sensors to pass, and this loop has 1",
        ),
        ("complete = ln.complete.all { }", "there is nothing in it"),
        ("complete = ln.complete.any { 'DONE' }", "[1]: must be made by ln.complete.sentinel"),
    ] {
        let message = loop_with(options);
        assert!(message.contains(says), "{options}\n{message}");
    }
}

#[test]
fn lua_04_mixed_and_holed_lists_are_refused_by_their_key() {
    for (options, says) in [
        ("sensors = { { 'a' }, x = { 'b' } }", "sensors: mixes 1 list item with the named key `x`"),
        ("sensors = { 'a', nil, 'b' }", "sensors[2]: is nil: a list must have no holes"),
        ("fence = { 'src/**', deny = { 'x' } }", "fence: mixes 1 list item with the named key `deny`"),
        ("fence = { allow = { 'a', nil, 'b' } }", "fence.allow[2]: is nil"),
        ("budget = { 10 }", "budget[1]: budget = { iterations = 10, wall = \"2h\" } has no list part: give 10 a name"),
        ("sensors = { [1.5] = 'a' }", "sensors: has the key 1.5"),
        ("sensors = { 't', 't' }", "is the second sensor named `t`"),
        ("sensors = { '' }", "sensors[1]: must not be blank"),
        ("sensors = { {} }", "sensors[1]: there is no command"),
    ] {
        let message = loop_with(options);
        assert!(message.contains(says), "{options}\n{message}");
    }
    accepted("sensors = { 'a', nil }");
    accepted("sensors = {}");
}

#[test]
fn all_problems_of_a_call_are_told_at_once() {
    let message =
        refused("ln.loop { agnt = 'claude', prompt = '', sensors = { 5 }, budget = { iterations = 0, wall = 'x' } }");
    for says in [
        "ln.loop has 6 problems:",
        "agent: is missing",
        "agnt: unknown option; did you mean `agent`?",
        "the prompt is empty",
        "sensors[1]: must be",
        "budget.iterations: must be at least 1",
        "budget.wall: `x` is not a duration",
    ] {
        assert!(message.contains(says), "{says}\n{message}");
    }
}

#[test]
fn agents_are_checked_too() {
    for (call, says) in [
        ("ln.agent 'cluade'", "ln.agent: there is no agent `cluade`; did you mean `claude`?"),
        ("ln.agent {}", "there is no command"),
        ("ln.agent { 'x', timeout = '5 min' }", "timeout: `5 min` is not a duration"),
        (
            "ln.agent { 'x', prompt_via = 'stdn' }",
            "prompt_via: must be one of \"stdin\", \"arg\", \"file\", got \"stdn\"; did you mean `stdin`?",
        ),
        ("ln.agent { 'x', env = { ['A=B'] = '1' } }", "env: `A=B` is no name for a variable"),
        ("ln.agent { 'x', env = { A = 1 } }", "env.A: must be a string, got 1"),
        ("ln.agent { 'x', errors = { { kind = 'auth', pattern = '(' } } }", "errors[1].pattern: "),
        ("ln.agent { 'x', parse = 'json' }", "parse: must be one of \"text\""),
        ("ln.agent { 'x', parse = { json_lines = { tex = {} } } }", "parse: unknown field `tex`"),
        ("ln.agent { 'x', command = 'y' }", "command: unknown option; write the words themselves"),
        ("ln.agent('claude'):with { 'x' }", "has no list part"),
        ("ln.agent('claude').with { model = 'x' }", "write agent:with{…} with a colon"),
        ("ln.agent('claude'):ladder {}", "a ladder needs a rung"),
        ("ln.agent { 'x' }:ladder { 'a', 'b' }", "the rungs would all be the same"),
        ("ln.agent(nil)", "must be a preset's name or a table, got nil"),
        ("ln.sensors {}", "there are none"),
    ] {
        let message = refused(call);
        assert!(message.contains(says), "{call}\n{message}");
    }
    let message = loop_with("sensors = {}, agent = 'gpt'");
    assert!(message.contains("agent: there is no agent `gpt`"), "{message}");
}
