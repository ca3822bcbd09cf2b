//! Lua values in a few words, for messages.

use mlua::Value;

/// How deep a raised table is shown.
const MOST_DEPTH: usize = 3;
/// How many fields of it are shown.
const MOST_FIELDS: usize = 8;
/// Characters of a string that are shown.
const MOST_TEXT: usize = 80;

/// One value with its type: `the string "5"`, `2.5`, `a table`.
pub(in crate::script) fn short(value: &Value) -> String {
    match value {
        Value::Nil => "nil".into(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("\"{}\"", cut(&text.to_string_lossy())),
        Value::Table(_) => "a table".into(),
        Value::Function(_) => "a function".into(),
        Value::Thread(_) => "a coroutine".into(),
        Value::UserData(data) => match data.type_name() {
            Ok(name) => with_article(&name.to_string_lossy()),
            Err(_) => "an object".into(),
        },
        Value::LightUserData(_) => "null".into(),
        Value::Error(error) => crate::script::error::from_mlua(error).headline(),
        _ => "a value of another kind".into(),
    }
}

/// `an agent`, `a sensor`.
pub(in crate::script) fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

/// A value as a script would write it, tables with their fields: `{ code = 2 }`.
pub(in crate::script) fn value(value: &Value) -> String {
    deep(value, 0)
}

fn deep(value: &Value, depth: usize) -> String {
    let Value::Table(table) = value else { return short(value) };
    if depth >= MOST_DEPTH {
        return "{…}".into();
    }
    let mut fields: Vec<String> = table
        .pairs::<Value, Value>()
        .filter_map(Result::ok)
        .map(|(key, value)| match &key {
            Value::Integer(at) => format!("[{at}] = {}", deep(&value, depth + 1)),
            Value::String(name) => format!("{} = {}", name.to_string_lossy(), deep(&value, depth + 1)),
            other => format!("[{}] = {}", short(other), deep(&value, depth + 1)),
        })
        .collect();
    // The order in the table is no order.
    fields.sort();
    if fields.len() > MOST_FIELDS {
        fields.truncate(MOST_FIELDS);
        fields.push("…".into());
    }
    if fields.is_empty() { "{}".into() } else { format!("{{ {} }}", fields.join(", ")) }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
