//! Loops and scripts at work, in a world in memory.

use super::harness::{Case, Outcome};
use crate::policy::{Reason, Status};
use crate::script::ErrorKind;
use crate::world::{ScriptedTurn, ScriptedWorld};

fn edits(count: usize) -> Vec<ScriptedTurn> {
    (0..count).map(|n| ScriptedTurn::edit("src/a.rs", &format!("{n}"))).collect()
}

#[tokio::test]
async fn a_loop_runs_until_its_checks_hold() {
    let world = ScriptedWorld::new(edits(3)).sensor("t", [Some(2), Some(1), Some(0)]);
    let (result, _) =
        Case::new().run("return ln.loop { agent = { } and 'claude', prompt = 'x', sensors = { 't' } }", world).await;
    let result = result.unwrap();
    assert_eq!((result.status, result.iterations, result.verified), (Status::Passed, 2, true));
}

#[tokio::test]
async fn the_script_decides_from_a_frozen_observation() {
    let world = ScriptedWorld::new(edits(4)).sensor("t", [Some(2), Some(3), Some(1), Some(0)]);
    let text = "return ln.loop {
      agent = 'claude', prompt = 'x', sensors = { 't' },
      decide = function(o)
        if o.sense.failing > o.best.failing then return 'rollback', 'broke ' .. table.concat(o.sense:newly_failing(o.best), ', ') end
        assert(o.sense.score == 0 and o.sensor.t.ok == (o.sense.failing == 0) and o.turn.ok)
        return 'keep'
      end,
      on_iteration = function(o)
        assert(table.concat(o.change.files, ',') == 'src/a.rs' and select('#', table.unpack(o.change.files)) == 1)
        for name, value in pairs(o) do assert(type(name) == 'string' and value ~= ln.json.null) end
        assert(next(o) == 'best' and ln.json.decode(ln.json.encode(o)).iteration == o.iteration)
        print(o.iteration, o.sense.failing, #o.history, o.left.iterations)
      end,
    }";
    let (result, outcome) = Case::new().run(text, world).await;
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((result.status, result.iterations), (Status::Passed, 3));
    assert_eq!(outcome.logged().len(), 3);
}

#[tokio::test]
async fn script_13_runs_as_it_stands() {
    let case = Case::new().file("TASK.md", "Do the task.");
    let world = ScriptedWorld::new(edits(4))
        .sensor("cargo test", [Some(3), Some(4), Some(1), Some(0)])
        .sensor("cargo fmt --check", [Some(0)]);
    let (result, outcome) = case.run(include_str!("../../../../tests/lua/api/13-by-hand.lua"), world).await;
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(result.why, Some(Reason::Completed));
    assert!(result.verified);
    assert!(result.summary.starts_with("all green after codex"), "{}", result.summary);
    assert_eq!(result.iterations, 3);
    assert!(outcome.world.prompts()[0].starts_with("Do the task."));
}

#[tokio::test]
async fn script_13_ends_with_its_budget() {
    let case = Case::new().file("TASK.md", "Do the task.");
    let world = ScriptedWorld::new([]).sensor("cargo test", [Some(3)]).sensor("cargo fmt --check", [Some(0)]);
    let (result, _) = case.run(include_str!("../../../../tests/lua/api/13-by-hand.lua"), world).await;
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert!(!result.ok);
    assert_eq!(result.summary, "out of budget");
}

#[tokio::test]
async fn a_function_may_return_a_loop_or_nothing() {
    let world = || ScriptedWorld::new(edits(1)).sensor("t", [Some(1), Some(0)]);
    let loops = "return function(run, input) return ln.loop { agent = 'claude', prompt = 'x', sensors = { 't' } } end";
    let (result, _) = Case::new().run(loops, world()).await;
    assert!(result.unwrap().ok);
    let (result, _) = Case::new().run("return function() end", world()).await;
    assert_eq!(result.unwrap().why, Some(Reason::Stopped));
    let (result, _) = Case::new().run("return function()\n return true end", world()).await;
    let error = result.unwrap_err();
    assert!(error.to_string().starts_with("loop.lua:1: the script's function returned true"), "{error}");
}

#[tokio::test]
async fn lua_03_errors_are_values_of_the_script_as_everywhere_in_lua() {
    let text = "return function(run)
      print(pcall(function() error({ code = 2 }) end))
      local ok, e = pcall(error, { code = 2 }) print(ok, e.code)
      print(pcall(error, nil))
      print(pcall(function() return 'x' .. nil end))
      print(pcall(ln.sh, nil))
      print(select(2, pcall(ln.sh, '')))
      local co = coroutine.create(function() error({ code = 3 }) end)
      local ok, e = coroutine.resume(co) print(ok, e.code)
      local ok, e = pcall(coroutine.wrap(function() coroutine.yield() end)) print(ok, e)
      print(select(2, xpcall(function() error 'x' end, function(m) return 'handled ' .. m end)))
      print(type(select(2, pcall(ln.agent, { timout = 1 }))))
      return run:stop 'done'
    end";
    let (result, outcome) = Case::new().run(text, ScriptedWorld::new([])).await;
    assert_eq!(result.unwrap_or_else(|error| panic!("{error}")).summary, "done");
    let lines = outcome.logged();
    assert!(lines[0].starts_with("false\ttable: #"), "{lines:?}");
    assert_eq!(lines[1], "false\t2");
    // Lua 5.5 has a string for an error that is nil.
    assert!(["false\tnil", "false\t<no error object>"].contains(&lines[2].as_str()), "{lines:?}");
    assert_eq!(lines[3], "false\tloop.lua:5: attempt to concatenate a nil value");
    assert!(lines[4].starts_with("false\tloop.lua:6: ln.sh: must be a string"), "{lines:?}");
    assert!(lines[5].starts_with("loop.lua:7: ln.sh: there is no command"), "{lines:?}");
    assert_eq!(lines[6], "false\t3");
    assert_eq!(lines[7], "true\tnil");
    assert_eq!(lines[8], "handled loop.lua:11: x");
    assert_eq!(lines[9], "string");
}

#[tokio::test]
async fn lua_03_uncaught_errors_name_place_and_function() {
    for (raise, says) in [
        ("error({ code = 2 })", "the script raised { code = 2 }"),
        ("error(nil)", "raised an error that is nil"),
        ("error('plain', 0)", "plain"),
        ("return 'x' .. nil", "attempt to concatenate a nil value"),
        ("ln.sh(nil)", "ln.sh: must be a string, or a table like"),
    ] {
        let world = ScriptedWorld::new(edits(1)).sensor("t", [Some(2), Some(1)]);
        let text = format!(
            "return ln.loop {{ agent = 'claude', prompt = 'x', sensors = {{ 't' }},\n  decide = function(o)\n    {raise}\n  end }}"
        );
        let (result, _) = Case::new().run(&text, world).await;
        let error = result.unwrap_err();
        let text = error.to_string();
        assert_eq!((error.file(), error.line()), (Some("loop.lua"), Some(3)), "{text}");
        assert!(text.starts_with("loop.lua:3: ") && text.contains(says), "{text}");
        assert!(text.ends_with("in the script's `decide` function"), "{text}");
        assert_eq!(error.run_reason(), Reason::ScriptError);
    }
}

#[tokio::test]
async fn lua_04_an_endless_function_ends_the_run_with_its_place() {
    for (what, body) in [
        ("decide", "while true do end"),
        ("complete", "while true do end"),
        ("on_iteration", "print(setmetatable({}, { __tostring = function() while true do end end }))"),
    ] {
        let case = Case::new().options(|o| o.instruction_budget = 300_000);
        let world = ScriptedWorld::new(edits(1)).sensor("t", [Some(2), Some(1)]);
        let text = format!(
            "return ln.loop {{ agent = 'claude', prompt = 'x', sensors = {{ 't' }},\n  {what} = function(o) {body} end }}"
        );
        let (result, _) = case.run(&text, world).await;
        let error = result.unwrap_err();
        assert_eq!((error.kind, error.line()), (ErrorKind::Budget, Some(2)), "{error}");
        assert_eq!(error.hook, Some(what));
    }
}

#[tokio::test]
async fn questions_have_no_effects_but_observers_may() {
    for what in ["decide", "complete"] {
        let world = ScriptedWorld::new(edits(1)).sensor("t", [Some(2), Some(1)]);
        let text = format!(
            "return ln.loop {{ agent = 'claude', prompt = 'x', sensors = {{ 't' }},\n  {what} = function(o) ln.sh 'x' end }}"
        );
        let (result, _) = Case::new().run(&text, world).await;
        let error = result.unwrap_err();
        assert!(
            error.to_string().starts_with(&format!("loop.lua:2: ln.sh is an effect, but `{what}` answers only")),
            "{error}"
        );
    }
    let world = ScriptedWorld::new(edits(1)).sensor("t", [Some(2), Some(0)]);
    let text = "return ln.loop { agent = 'claude', prompt = function(o) return 'iteration ' .. o.iteration end, sensors = { 't' },
      on_iteration = function(o) ln.sh 'notify' end }";
    let (result, outcome) = Case::new().run(text, world).await;
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.world.done().contains(&"command notify".to_owned()));
    assert!(outcome.world.prompts()[0].starts_with("iteration 1"), "{:?}", outcome.world.prompts());
    // The loop itself waits for the answer here: another pass over the sensors would wait for the loop.
    let world = ScriptedWorld::new(edits(1)).sensor("t", [Some(2), Some(1)]);
    let text = "local s = ln.sensors { 't' }\nreturn ln.loop { agent = 'claude', prompt = 'x', sensors = { 't' },\n on_iteration = function() s:sense() end }";
    let (result, _) = Case::new().run(text, world).await;
    assert!(result.unwrap_err().message.contains("read `o` instead"));
}

#[tokio::test]
async fn a_completion_of_two_ways_needs_one() {
    let text = "return ln.loop { agent = 'claude', prompt = 'x', sensors = { 't' },
      complete = ln.complete.any { ln.complete.sentinel 'DONE', ln.complete.sensors() } }";
    let world = ScriptedWorld::new([
        ScriptedTurn { text: "still at it".into(), ..ScriptedTurn::edit("a", "1") },
        ScriptedTurn { text: "well\nDONE".into(), ..ScriptedTurn::edit("a", "2") },
    ])
    .sensor("t", [Some(3), Some(2), Some(1)]);
    let (result, _) = Case::new().run(text, world).await;
    let result = result.unwrap();
    assert_eq!((result.why, result.iterations), (Some(Reason::Completed), 2));
}

#[tokio::test]
async fn a_loop_by_hand_is_told_what_it_did_wrong() {
    for (body, line, says) in [
        ("it.turn('claude', 'x')", 3, "with a colon"),
        ("it:turn('cluade', 'x')", 3, "did you mean `claude`?"),
        ("it:turn('claude', '')", 3, "the prompt is empty"),
        ("it:turn('claude', 'x', { feedback = 5 })", 3, "slot `feedback` must be a string, got 5"),
        ("it:turn('claude', 'x') it:sense { 't' }", 3, "made once by ln.sensors"),
        ("it:turn('claude', 'x') print(it.change.emtpy)", 3, "change has no field `emtpy`; did you mean `empty`?"),
        ("it:turn('claude', 'x') print(it.stals)", 3, "did you mean `stalls`?"),
        ("it.stalls = 0", 3, "cannot be set"),
        ("it:turn('claude', 'x')", 2, "left undecided"),
    ] {
        let text = format!("return function(run)\n  for it in run:iterations {{ max = 3 }} do\n    {body}\n  end\nend");
        let (result, _) = Case::new().run(&text, ScriptedWorld::new(edits(1))).await;
        let error = result.expect_err(body);
        assert!(error.message.contains(says), "{body}\n{error}");
        assert_eq!(error.line(), Some(line), "{body}\n{error}");
    }
}

#[tokio::test]
async fn notes_and_slots_reach_the_prompt() {
    let text = "return function(run)
      local n = 0
      for it in run:iterations { max = 2 } do
        n = n + 1
        it:turn(ln.agent 'claude', 'Task.', { feedback = 'look here', tried = it.tried })
        if n == 1 then it:rollback('that was bad') else return it:done('enough') end
      end
    end";
    let (result, outcome) = Case::new().run(text, ScriptedWorld::new(edits(2))).await;
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((result.ok, result.verified, result.summary.as_str()), (true, false, "enough"));
    let prompts = outcome.world.prompts();
    assert!(prompts[0].contains("begin feedback") && prompts[0].contains("look here"), "{}", prompts[0]);
    assert!(prompts[1].contains("that was bad"), "{}", prompts[1]);
}

#[tokio::test]
async fn random_numbers_follow_the_seed() {
    let drawn = async |seed: u64| {
        let text = format!(
            "return ln.loop {{ agent = 'claude', prompt = 'x', sensors = {{ 't' }}, seed = {seed}, on_iteration = function() print(math.random(1 << 40)) end }}"
        );
        let world = ScriptedWorld::new(edits(1)).sensor("t", [Some(1), Some(0)]);
        let (_, outcome) = Case::new().run(&text, world).await;
        outcome.logged()
    };
    assert_eq!(drawn(1).await, drawn(1).await);
    assert_ne!(drawn(1).await, drawn(2).await);
}

#[tokio::test]
async fn the_policy_in_lua_says_what_the_policy_in_rust_says() {
    for (failing, label) in
        [([Some(3), Some(3), Some(2), Some(4), Some(0)], "a"), ([Some(1), Some(2), Some(1), Some(1), Some(0)], "b")]
    {
        let mut ends = Vec::new();
        for decide in ["", "decide = ln.decide.default.decide,"] {
            let world = ScriptedWorld::new(edits(6)).sensor("t", failing);
            let text = format!("return ln.loop {{ agent = 'claude', prompt = 'x', sensors = {{ 't' }}, {decide} }}");
            let (result, outcome): (_, Outcome) = Case::new().run(&text, world).await;
            let decisions: Vec<String> = outcome
                .recorder
                .events()
                .iter()
                .filter_map(|event| match event {
                    crate::journal::Event::Decided { verdict, .. } => Some(format!("{verdict:?}")),
                    _ => None,
                })
                .collect();
            ends.push((result.unwrap().iterations, decisions));
        }
        assert_eq!(ends[0], ends[1], "{label}");
        assert!(!ends[0].1.is_empty());
    }
}
