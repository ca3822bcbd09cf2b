//! What to say about a name that a table does not have.

use mlua::Value;

use super::schema::{Field, Kind, TableSchema};
use super::tables::TABLES;
use crate::script::nearest::nearest;

/// Why the option is refused, and what was probably meant.
pub(super) fn explain(name: &str, value: &Value, schema: &'static TableSchema) -> String {
    if let Some((_, instead)) = schema.instead.iter().find(|(tried, _)| *tried == name) {
        return format!("unknown option; write {}", quoted(instead));
    }
    if schema.later.contains(&name) {
        return format!("lunation {} has no `{name}` here yet", env!("CARGO_PKG_VERSION"));
    }
    // `wall_s = 60` means the field without its unit.
    let bare = ["_seconds", "_secs", "_sec", "_minutes", "_min", "_ms", "_s", "_m"]
        .iter()
        .find_map(|unit| name.strip_suffix(unit))
        .unwrap_or(name);
    let say = |field: &Field| {
        let unit = match (&field.kind, value) {
            (Kind::Duration, Value::Integer(_) | Value::Number(_)) => " (a duration: \"90s\", \"20m\", or seconds)",
            _ => "",
        };
        format!("unknown option; did you mean `{}`?{unit}", field.name)
    };
    if let Some(field) = schema.field(bare) {
        return say(field);
    }
    if let Some(table) = TABLES.iter().find(|table| table.field(name).is_some()) {
        return format!("unknown option here; it belongs in {}", table.written);
    }
    let near = nearest(name, schema.fields.iter().map(|field| field.name))
        .or_else(|| nearest(bare, schema.fields.iter().map(|field| field.name)));
    if let Some(field) = near.and_then(|near| schema.field(near)) {
        return say(field);
    }
    // The same typing error in the wrong table.
    if let Some((near, place)) = TABLES
        .iter()
        .find_map(|table| nearest(name, table.fields.iter().map(|field| field.name)).map(|near| (near, table.written)))
    {
        return format!("unknown option; did you mean `{near}`, which belongs in {place}?");
    }
    let known: Vec<&str> = schema.fields.iter().map(|field| field.name).collect();
    format!("unknown option; there are {}", known.join(", "))
}

fn quoted(instead: &str) -> String {
    if instead.contains(' ') { instead.to_owned() } else { format!("`{instead}`") }
}
