//! The inside of a VM: its libraries, its limits and the prelude.

use std::sync::Arc;

use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, Value, VmState};

use super::shared::Shared;
use super::{limits, names, place, sort};
use crate::script::error::{Caught, ErrorKind, Raised, ScriptError, from_mlua, without_host_place};
use crate::script::nearest::did_you_mean;
use crate::script::{bindings, data};

const PRELUDE: &str = include_str!("../../../lua/lunation/prelude.lua");

/// What the prelude hands to the host.
#[derive(Debug, Clone)]
pub(in crate::script) struct Inside {
    protected: Function,
    pub(in crate::script) environment: Table,
    /// Global names that scripts have, sorted.
    pub(super) names: Vec<String>,
    pub(in crate::script) readonly: Function,
    pub(in crate::script) record: Function,
    pub(in crate::script) list: Function,
    seed: Function,
    pub(in crate::script) logger: Function,
    pub(in crate::script) missing: Function,
}

impl Inside {
    /// Starts `math.random` afresh.
    pub(in crate::script) fn seed(&self, seed: u64) -> mlua::Result<()> {
        self.seed.call::<()>(seed.cast_signed())
    }
}

/// Makes a VM with everything that a script finds in it.
pub(super) fn build(shared: &Arc<Shared>) -> mlua::Result<Lua> {
    let libraries = StdLib::COROUTINE | StdLib::TABLE | StdLib::STRING | StdLib::UTF8 | StdLib::MATH;
    // catch_rust_panics must stay on: without it pcall cannot be yielded across.
    let lua = Lua::new_with(libraries, LuaOptions::new().thread_pool_size(16))?;
    lua.set_app_data(Arc::clone(shared));
    let prelude: Table = lua
        .load(PRELUDE)
        .set_name("@lunation/prelude.lua")
        .set_mode(mlua::chunk::ChunkMode::Text)
        .call(host_functions(&lua, shared)?)?;
    let names: Table = prelude.get("names")?;
    lua.set_named_registry_value(data::SHOWN, prelude.get::<Table>("shown")?)?;
    let mut inside = Inside {
        protected: prelude.get("protected")?,
        environment: prelude.get("environment")?,
        names: Vec::new(),
        readonly: prelude.get("readonly")?,
        record: prelude.get("record")?,
        list: prelude.get("list")?,
        seed: prelude.get("seed")?,
        logger: prelude.get("logger")?,
        missing: prelude.get("missing")?,
    };
    inside.seed(shared.options.seed)?;
    lua.set_app_data(Arc::new(inside.clone()));
    let ln = bindings::install(&lua)?;
    for name in ["ln", "lunation"] {
        names.raw_set(name, &ln)?;
    }
    prelude.get::<Table>("loaded")?.raw_set("lunation", ln)?;
    inside.names =
        names.pairs::<String, Value>().map(|pair| pair.map(|(name, _)| name)).collect::<mlua::Result<_>>()?;
    inside.names.sort();
    lua.set_app_data(Arc::new(inside));
    // Last, so that neither bounds our own set-up.
    let hooked = Arc::clone(shared);
    lua.set_global_hook(HookTriggers::new().every_nth_instruction(limits::STRIDE), move |_, frame| {
        hooked.limits.tick(|| place::of_frame(frame, &hooked.texts)).map_err(Raised::into_lua)?;
        Ok(VmState::Continue)
    })?;
    lua.set_memory_limit(shared.options.memory_limit)?;
    Ok(lua)
}

fn host_functions(lua: &Lua, shared: &Arc<Shared>) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    host.set("pending", Lua::poll_pending())?;
    host.set("null", Value::NULL)?;
    let own = Arc::clone(shared);
    host.set("check", lua.create_function(move |_, ()| own.limits.check().map_err(Raised::into_lua))?)?;
    host.set("traceback", lua.create_function(|lua, ()| lua.traceback(None, 1))?)?;
    let own = Arc::clone(shared);
    host.set(
        "describe",
        lua.create_function(move |lua, value: Value| match &value {
            Value::Error(error) => {
                let found = from_mlua(error);
                let place = found.place.clone().or_else(|| place::of_caller(lua, &own.texts));
                Ok(Value::String(lua.create_string(found.at(place).headline())?))
            }
            Value::String(text) if text.as_bytes().starts_with(b"lunation/") => {
                let text = text.to_string_lossy();
                let text = without_host_place(&text);
                let text =
                    place::of_caller(lua, &own.texts).map_or(text.to_owned(), |place| format!("{place}: {text}"));
                Ok(Value::String(lua.create_string(text)?))
            }
            _ => Ok(value),
        })?,
    )?;
    let own = Arc::clone(shared);
    host.set(
        "log",
        lua.create_function(move |_, (level, text): (String, mlua::LuaString)| {
            own.log(&level, &text.to_string_lossy());
            Ok(())
        })?,
    )?;
    host.set("sort", lua.create_function(sort::sort)?)?;
    host.set(
        "unknown_field",
        lua.create_function(|_, (label, key, names): (String, String, Vec<String>)| {
            let hint = did_you_mean(&key, names.iter().map(String::as_str));
            let all = if hint.is_empty() { format!("; it has {}", names.join(", ")) } else { hint };
            Ok(format!("{label} has no field `{key}`{all}"))
        })?,
    )?;
    host.set(
        "undeclared",
        lua.create_function(|lua, (name, assigned): (String, bool)| {
            let known = lua.app_data_ref::<Arc<Inside>>().map(|inside| inside.names.clone()).unwrap_or_default();
            Ok(names::undeclared(&name, assigned, &known))
        })?,
    )?;
    host.set("find", lua.create_function(super::chunk::find_module)?)?;
    Ok(host)
}

/// Calls a function of the script as the host does everywhere: protected, with its error classified.
pub(in crate::script) async fn call(
    lua: &Lua,
    shared: &Shared,
    function: &Function,
    arguments: impl mlua::IntoLuaMulti,
) -> Result<MultiValue, ScriptError> {
    let inside = inside(lua);
    let mut all = arguments.into_lua_multi(lua).map_err(|error| from_mlua(&error))?;
    all.push_front(Value::Function(function.clone()));
    // Errors that no script can catch, like a reached memory limit, say nothing of where: the function is near enough.
    let placed = |mut error: ScriptError| {
        error.place = error.place.or_else(|| place::of_function(function, &shared.texts));
        error
    };
    let mut answer: MultiValue =
        inside.protected.call_async(all).await.map_err(|error| placed(shared.with_end(from_mlua(&error))))?;
    match answer.pop_front() {
        Some(Value::Boolean(true)) => Ok(answer),
        _ => {
            let value = answer.pop_front().unwrap_or(Value::Nil);
            let trace = match answer.pop_front() {
                Some(Value::String(trace)) => trace.to_string_lossy(),
                _ => String::new(),
            };
            // A call in tail position leaves no frame behind either.
            Err(placed(shared.with_end(Caught { value: &value, trace: &trace }.into_error(&shared.texts))))
        }
    }
}

/// What the prelude handed to the host.
pub(in crate::script) fn inside(lua: &Lua) -> Arc<Inside> {
    match lua.app_data_ref::<Arc<Inside>>() {
        Some(inside) => Arc::clone(&inside),
        None => unreachable!("a VM is never seen before its prelude ran"),
    }
}

impl Shared {
    /// When an end was ordered, that is the error, whatever it looked like on the way out.
    fn with_end(&self, error: ScriptError) -> ScriptError {
        match self.limits.check() {
            Ok(()) => error,
            Err(end) if end.kind == error.kind => error,
            Err(end) => {
                let place = end.place.clone().or(error.place.clone());
                let trace = if matches!(end.kind, ErrorKind::Cancelled) { Vec::new() } else { error.trace };
                ScriptError { trace, ..ScriptError::new(end.kind, end.message).at(place) }
            }
        }
    }
}
