//! Finding, reading and checking scripts.

use super::harness::Case;
use crate::policy::{AgentSource, CommandLine, Mode, PromptSource, SensorSource};
use crate::script::{ErrorKind, FileRole, Kind};

const API: [(&str, &str); 3] = [
    ("01-ralph.lua", include_str!("../../../../tests/lua/api/01-ralph.lua")),
    ("02-first-gate.lua", include_str!("../../../../tests/lua/api/02-first-gate.lua")),
    ("13-by-hand.lua", include_str!("../../../../tests/lua/api/13-by-hand.lua")),
];

#[test]
fn the_scripts_of_the_first_step_load_as_they_stand() {
    for (name, text) in API {
        let case = Case::new().file("PROMPT.md", "Do it.").file("TASK.md", "Do it.").file(name, text);
        let (_, loaded) = case.load_file(name).unwrap_or_else(|error| panic!("{error}"));
        match (name, loaded.kind) {
            ("01-ralph.lua", Kind::Loop(spec)) => {
                assert_eq!(spec.budget.iterations, Some(30));
                assert_eq!(spec.completion.mode, Mode::LlmOnly);
                assert_eq!(spec.completion.sentinel.as_deref(), Some("RALPH COMPLETE"));
                assert_eq!(
                    spec.prompt,
                    PromptSource::Text { template: "Do it.".into(), file: Some("PROMPT.md".into()) }
                );
                assert_eq!(spec.protected, ["01-ralph.lua", "PROMPT.md"]);
            }
            ("02-first-gate.lua", Kind::Loop(spec)) => {
                assert_eq!(spec.sensors.len(), 2);
                assert_eq!(spec.sensors[1].id, "cargo clippy -- -D warnings");
                assert_eq!(spec.fence.allow, ["src/**", "tests/**"]);
                assert_eq!(spec.budget.wall, Some(std::time::Duration::from_secs(3600)));
                assert_eq!(spec.completion.mode, Mode::Override);
            }
            ("13-by-hand.lua", Kind::Function) => {
                assert_eq!(
                    loaded.protected,
                    ["13-by-hand.lua", "TASK.md"],
                    "a prompt named in the text is fenced from the start"
                );
            }
            (name, kind) => panic!("{name} is {kind:?}"),
        }
    }
}

#[test]
fn agents_sensors_and_completions_become_specs() {
    let case = Case::new().options(|o| {
        o.agents.push("house".into());
        o.sensors.push("coverage".into());
    });
    let (_, loaded) = case
        .load(
            "local pi = ln.agent { 'pi', '-p', '{model}', timeout = '5m', env = { A = '1' }, prompt_via = 'arg' }
             return ln.loop {
               id = 'x', agent = pi:with { instructions = 'Be brief.' }:ladder { 'small', 'big' }, prompt = 'p',
               sensors = { b = 'coverage', a = ln.sensor { 'make', 'test', fix = 'make fix', timeout = 30, timeout_is = 'broken' } },
               complete = ln.complete { sentinel = ' DONE ', mode = 'verify', strategy = { n_of = 2 } },
               context = { 'git log' }, max_iterations = 4, patience = 2,
               fence = { allow = { 'docs/**' }, deny = { 'docs/x' }, ignored = 'watch' }, commit = { message = 'm' }, seed = 0,
             }",
        )
        .unwrap_or_else(|error| panic!("{error}"));
    let spec = loaded.spec().unwrap();
    assert_eq!(spec.agents.len(), 2);
    assert_eq!(spec.agents[1].model.as_deref(), Some("big"));
    assert_eq!(spec.agents[0].instructions.as_deref(), Some("Be brief."));
    assert_eq!(spec.agents[0].source, AgentSource::Command(vec!["pi".into(), "-p".into(), "{model}".into()]));
    assert_eq!(spec.breaker.unchanged, 6, "with a ladder three times the patience");
    assert_eq!(spec.sensors[0].id, "a");
    match &spec.sensors[0].source {
        SensorSource::Command(command) => {
            assert_eq!(command.line, CommandLine::Words(vec!["make".into(), "test".into()]));
            assert_eq!(command.timeout.as_secs(), 30);
        }
        other => panic!("{other:?}"),
    }
    assert!(spec.sensors[0].timeout_is_broken);
    assert_eq!(spec.sensors[1].source, SensorSource::Function("coverage".into()));
    assert_eq!(spec.completion.sentinel.as_deref(), Some("DONE"));
    assert_eq!(spec.budget.iterations, Some(4));
    assert!(spec.fence.watch_ignored);
    let (_, loaded) = case.load("return ln.loop { agent = 'house', prompt = 'p' }").unwrap();
    assert_eq!(loaded.spec().unwrap().agents[0].source, AgentSource::Function("house".into()));
}

#[test]
fn a_script_that_returns_something_else_is_told_what_to_return() {
    for (text, got) in [
        ("local x = 1", "returns nothing"),
        ("return 5", "returns 5"),
        ("return { agent = 'claude' }", "returns a table"),
    ] {
        let error = Case::new().load(text).map(|_| ()).unwrap_err();
        assert!(error.to_string().starts_with("loop.lua: this script ") && error.message.contains(got), "{error}");
        assert!(error.message.contains("return ln.loop{…}"), "{error}");
    }
}

#[test]
fn text_03_scripts_and_prompts_are_read_as_people_save_them() {
    let script = "return ln.loop { agent = 'claude', prompt = ln.prompt 'PROMPT.md' }";
    for (prompt, read) in [
        ("\u{feff}Fix it.\r\nNow.".as_bytes(), "Fix it.\r\nNow."),
        (b"no final newline".as_slice(), "no final newline"),
        (b"a\r\nb\r\n".as_slice(), "a\r\nb\r\n"),
    ] {
        for text in [script.to_owned(), format!("\u{feff}{script}"), format!("-- a\r\n{script}\r\n")] {
            let (_, loaded) = Case::new().file("PROMPT.md", prompt).load(&text).unwrap_or_else(|e| panic!("{e}"));
            match &loaded.spec().unwrap().prompt {
                PromptSource::Text { template, .. } => assert_eq!(template, read),
                PromptSource::Function => panic!("a function"),
            }
        }
    }
    for (prompt, kind, says) in [
        (b"\xff\xfeh\0i\0".as_slice(), ErrorKind::Encoding, "PROMPT.md is UTF-16"),
        (b"a\0b".as_slice(), ErrorKind::Encoding, "PROMPT.md has a NUL byte at offset 1"),
        (b"a\xffb".as_slice(), ErrorKind::Encoding, "PROMPT.md is not UTF-8"),
        (b"".as_slice(), ErrorKind::Options, "PROMPT.md is empty"),
        (b" \r\n\t".as_slice(), ErrorKind::Options, "PROMPT.md is empty"),
    ] {
        let error = Case::new().file("PROMPT.md", prompt).load(script).map(|_| ()).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.to_string().starts_with("loop.lua:1: ") && error.message.contains(says), "{error}");
    }
    for (bytes, says) in [
        (b"\xff\xfer\0e\0".as_slice(), "UTF-16"),
        (b"return\0 1".as_slice(), "NUL byte at offset 6"),
        (b"return '\xff'".as_slice(), "byte 8 fits no character"),
    ] {
        let error = Case::new().file("loop.lua", bytes).load_file("loop.lua").map(|_| ()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Encoding);
        assert!(error.to_string().starts_with("loop.lua: ") && error.message.contains(says), "{error}");
    }
    let error = Case::new().load(script).map(|_| ()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(error.message.contains("the prompt file PROMPT.md does not exist"), "{error}");
    let error = Case::new().load("return ln.loop { agent = 'claude', prompt = '' }").map(|_| ()).unwrap_err();
    assert!(error.message.contains("the prompt is empty"), "{error}");
}

#[test]
fn modules_of_the_project_are_read_once_and_listed() {
    let case = Case::new()
        .file(
            "policies/patient.lua",
            "ln.log.info('once')\nreturn { name = 'patient', decide = function() return 'keep' end }",
        )
        .file("deep/init.lua", "return require 'policies.patient'");
    let lines = case.prints("print(require 'deep' == require 'policies.patient', (require 'deep').name)").unwrap();
    assert_eq!(lines, ["once", "true\tpatient"]);
    let (_, loaded) = case.load("require 'deep' return ln.loop { agent = 'claude', prompt = 'x' }").unwrap();
    let files: Vec<(&str, FileRole)> = loaded.manifest.entries.iter().map(|e| (e.name.as_str(), e.role)).collect();
    assert_eq!(
        files,
        [
            ("loop.lua", FileRole::Script),
            ("deep/init.lua", FileRole::Module),
            ("policies/patient.lua", FileRole::Module)
        ]
    );
    assert_eq!(loaded.protected, ["loop.lua", "deep/init.lua", "policies/patient.lua"]);
    assert_eq!(loaded.manifest.script_hash().len(), 64);
}

#[test]
fn links_to_scripts_and_prompts_are_fenced_like_what_they_lead_to() {
    let case = Case::new()
        .file("tools/loop.lua", "return ln.loop { agent = 'claude', prompt = ln.prompt 'P.md' }")
        .file("docs/p.md", "x");
    std::os::unix::fs::symlink("tools/loop.lua", case.folder.path().join("loop.lua")).unwrap();
    std::os::unix::fs::symlink("docs/p.md", case.folder.path().join("P.md")).unwrap();
    let (_, loaded) = case.load_file("loop.lua").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.protected, ["tools/loop.lua", "docs/p.md", "loop.lua", "P.md"]);
}

#[test]
fn require_stays_in_the_project() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("evil.lua"), "return 1").unwrap();
    let case = Case::new();
    std::os::unix::fs::symlink(outside.path().join("evil.lua"), case.folder.path().join("linked.lua")).unwrap();
    std::os::unix::fs::symlink(outside.path(), case.folder.path().join("folder")).unwrap();
    for (name, says) in [
        ("../evil", "is no module name"),
        ("/etc/passwd", "is no module name"),
        ("a..b", "is no module name"),
        ("", "is no module name"),
        ("linked", "link to outside"),
        ("folder.evil", "link to outside"),
        ("nothing.here", "looked for nothing/here.lua and nothing/here/init.lua"),
        ("lunation.decied", "did you mean `lunation.decide`?"),
    ] {
        let error = case.prints(&format!("local x = 1\nrequire '{name}'")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Require, "{error}");
        assert!(error.to_string().starts_with("loop.lua:2: ") && error.message.contains(says), "{error}");
    }
}

#[test]
fn modules_that_require_each_other_are_named() {
    let case =
        Case::new().file("a.lua", "local b = require 'b' return b").file("b.lua", "local a = require 'a' return a");
    let error = case.prints("require 'a'").unwrap_err();
    assert!(error.message.contains("these modules require each other: a -> b -> a"), "{error}");
    assert_eq!(error.file(), Some("b.lua"));
}

#[test]
fn an_error_in_a_module_is_told_at_its_own_line() {
    let case = Case::new().file("m.lua", "local x\n\nreturn x.y").file("typo.lua", "\nretrun 1");
    let error = case.prints("require 'm'").unwrap_err();
    assert_eq!((error.file(), error.line(), error.kind), (Some("m.lua"), Some(3), ErrorKind::Runtime), "{error}");
    let error = case.prints("require 'typo'").unwrap_err();
    assert_eq!((error.file(), error.line(), error.kind), (Some("typo.lua"), Some(2), ErrorKind::Compile), "{error}");
}

#[tokio::test]
async fn a_module_is_required_before_the_run_or_not_at_all() {
    let case = Case::new().file("m.lua", "return 1");
    let (result, _) = case.run("return function()\n  require 'm'\nend", crate::world::ScriptedWorld::new([])).await;
    let error = result.unwrap_err();
    assert!(error.to_string().starts_with("loop.lua:2: `m` is required while the script runs"), "{error}");
}

#[test]
fn effects_while_loading_are_refused_with_what_to_write() {
    for (text, says) in [
        ("ln.sh 'ls'", "ln.sh is an effect"),
        ("ln.git.status()", "ln.git.status is an effect"),
        ("ln.sensors { 'x' }:sense()", "sensors:sense is an effect"),
        ("pcall(ln.sh, 'ls') ln.sh 'ls'", "ln.sh is an effect"),
        ("local function f() return ln.sh 'ls' end\nlocal x = f()", "ln.sh is an effect"),
    ] {
        let error = Case::new().prints(&format!("\n{text}")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::EffectAtLoad);
        let line = if text.contains('\n') { 3 } else { 2 };
        assert_eq!(error.line(), Some(line), "{error}");
        assert!(error.message.contains(says) && error.message.contains("function(run)"), "{error}");
    }
    let error = Case::new().load("return ln.sh 'ls'").map(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("loop.lua: ln.sh is an effect"), "{error}");
}

#[test]
fn a_vm_loads_one_script() {
    let case = Case::new();
    let (vm, _) = case.load("return function() end").unwrap();
    let source = crate::script::Source::text("again.lua", "return function() end", case.folder.path()).unwrap();
    assert!(vm.load(&source).is_err());
}
