//! Records: what policies and scripts see of the engine's data, frozen.
//!
//! Guarantees that a record holds exactly what the journal keeps, with three conveniences: a reading and a turn say `ok`,
//! and a score that no sensor gave is 0, so that it can be compared.

use mlua::{Lua, Value};
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::vm::inside;
use crate::policy::{Observation, Outcome, Sense, TurnSummary};

/// An observation as scripts see it.
pub(super) fn observation(observation: &Observation) -> Json {
    let mut json = plain(observation);
    for name in ["sense", "best"] {
        if let Some(sense) = json.get_mut(name) {
            dress_sense(sense);
        }
    }
    if let Some(Json::Object(readings)) = json.get_mut("sensor") {
        readings.values_mut().for_each(dress_reading);
    }
    if let (Some(turn), Some(summary)) = (json.get_mut("turn"), &observation.turn) {
        dress_turn(turn, summary);
    }
    json
}

/// A pass over sensors as scripts see it.
pub(super) fn sense(sense: &Sense) -> Json {
    let mut json = plain(sense);
    dress_sense(&mut json);
    json
}

/// A turn as scripts see it.
pub(super) fn turn(turn: &TurnSummary) -> Json {
    let mut json = plain(turn);
    dress_turn(&mut json, turn);
    json
}

/// Any other data of the engine.
pub(super) fn plain<T: Serialize>(value: &T) -> Json {
    // Our own types have no map keys that are no strings and no failing serialisers: null is unreachable in practice,
    // and visible to a script as a missing record.
    serde_json::to_value(value).unwrap_or(Json::Null)
}

fn dress_sense(sense: &mut Json) {
    if !sense.is_object() {
        return;
    }
    if sense["score"].is_null() {
        sense["score"] = json!(0);
    }
    if let Some(Json::Array(readings)) = sense.get_mut("readings") {
        readings.iter_mut().for_each(dress_reading);
    }
}

fn dress_reading(reading: &mut Json) {
    reading["ok"] = json!(reading["state"] == json!("passed"));
    if reading["score"].is_null() {
        reading["score"] = json!(0);
    }
}

fn dress_turn(turn: &mut Json, summary: &TurnSummary) {
    turn["ok"] = json!(summary.outcome == Outcome::Done);
}

/// Freezes data. `label` names it in errors: `o`, `sense`.
pub(super) fn freeze(lua: &Lua, json: &Json, label: &str) -> mlua::Result<Value> {
    match json {
        Json::Object(fields) => {
            let content = lua.create_table_with_capacity(0, fields.len())?;
            for (name, value) in fields {
                let value = match value {
                    Json::Null => Value::NULL,
                    value => freeze(lua, value, label_of(name))?,
                };
                content.raw_set(name.as_str(), value)?;
            }
            inside(lua).record.call((content, label))
        }
        Json::Array(items) => {
            let content = lua.create_table_with_capacity(items.len(), 0)?;
            for (at, item) in items.iter().enumerate() {
                content.raw_set(at + 1, freeze(lua, item, label)?)?;
            }
            inside(lua).list.call((content, label))
        }
        plain => super::data::to_lua(lua, plain),
    }
}

/// `best` is a sense like `sense`.
fn label_of(name: &str) -> &str {
    match name {
        "best" => "sense",
        "readings" => "reading",
        name => name,
    }
}
