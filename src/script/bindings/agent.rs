//! `ln.agent`: a preset by name, a command, or an agent of the embedding program.

use mlua::{AnyUserData, Lua, Value};
use serde_json::json;

use super::objects::AgentObject;
use super::{Namespace, Shape, Signature};
use crate::policy::{AgentSource, AgentSpec, ErrorPattern, Parser, PromptChannel};
use crate::script::error::ErrorKind;
use crate::script::options::schema::{Kind, Object};
use crate::script::options::tables::{AGENT, AGENT_WITH};
use crate::script::options::{Given, Problems, Record, join, read, read_table};
use crate::script::preset;
use crate::script::vm::{Shared, place, show};

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "agent",
    shape: Shape::Table {
        call: Some(Signature {
            doc: "An agent: a preset by name (\"claude\", \"codex\", \"pi\"), or a command with its options.",
            params: &[("opts", "string|lunation.AgentOpts")],
            returns: Some("lunation.Agent"),
        }),
        members: &[],
    },
    later: &[],
    make: |lua| {
        let content = lua.create_table()?;
        content.raw_set("()", lua.create_function(make)?)?;
        Ok(Value::Table(content))
    },
};

fn make(lua: &Lua, (_, value): (Value, Value)) -> mlua::Result<AgentObject> {
    let shared = Shared::of(lua);
    let mut problems = Problems::default();
    let spec = match &value {
        Value::String(name) => match by_name(&shared, &name.to_string_lossy()) {
            Ok(spec) => Some(spec),
            Err(problem) => {
                problems.add("", problem);
                None
            }
        },
        Value::Table(_) => {
            let mut record = read_table(&value, &AGENT, "", &mut problems);
            let argv = crate::script::options::given::texts(std::mem::take(&mut record.list));
            if argv.is_empty() && problems.is_empty() {
                problems.add("", "there is no command: write the words first, like ln.agent{ \"./agent.sh\" }");
            }
            let mut spec = AgentSpec::command(argv);
            apply(&mut spec, record, "", &mut problems);
            Some(spec)
        }
        other => {
            problems.add("", format!("must be a preset's name or a table, got {}", show::short(other)));
            None
        }
    };
    problems.into_result("ln.agent", place::of_caller(lua, &shared.texts)).map_err(|raised| raised.into_lua())?;
    Ok(AgentObject { rungs: spec.into_iter().collect() })
}

/// An agent of the embedding program, or else a preset.
pub(in crate::script) fn by_name(shared: &Shared, name: &str) -> Result<AgentSpec, String> {
    if shared.options.agents.iter().any(|known| known == name) {
        return Ok(AgentSpec::function(name));
    }
    preset::preset_with(name, &shared.options.agents).map_err(|error| error.message)
}

/// What a checked `agent` option means.
pub(in crate::script) fn from_given(
    shared: &Shared,
    given: Given,
    path: &str,
    problems: &mut Problems,
) -> Option<Vec<AgentSpec>> {
    match given {
        Given::Text(name) => match by_name(shared, &name) {
            Ok(spec) => Some(vec![spec]),
            Err(problem) => {
                problems.add(path, problem);
                None
            }
        },
        Given::Object(data) => data.borrow::<AgentObject>().ok().map(|agent| agent.rungs.clone()),
        _ => None,
    }
}

/// `agent:with{…}`: for a ladder, on every rung.
pub(super) fn with(lua: &Lua, (this, value): (Value, Value)) -> mlua::Result<AgentObject> {
    let shared = Shared::of(lua);
    let agent = this_agent(lua, &this, "with{…}")?;
    let mut problems = Problems::default();
    let record = read_table(&value, &AGENT_WITH, "", &mut problems);
    let rungs = agent
        .rungs
        .into_iter()
        .map(|mut rung| {
            apply(&mut rung, record.clone(), "", &mut problems);
            rung
        })
        .collect();
    problems.into_result("agent:with", place::of_caller(lua, &shared.texts)).map_err(|raised| raised.into_lua())?;
    Ok(AgentObject { rungs })
}

/// `agent:ladder{…}`: models of this agent, or other agents, weakest first.
pub(super) fn ladder(lua: &Lua, (this, value): (Value, Value)) -> mlua::Result<AgentObject> {
    static RUNGS: Kind = Kind::List(&Kind::Either(&[Kind::Text, Kind::Object(Object::Agent)]));
    let shared = Shared::of(lua);
    let agent = this_agent(lua, &this, "ladder{…}")?;
    let mut problems = Problems::default();
    let mut rungs = Vec::new();
    if let Some(Given::List(items)) = read(&value, &RUNGS, "", &mut problems) {
        for item in items {
            match item {
                Given::Text(model) => {
                    rungs.extend(
                        agent.rungs.iter().take(1).map(|rung| AgentSpec { model: Some(model.clone()), ..rung.clone() }),
                    );
                }
                Given::Object(other) => rungs.extend(other.borrow::<AgentObject>()?.rungs.iter().cloned()),
                _ => {}
            }
        }
        if rungs.is_empty() {
            problems.add("", "a ladder needs a rung: agent:ladder{ \"sonnet\", \"opus\" }");
        }
    }
    let names_model = |argv: &[String]| argv.iter().any(|word| word.contains("{model}"));
    if let Some(AgentSource::Command(argv)) = agent.rungs.first().map(|rung| &rung.source)
        && !names_model(argv)
        && problems.is_empty()
        && rungs.iter().filter(|rung| rung.source == agent.rungs[0].source).count() > 1
    {
        problems.add(
            "",
            format!(
                "the rungs would all be the same: the command {} has no {{model}} in it, where the model's name goes",
                argv.join(" ")
            ),
        );
    }
    problems.into_result("agent:ladder", place::of_caller(lua, &shared.texts)).map_err(|raised| raised.into_lua())?;
    Ok(AgentObject { rungs })
}

fn this_agent(lua: &Lua, this: &Value, call: &str) -> mlua::Result<AgentObject> {
    let agent = this.as_userdata().and_then(|data: &AnyUserData| data.borrow::<AgentObject>().ok());
    match agent {
        Some(agent) => Ok(agent.clone()),
        None => Err(place::raise(
            lua,
            &Shared::of(lua).texts,
            ErrorKind::Options,
            format!("write agent:{call} with a colon"),
        )),
    }
}

/// Puts options into an agent.
fn apply(spec: &mut AgentSpec, mut given: Record, path: &str, problems: &mut Problems) {
    if let Some(name) = given.text("name") {
        spec.name = name;
    }
    spec.model = given.text("model").or(spec.model.take());
    spec.instructions = given.text("instructions").or(spec.instructions.take());
    spec.timeout = given.duration("timeout").unwrap_or(spec.timeout);
    spec.silence = given.duration("silence").or(spec.silence);
    spec.settle = given.duration("settle").unwrap_or(spec.settle);
    spec.grace = given.duration("grace").unwrap_or(spec.grace);
    let env = given.text_map("env");
    for name in env.keys().filter(|name| name.is_empty() || name.contains(['=', '\0'])) {
        problems.add(&join(path, "env"), format!("`{name}` is no name for a variable"));
    }
    spec.env.extend(env);
    if let Some(names) = given.texts("pass_env") {
        spec.pass_env.extend(names);
    }
    if let Some(channel) = given.text("prompt_via") {
        spec.prompt_via = match channel.as_str() {
            "arg" => PromptChannel::Arg,
            "file" => PromptChannel::File,
            _ => PromptChannel::Stdin,
        };
    }
    match given.any("parse") {
        Some(Given::Text(_)) => spec.parse = Parser::Text,
        Some(Given::Data(rules)) => match serde_json::from_value(rules) {
            Ok(parser) => spec.parse = parser,
            Err(problem) => problems.add(&join(path, "parse"), problem.to_string()),
        },
        _ => {}
    }
    if let Some(list) = given.list("errors") {
        let mut errors = Vec::new();
        for (at, item) in list.into_iter().enumerate() {
            let Given::Table(mut item) = item else { continue };
            let path = format!("{}[{}]", join(path, "errors"), at + 1);
            let pattern = item.text("pattern").unwrap_or_default();
            if let Err(problem) = regex::Regex::new(&pattern) {
                problems.add(&join(&path, "pattern"), problem.to_string().replace('\n', " "));
            }
            let error = json!({
                "kind": item.text("kind"), "pattern": pattern, "whole_message": item.flag("whole_message").unwrap_or(false),
            });
            match serde_json::from_value::<ErrorPattern>(error) {
                Ok(error) => errors.push(error),
                Err(_) if problems.mention(&path) => {}
                Err(problem) => problems.add(&path, problem.to_string()),
            }
        }
        // The user's own come first.
        errors.append(&mut spec.errors);
        spec.errors = errors;
    }
    spec.version = given.texts("version").or(spec.version.take());
    spec.install = given.text("install").or(spec.install.take());
}
