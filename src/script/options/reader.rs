//! Reads Lua values by their schema and notes every problem, with its path, before anything is believed.

use std::collections::BTreeMap;

use mlua::{Table, Value};

use super::amounts::{bytes, duration, integer, leave_out};
use super::given::{Given, Record};
use super::problem::Problems;
use super::schema::{Field, Kind, TableSchema};
use super::unknown;
use crate::policy::CommandLine;
use crate::script::vm::show;

/// Tables deeper than this are refused: nothing that is meant goes so deep.
const MOST_DEPTH: usize = 16;
/// Items of one list or table.
const MOST_ITEMS: usize = 10_000;

/// Reads a table of options.
pub(in crate::script) fn read_table(
    value: &Value,
    schema: &'static TableSchema,
    path: &str,
    problems: &mut Problems,
) -> Record {
    match value {
        Value::Table(table) => table_of(table, schema, path, problems, 0),
        other => {
            problems.add(path, format!("must be a table like {}, got {}", schema.written, show::short(other)));
            Record::default()
        }
    }
}

/// Reads one value; `None` when it is not what is wanted.
pub(in crate::script) fn read(
    value: &Value,
    kind: &'static Kind,
    path: &str,
    problems: &mut Problems,
) -> Option<Given> {
    one(value, kind, None, path, problems, 0)
}

fn one(
    value: &Value,
    kind: &'static Kind,
    field: Option<&Field>,
    path: &str,
    problems: &mut Problems,
    depth: usize,
) -> Option<Given> {
    if depth > MOST_DEPTH {
        problems.add(path, format!("is nested more than {MOST_DEPTH} deep"));
        return None;
    }
    match (kind, value) {
        (Kind::Either(kinds), _) => {
            let fitting = kinds.iter().find(|kind| takes(kind, value));
            match fitting {
                Some(kind) => one(value, kind, field, path, problems, depth),
                None => wrong_type(value, kind, path, problems),
            }
        }
        (Kind::Text | Kind::AnyText, Value::String(_)) => {
            let text = text_of(value, path, problems)?;
            if matches!(kind, Kind::Text) && text.trim().is_empty() {
                problems.add(path, "must not be blank");
                return None;
            }
            Some(Given::Text(text))
        }
        (Kind::Bool, Value::Boolean(flag)) => Some(Given::Bool(*flag)),
        (Kind::Integer { min, max }, Value::Integer(_) | Value::Number(_)) => {
            integer(value, *min, *max, field, path, problems)
        }
        (Kind::PositiveNumber, Value::Integer(_) | Value::Number(_)) => {
            let number = value.as_number().or_else(|| value.as_integer().map(|n| n as f64)).unwrap_or(f64::NAN);
            if !number.is_finite() || number <= 0.0 {
                problems.add(path, format!("must be more than 0, got {}{}", show::short(value), leave_out(field)));
                return None;
            }
            Some(Given::Number(number))
        }
        (Kind::Duration, Value::Integer(_) | Value::Number(_) | Value::String(_)) => {
            duration(value, field, path, problems)
        }
        (Kind::Bytes, Value::Integer(_) | Value::Number(_) | Value::String(_)) => bytes(value, field, path, problems),
        (Kind::Choice(choices), Value::String(_)) => {
            let text = text_of(value, path, problems)?;
            if !choices.contains(&text.as_str()) {
                let hint = crate::script::nearest::did_you_mean(&text, choices.iter().copied());
                problems.add(path, format!("must be {}, got \"{text}\"{hint}", kind.words()));
                return None;
            }
            Some(Given::Text(text))
        }
        (Kind::Command, Value::String(_)) => {
            let line = CommandLine::Shell(text_of(value, path, problems)?);
            not_blank(line, path, problems).map(Given::Command)
        }
        (Kind::Command, Value::Table(table)) => {
            let words = list(table, &Kind::AnyText, path, problems, depth)?;
            let line = CommandLine::Words(super::given::texts(words));
            not_blank(line, path, problems).map(Given::Command)
        }
        (Kind::List(of), Value::Table(table)) => list(table, of, path, problems, depth).map(Given::List),
        (Kind::Map(of), Value::Table(table)) => map(table, of, path, problems, depth).map(Given::Map),
        (Kind::ListOrMap(of), Value::Table(table)) => {
            let (items, names) = parts(table, path, problems)?;
            match (items.is_empty(), names.is_empty()) {
                (_, true) => list(table, of, path, problems, depth).map(Given::List),
                (true, false) => map(table, of, path, problems, depth).map(Given::Map),
                (false, false) => {
                    mixed(items.len(), &names, path, problems);
                    None
                }
            }
        }
        (Kind::Table(schema), Value::Table(table)) => {
            Some(Given::Table(table_of(table, schema, path, problems, depth + 1)))
        }
        (Kind::Object(object), Value::UserData(data)) if super::is_made(data, *object) => {
            Some(Given::Object(data.clone()))
        }
        (Kind::Function(_), Value::Function(function)) => Some(Given::Function(function.clone())),
        (Kind::Data(_), Value::Table(_)) => match crate::script::data::to_json(value) {
            Ok(data) => Some(Given::Data(data)),
            Err(problem) => {
                problems.add(path, problem);
                None
            }
        },
        _ => wrong_type(value, kind, path, problems),
    }
}

/// Whether a value of this type could be of the kind at all.
fn takes(kind: &Kind, value: &Value) -> bool {
    match kind {
        Kind::Text | Kind::AnyText | Kind::Choice(_) => value.is_string(),
        Kind::Bool => value.is_boolean(),
        Kind::Integer { .. } | Kind::PositiveNumber => matches!(value, Value::Integer(_) | Value::Number(_)),
        Kind::Duration | Kind::Bytes => matches!(value, Value::Integer(_) | Value::Number(_) | Value::String(_)),
        Kind::Command => matches!(value, Value::String(_) | Value::Table(_)),
        // An empty table is a list, and so is one that starts like a list.
        Kind::List(_) => value.as_table().is_some_and(|t| t.raw_len() > 0 || t.is_empty()),
        Kind::Map(_) | Kind::ListOrMap(_) | Kind::Table(_) | Kind::Data(_) => value.is_table(),
        Kind::Object(object) => value.as_userdata().is_some_and(|data| super::is_made(data, *object)),
        Kind::Function(_) => value.is_function(),
        Kind::Either(kinds) => kinds.iter().any(|kind| takes(kind, value)),
    }
}

fn wrong_type(value: &Value, kind: &Kind, path: &str, problems: &mut Problems) -> Option<Given> {
    let hint = match (kind, value) {
        (Kind::Integer { .. } | Kind::PositiveNumber, Value::String(text)) => {
            match text.to_string_lossy().trim().parse::<f64>() {
                Ok(number) => format!(": write {number} without quotes"),
                Err(_) => String::new(),
            }
        }
        (Kind::List(of), Value::String(_)) if takes(of, value) => format!(": write {{ {} }}", show::short(value)),
        (Kind::Either(kinds), Value::String(_))
            if kinds.iter().any(|k| matches!(k, Kind::List(of) if takes(of, value))) =>
        {
            format!(": write {{ {} }}", show::short(value))
        }
        (Kind::Function(_), Value::Table(table)) if table.get::<Value>("decide").is_ok_and(|v| v.is_function()) => {
            ": this is a policy, write its function: policy.decide".into()
        }
        _ => String::new(),
    };
    problems.add(path, format!("must be {}, got {}{hint}", kind.words(), show::short(value)));
    None
}

pub(super) fn text_of(value: &Value, path: &str, problems: &mut Problems) -> Option<String> {
    let bytes = value.as_string()?.as_bytes().to_vec();
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => {
            problems.add(path, "has a NUL byte in it");
            None
        }
        Ok(text) => Some(text),
        Err(_) => {
            problems.add(path, "is not UTF-8 text");
            None
        }
    }
}

fn not_blank(line: CommandLine, path: &str, problems: &mut Problems) -> Option<CommandLine> {
    if line.is_blank() {
        problems.add(path, "is a blank command: write what to run, for example \"cargo test\"");
        return None;
    }
    Some(line)
}

/// Splits a table into its list part (by position) and its names; anything else, and any hole, is a problem.
fn parts(
    table: &Table,
    path: &str,
    problems: &mut Problems,
) -> Option<(BTreeMap<i64, Value>, BTreeMap<String, Value>)> {
    let mut items = BTreeMap::new();
    let mut names = BTreeMap::new();
    for pair in table.pairs::<Value, Value>() {
        let Ok((key, value)) = pair else { continue };
        if items.len() + names.len() >= MOST_ITEMS {
            problems.add(path, format!("has more than {MOST_ITEMS} entries"));
            return None;
        }
        match &key {
            Value::Integer(at) if *at >= 1 => {
                items.insert(*at, value);
            }
            Value::String(name) => {
                names.insert(name.to_string_lossy(), value);
            }
            other => {
                problems.add(path, format!("has the key {}: only names and a list are read", show::short(other)));
                return None;
            }
        }
    }
    if let Some(hole) = (1..=items.len() as i64).find(|at| !items.contains_key(at)) {
        problems.add(
            &format!("{path}[{hole}]"),
            "is nil: a list must have no holes (an item that is nil, or a variable that was never set)",
        );
        return None;
    }
    Some((items, names))
}

fn mixed(count: usize, names: &BTreeMap<String, Value>, path: &str, problems: &mut Problems) {
    let first = names.keys().next().map(String::as_str).unwrap_or_default();
    let items = if count == 1 { "1 list item".into() } else { format!("{count} list items") };
    problems.add(path, format!("mixes {items} with the named key `{first}`: write a list, or give every item a name"));
}

fn list(table: &Table, of: &'static Kind, path: &str, problems: &mut Problems, depth: usize) -> Option<Vec<Given>> {
    let (items, names) = parts(table, path, problems)?;
    if !names.is_empty() {
        if items.is_empty() {
            let first = names.keys().next().map(String::as_str).unwrap_or_default();
            problems.add(path, format!("must be a list, got a table with the key `{first}`"));
        } else {
            mixed(items.len(), &names, path, problems);
        }
        return None;
    }
    let count = items.len();
    let read: Vec<Given> = items
        .iter()
        .filter_map(|(at, value)| one(value, of, None, &format!("{path}[{at}]"), problems, depth + 1))
        .collect();
    (read.len() == count).then_some(read)
}

fn map(
    table: &Table,
    of: &'static Kind,
    path: &str,
    problems: &mut Problems,
    depth: usize,
) -> Option<BTreeMap<String, Given>> {
    let (items, names) = parts(table, path, problems)?;
    if !items.is_empty() {
        if names.is_empty() {
            problems.add(path, "must be a table by names, got a list");
        } else {
            mixed(items.len(), &names, path, problems);
        }
        return None;
    }
    let count = names.len();
    let read: BTreeMap<String, Given> = names
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), one(value, of, None, &join(path, name), problems, depth + 1)?)))
        .collect();
    (read.len() == count).then_some(read)
}

fn table_of(table: &Table, schema: &'static TableSchema, path: &str, problems: &mut Problems, depth: usize) -> Record {
    let mut record = Record::default();
    let Some((items, mut names)) = parts(table, path, problems) else { return record };
    match &schema.list {
        Some((kind, _)) => {
            for (at, value) in &items {
                record.list.extend(one(value, kind, None, &format!("{path}[{at}]"), problems, depth));
            }
        }
        None => {
            if let Some((at, value)) = items.iter().next() {
                problems.add(
                    &format!("{path}[{at}]"),
                    format!("{} has no list part: give {} a name", schema.written, show::short(value)),
                );
            }
        }
    }
    // In the order of the schema, so that problems are told in the order of the reference.
    for field in schema.fields {
        match names.remove(field.name) {
            Some(value) => {
                if let Some(given) = one(&value, &field.kind, Some(field), &join(path, field.name), problems, depth) {
                    record.fields.insert(field.name, given);
                }
            }
            None if field.required => {
                problems.add(&join(path, field.name), format!("is missing: it must be {}", field.kind.words()));
            }
            None => {}
        }
    }
    for (name, value) in &names {
        problems.add(&join(path, name), unknown::explain(name, value, schema));
    }
    record
}

/// `budget` and `wall` are `budget.wall`.
pub(in crate::script) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
