//! From text to a function: declared globals, module lookup, and compile errors in plain words.

use std::sync::Arc;

use mlua::{Function, Lua};

use super::names;
use super::place;
use super::sandbox::{Inside, inside};
use super::shared::{Phase, Shared};
use crate::script::error::{ErrorKind, Raised, ScriptError, place_of};
use crate::script::{bindings, source};

/// Modules that come with lunation, beside `lunation` itself.
const EMBEDDED: &[(&str, &str)] = &[("lunation.decide", include_str!("../../../lua/lunation/decide.lua"))];

/// Text of an embedded module.
pub(in crate::script) fn embedded(name: &str) -> Option<&'static str> {
    EMBEDDED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Compiles a script's text. On Lua 5.5 all globals are declared on the first line, so that an unknown name does not even
/// compile; no line moves. On 5.4 the environment raises when the name is used.
pub(super) fn compile(lua: &Lua, shared: &Shared, name: &str, text: &str) -> Result<Function, ScriptError> {
    shared.texts.add(name, text);
    let inside = inside(lua);
    // A `#!` line is for the shell.
    let body = match text.strip_prefix("#!") {
        Some(rest) => rest.find('\n').map_or("", |at| &rest[at..]),
        None => text,
    };
    lua.load(format!("{}{body}", declaration(&inside)))
        .set_name(format!("@{name}"))
        .set_mode(mlua::chunk::ChunkMode::Text)
        .set_environment(inside.environment.clone())
        .into_function()
        .map_err(|error| compile_error(shared, &inside, &error))
}

#[cfg(feature = "lua55")]
fn declaration(inside: &Inside) -> String {
    format!("global<const> {}; ", inside.names.join(", "))
}

#[cfg(not(feature = "lua55"))]
fn declaration(_: &Inside) -> String {
    String::new()
}

fn compile_error(shared: &Shared, inside: &Inside, error: &mlua::Error) -> ScriptError {
    let mlua::Error::SyntaxError { message, .. } = error else { return crate::script::error::from_mlua(error) };
    let (place, message) = match place_of(message, &shared.texts) {
        Some((place, rest)) => (Some(place), rest.to_owned()),
        None => (None, message.clone()),
    };
    let line = place.as_ref().and_then(|place| shared.texts.line(place));
    let mut error =
        ScriptError::new(ErrorKind::Compile, names::compile_message(&message, line.as_deref(), &inside.names))
            .at(place);
    error.source_line = line;
    error
}

/// `require`'s other half: the chunk of a module that was not loaded yet.
pub(super) fn find_module(lua: &Lua, name: String) -> mlua::Result<Function> {
    let shared = Shared::of(lua);
    if let Some(text) = embedded(&name) {
        return lua
            .load(text)
            .set_name(format!("@{}.lua", name.replace('.', "/")))
            .set_environment(inside(lua).environment.clone())
            .into_function();
    }
    let refuse = |error: ScriptError| {
        let place = error.place.or_else(|| place::of_caller(lua, &shared.texts));
        Raised::new(error.kind, place, error.message).into_lua()
    };
    if name == "lunation" || name.starts_with("lunation.") {
        let known: Vec<&str> = std::iter::once("lunation").chain(EMBEDDED.iter().map(|(name, _)| *name)).collect();
        let hint = crate::script::nearest::did_you_mean(&name, known.iter().copied());
        return Err(refuse(ScriptError::new(
            ErrorKind::Require,
            format!("lunation {} has no module `{name}`{hint}; it has {}", bindings::VERSION, known.join(", ")),
        )));
    }
    if !matches!(shared.phase(), Phase::Loading) {
        return Err(refuse(ScriptError::new(
            ErrorKind::Require,
            format!(
                "`{name}` is required while the script runs: require modules at the top of the script, so that all of it is known before it starts"
            ),
        )));
    }
    let found = shared.reader().as_mut().map(|reader| reader.module(&name));
    let found = match found {
        Some(found) => found.map_err(refuse)?,
        None => return Err(refuse(ScriptError::new(ErrorKind::Require, "no script is being loaded"))),
    };
    let text = source::decode(&found.name, &found.bytes).map_err(refuse)?;
    let shared_again = Arc::clone(&shared);
    compile(lua, &shared_again, &found.name, &text).map_err(mlua::Error::external)
}
