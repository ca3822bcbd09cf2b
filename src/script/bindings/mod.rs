//! What scripts call: one file for each name in `ln`, installed from one ordered list.
//!
//! A binding converts and makes one call; the work is done elsewhere. Guarantees that `ln` cannot be changed, that a name
//! which is not there is an error that says what is, and that every name here is in the annotations and the other way
//! round.

pub(super) mod agent;
pub(super) mod complete;
mod decide;
mod effect;
mod git;
mod host;
pub(super) mod input;
mod iteration;
mod json;
mod log;
mod loops;
pub(super) mod objects;
mod prompt;
pub(super) mod run;
mod sensor;
mod sensors;
mod sh;
mod signature;
mod versions;

use mlua::{Lua, Table, Value};

pub(super) use signature::{Member, Namespace, Shape, Signature, What};
pub(super) use versions::VERSION;

use super::nearest::did_you_mean;
use super::vm::inside;

/// Every name in `ln`, in the order of the annotations.
pub(super) static NAMESPACES: &[&Namespace] = &[
    &versions::VERSION_NAME,
    &versions::API_NAME,
    &input::NAMESPACE,
    &agent::NAMESPACE,
    &loops::NAMESPACE,
    &prompt::NAMESPACE,
    &sensor::NAMESPACE,
    &sensors::NAMESPACE,
    &complete::NAMESPACE,
    &decide::NAMESPACE,
    &sh::NAMESPACE,
    &git::NAMESPACE,
    &log::NAMESPACE,
    &json::NAMESPACE,
];

/// Names that later versions bring.
const LATER: &[&str] = &[
    "autonomous",
    "best_of",
    "cmd",
    "experiment",
    "fleet",
    "fs",
    "graph",
    "hash",
    "judge",
    "memory",
    "network",
    "on",
    "parallel",
    "parse",
    "ralph",
    "re",
    "replay",
    "route",
    "schema",
    "sequence",
    "task",
    "tasks",
    "text",
    "time",
    "tool",
    "workflow",
];

/// Makes `ln`.
pub(super) fn install(lua: &Lua) -> mlua::Result<Table> {
    let content = lua.create_table()?;
    for namespace in NAMESPACES {
        content.raw_set(namespace.name, build(lua, namespace)?)?;
    }
    host::install(lua, &content)?;
    let names = content.pairs::<String, Value>().map(|pair| pair.map(|(name, _)| name)).collect::<mlua::Result<_>>()?;
    closed(lua, content, "ln", names, LATER, None)
}

fn build(lua: &Lua, namespace: &'static Namespace) -> mlua::Result<Value> {
    let made = (namespace.make)(lua)?;
    let Value::Table(content) = made else { return Ok(made) };
    if !matches!(namespace.shape, Shape::Table { .. }) {
        return Ok(Value::Table(content));
    }
    let call: Option<mlua::Function> = content.raw_get("()")?;
    content.raw_set("()", Value::Nil)?;
    let label = format!("ln.{}", namespace.name);
    let names = namespace.members().iter().map(|member| member.name.to_owned()).collect();
    closed(lua, content, &label, names, namespace.later, call).map(Value::Table)
}

/// A read-only table that answers for names that it does not have.
fn closed(
    lua: &Lua,
    content: Table,
    label: &str,
    mut names: Vec<String>,
    later: &'static [&'static str],
    call: Option<mlua::Function>,
) -> mlua::Result<Table> {
    names.sort();
    let own = label.to_owned();
    let explain = lua.create_function(move |_, key: String| Ok(explain(&own, &key, &names, later)))?;
    let missing: mlua::Function = inside(lua).missing.call(explain)?;
    inside(lua).readonly.call((content, label, missing, call))
}

fn explain(label: &str, key: &str, names: &[String], later: &[&str]) -> String {
    let has = if names.is_empty() { "only itself, to be called".to_owned() } else { names.join(", ") };
    if later.contains(&key) {
        return format!("lunation {VERSION} has no `{label}.{key}` yet; {label} has: {has}");
    }
    let hint = did_you_mean(key, names.iter().map(String::as_str));
    if hint.is_empty() {
        format!("{label} has no `{key}`; it has: {has}")
    } else {
        format!("{label} has no `{key}`{hint}")
    }
}
