//! Deciding, through the program: what prompts show, when the ladder is climbed, what is remembered.

mod scene;

use scene::Scene;

#[test]
fn a_prompt_is_its_template_with_data_where_the_template_says() {
    let lua = r#"
local ln = require "lunation"
local prompt = ln.prompt {
  file = "PROMPT.md",
  slots = {
    plan   = { file = "PLAN.md", max_bytes = "1KiB", keep = "head" },
    skills = { glob = "skills/*.md", max_bytes = "1KiB" },
    count  = { read = function(o) return "iteration " .. o.iteration end, max_bytes = "1KiB" },
    gone   = { file = "NO.md", max_bytes = "1KiB" },
    feedback = { max_bytes = 200, keep = "tail" },
  },
}
return ln.loop {
  agent = ln.agent { "worker" },
  prompt = prompt:with { task = { text = "Write {{plan}} down.", max_bytes = "1KiB" } },
  sensors = { ln.sensor { "seq 1000; false", id = "s" } },
  budget = { iterations = 2 },
}
"#;
    let scene = Scene::new()
        .file("PROMPT.md", "Task: {{task}}\nPlan: {{plan}}\nDo it.\n")
        .file("PLAN.md", "one\ntwo\n")
        .file("skills/b.md", "B\n")
        .file("skills/a.md", "A\n")
        .script(lua)
        .agent("echo $N >> PLAN.md; echo ok");
    scene.run_loop(&[]).expect_code(2);
    let first = scene.prompt(1);
    let shape: Vec<&str> = first
        .lines()
        .filter(|line| {
            line.starts_with("-----") || line.starts_with("Task") || line.starts_with("Plan") || *line == "Do it."
        })
        .map(|line| line.split(' ').take(3).last().unwrap_or(line))
        .collect();
    assert!(first.contains("Write {{plan}} down."), "data is data: {first}");
    assert!(first.contains("one\ntwo\n----- end plan"), "{first}");
    assert!(first.contains("## skills/a.md\nA\n## skills/b.md\nB\n----- end skills"), "{first}");
    assert!(first.contains("iteration 1\n----- end count"), "{first}");
    assert!(!first.contains("begin gone") && !first.contains("begin window"), "{shape:?}");
    let second = scene.prompt(2);
    assert!(second.contains("one\ntwo\n1\n----- end plan"), "files are read anew: {second}");
    assert!(second.contains("----- begin window"), "{second}");
    assert!(second.contains("iteration 1: "), "{second}");
    let json = scene.run(&["prompt", "2", "--json"]).expect_code(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let feedback =
        json["slots"].as_array().and_then(|slots| slots.iter().find(|slot| slot["name"] == "feedback").cloned());
    let feedback = feedback.expect("a feedback slot");
    assert!(feedback["bytes"].as_u64() <= Some(200) && feedback["of"].as_u64() > Some(200), "{feedback}");
    assert!(second.contains("1000\n----- end feedback"), "the tail is kept: {second}");
}

#[test]
fn bad_slots_are_named_and_nothing_is_launched() {
    for (slots, problem) in [
        ("plan = { max_bytes = \"1KiB\" }", "needs one of text, file, glob or read"),
        ("plan = { file = \"a\", text = \"b\", max_bytes = \"1KiB\" }", "has several sources"),
        ("plan = { file = \"a\" }", "max_bytes"),
        ("plan = { file = \"a\", max_bytes = 10 }", "max_bytes must be at least 128"),
        ("feedback = { text = \"a\", max_bytes = \"1KiB\" }", "is filled by the loop itself"),
        ("plan = { fiel = \"a\", max_bytes = \"1KiB\" }", "fiel"),
        ("[\"a b\"] = { text = \"a\", max_bytes = \"1KiB\" }", "is no name for a slot"),
    ] {
        let lua = format!(
            "local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"worker\" }}, \
             prompt = ln.prompt {{ file = \"PROMPT.md\", slots = {{ {slots} }} }}, budget = {{ iterations = 1 }} }}\n"
        );
        let scene = Scene::new().file("PROMPT.md", "Do it.\n").script(&lua).agent("echo ok");
        let ran = scene.run_loop(&[]).expect_code(4);
        assert!(ran.stderr.contains(problem) && ran.stderr.contains("loop.lua:2"), "{slots}: {}", ran.stderr);
        assert_eq!(scene.turns(), 0);
    }
}

#[test]
fn stalls_climb_the_ladder_and_what_was_tried_is_told() {
    let lua = r#"
local ln = require "lunation"
return ln.loop {
  agent = ln.agent({ "worker", "{model}" }):ladder { "small", "big" },
  prompt = "Work.",
  sensors = { a = "test -e a", b = "test ! -e broken" },
  patience = 2,
  budget = { iterations = 5 },
}
"#;
    // The weak one does nothing, then breaks something; the strong one does the work.
    let scene = Scene::new().script(lua).agent(
        "case $1:$N in\nsmall:1) echo thinking;;\nsmall:2) touch broken; echo done;;\nbig:*) touch a; echo done;;\nesac",
    );
    scene.run_loop(&[]).expect_code(0);
    assert_eq!(scene.decisions(), ["stall", "rollback", "keep"]);
    let climb = &scene.events("rung_changed")[0];
    assert_eq!((climb["from"].as_u64(), climb["to"].as_u64()), (Some(1), Some(2)));
    assert!(!scene.exists("broken"));
    let prompt = scene.prompt(3);
    assert!(
        prompt.contains("iteration 2 by worker (small) (touched broken, 0 lines) was rolled back: broke b"),
        "{prompt}"
    );
}
