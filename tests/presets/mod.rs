//! Loads shipped presets the way the script layer does: Lua data, converted field by field.

use std::path::Path;

use lunation::policy::AgentSpec;
use mlua::{Lua, LuaSerdeExt, Value};

/// A shipped preset.
pub(crate) fn preset(name: &str) -> AgentSpec {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua/lunation/agents").join(format!("{name}.lua"));
    let text = std::fs::read_to_string(&file).unwrap();
    let lua = Lua::new();
    let value: Value = lua.load(text).set_name(format!("@lunation/agents/{name}.lua")).eval().unwrap();
    lua.from_value(value).unwrap_or_else(|error| panic!("preset {name}: {error}"))
}
