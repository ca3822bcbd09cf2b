//! Loads shipped presets the way the script layer does: Lua data, converted field by field.

use std::path::Path;

use lunation::policy::AgentSpec;
use mlua::{Lua, LuaSerdeExt, Value};

/// The names of all shipped presets.
pub(crate) fn names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua/lunation/agents");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "lua"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// A shipped preset.
pub(crate) fn preset(name: &str) -> AgentSpec {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua/lunation/agents").join(format!("{name}.lua"));
    let text = std::fs::read_to_string(&file).unwrap();
    let lua = Lua::new();
    let value: Value = lua.load(text).set_name(format!("@lunation/agents/{name}.lua")).eval().unwrap();
    lua.from_value(value).unwrap_or_else(|error| panic!("preset {name}: {error}"))
}
