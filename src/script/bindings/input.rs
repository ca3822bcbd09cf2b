//! `ln.input`: what `--input` gave, frozen; a key that was not given is nil.

use mlua::{Lua, Value};
use serde_json::Value as Json;

use super::{Namespace, Shape};
use crate::script::vm::{Shared, inside};

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "input",
    shape: Shape::Value {
        kind: "table<string, any>",
        doc: "what --input gave; a key that was not given is nil, null in a list is ln.json.null",
    },
    later: &[],
    make: frozen,
};

/// The input as scripts see it.
pub(in crate::script) fn frozen(lua: &Lua) -> mlua::Result<Value> {
    freeze(lua, &Shared::of(lua).options.input)
}

fn freeze(lua: &Lua, json: &Json) -> mlua::Result<Value> {
    let content = lua.create_table()?;
    match json {
        Json::Object(fields) => {
            for (name, value) in fields {
                content.raw_set(name.as_str(), freeze(lua, value)?)?;
            }
        }
        Json::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                // Nil would end the list there.
                let item = if item.is_null() { Value::NULL } else { freeze(lua, item)? };
                content.raw_set(at + 1, item)?;
            }
        }
        plain => return crate::script::data::to_lua(lua, plain),
    }
    inside(lua).readonly.call((content, "ln.input"))
}
