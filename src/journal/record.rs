//! One record of a journal: an event with its place in time and in the chain, and its form as one line of JSON.

use jiff::Timestamp;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::event::{Event, FORMAT_VERSION};
use super::run_id::RunId;
use crate::policy::cap_feedback;

/// What stands in `prev` of the first record.
pub(super) const CHAIN_START: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Longest string that a record keeps, in bytes; longer ones lose their middle, and say so. Blobs hold what is longer.
pub const MOST_STRING_BYTES: usize = 1 << 20;

/// Longest line that is written, in bytes.
pub(super) const MOST_LINE_BYTES: usize = 16 << 20;

/// An event, when and where it happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Version of the format that it was written in.
    pub version: u32,
    /// Its number, from 1.
    pub seq: u64,
    /// Time of day.
    pub at: Timestamp,
    /// Awake seconds since the run began; they never go back.
    pub awake_s: f64,
    /// The run.
    pub run: RunId,
    /// Which loop, node or branch: names with `/` between them; empty for the run itself.
    pub path: String,
    /// What happened.
    pub event: Event,
    /// SHA-256 of the line before.
    pub prev: String,
}

/// The frame of a record around an event that was masked already.
pub(super) struct Frame<'r> {
    pub(super) seq: u64,
    pub(super) at: Timestamp,
    pub(super) awake_s: f64,
    pub(super) run: &'r RunId,
    pub(super) path: &'r str,
    pub(super) prev: &'r str,
}

impl Frame<'_> {
    /// The whole record as JSON. `event` is an event's own JSON: `kind` and `data`.
    pub(super) fn around(&self, event: Value) -> Value {
        let mut record = Map::new();
        record.insert("v".into(), FORMAT_VERSION.into());
        record.insert("seq".into(), self.seq.into());
        record.insert("at".into(), self.at.to_string().into());
        record.insert("awake_s".into(), self.awake_s.into());
        record.insert("run".into(), self.run.as_str().into());
        record.insert("path".into(), self.path.into());
        if let Value::Object(event) = event {
            record.extend(event);
        }
        record.insert("prev".into(), self.prev.into());
        Value::Object(record)
    }
}

/// A line that is no record, and why.
pub(super) enum Unreadable {
    /// Written by a newer lunation.
    Newer(u64),
    /// Not a record of this format.
    Damaged(String),
}

#[derive(Deserialize)]
struct Header {
    v: u32,
    seq: u64,
    at: String,
    awake_s: f64,
    run: RunId,
    path: String,
    prev: String,
}

impl Record {
    /// Reads one line, given without its line end.
    pub(super) fn from_line(line: &[u8]) -> Result<Record, Unreadable> {
        let damaged = |why: String| Unreadable::Damaged(why);
        let value: Value = serde_json::from_slice(line).map_err(|error| damaged(format!("not JSON: {error}")))?;
        match value.get("v").and_then(Value::as_u64) {
            Some(version) if version > u64::from(FORMAT_VERSION) => return Err(Unreadable::Newer(version)),
            Some(_) => {}
            None => return Err(damaged("not a record: it has no format version".into())),
        }
        let header = Header::deserialize(&value).map_err(|error| damaged(format!("not a whole record: {error}")))?;
        let Value::Object(mut fields) = value else { return Err(damaged("not a record: not an object".into())) };
        let mut take = |name: &str| fields.remove(name).unwrap_or(Value::Null);
        let event = event_from(take("kind"), take("data"))
            .map_err(|error| damaged(format!("an event that cannot be read: {error}")))?;
        let Header { v, seq, at, awake_s, run, path, prev } = header;
        let at = at.parse().map_err(|error| damaged(format!("`at` is no time: {error}")))?;
        Ok(Record { version: v, seq, at, awake_s, run, path, event, prev })
    }
}

impl Serialize for Record {
    /// The form that it has in the file.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let event = serde_json::to_value(&self.event).map_err(S::Error::custom)?;
        let Record { seq, at, awake_s, run, path, prev, .. } = self;
        let frame = Frame { seq: *seq, at: *at, awake_s: *awake_s, run, path, prev };
        frame.around(event).serialize(serializer)
    }
}

/// An event from its two fields.
pub(super) fn event_from(kind: Value, data: Value) -> Result<Event, serde_json::Error> {
    let mut event = Map::new();
    event.insert("kind".into(), kind);
    event.insert("data".into(), data);
    Event::deserialize(Value::Object(event))
}

/// SHA-256 of a line without its line end, as the next record names it.
pub(super) fn line_digest(line: &[u8]) -> String {
    hex(&Sha256::digest(line))
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Replaces every string below `value`, names of fields included, by what `change` makes of it.
pub(super) fn change_strings(value: &mut Value, change: &mut dyn FnMut(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(changed) = change(text) {
                *text = changed;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| change_strings(item, change)),
        Value::Object(fields) => {
            for (mut name, mut item) in std::mem::take(fields) {
                name = change(&name).unwrap_or(name);
                change_strings(&mut item, change);
                fields.insert(name, item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Takes the values out of every environment below `value`: names are recorded, values are not.
pub(super) fn drop_environments(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_environments),
        Value::Object(fields) => {
            for (name, item) in fields {
                match item {
                    Value::Object(variables) if name == "env" => {
                        variables.values_mut().for_each(|value| *value = Value::from("[not recorded]"));
                    }
                    _ => drop_environments(item),
                }
            }
        }
        _ => {}
    }
}

/// Cuts a string that is too long for a record.
pub(super) fn cut(text: String) -> String {
    if text.len() > MOST_STRING_BYTES { cap_feedback(&text, MOST_STRING_BYTES, None) } else { text }
}
