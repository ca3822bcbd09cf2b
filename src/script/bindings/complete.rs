//! `ln.complete`: what counts as done.

use mlua::{Lua, Value};

use super::objects::CompleteObject;
use super::{Member, Namespace, Shape, Signature, What};
use crate::policy::{Completion, Mode, Observation, Strategy, check_sentinel, says_sentinel};
use crate::script::options::schema::{Kind, Object};
use crate::script::options::tables::COMPLETE;
use crate::script::options::{Given, Problems, read, read_table};
use crate::script::vm::{Shared, place, show};

/// A completion as written.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::script) enum Rule {
    /// The agent says this line.
    Sentinel(String),
    /// The sensors hold.
    Sensors,
    All(Vec<Rule>),
    Any(Vec<Rule>),
    /// As `ln.complete{…}` says.
    Table {
        sentinel: Option<String>,
        mode: Option<Mode>,
        strategy: Strategy,
    },
}

impl Rule {
    /// The same as a plain completion, where there is one; `None` where only a policy can judge.
    pub(in crate::script) fn plain(&self, has_sensors: bool) -> Option<Completion> {
        match self {
            Rule::Sentinel(word) => Some(Completion::default_for(Some(word.clone()), has_sensors)),
            Rule::Sensors => Some(Completion::default_for(None, true)),
            Rule::Table { sentinel, mode, strategy } => {
                let default = Completion::default_for(sentinel.clone(), has_sensors);
                Some(Completion { mode: mode.unwrap_or(default.mode), strategy: *strategy, ..default })
            }
            Rule::All(rules) | Rule::Any(rules) if rules.len() == 1 => rules[0].plain(has_sensors),
            Rule::All(rules) => match rules.as_slice() {
                [Rule::Sentinel(word), Rule::Sensors] | [Rule::Sensors, Rule::Sentinel(word)] => {
                    Some(Completion { sentinel: Some(word.clone()), strategy: Strategy::All, mode: Mode::Verify })
                }
                _ => None,
            },
            Rule::Any(_) => None,
        }
    }

    /// Judges an iteration.
    pub(in crate::script) fn holds(&self, o: &Observation) -> bool {
        let says = |word: &str| o.turn.as_ref().is_some_and(|turn| says_sentinel(&turn.text, word));
        match self {
            Rule::Sentinel(word) => says(word),
            Rule::Sensors => o.ok,
            Rule::All(rules) => rules.iter().all(|rule| rule.holds(o)),
            Rule::Any(rules) => rules.iter().any(|rule| rule.holds(o)),
            Rule::Table { sentinel, mode, strategy } => {
                let default = Completion::default_for(sentinel.clone(), o.sense.is_some());
                let completion = Completion { mode: mode.unwrap_or(default.mode), strategy: *strategy, ..default };
                let checks = o.sense.as_ref().and_then(|sense| strategy.judge(&sense.readings));
                completion.judge(sentinel.as_deref().is_some_and(says), checks).is_some()
            }
        }
    }

    /// The most sensors that any part of it wants to pass.
    pub(in crate::script) fn most_needed(&self) -> Option<u32> {
        match self {
            Rule::Table { strategy: Strategy::NOf(n), .. } => Some(*n),
            Rule::All(rules) | Rule::Any(rules) => rules.iter().filter_map(Rule::most_needed).max(),
            Rule::Sentinel(_) | Rule::Sensors | Rule::Table { .. } => None,
        }
    }

    /// Whether it hangs on sensors that a loop without sensors lacks.
    pub(in crate::script) fn needs_sensors(&self) -> bool {
        match self {
            Rule::Sentinel(_) => false,
            Rule::Sensors => true,
            Rule::All(rules) => rules.iter().any(Rule::needs_sensors),
            Rule::Any(rules) => rules.iter().all(Rule::needs_sensors),
            Rule::Table { sentinel, mode, .. } => match mode {
                Some(Mode::LlmOnly) => false,
                Some(Mode::Verify | Mode::Override) => true,
                None => sentinel.is_none(),
            },
        }
    }
}

const OF: &[(&str, &str)] = &[("of", "lunation.Complete[]")];

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "complete",
    shape: Shape::Table {
        call: Some(Signature {
            doc: "What counts as done, in full.",
            params: &[("opts", "lunation.CompleteOpts")],
            returns: Some("lunation.Complete"),
        }),
        members: &[
            Member {
                name: "sentinel",
                what: What::Function(Signature {
                    doc: "The last line of the agent's final message is exactly this; where there are sensors they must hold too.",
                    params: &[("word", "string")],
                    returns: Some("lunation.Complete"),
                }),
            },
            Member {
                name: "sensors",
                what: What::Function(Signature {
                    doc: "All sensors pass. The default.",
                    params: &[],
                    returns: Some("lunation.Complete"),
                }),
            },
            Member {
                name: "all",
                what: What::Function(Signature {
                    doc: "All of these.",
                    params: OF,
                    returns: Some("lunation.Complete"),
                }),
            },
            Member {
                name: "any",
                what: What::Function(Signature {
                    doc: "Any of these.",
                    params: OF,
                    returns: Some("lunation.Complete"),
                }),
            },
        ],
    },
    later: &["judge", "human"],
    make: |lua| {
        let content = lua.create_table()?;
        content.raw_set("()", lua.create_function(|lua, (_, value): (Value, Value)| table(lua, &value))?)?;
        content.raw_set("sentinel", lua.create_function(sentinel)?)?;
        content.raw_set("sensors", lua.create_function(|_, ()| Ok(CompleteObject(Rule::Sensors)))?)?;
        content.raw_set(
            "all",
            lua.create_function(|lua, value: Value| several(lua, &value, "ln.complete.all", Rule::All))?,
        )?;
        content.raw_set(
            "any",
            lua.create_function(|lua, value: Value| several(lua, &value, "ln.complete.any", Rule::Any))?,
        )?;
        Ok(Value::Table(content))
    },
};

fn sentinel(lua: &Lua, value: Value) -> mlua::Result<CompleteObject> {
    let mut problems = Problems::default();
    let word = match &value {
        Value::String(word) => word_of(&word.to_string_lossy(), "", &mut problems),
        other => {
            problems.add("", format!("must be a string like \"RALPH COMPLETE\", got {}", show::short(other)));
            None
        }
    };
    finish(lua, problems, "ln.complete.sentinel")?;
    Ok(CompleteObject(Rule::Sentinel(word.unwrap_or_default())))
}

fn word_of(word: &str, path: &str, problems: &mut Problems) -> Option<String> {
    match check_sentinel(word) {
        Ok(word) => Some(word),
        Err(problem) => {
            problems.add(path, problem.to_string());
            None
        }
    }
}

fn several(lua: &Lua, value: &Value, call: &str, rule: fn(Vec<Rule>) -> Rule) -> mlua::Result<CompleteObject> {
    static RULES: Kind = Kind::List(&Kind::Object(Object::Complete));
    let mut problems = Problems::default();
    let mut rules = Vec::new();
    if let Some(Given::List(items)) = read(value, &RULES, "", &mut problems) {
        for item in items {
            if let Given::Object(data) = item {
                rules.push(data.borrow::<CompleteObject>()?.0.clone());
            }
        }
        if rules.is_empty() {
            problems.add("", format!("there is nothing in it: {call}{{ ln.complete.sensors() }}"));
        }
    }
    finish(lua, problems, call)?;
    Ok(CompleteObject(rule(rules)))
}

fn table(lua: &Lua, value: &Value) -> mlua::Result<CompleteObject> {
    let mut problems = Problems::default();
    let mut record = read_table(value, &COMPLETE, "", &mut problems);
    let sentinel = record.text("sentinel").and_then(|word| word_of(&word, "sentinel", &mut problems));
    let mode = record.text("mode").map(|mode| match mode.as_str() {
        "verify" => Mode::Verify,
        "override" => Mode::Override,
        _ => Mode::LlmOnly,
    });
    let strategy = match record.any("strategy") {
        Some(Given::Text(name)) if name == "any" => Strategy::Any,
        Some(Given::Table(mut n_of)) => Strategy::NOf(n_of.count("n_of").unwrap_or(1)),
        _ => Strategy::All,
    };
    finish(lua, problems, "ln.complete")?;
    Ok(CompleteObject(Rule::Table { sentinel, mode, strategy }))
}

fn finish(lua: &Lua, problems: Problems, call: &str) -> mlua::Result<()> {
    problems.into_result(call, place::of_caller(lua, &Shared::of(lua).texts)).map_err(|raised| raised.into_lua())
}
