//! What can be known about an agent before its first turn: that its spec makes sense, that its program is there.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use tokio_util::sync::CancellationToken;

use super::argv;
use super::error::AgentError;
use super::message::{first_line, plain};
use super::rules::{RuleError, Rules, compile_patterns};
use crate::mechanism::process::environment::{Audience, EnvironmentRules, scrub};
use crate::mechanism::process::{Command, Processes, find_program};
use crate::policy::{AgentSource, AgentSpec, Parser};

/// Checks that a spec makes sense: placeholders are known, paths parse, regular expressions compile, some line can end
/// a turn well, times are not zero. Starts nothing and reads nothing.
///
/// # Errors
/// [`AgentError::Spec`] with the name of the field.
pub fn check(spec: &AgentSpec) -> Result<(), AgentError> {
    let wrong = |field: String, problem: String| AgentError::Spec { agent: spec.name.clone(), field, problem };
    if spec.name.trim().is_empty() {
        return Err(wrong("name".into(), "an agent needs a name".into()));
    }
    argv::check(spec).map_err(|(field, problem)| wrong(field, problem))?;
    check_rules(spec).map_err(|error| wrong(error.field, error.problem))?;
    check_environment(spec).map_err(|error| wrong(error.field, error.problem))?;
    if spec.timeout.is_zero() {
        return Err(wrong("timeout".into(), "no turn can be done in no time".into()));
    }
    if spec.silence.is_some_and(|silence| silence.is_zero()) {
        return Err(wrong(
            "silence".into(),
            "every agent is silent for a moment; leave it out to have no limit".into(),
        ));
    }
    if spec.version.as_ref().is_some_and(|argv| argv.first().is_none_or(|program| program.trim().is_empty())) {
        return Err(wrong("version".into(), "there is no program to start".into()));
    }
    Ok(())
}

fn check_rules(spec: &AgentSpec) -> Result<(), RuleError> {
    compile_patterns(&spec.errors)?;
    let Parser::JsonLines(lines) = &spec.parse else { return Ok(()) };
    let prefixed = |error: RuleError| RuleError { field: format!("parse.json_lines.{}", error.field), ..error };
    let rules = Rules::compile(lines).map_err(prefixed)?;
    if !rules.can_end_well() {
        let problem = "no turn could ever end well: it needs rules for `text`, and for `done` or `ended`".into();
        return Err(RuleError { field: "parse.json_lines".into(), problem });
    }
    Ok(())
}

fn check_environment(spec: &AgentSpec) -> Result<(), RuleError> {
    let names = spec.env.keys().map(|name| ("env", name)).chain(spec.pass_env.iter().map(|name| ("pass_env", name)));
    for (field, name) in names {
        if name.is_empty() || name.contains(['=', '\0']) {
            let problem = format!("`{name}` is not the name of a variable");
            return Err(RuleError { field: field.into(), problem });
        }
    }
    match spec.env.iter().find(|(_, value)| value.contains('\0')) {
        Some((name, _)) => Err(RuleError { field: format!("env.{name}"), problem: "its value has a NUL byte".into() }),
        None => Ok(()),
    }
}

/// Finds the agent's program. `path` is the value of `PATH` to search, `cwd` the folder that its turns run in.
///
/// # Errors
/// [`AgentError::Program`] names the program, what was searched and what to type to install it;
/// [`AgentError::NotACommand`] for agents of the embedding program.
pub fn resolve(spec: &AgentSpec, path: &OsStr, cwd: &Path) -> Result<PathBuf, AgentError> {
    let program = program_and_args(spec)?.first().map(String::as_str).unwrap_or_default();
    find_program(program.as_ref(), path, cwd).map_err(|source| AgentError::Program {
        agent: spec.name.clone(),
        source,
        install: spec.install.clone(),
    })
}

pub(super) fn program_and_args(spec: &AgentSpec) -> Result<&[String], AgentError> {
    match &spec.source {
        AgentSource::Command(argv) => Ok(argv),
        AgentSource::Function(function) => {
            Err(AgentError::NotACommand { agent: spec.name.clone(), function: function.clone() })
        }
    }
}

/// How long an agent may take to tell its version.
const VERSION_TIME: Duration = Duration::from_secs(10);

/// The agent's version as it tells it, for the record; `None` when it has no such command, or does not tell within ten
/// seconds. `ambient` is the environment that turns are made from.
pub async fn version(
    processes: &Processes,
    spec: &AgentSpec,
    cwd: &Path,
    ambient: &[(OsString, OsString)],
) -> Option<String> {
    let (program, args) = spec.version.as_ref()?.split_first()?;
    let rules = EnvironmentRules {
        pass: spec.pass_env.clone(),
        set: spec.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        ..EnvironmentRules::default()
    };
    let scrubbed = scrub(ambient, Audience::Agent, &rules, "");
    let command = Command::new(program, cwd, scrubbed.vars)
        .args(args)
        .wall(VERSION_TIME)
        .term_grace(Duration::from_secs(1))
        .keep_output(4096, 4096);
    let finished = processes.run(command, CancellationToken::new(), None).await.ok()?;
    if !finished.is_success() {
        return None;
    }
    version_in(&plain(&finished.stdout.head)).or_else(|| version_in(&plain(&finished.stderr.head)))
}

/// The version number in the first line, or else that line.
fn version_in(text: &str) -> Option<String> {
    static NUMBER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\b\d+\.\d+(?:\.\d+)*(?:[-+.][0-9A-Za-z.-]+)?").expect("a pattern of this file"));
    let line = first_line(text);
    let number = NUMBER.find(&line).map(|found| found.as_str().to_owned());
    number.or(Some(line)).filter(|version| !version.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(extra: serde_json::Value) -> AgentSpec {
        let mut whole = json!({"name": "a", "source": {"command": ["a"]}});
        whole.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn mistakes_in_a_spec_are_told_with_their_field() {
        for (extra, message) in [
            (json!({"name": " "}), "agent ` `: name: an agent needs a name"),
            (json!({"timeout": 0}), "agent `a`: timeout: no turn"),
            (json!({"silence": 0}), "agent `a`: silence: every agent"),
            (json!({"version": []}), "agent `a`: version: there is no program"),
            (json!({"env": {"A=B": "x"}}), "agent `a`: env: `A=B` is not the name"),
            (json!({"env": {"A": "x\u{0}"}}), "agent `a`: env.A: its value has a NUL byte"),
            (json!({"pass_env": [""]}), "agent `a`: pass_env: `` is not the name"),
            (json!({"errors": [{"kind": "auth", "pattern": "("}]}), "agent `a`: errors[1].pattern: not a regular"),
            (json!({"source": {"command": ["a", "{modle}"]}}), "agent `a`: source.command[2]: {modle}"),
            (json!({"parse": {"json_lines": {"done": [{"type": "x"}]}}}), "agent `a`: parse.json_lines: no turn could"),
            (
                json!({"parse": {"json_lines": {"done": [{"type": "x", "a..b": 1}]}}}),
                "agent `a`: parse.json_lines.done[1][\"a..b\"]: `a..b` is not a path",
            ),
        ] {
            let error = check(&spec(extra.clone())).unwrap_err().to_string();
            assert!(error.starts_with(message), "{extra}: {error}");
        }
        check(&spec(json!({}))).unwrap();
    }

    #[test]
    fn a_missing_program_tells_how_to_install_it() {
        let spec = spec(json!({"source": {"command": ["no-such-agent"]}, "install": "npm install -g x"}));
        let error = resolve(&spec, "/usr/bin:/bin".as_ref(), Path::new("/")).unwrap_err().to_string();
        assert!(error.contains("no-such-agent") && error.contains("/usr/bin"), "{error}");
        assert!(error.ends_with("to install it: npm install -g x"), "{error}");
        assert!(resolve(&AgentSpec::command(["sh"]), "/bin".as_ref(), Path::new("/")).is_ok());
        assert!(matches!(
            resolve(&AgentSpec::function("f"), "/bin".as_ref(), Path::new("/")),
            Err(AgentError::NotACommand { .. })
        ));
    }

    #[test]
    fn versions_are_found_in_what_agents_print() {
        for (text, version) in [
            ("codex-cli 0.171.0\n", Some("0.171.0")),
            ("2.1.316 (Claude Code)", Some("2.1.316")),
            ("1.0.0-beta.2", Some("1.0.0-beta.2")),
            ("tool rolling", Some("tool rolling")),
            ("\n", None),
        ] {
            assert_eq!(version_in(text).as_deref(), version, "{text}");
        }
    }
}
