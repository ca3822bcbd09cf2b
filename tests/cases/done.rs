//! DONE: the completion signal.

use crate::scene::Scene;

const SENTINEL_LOOP: &str = r#"
local ln = require "lunation"
return ln.loop {
  agent = ln.agent { "worker" },
  prompt = "Work.",
  complete = ln.complete.sentinel "<promise>DONE</promise>",
  sensors = { "false" },
  budget = { iterations = 4 },
}
"#;

/// A line as the claude CLI prints it last.
fn claude_result(text_json: &str) -> String {
    format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"result":{text_json},"session_id":"s","num_turns":1,"usage":{{"input_tokens":1,"output_tokens":1}}}}"#
    )
}

/// A fake claude that prints these lines and changes a file, so that nothing counts as unchanged.
fn fake_claude(scene: Scene, lines: &[String]) -> Scene {
    let body: String =
        lines.iter().enumerate().map(|(n, line)| format!("cat <<'LINE{n}'\n{line}\nLINE{n}\n")).collect();
    let tick = "cat >/dev/null; case \"$1\" in --version) echo '2.1.0 (Claude Code)'; exit 0;; esac; date +%s%N > tick";
    scene.program("claude", &format!("{tick}\n{body}"))
}

fn ralph(sentinel: &str, iterations: u32) -> String {
    format!(
        "local ln = require \"lunation\"\nreturn ln.loop {{ agent = \"claude\", prompt = \"Work.\", \
         complete = ln.complete.sentinel \"{sentinel}\", budget = {{ iterations = {iterations} }} }}\n"
    )
}

#[test]
fn done_01_a_sentinel_that_is_only_mentioned_does_not_count() {
    let scene = Scene::new().script(SENTINEL_LOOP).agent(
        "echo $N > work\ncase $N in\n\
         1) echo 'Not yet; I will print <promise>DONE</promise> at the end';;\n\
         2) printf '```\\n<promise>DONE</promise>\\n```\\n';;\n\
         3) echo '\"<promise>DONE</promise>\"';;\n\
         4) printf 'Steps:\\n  - <promise>DONE</promise>\\n';;\nesac",
    );
    let ran = scene.run_loop(&[]).expect_code(2);
    assert_eq!(scene.turns(), 4);
    assert!(ran.last_line().contains("max_iterations"), "{}", ran.stdout);

    // With a red sensor even the sentinel itself, rightly said, is not done.
    let scene = Scene::new().script(SENTINEL_LOOP).agent("echo $N > work; echo '<promise>DONE</promise>'");
    scene.run_loop(&[]).expect_code(2);
    assert_eq!(scene.turns(), 4);
}

#[test]
fn done_03_json_is_decoded_once_and_backslashes_survive() {
    let text = r#""saved to C:\\new\\table \u0007 all good\nDONE""#;
    let scene = fake_claude(Scene::new().script(&ralph("DONE", 5)), &[claude_result(text)]);
    scene.run_loop(&[]).expect_code(1); // complete by the agent's word alone: never exit 0
    let end = scene.end();
    assert_eq!(
        (end["reason"].as_str(), end["iterations"].as_u64(), end["verified"].as_bool()),
        (Some("completed"), Some(1), Some(false))
    );
    let turn = &scene.events("turn_ended")[0]["turn"];
    assert_eq!(turn["text"].as_str(), Some("saved to C:\\new\\table \u{7} all good\nDONE"));
}

#[test]
fn done_04_the_sentinel_in_the_last_permitted_iteration_succeeds() {
    for (cap, green_from) in [(1, 1), (2, 2)] {
        let lua = format!(
            "local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"worker\" }}, prompt = \"Work.\", \
             sensors = {{ \"test -e green\" }}, complete = ln.complete.sentinel \"DONE\", budget = {{ iterations = {cap} }} }}\n"
        );
        let scene = Scene::new()
            .script(&lua)
            .agent(&format!("echo $N > work; [ $N -ge {green_from} ] && touch green; echo DONE"));
        scene.run_loop(&[]).expect_code(0);
        assert_eq!((scene.end()["reason"].as_str(), scene.turns()), (Some("completed"), cap));
    }
}

#[test]
fn done_05_a_blank_sentinel_is_an_error_and_a_prefix_is_no_match() {
    for blank in ["\"\"", "\" \"", "nil"] {
        let lua = format!(
            "local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"worker\" }}, prompt = \"x\", \
             complete = ln.complete.sentinel({blank}) }}\n"
        );
        let scene = Scene::new().script(&lua).agent("echo step one finished");
        let ran = scene.run_loop(&[]).expect_code(4);
        assert!(ran.stderr.contains("loop.lua:2"), "{}", ran.stderr);
        assert_eq!(scene.turns(), 0, "nothing was launched");
    }
    let scene = Scene::new()
        .script(
            "local ln = require \"lunation\"\nreturn ln.loop { agent = ln.agent { \"worker\" }, prompt = \"x\", \
             complete = ln.complete.sentinel \"do\", budget = { iterations = 1 } }\n",
        )
        .agent("echo $N > work; echo 'all done'; echo 'done'");
    scene.run_loop(&[]).expect_code(2);
}

#[test]
fn done_06_no_text_is_no_signal_and_a_sub_agents_word_is_not_the_agents() {
    let text =
        r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Let me look."}]}}"#;
    let tool = r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]}}"#;
    let scene = fake_claude(Scene::new().script(&ralph("DONE", 2)), &[text.to_owned(), tool.to_owned()]);
    scene.run_loop(&[]).expect_code(2);
    assert_eq!(scene.end()["iterations"].as_u64(), Some(2), "it goes on");

    let side = r#"{"type":"assistant","parent_tool_use_id":"task-1","message":{"role":"assistant","content":[{"type":"text","text":"DONE"}]}}"#;
    let scene = fake_claude(
        Scene::new().script(&ralph("DONE", 2)),
        &[side.to_owned(), claude_result("\"The sub-agent is done, I am not.\"")],
    );
    scene.run_loop(&[]).expect_code(2);
    assert_eq!(scene.end()["iterations"].as_u64(), Some(2));
}

#[test]
fn done_08_colours_links_and_split_writes_do_not_hide_the_sentinel() {
    for shell in [
        r"printf '\033[1;32mDONE\033[0m\n'",
        r"printf '\033]8;;http://x.test\033\\DONE\033]8;;\033\\\n'",
        r"printf 'DO'; sleep 0.05; printf 'NE\n'",
        r"printf 'DONE\r\n'",
    ] {
        let lua = ralph("DONE", 2).replace("\"claude\"", "ln.agent { \"worker\" }");
        let scene = Scene::new().script(&lua).agent(&format!("echo $N > work\n{shell}"));
        scene.run_loop(&[]).expect_code(1);
        assert_eq!((scene.end()["reason"].as_str(), scene.turns()), (Some("completed"), 1), "{shell}");
    }
}

#[test]
fn done_10_every_channel_of_completion_ends_the_loop_and_silence_never_does() {
    let lua = |complete: &str, sensor: &str| {
        format!(
            "local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"worker\" }}, prompt = \"Work.\", \
             sensors = {{ \"{sensor}\" }}, {complete} budget = {{ iterations = 2 }} }}\n"
        )
    };
    let sentinel = "complete = ln.complete.sentinel \"DONE\",";
    let hook = "complete = function(o) return o.ok end,";
    let both = "complete = function(o) return o.ok and o.turn.text:match(\"DONE\") ~= nil end,";
    for complete in [sentinel, hook, both] {
        let scene = Scene::new().script(&lua(complete, "true")).agent("echo DONE");
        scene.run_loop(&[]).expect_code(0);
        assert_eq!((scene.end()["reason"].as_str(), scene.turns()), (Some("completed"), 1), "{complete}");
    }
    // Silence with a red sensor completes nothing, whatever the rule.
    for complete in [sentinel, hook, ""] {
        let scene = Scene::new().script(&lua(complete, "false")).agent("echo $N > work");
        scene.run_loop(&[]).expect_code(2);
    }
    // Silence with a green sensor: where a word is asked for it is missing; where the checks alone decide, they decide,
    // and the record names the decision.
    let scene = Scene::new().script(&lua(sentinel, "true")).agent("echo $N > work");
    scene.run_loop(&[]).expect_code(2);
    let scene = Scene::new().script(&lua("", "true")).agent("echo $N > work");
    scene.run_loop(&[]).expect_code(0);
    assert_eq!(scene.events("decided")[0]["complete"].as_bool(), Some(true));
}
