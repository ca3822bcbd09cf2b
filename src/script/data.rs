//! Plain data across the border: JSON into Lua and back, with nothing cut or guessed.

use mlua::{Lua, Table, Value};
use serde_json::{Map, Number, Value as Json};

use super::vm::show;

/// Deeper values are refused.
const MOST_DEPTH: usize = 128;
/// More values than these, all together, are refused.
const MOST_VALUES: usize = 1_000_000;

/// A Lua value as JSON. Whole numbers stay whole; an empty table is an object, unless it came from a JSON list.
///
/// # Errors
/// Says which part is no data: a function, a hole, a mix of list and names, a number that JSON lacks, a cycle.
pub(super) fn to_json(value: &Value) -> Result<Json, String> {
    let shown = value
        .weak_lua()
        .and_then(|lua| lua.try_upgrade())
        .and_then(|lua| lua.named_registry_value::<Table>(SHOWN).ok());
    convert(value, "", 0, &mut Walk { left: MOST_VALUES, shown })
}

/// Name in the registry of the table that says what read-only proxies show.
pub(super) const SHOWN: &str = "lunation.shown";

struct Walk {
    left: usize,
    shown: Option<Table>,
}

fn convert(value: &Value, path: &str, depth: usize, walk: &mut Walk) -> Result<Json, String> {
    let here = || if path.is_empty() { "the value".to_owned() } else { format!("`{path}`") };
    if depth > MOST_DEPTH {
        return Err(format!("{} is nested more than {MOST_DEPTH} deep, or contains itself", here()));
    }
    walk.left = walk.left.checked_sub(1).ok_or_else(|| format!("there are more than {MOST_VALUES} values"))?;
    match value {
        Value::Nil => Ok(Json::Null),
        value if value.is_null() => Ok(Json::Null),
        Value::Boolean(flag) => Ok(Json::Bool(*flag)),
        Value::Integer(number) => Ok(Json::Number((*number).into())),
        Value::Number(number) => Number::from_f64(*number)
            .map(Json::Number)
            .ok_or_else(|| format!("{} is {number}, which JSON does not have", here())),
        Value::String(text) => match text.to_str() {
            Ok(text) => Ok(Json::String(text.to_owned())),
            Err(_) => Err(format!("{} is a string that is not UTF-8", here())),
        },
        Value::Table(table) => {
            let content = walk.shown.as_ref().and_then(|shown| shown.raw_get::<Option<Table>>(table).ok().flatten());
            table_to_json(content.as_ref().unwrap_or(table), path, depth, walk, &here())
        }
        other => Err(format!("{} is {}, which is no data", here(), show::short(other))),
    }
}

fn table_to_json(table: &Table, path: &str, depth: usize, walk: &mut Walk, here: &str) -> Result<Json, String> {
    let mut items = std::collections::BTreeMap::new();
    let mut names = std::collections::BTreeMap::new();
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair.map_err(|error| error.to_string())?;
        match &key {
            Value::Integer(at) if *at >= 1 => {
                let path = format!("{path}[{at}]");
                items.insert(*at, convert(&value, &path, depth + 1, walk)?);
            }
            Value::String(name) => {
                let name = name.to_str().map_err(|_| format!("{here} has a key that is not UTF-8"))?.to_owned();
                let path = super::options::join(path, &name);
                let value = convert(&value, &path, depth + 1, walk)?;
                names.insert(name, value);
            }
            other => return Err(format!("{here} has the key {}, which JSON does not have", show::short(other))),
        }
    }
    if let (Some(_), Some((name, _))) = (items.first_key_value(), names.first_key_value()) {
        return Err(format!("{here} mixes a list with the named key `{name}`"));
    }
    if let Some((last, _)) = items.last_key_value() {
        if *last != items.len() as i64 {
            let hole = (1..).find(|at| !items.contains_key(at)).unwrap_or(1);
            return Err(format!("{here} is a list with a hole at {hole}"));
        }
        return Ok(Json::Array(items.into_values().collect()));
    }
    if names.is_empty() && table.metatable().is_some_and(|meta| meta.raw_get("__list").unwrap_or(false)) {
        return Ok(Json::Array(Vec::new()));
    }
    Ok(Json::Object(names.into_iter().collect::<Map<String, Json>>()))
}

/// JSON as plain Lua tables. In an object null is a missing field; in a list it is `ln.json.null`.
pub(super) fn to_lua(lua: &Lua, json: &Json) -> mlua::Result<Value> {
    match json {
        Json::Null => Ok(Value::Nil),
        Json::Bool(flag) => Ok(Value::Boolean(*flag)),
        Json::Number(number) => Ok(match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::Integer(whole),
            (None, Some(number)) => Value::Number(number),
            (None, None) => Value::Nil,
        }),
        Json::String(text) => Ok(Value::String(lua.create_string(text)?)),
        Json::Array(items) => {
            let list = lua.create_table_with_capacity(items.len(), 0)?;
            for (at, item) in items.iter().enumerate() {
                let item = if item.is_null() { Value::NULL } else { to_lua(lua, item)? };
                list.raw_set(at + 1, item)?;
            }
            list.set_metatable(Some(list_mark(lua)?))?;
            Ok(Value::Table(list))
        }
        Json::Object(fields) => {
            let table = lua.create_table_with_capacity(0, fields.len())?;
            for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                table.raw_set(name.as_str(), to_lua(lua, value)?)?;
            }
            Ok(Value::Table(table))
        }
    }
}

/// Marks tables that were JSON lists, so that an empty one goes back as a list.
fn list_mark(lua: &Lua) -> mlua::Result<Table> {
    const MARK: &str = "lunation.list";
    if let Ok(mark) = lua.named_registry_value::<Table>(MARK) {
        return Ok(mark);
    }
    let mark = lua.create_table()?;
    mark.raw_set("__list", true)?;
    mark.raw_set("__metatable", false)?;
    lua.set_named_registry_value(MARK, &mark)?;
    Ok(mark)
}
