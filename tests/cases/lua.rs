//! LUA: the host of the scripts.

use std::time::{Duration, Instant};

use crate::scene::{Scene, eventually};

fn loop_with(fields: &str) -> String {
    format!(
        "local ln = require \"lunation\"\nreturn ln.loop {{\n  agent = ln.agent {{ \"worker\" }}, prompt = \"Work.\",\n  {fields}\n}}\n"
    )
}

#[test]
fn lua_01_a_misspelt_option_is_named_with_its_place_and_its_nearest_name() {
    for (fields, words) in [
        ("max_iteratons = 5", &["max_iteratons", "max_iterations"][..]),
        ("budget = { wal_s = 60 }", &["budget", "wal_s", "wall"]),
        ("sensors = { ln.sensor { comand = \"x\", id = \"s\" } }", &["comand"]),
        ("iterations = 5", &["iterations", "budget"]),
        ("max_iterations = \"5\"", &["max_iterations", "number"]),
        ("max_iterations = 2.5", &["max_iterations", "2.5"]),
        ("budget = { wall = \"1 hour\" }", &["wall", "1 hour", "2h"]),
        ("breaker = { failure = 3 }", &["breaker", "failure", "failures"]),
        ("fence = { alow = { \"src/**\" } }", &["fence", "alow", "allow"]),
    ] {
        let scene = Scene::new().script(&loop_with(fields)).agent("echo ok");
        let ran = scene.run_loop(&[]).expect_code(4);
        for word in words {
            assert!(ran.stderr.contains(word), "{fields}: no `{word}` in {}", ran.stderr);
        }
        assert!(ran.stderr.contains("loop.lua:"), "{fields}: {}", ran.stderr);
        assert_eq!(scene.turns(), 0, "{fields}");
    }
}

#[test]
fn lua_03_errors_of_host_functions_are_caught_by_the_scripts_own_pcall() {
    let hook = r#"
local ln = require "lunation"
local seen = {}
return function(run)
  local ok, message = pcall(function() return ln.sh(nil) end)
  ln.log.info("%s %s", ok, type(message))
  local co = coroutine.wrap(function() return ln.sh("exit 3").code end)
  ln.log.info("code %d", co())
  local ok2, value = pcall(error, { code = 2 })
  ln.log.info("%s %d", ok2, value.code)
  local ok3, nothing = pcall(error, nil)
  ln.log.info("%s %s", ok3, type(nothing))
  local ok4, text = pcall(function() return "x" .. nil end)
  ln.log.info("%s %s", ok4, text)
  local ok5, out = pcall(function() return ln.sh("echo hi").stdout end)
  ln.log.info("%s %s", ok5, out)
  return run:stop "looked"
end
"#;
    let scene = Scene::new().script(hook);
    scene.run_loop(&[]).expect_code(1);
    let lines: Vec<String> =
        scene.events("logged").iter().map(|data| data["text"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(lines[0], "false string");
    assert_eq!(lines[1], "code 3");
    assert_eq!(lines[2], "false 2");
    assert!(lines[3].starts_with("false "), "{lines:?}");
    assert!(lines[4].contains("loop.lua:13") && lines[4].contains("concatenate"), "{lines:?}");
    assert_eq!(lines[5].trim_end(), "true hi");

    // Not caught: file, line and the name of the hook; the iteration is rolled back.
    let scene = Scene::new()
        .script(&loop_with("sensors = { \"false\" },\n  decide = function(o) return nil .. \"x\" end,"))
        .agent("echo $N > work; echo ok");
    let ran = scene.run_loop(&[]).expect_code(4);
    assert!(ran.all().contains("loop.lua:5") && ran.all().contains("decide"), "{}", ran.all());
    assert!(!scene.exists("work"));
    assert_eq!(scene.end()["reason"].as_str(), Some("script_error"));
}

#[test]
fn lua_04_endless_loops_end_and_odd_tables_are_named() {
    for hook in [
        "on_iteration = function() while true do end end",
        "on_iteration = function() ln.log.info(\"%s\", setmetatable({}, { __tostring = function() while true do end end })) end",
        "on_iteration = function() local s = (\"x\"):rep(2 ^ 31) end",
        "on_iteration = function() while true do pcall(function() while true do end end) end end",
    ] {
        let scene = Scene::new()
            .script(&loop_with(&format!("budget = {{ iterations = 1 }},\n  {hook}")))
            .agent("echo $N > work; echo ok");
        let started = Instant::now();
        let ran = scene.run_loop(&[]).expect_code(4);
        assert!(started.elapsed() < Duration::from_secs(50), "{hook}");
        assert!(ran.all().contains("loop.lua:5"), "{hook}: {}", ran.all());
    }
    // Signals work meanwhile.
    let scene = Scene::new()
        .script(&loop_with("on_iteration = function() while true do end end"))
        .agent("echo $N > work; echo ok");
    let running = scene.start(&["run", "--trust"]);
    eventually("the hook runs", || !scene.events("iteration_ended").is_empty());
    running.signal("TERM");
    let code = running.wait().code;
    assert!([143, 4].contains(&code), "{code}");

    for (fields, word) in [
        ("sensors = { { cmd = \"a\" }, x = { cmd = \"b\" } }", "sensors"),
        ("sensors = { \"true\", x = \"false\" }", "sensors"),
        ("sensors = { \"true\", nil, \"false\" }", "sensors"),
    ] {
        let scene = Scene::new().script(&loop_with(fields)).agent("echo ok");
        let ran = scene.run_loop(&[]).expect_code(4);
        assert!(ran.stderr.contains(word) && ran.stderr.contains("loop.lua:"), "{fields}: {}", ran.stderr);
    }
}
