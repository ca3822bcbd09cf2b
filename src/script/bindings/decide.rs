//! `ln.decide`: the shipped policies, written in Lua on what every script has.

use mlua::{Lua, Table, Value};

use super::{Member, Namespace, Shape, What};
use crate::script::vm::{embedded, inside};

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "decide",
    shape: Shape::Table {
        call: None,
        members: &[Member {
            name: "default",
            what: What::Value(
                "lunation.Policy",
                "what a loop does when it says nothing else; its function is `decide`",
            ),
        }],
    },
    later: &[],
    make,
};

fn make(lua: &Lua) -> mlua::Result<Value> {
    let text = embedded("lunation.decide").unwrap_or_default();
    let policy: Table = lua
        .load(text)
        .set_name("@lunation/decide.lua")
        .set_mode(mlua::chunk::ChunkMode::Text)
        .set_environment(inside(lua).environment.clone())
        .call(())?;
    let content = lua.create_table()?;
    content.raw_set("default", inside(lua).readonly.call::<Table>((policy, "ln.decide.default"))?)?;
    Ok(Value::Table(content))
}
