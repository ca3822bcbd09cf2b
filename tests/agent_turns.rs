//! Turns of made-up agents, in real processes: what reaches them, what is read from them, how they end.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use lunation::mechanism::agent::{AgentError, TurnReport, TurnRequest, resolve, take_turn, version};
use lunation::mechanism::process::environment::EnvironmentRules;
use lunation::mechanism::process::{Processes, ProcessesConfig, WardenProgram};
use lunation::policy::{AgentSpec, JsonLines, Outcome, Parser, PromptChannel, TimeoutKind, says_sentinel};
use serde_json::json;
use tokio::runtime::{Handle, Runtime};
use tokio_util::sync::CancellationToken;

/// A workspace, a folder with fake agents, and the processes to run them.
struct Stage {
    folder: tempfile::TempDir,
    runtime: Runtime,
    ambient: Vec<(OsString, OsString)>,
    prompt: String,
    wall_left: Option<Duration>,
    cancel: CancellationToken,
}

impl Stage {
    fn new() -> Stage {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "bin", "home"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.path().join("bin").display());
        let ambient = vec![("PATH".into(), path.into()), ("HOME".into(), folder.path().join("home").into())];
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Stage { folder, runtime, ambient, prompt: "Fix it.".into(), wall_left: None, cancel: CancellationToken::new() }
    }

    fn prompt(mut self, prompt: impl Into<String>) -> Stage {
        self.prompt = prompt.into();
        self
    }

    fn ambient(mut self, name: &str, value: &str) -> Stage {
        self.ambient.push((name.into(), value.into()));
        self
    }

    /// Puts a shell script on the PATH.
    fn script(self, name: &str, body: &str) -> Stage {
        let file = self.folder.path().join("bin").join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn work(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    fn processes(&self, handle: Handle) -> Processes {
        let warden = WardenProgram::at(env!("CARGO_BIN_EXE_lunation"));
        Processes::start(ProcessesConfig::new(warden), handle).unwrap()
    }

    fn try_turn(&self, spec: &AgentSpec) -> Result<TurnReport, AgentError> {
        let processes = self.processes(self.runtime.handle().clone());
        let request = TurnRequest {
            spec,
            prompt: self.prompt.clone(),
            workspace: self.folder.path().join("work"),
            tmp: self.folder.path().join("turns/1/tmp"),
            run: "run-1".into(),
            iteration: 3,
            ambient: &self.ambient,
            environment: EnvironmentRules::default(),
            wall_left: self.wall_left,
            log_file: self.folder.path().join("turn.log"),
            log_cap: 1024 * 1024,
            log_mask: None,
            zone: TimeZone::UTC,
        };
        self.runtime.block_on(take_turn(&processes, request, self.cancel.clone()))
    }

    fn turn(&self, spec: &AgentSpec) -> TurnReport {
        let report = self.try_turn(spec).unwrap();
        assert!(report.confirmed_gone, "{report:?}");
        assert!(!self.folder.path().join("turns/1/tmp").exists(), "the temporary folder is gone");
        let left: Vec<_> = std::fs::read_dir(self.folder.path().join("turns/1")).into_iter().flatten().collect();
        assert!(left.is_empty(), "nothing is left beside it: {left:?}");
        report
    }
}

fn plain() -> AgentSpec {
    AgentSpec { grace: Duration::from_millis(500), ..AgentSpec::command(["agent"]) }
}

/// An agent that speaks in the lines of Claude Code.
fn structured() -> AgentSpec {
    let lines: JsonLines = serde_json::from_value(json!({
        "text": [{"when": {"type": "result"}, "text": "result"}, {"when": {"type": "assistant"}, "text": "text"}],
        "done": [{"type": "result", "is_error": false}],
        "failed": [{"when": {"type": "result", "is_error": true}, "message": ["result"], "status": "api_error_status", "final": true}],
        "usage": [{"when": {"type": "cost"}, "cost": "usd"}],
        "session": [{"when": {"type": "init"}, "text": "id"}],
        "ignore": ["update"],
    }))
    .unwrap();
    AgentSpec { parse: Parser::JsonLines(Box::new(lines)), settle: Duration::from_millis(300), ..plain() }
}

fn result(text: &str) -> String {
    // Not `echo`: that of some shells looks into backslashes.
    format!("printf '%s\\n' '{}'", json!({"type": "result", "is_error": false, "result": text}))
}

fn is_alive(pid: &str) -> bool {
    // A number that is somebody else's by now is told apart by its command line.
    std::fs::read(format!("/proc/{}/cmdline", pid.trim())).is_ok_and(|line| line.starts_with(b"sleep"))
}

#[test]
fn prompts_of_any_size_arrive_whole_on_stdin() {
    for bytes in [127 * 1024, 129 * 1024, 3 * 1024 * 1024] {
        let stage = Stage::new().prompt("x".repeat(bytes)).script("agent", "wc -c");
        assert_eq!(stage.turn(&plain()).summary.text.trim(), bytes.to_string());
    }
}

#[test]
fn a_prompt_arrives_byte_for_byte_and_nothing_in_it_is_code() {
    let prompt =
        "Fix Mike's \"bug\"; see [x] & $(touch pwned) `touch pwned2` $HOME %PATH% \\n\n--help\n{tmp} {model}\n";
    for (via, script) in [
        (PromptChannel::Stdin, "cat > copy"),
        (PromptChannel::Arg, "printf %s \"$1\" > copy"),
        (PromptChannel::File, "cat \"$1\" > copy"),
    ] {
        let stage = Stage::new().prompt(prompt).script("agent", &format!("{script}; echo done"));
        let argv: &[&str] = if via == PromptChannel::File { &["agent", "{prompt_file}"] } else { &["agent"] };
        let report = stage.turn(&AgentSpec { prompt_via: via, ..AgentSpec::command(argv.iter().copied()) });
        assert_eq!(report.summary.outcome, Outcome::Done, "{via:?}");
        assert_eq!(std::fs::read_to_string(stage.work("copy")).unwrap(), prompt, "{via:?}");
        let names: Vec<_> =
            std::fs::read_dir(stage.work("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["copy"], "{via:?}");
    }
}

#[test]
fn instructions_stand_before_the_prompt() {
    let stage = Stage::new().script("agent", "cat");
    let spec = AgentSpec { instructions: Some("You are careful.\n".into()), ..plain() };
    assert_eq!(stage.turn(&spec).summary.text, "You are careful.\n\nFix it.");
}

#[test]
fn a_prompt_that_cannot_be_an_argument_is_refused_with_advice() {
    let spec = AgentSpec { prompt_via: PromptChannel::Arg, ..plain() };
    let dashed = AgentSpec { prompt_via: PromptChannel::Arg, ..AgentSpec::command(["agent", "--", "{prompt}"]) };
    let script = |prompt: String| Stage::new().prompt(prompt).script("agent", "touch started; printf '%s' \"$2\"");
    for (prompt, words) in
        [("x".repeat(120_001), "120001 bytes"), ("--help".into(), "taken for an option"), ("a\0b".into(), "NUL")]
    {
        let stage = script(prompt);
        let error = stage.try_turn(&spec).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert!(!stage.work("started").exists());
    }
    assert_eq!(script("--help".into()).turn(&dashed).summary.text, "--help");
    assert_eq!(script("x".repeat(120_000)).turn(&dashed).summary.text.len(), 64 * 1024);
}

#[test]
fn marks_of_an_enclosing_session_are_taken_out_and_named() {
    let stage = Stage::new()
        .ambient("CLAUDECODE", "1")
        .ambient("CLAUDE_CODE_SESSION_ACCESS_TOKEN", "hunter2")
        .ambient("GIT_DIR", "/nowhere")
        .ambient("ANTHROPIC_API_KEY", "the-key")
        .script("agent", "env");
    let mut spec = plain();
    spec.env.insert("MY_SETTING".into(), "on".into());
    let report = stage.turn(&spec);
    let text = &report.summary.text;
    for gone in ["CLAUDECODE", "hunter2", "GIT_DIR"] {
        assert!(!text.contains(gone), "{gone} in {text}");
    }
    for there in
        ["MY_SETTING=on", "ANTHROPIC_API_KEY=the-key", "LUNATION_RUN=run-1", "LUNATION_ITERATION=3", "/turns/1/tmp"]
    {
        assert!(text.contains(there), "{there} not in {text}");
    }
    assert_eq!(report.scrubbed, ["CLAUDECODE", "CLAUDE_CODE_SESSION_ACCESS_TOKEN", "GIT_DIR"]);
    let passing = AgentSpec { pass_env: vec!["CLAUDECODE".into()], ..plain() };
    assert!(stage.turn(&passing).summary.text.contains("CLAUDECODE=1"));
}

#[test]
fn a_sentinel_is_found_in_colours_links_and_pieces() {
    for body in [
        r"printf '\033[1;32mDONE\033[0m\n'",
        r"printf '\033]8;;http://x\033\\DONE\033]8;;\033\\\n'",
        r"printf DO; sleep 0.05; printf 'NE\n'",
        r"printf 'DONE\r\n'",
    ] {
        let report = Stage::new().script("agent", body).turn(&plain());
        assert!(says_sentinel(&report.summary.text, "DONE"), "{body}: {:?}", report.summary.text);
    }
}

#[test]
fn an_agent_that_stays_after_its_last_word_is_ended_and_judged_by_it() {
    let body = format!("sleep 300 & echo $! > pid\n{}\nsleep 300", result("All good.\nDONE"));
    let stage = Stage::new().script("agent", &body);
    let begun = Instant::now();
    let report = stage.turn(&structured());
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(report.summary.outcome, Outcome::Done);
    assert!(!report.summary.timed_out && !report.summary.failed());
    assert!(says_sentinel(&report.summary.text, "DONE"));
    assert!(!is_alive(&std::fs::read_to_string(stage.work("pid")).unwrap()));
}

#[test]
fn a_fatal_error_that_is_logged_by_an_agent_that_stays_ends_the_turn() {
    let line = json!({"type": "result", "is_error": true, "api_error_status": 401, "result": "no"});
    let stage = Stage::new().script("agent", &format!("echo '{line}'; sleep 300"));
    assert_eq!(stage.turn(&structured()).summary.outcome, Outcome::Auth);
}

#[test]
fn errors_with_exit_code_zero_are_errors() {
    for (status, outcome) in [(401, Outcome::Auth), (429, Outcome::RateLimited { retry_after: None })] {
        let line = json!({"type": "result", "subtype": "success", "is_error": true, "api_error_status": status, "result": "x"});
        let body = format!("echo '{}'; echo '{line}'", json!({"type": "init", "id": "s-1"}));
        let report = Stage::new().script("agent", &body).turn(&structured());
        assert_eq!((report.summary.outcome, report.summary.exit), (outcome, Some(0)));
        assert_eq!(report.session, None, "nothing to go on from");
    }
    let silent = Stage::new().script("agent", "cat > /dev/null").turn(&structured());
    assert_eq!((silent.summary.outcome, silent.session), (Outcome::Empty, None));
}

#[test]
fn a_session_is_kept_when_the_turn_went_well() {
    let body = format!("echo '{}'\n{}", json!({"type": "init", "id": "s-1"}), result("ok"));
    assert_eq!(Stage::new().script("agent", &body).turn(&structured()).session.as_deref(), Some("s-1"));
}

#[test]
fn wordings_of_limits_count_in_the_answer_and_not_in_what_a_tool_printed() {
    let tool = json!({"type": "tool", "output": "You've hit your usage limit - resets 3pm"});
    let ordinary =
        Stage::new().script("agent", &format!("echo \"{}\"\n{}", tool.to_string().replace('"', "\\\""), result("ok")));
    assert_eq!(ordinary.turn(&structured()).summary.outcome, Outcome::Done);
    let answer = "echo \"You've hit your limit · resets 11:30pm (Europe/Berlin)\"";
    let outcome = Stage::new().script("agent", answer).turn(&plain()).summary.outcome;
    assert!(matches!(outcome, Outcome::UsageLimit { reset_at: Some(_) }), "{outcome:?}");
}

#[test]
fn the_cost_of_a_turn_is_its_last_value_also_when_it_was_cut_off() {
    let events = |costs: &[f64]| -> String {
        costs.iter().map(|usd| format!("echo '{}'\n", json!({"type": "cost", "usd": usd}))).collect()
    };
    let cost = |body: String| {
        let spec = AgentSpec { silence: Some(Duration::from_millis(700)), ..structured() };
        Stage::new().script("agent", &body).turn(&spec).summary.usage.cost_usd
    };
    let turns = [
        cost(events(&[0.10, 0.30, 0.50]) + &result("a")),
        cost(events(&[0.20, 0.40]) + &result("b")),
        cost(events(&[0.25]) + "sleep 300"),
    ];
    assert_eq!(turns, [Some(0.50), Some(0.40), Some(0.25)]);
    assert!((turns.iter().flatten().sum::<f64>() - 1.15).abs() < 1e-9);
}

#[test]
fn budgets_end_a_turn_and_say_which() {
    let silent = AgentSpec { silence: Some(Duration::from_millis(300)), ..plain() };
    let report = Stage::new().script("agent", "echo here; sleep 300").turn(&silent);
    assert_eq!(report.summary.outcome, Outcome::TimedOut { which: TimeoutKind::Silence });
    assert!(report.summary.timed_out && report.summary.text.starts_with("here"));
    let mut stage = Stage::new().script("agent", "while :; do echo busy; sleep 0.05; done");
    stage.wall_left = Some(Duration::from_millis(500));
    let report = stage.turn(&plain());
    assert_eq!(report.summary.outcome, Outcome::TimedOut { which: TimeoutKind::Wall });
}

#[test]
fn a_cancelled_turn_is_stopped() {
    let stage = Stage::new().script("agent", "touch begun; sleep 300");
    let (cancel, begun) = (stage.cancel.clone(), stage.work("begun"));
    let watcher = std::thread::spawn(move || {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !begun.exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        cancel.cancel();
    });
    assert_eq!(stage.turn(&plain()).summary.outcome, Outcome::Stopped);
    watcher.join().unwrap();
}

#[test]
fn what_a_clean_exit_leaves_behind_is_ended_and_named() {
    let stage = Stage::new().script("agent", "nohup sleep 300 >/dev/null 2>&1 & echo $! > pid; echo ok");
    let report = stage.turn(&plain());
    assert_eq!(report.summary.outcome, Outcome::Done);
    // Its name depends on how far it came.
    assert!(
        matches!(report.summary.left_behind.as_slice(), [name] if ["agent", "nohup", "sleep"].contains(&name.as_str()))
    );
    assert!(!is_alive(&std::fs::read_to_string(stage.work("pid")).unwrap()));
}

#[test]
fn how_it_died_is_told() {
    let outcome = |body: &str| Stage::new().script("agent", body).turn(&plain()).summary;
    assert_eq!(outcome("kill -SEGV $$").outcome, Outcome::Crashed { signal: 11 });
    let failed = outcome("echo 'cannot open shop' >&2; exit 3");
    assert_eq!((failed.outcome.clone(), failed.exit), (Outcome::AgentError, Some(3)));
    assert_eq!(failed.summary, "the agent reports an error (exit code 3): cannot open shop");
    let missing = Stage::new().turn(&AgentSpec::command(["no-such-agent"])).summary;
    assert_eq!(missing.outcome, Outcome::SpawnFailed { transient: false });
    assert!(missing.summary.contains("no-such-agent"), "{}", missing.summary);
}

#[test]
fn a_stream_of_huge_lines_is_read_and_the_rest_told() {
    // 20 MiB in one line that is not ignored, 20 MiB in lines that are, and then the last word.
    let body = format!(
        "printf '{{\"type\":\"huge\",\"x\":\"'; head -c 20971520 /dev/zero | tr '\\0' x; echo '\"}}'\n\
         line=$(head -c 4096 /dev/zero | tr '\\0' y)\n\
         yes \"{{\\\"type\\\":\\\"update\\\",\\\"x\\\":\\\"$line\\\"}}\" | head -n 5000\n{}",
        result("done")
    );
    let stage = Stage::new().script("agent", &body);
    let report = stage.turn(&structured());
    assert_eq!(report.summary.outcome, Outcome::Done);
    assert_eq!(report.notes.iter().filter(|note| note.contains("longer than 8 MiB")).count(), 1, "{:?}", report.notes);
    let log = std::fs::metadata(&report.log).unwrap().len();
    assert!(log <= 1024 * 1024 + 200, "{log} bytes: the log keeps to its cap");
}

#[test]
fn the_raw_output_is_in_the_log() {
    let stage = Stage::new().script("agent", "echo out; echo err >&2");
    let report = stage.turn(&plain());
    let log = std::fs::read_to_string(report.log).unwrap();
    assert!(log.contains("out\n") && log.contains("err\n"), "{log}");
}

#[test]
fn a_version_is_asked_for_with_a_limit() {
    let stage = Stage::new().script("agent", "echo \"agent-cli 1.2.3 ($MARK)\"");
    let processes = stage.processes(stage.runtime.handle().clone());
    let ask = |argv: &[&str]| {
        let argv = Some(argv.iter().map(|word| (*word).to_owned()).collect());
        let env = BTreeMap::from([("MARK".to_owned(), "x".to_owned())]);
        let spec = AgentSpec { version: argv, env, ..plain() };
        let cwd = stage.work("");
        stage.runtime.block_on(version(&processes, &spec, &cwd, &stage.ambient))
    };
    assert_eq!(ask(&["agent", "--version"]).as_deref(), Some("1.2.3"));
    assert_eq!(ask(&["no-such-agent"]), None);
    assert_eq!(ask(&["false"]), None);
}

#[test]
fn a_program_is_found_where_its_turns_would_find_it() {
    let stage = Stage::new().script("agent", "true");
    let path = &stage.ambient[0].1;
    assert_eq!(resolve(&plain(), path, Path::new("/")).unwrap(), stage.folder.path().join("bin/agent"));
}
