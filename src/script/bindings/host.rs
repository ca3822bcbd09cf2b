//! Functions of the embedding program, beside lunation's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use mlua::{Lua, Table, Value};

use super::{closed, effect};
use crate::engine::EngineError;
use crate::script::data;
use crate::script::error::{ErrorKind, ScriptError};
use crate::script::vm::{HostFunction, Shared, place};
use crate::world::WorldError;

/// Puts them into `ln`. A name that lunation has itself is refused.
pub(super) fn install(lua: &Lua, content: &Table) -> mlua::Result<()> {
    let shared = Shared::of(lua);
    let mut spaces: BTreeMap<String, Table> = BTreeMap::new();
    for function in &shared.options.functions {
        let (space, name) = match function.name.split_once('.') {
            Some((space, name)) => (Some(space), name),
            None => (None, function.name.as_str()),
        };
        let top = space.unwrap_or(name);
        let valid = |part: &str| {
            !part.is_empty()
                && !part.starts_with(|c: char| c.is_ascii_digit())
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if !valid(top) || !valid(name) {
            return Err(refuse(format!("`{}` is no name for a function: write `namespace.name`", function.name)));
        }
        if content.contains_key(top)? || (space.is_none() && spaces.contains_key(top)) {
            return Err(refuse(format!("`{}` cannot be registered: ln.{top} is taken", function.name)));
        }
        let made = lua.create_async_function(caller(function.clone()))?;
        match space {
            Some(space) => {
                let table = match spaces.get(space) {
                    Some(table) => table.clone(),
                    None => lua.create_table()?,
                };
                table.raw_set(name, made)?;
                spaces.insert(space.to_owned(), table);
            }
            None => content.raw_set(name, made)?,
        }
    }
    for (space, table) in spaces {
        let names =
            table.pairs::<String, Value>().map(|pair| pair.map(|(name, _)| name)).collect::<mlua::Result<_>>()?;
        let label = format!("ln.{space}");
        content.raw_set(space, closed(lua, table, &label, names, &[], None)?)?;
    }
    Ok(())
}

fn refuse(message: String) -> mlua::Error {
    mlua::Error::external(ScriptError::new(ErrorKind::Options, message))
}

type Answer = std::pin::Pin<Box<dyn Future<Output = mlua::Result<Value>> + Send>>;

fn caller(function: HostFunction) -> impl Fn(Lua, Value) -> Answer + Send + Sync + 'static {
    let function = Arc::new(function);
    move |lua, argument| {
        let name = format!("ln.{}", function.name);
        let run = effect::allowed(&lua, &name, "call it in a function of the run (`return function(run) … end`)");
        let argument = data::to_json(&argument).map_err(|problem| {
            place::raise(&lua, &Shared::of(&lua).texts, ErrorKind::Runtime, format!("{name}: {problem}"))
        });
        let function = Arc::clone(&function);
        Box::pin(async move {
            let now = run?.interrupts().now().clone();
            let work = (function.call)(argument?);
            let answer = crate::script::vm::effect(&lua, async move {
                let answer = tokio::select! {
                    answer = work => answer,
                    () = now.cancelled() => return Err(EngineError::Cancelled),
                };
                // The chain of causes is the message: it is the embedder's own.
                answer.map_err(|error| EngineError::World(WorldError::Other(anyhow::anyhow!("{name}: {error:#}"))))
            });
            data::to_lua(&lua, &answer.await?)
        })
    }
}
