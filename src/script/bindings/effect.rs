//! When a binding may cause an effect, and what to say when not.

use mlua::Lua;

use crate::engine::Run;
use crate::script::error::ErrorKind;
use crate::script::vm::{Phase, Shared, place};

/// The run to carry an effect out in. `instead` says what to write where there is none.
pub(super) fn allowed(lua: &Lua, what: &str, instead: &str) -> mlua::Result<Run> {
    let shared = Shared::of(lua);
    match shared.phase() {
        Phase::Running(run) | Phase::Asking { pure: false, run, .. } => Ok(run),
        Phase::Asking { hook, .. } => Err(place::raise(
            lua,
            &shared.texts,
            ErrorKind::Runtime,
            format!(
                "{what} is an effect, but `{hook}` answers only from what it is given, so that it can be replayed: {instead}"
            ),
        )),
        Phase::Loading | Phase::Idle => Err(place::raise(
            lua,
            &shared.texts,
            ErrorKind::EffectAtLoad,
            format!(
                "{what} is an effect, but a script has none while it is loaded, so that it can be checked safely: {instead}"
            ),
        )),
    }
}

/// The same for effects on the loop itself, which none of a loop's own functions may have.
pub(super) fn allowed_outside_of_loops(lua: &Lua, what: &str, instead: &str) -> mlua::Result<Run> {
    let shared = Shared::of(lua);
    if let Phase::Asking { hook, .. } = shared.phase() {
        return Err(place::raise(
            lua,
            &shared.texts,
            ErrorKind::Runtime,
            format!("{what} cannot be used in `{hook}`, where the loop itself waits for the answer: read `o` instead"),
        ));
    }
    allowed(lua, what, instead)
}
