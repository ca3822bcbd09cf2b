//! `it`: the open iteration of a loop by hand.

use std::sync::{Arc, Mutex, PoisonError};

use mlua::{AnyUserData, Lua, MetaMethod, UserData, UserDataFields, UserDataMethods, Value};
use serde_json::Value as Json;

use super::loops::SLOT_BYTES;
use super::objects::{AgentObject, PromptObject, SensorsObject, unknown};
use super::run::ResultObject;
use super::{agent, effect};
use crate::engine::{EngineError, Pump};
use crate::policy::{AgentSpec, SensorSpec, Slot, read_prompt};
use crate::script::error::ErrorKind;
use crate::script::records;
use crate::script::vm::{self, Shared, place, show};

/// The open iteration: its methods drive it, its fields are the observation as of the last of them.
pub(super) struct IterationObject {
    pump: Arc<Pump>,
    number: u32,
    seen: Arc<Mutex<Json>>,
}

impl IterationObject {
    pub(super) fn new(pump: Arc<Pump>, number: u32, seen: Json) -> IterationObject {
        IterationObject { pump, number, seen: Arc::new(Mutex::new(seen)) }
    }
}

const METHODS: &[&str] = &["turn", "sense", "keep", "rollback", "stall", "done"];

impl UserData for IterationObject {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "iteration");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_async_function("turn", turn);
        methods.add_async_function("sense", sense);
        methods.add_async_function("keep", |lua, arguments| decide(lua, arguments, Word::Keep));
        methods.add_async_function("rollback", |lua, arguments| decide(lua, arguments, Word::Rollback));
        methods.add_async_function("stall", |lua, arguments| decide(lua, arguments, Word::Stall));
        methods.add_async_function("done", done);
        methods.add_meta_function(MetaMethod::Index, |lua, (this, key): (AnyUserData, String)| {
            let seen = Arc::clone(&this.borrow::<IterationObject>()?.seen);
            let found = match &*seen.lock().unwrap_or_else(PoisonError::into_inner) {
                Json::Object(fields) => fields.get(&key).cloned().ok_or_else(|| fields.keys().cloned().collect()),
                _ => Err(Vec::new()),
            };
            match found {
                Ok(value) => records::freeze(lua, &value, &key),
                Err(fields) => {
                    let names: Vec<&str> = METHODS.iter().copied().chain(fields.iter().map(String::as_str)).collect();
                    Err(unknown(lua, "iteration", &key, &names, &["escalate"]))
                }
            }
        });
        methods.add_meta_function(MetaMethod::NewIndex, |lua, (_, key): (Value, String)| -> mlua::Result<()> {
            let message = format!(
                "it.{key} cannot be set: end the iteration with it:keep(), it:rollback(), it:stall() or it:done()"
            );
            Err(place::raise(lua, &Shared::of(lua).texts, ErrorKind::Runtime, message))
        });
    }
}

struct This {
    pump: Arc<Pump>,
    number: u32,
    seen: Arc<Mutex<Json>>,
}

impl This {
    fn of(lua: &Lua, this: &Value, call: &str) -> mlua::Result<This> {
        effect::allowed_outside_of_loops(lua, &format!("it:{call}"), "use `it` while the script's function runs")?;
        match this.as_userdata().and_then(|data| data.borrow::<IterationObject>().ok()) {
            Some(object) => {
                Ok(This { pump: Arc::clone(&object.pump), number: object.number, seen: Arc::clone(&object.seen) })
            }
            None => Err(wrong(lua, format!("write it:{call} with a colon"))),
        }
    }

    /// Does something with the pump and keeps what is known after it.
    async fn act<T, W, F>(self, lua: &Lua, work: W) -> mlua::Result<T>
    where
        T: Send + 'static,
        W: FnOnce(Arc<Pump>) -> F + Send + 'static,
        F: Future<Output = Result<T, EngineError>> + Send + 'static,
    {
        let This { pump, number, seen } = self;
        vm::effect(lua, async move {
            if pump.open_iteration().await != Some(number) {
                return Err(EngineError::Misuse(format!(
                    "iteration {number} is over, and nothing can be done in it any more: each ends with its one decision"
                )));
            }
            let answer = work(Arc::clone(&pump)).await?;
            // After it:done() there is nothing more to know.
            if let Ok(observation) = pump.observation().await {
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = records::observation(&observation);
            }
            Ok(answer)
        })
        .await
    }
}

fn wrong(lua: &Lua, message: String) -> mlua::Error {
    place::raise(lua, &Shared::of(lua).texts, ErrorKind::Options, message)
}

/// `it:turn(agent, prompt, slots)`
fn turn(
    lua: Lua,
    (this, agent, prompt, slots): (Value, Value, Value, Value),
) -> impl Future<Output = mlua::Result<Value>> + Send {
    let prepared = This::of(&lua, &this, "turn(agent, prompt)")
        .and_then(|this| Ok((this, agent_of(&lua, &agent)?, prompt_of(&lua, &prompt)?, slots_of(&lua, &slots)?)));
    async move {
        let (this, agent, prompt, slots) = prepared?;
        let turn = this.act(&lua, move |pump| async move { pump.turn(&agent, &prompt, slots).await }).await?;
        records::freeze(&lua, &records::turn(&turn), "turn")
    }
}

fn agent_of(lua: &Lua, value: &Value) -> mlua::Result<AgentSpec> {
    match value {
        Value::String(name) => agent::by_name(&Shared::of(lua), &name.to_string_lossy())
            .map_err(|problem| wrong(lua, format!("it:turn: {problem}"))),
        Value::UserData(data) if data.is::<AgentObject>() => {
            let object = data.borrow::<AgentObject>()?;
            match object.rungs.as_slice() {
                [only] => Ok(only.clone()),
                _ => Err(wrong(lua, "it:turn wants one agent, got a ladder: a loop by hand climbs by itself, with an agent for each step".into())),
            }
        }
        other => Err(wrong(
            lua,
            format!("it:turn wants an agent first, like ln.agent \"claude\", got {}", show::short(other)),
        )),
    }
}

fn prompt_of(lua: &Lua, value: &Value) -> mlua::Result<String> {
    match value {
        Value::String(text) => {
            read_prompt("the prompt", &text.as_bytes()).map_err(|problem| wrong(lua, format!("it:turn: {problem}")))
        }
        Value::UserData(data) if data.is::<PromptObject>() => {
            let prompt = data.borrow::<PromptObject>()?;
            if let Some(slot) = prompt.slots.first() {
                let name = &slot.name;
                let message = format!(
                    "it:turn: the prompt's slots are filled by ln.loop: give the data here, it:turn(agent, prompt, {{ {name} = text }})"
                );
                return Err(wrong(lua, message));
            }
            Ok(prompt.text.clone())
        }
        other => Err(wrong(
            lua,
            format!("it:turn wants a prompt second, a string or ln.prompt \"FILE\", got {}", show::short(other)),
        )),
    }
}

/// Data for the prompt, by names; the well-known ones first.
fn slots_of(lua: &Lua, value: &Value) -> mlua::Result<Vec<Slot>> {
    let table = match value {
        Value::Nil => return Ok(Vec::new()),
        Value::Table(table) => table,
        other => {
            return Err(wrong(lua, format!("it:turn wants slots third, a table by names, got {}", show::short(other))));
        }
    };
    let mut slots = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        match pair? {
            (Value::String(name), Value::String(text)) => {
                let (name, text) = (name.to_string_lossy(), text.to_string_lossy());
                if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
                    return Err(wrong(
                        lua,
                        format!("it:turn: `{name}` is no name for a slot: use letters, digits, _ and -"),
                    ));
                }
                slots.push(Slot::new(name, text, SLOT_BYTES));
            }
            (Value::String(name), other) => {
                let message =
                    format!("it:turn: slot `{}` must be a string, got {}", name.to_string_lossy(), show::short(&other));
                return Err(wrong(lua, message));
            }
            _ => return Err(wrong(lua, "it:turn: slots go by names: { feedback = text }".into())),
        }
    }
    let rank = |slot: &Slot| (slot.name != "feedback", slot.name != "tried", slot.name.clone());
    slots.sort_by_key(rank);
    Ok(slots)
}

/// `it:sense(sensors)`
fn sense(lua: Lua, (this, sensors): (Value, Value)) -> impl Future<Output = mlua::Result<Value>> + Send {
    let prepared = This::of(&lua, &this, "sense(sensors)").and_then(|this| Ok((this, sensors_of(&lua, &sensors)?)));
    async move {
        let (this, sensors) = prepared?;
        let sense = this.act(&lua, move |pump| async move { pump.sense(&sensors).await }).await?;
        records::freeze(&lua, &records::sense(&sense), "sense")
    }
}

fn sensors_of(lua: &Lua, value: &Value) -> mlua::Result<Vec<SensorSpec>> {
    match value.as_userdata().and_then(|data| data.borrow::<SensorsObject>().ok()) {
        Some(sensors) => Ok(sensors.0.clone()),
        None => {
            Err(wrong(lua, format!("it:sense wants sensors, made once by ln.sensors{{…}}, got {}", show::short(value))))
        }
    }
}

enum Word {
    Keep,
    Rollback,
    Stall,
}

/// `it:keep(note)`, `it:rollback(note)`, `it:stall(note)`
fn decide(lua: Lua, (this, note): (Value, Value), word: Word) -> impl Future<Output = mlua::Result<()>> + Send {
    let call = match word {
        Word::Keep => "keep",
        Word::Rollback => "rollback",
        Word::Stall => "stall",
    };
    let prepared = This::of(&lua, &this, &format!("{call}()")).and_then(|this| Ok((this, note_of(&lua, &note, call)?)));
    async move {
        let (this, note) = prepared?;
        this.act(&lua, move |pump| async move {
            match word {
                Word::Keep => pump.keep(note).await,
                Word::Rollback => pump.rollback(note).await,
                Word::Stall => pump.stall(note).await,
            }
        })
        .await
    }
}

/// `it:done(reason)`
fn done(lua: Lua, (this, reason): (Value, Value)) -> impl Future<Output = mlua::Result<ResultObject>> + Send {
    let prepared = This::of(&lua, &this, "done()").and_then(|this| Ok((this, note_of(&lua, &reason, "done")?)));
    async move {
        let (this, reason) = prepared?;
        this.act(&lua, move |pump| async move { pump.done(reason).await }).await.map(ResultObject)
    }
}

fn note_of(lua: &Lua, value: &Value, call: &str) -> mlua::Result<Option<String>> {
    match value {
        Value::Nil => Ok(None),
        Value::String(text) => Ok(Some(text.to_string_lossy())),
        other => Err(wrong(lua, format!("it:{call} wants a note, a string, got {}", show::short(other)))),
    }
}
