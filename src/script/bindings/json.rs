//! `ln.json`: data as text and back, nothing cut or guessed.

use mlua::{Lua, LuaString, Value};

use super::{Member, Namespace, Shape, Signature, What};
use crate::script::data;
use crate::script::error::ErrorKind;
use crate::script::vm::{Shared, place};

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "json",
    shape: Shape::Table {
        call: None,
        members: &[
            Member {
                name: "encode",
                what: What::Function(Signature {
                    doc: "One line of JSON, keys sorted. Functions, holes, and tables with list and names mixed are errors.",
                    params: &[("value", "any")],
                    returns: Some("string"),
                }),
            },
            Member {
                name: "decode",
                what: What::Function(Signature {
                    doc: "Plain tables. Null is nil in an object and ln.json.null in a list.",
                    params: &[("text", "string")],
                    returns: Some("any"),
                }),
            },
            Member { name: "null", what: What::Value("lightuserdata", "null in a list") },
        ],
    },
    later: &[],
    make: |lua| {
        let content = lua.create_table()?;
        content.raw_set("encode", lua.create_function(encode)?)?;
        content.raw_set("decode", lua.create_function(decode)?)?;
        content.raw_set("null", Value::NULL)?;
        Ok(Value::Table(content))
    },
};

fn encode(lua: &Lua, value: Value) -> mlua::Result<String> {
    let json = data::to_json(&value).map_err(|problem| wrong(lua, format!("ln.json.encode: {problem}")))?;
    serde_json::to_string(&json).map_err(|problem| wrong(lua, format!("ln.json.encode: {problem}")))
}

fn decode(lua: &Lua, text: Value) -> mlua::Result<Value> {
    let Value::String(text) = text else {
        let got = crate::script::vm::show::short(&text);
        return Err(wrong(lua, format!("ln.json.decode wants a string, got {got}")));
    };
    let json = parse(&text).map_err(|problem| wrong(lua, format!("ln.json.decode: this is no JSON: {problem}")))?;
    data::to_lua(lua, &json)
}

fn parse(text: &LuaString) -> serde_json::Result<serde_json::Value> {
    serde_json::from_slice(&text.as_bytes())
}

fn wrong(lua: &Lua, message: String) -> mlua::Error {
    place::raise(lua, &Shared::of(lua).texts, ErrorKind::Runtime, message)
}
