//! Where in the script a call to the host came from.

use mlua::Lua;

use crate::script::error::{ErrorKind, Place, Raised, Texts};

/// Stack levels that are looked at.
const MOST_LEVELS: usize = 64;

/// The innermost frame of the script itself.
pub(in crate::script) fn of_caller(lua: &Lua, texts: &Texts) -> Option<Place> {
    (0..MOST_LEVELS).find_map(|level| lua.inspect_stack(level, |frame| of_frame(frame, texts)).flatten())
}

/// The place of one frame, if it is the script's.
pub(super) fn of_frame(frame: &mlua::debug::Debug<'_>, texts: &Texts) -> Option<Place> {
    let source = frame.source().source?.into_owned();
    let file = source.strip_prefix('@')?;
    if !texts.knows(file) {
        return None;
    }
    Some(Place { file: file.to_owned(), line: frame.current_line().and_then(|line| u32::try_from(line).ok()) })
}

/// Where a function of the script begins.
pub(in crate::script) fn of_function(function: &mlua::Function, texts: &Texts) -> Option<Place> {
    let info = function.info();
    let file = info.source?.strip_prefix('@')?.to_owned();
    if !texts.knows(&file) {
        return None;
    }
    Some(Place { file, line: info.line_defined.and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0) })
}

/// An error of a binding, with the place of the call.
pub(in crate::script) fn raise(lua: &Lua, texts: &Texts, kind: ErrorKind, message: impl Into<String>) -> mlua::Error {
    Raised::new(kind, of_caller(lua, texts), message).into_lua()
}
