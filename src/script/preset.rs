//! Presets: agents as Lua data that come with lunation.

use mlua::{Lua, LuaOptions, StdLib, Value};

use super::data;
use super::error::{ErrorKind, ScriptError};
use super::nearest::did_you_mean;
use crate::policy::AgentSpec;

/// All presets, by name.
const PRESETS: &[(&str, &str)] = &[
    ("claude", include_str!("../../lua/lunation/agents/claude.lua")),
    ("codex", include_str!("../../lua/lunation/agents/codex.lua")),
    ("pi", include_str!("../../lua/lunation/agents/pi.lua")),
];

/// Names of all presets.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

/// An agent by its preset's name.
///
/// # Errors
/// `Options` for a name that no preset has, with the nearest one.
pub fn preset(name: &str) -> Result<AgentSpec, ScriptError> {
    preset_with(name, &[])
}

/// The same, where the embedding program has agents of its own to be named in the error.
pub(super) fn preset_with(name: &str, registered: &[String]) -> Result<AgentSpec, ScriptError> {
    let Some((_, text)) = PRESETS.iter().copied().find(|(known, _)| *known == name) else {
        let mut known: Vec<&str> = registered.iter().map(String::as_str).collect();
        known.extend(PRESETS.iter().map(|(name, _)| *name));
        let hint = did_you_mean(name, known.iter().copied());
        return Err(ScriptError::new(
            ErrorKind::Options,
            format!(
                "there is no agent `{name}`{hint}; there are {} (for a command of your own write ln.agent{{ \"{}\" }})",
                known.join(", "),
                if name.trim().is_empty() { "./agent.sh" } else { name },
            ),
        ));
    };
    read(name, text)
}

fn read(name: &str, text: &str) -> Result<AgentSpec, ScriptError> {
    let broken = |problem: String| {
        ScriptError::new(
            ErrorKind::Runtime,
            format!("the preset `{name}` cannot be read ({problem}); this is a bug of lunation"),
        )
    };
    let lua = Lua::new_with(StdLib::STRING | StdLib::TABLE, LuaOptions::new()).map_err(|e| broken(e.to_string()))?;
    let value: Value = lua
        .load(text)
        .set_name(format!("@lunation/agents/{name}.lua"))
        .set_mode(mlua::chunk::ChunkMode::Text)
        .eval()
        .map_err(|e| broken(e.to_string()))?;
    let json = data::to_json(&value).map_err(broken)?;
    serde_json::from_value(json).map_err(|e| broken(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_an_agent_of_its_own_name() {
        for name in preset_names() {
            let spec = preset(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(spec.name, name);
            assert!(spec.install.is_some(), "{name} says how to install it");
        }
    }

    #[test]
    fn an_unknown_agent_is_answered_with_the_nearest_one() {
        let error = preset("cluade").unwrap_err();
        assert!(error.message.contains("did you mean `claude`?"), "{error}");
        let error = preset("my-agent").unwrap_err();
        assert!(error.message.contains("there are claude, codex, pi"), "{error}");
    }
}
