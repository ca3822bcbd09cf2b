//! `ln.sensor`: a check by a command, or a sensor of the embedding program.

use mlua::{Lua, Value};

use super::objects::SensorObject;
use super::{Namespace, Shape, Signature};
use crate::policy::{CommandSpec, SensorSource, SensorSpec};
use crate::script::options::schema::Kind;
use crate::script::options::tables::SENSOR;
use crate::script::options::{Given, Problems, Record, join, read};
use crate::script::vm::{Shared, place};

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "sensor",
    shape: Shape::Table {
        call: Some(Signature {
            doc: "A check: exit code 0 is passed; 126, 127 and signals are broken; all else is failed.",
            params: &[("opts", "string|lunation.SensorOpts")],
            returns: Some("lunation.Sensor"),
        }),
        members: &[],
    },
    later: &["metric", "score", "service", "picture"],
    make: |lua| {
        let content = lua.create_table()?;
        content.raw_set("()", lua.create_function(make)?)?;
        Ok(Value::Table(content))
    },
};

static MADE_FROM: Kind = Kind::Either(&[Kind::Text, Kind::Table(&SENSOR)]);

fn make(lua: &Lua, (_, value): (Value, Value)) -> mlua::Result<SensorObject> {
    let shared = Shared::of(lua);
    let mut problems = Problems::default();
    let spec = read(&value, &MADE_FROM, "", &mut problems).and_then(|given| one(&shared, given, "", &mut problems));
    problems.into_result("ln.sensor", place::of_caller(lua, &shared.texts)).map_err(|raised| raised.into_lua())?;
    match spec {
        Some(spec) => Ok(SensorObject(spec)),
        None => Err(mlua::Error::runtime("ln.sensor: no sensor and no problem")),
    }
}

fn from_text(shared: &Shared, line: &str, path: &str, problems: &mut Problems) -> Option<SensorSpec> {
    if shared.options.sensors.iter().any(|known| known == line) {
        return Some(SensorSpec::function(line));
    }
    if line.trim().is_empty() {
        problems.add(path, "is a blank command: write what to run, for example \"cargo test\"");
        return None;
    }
    Some(SensorSpec::shell(line))
}

fn from_record(mut record: Record, path: &str, problems: &mut Problems) -> Option<SensorSpec> {
    let line = record.command_of_list();
    if line.is_blank() {
        if problems.is_empty() {
            problems.add(path, "there is no command: write it first, like ln.sensor{ \"cargo test\" }");
        }
        return None;
    }
    let id = record.text("id").unwrap_or_else(|| line.show());
    let mut fix = record.command("fix").map(CommandSpec::new);
    let timeout_is_broken = record.text("timeout_is").is_some_and(|is| is == "broken");
    let command = record.command_spec(line);
    if let Some(fix) = &mut fix {
        fix.cwd.clone_from(&command.cwd);
        fix.env.clone_from(&command.env);
        fix.timeout = command.timeout;
    }
    let confirm = record.count("confirm").unwrap_or(2);
    let cache = record.flag("cache").unwrap_or(true);
    Some(SensorSpec { id, source: SensorSource::Command(command), fix, timeout_is_broken, confirm, cache })
}

/// What a checked list or table of sensors means. Names of a table become ids.
pub(in crate::script) fn from_given(
    shared: &Shared,
    given: Given,
    path: &str,
    problems: &mut Problems,
) -> Vec<SensorSpec> {
    match given {
        Given::List(items) => items
            .into_iter()
            .enumerate()
            .filter_map(|(at, item)| one(shared, item, &format!("{path}[{}]", at + 1), problems))
            .collect(),
        Given::Map(items) => items
            .into_iter()
            .filter_map(|(name, item)| {
                let spec = one(shared, item, &join(path, &name), problems)?;
                Some(SensorSpec { id: name, ..spec })
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn one(shared: &Shared, given: Given, path: &str, problems: &mut Problems) -> Option<SensorSpec> {
    match given {
        Given::Text(line) => from_text(shared, &line, path, problems),
        Given::Table(record) => from_record(record, path, problems),
        Given::Object(data) => data.borrow::<SensorObject>().ok().map(|sensor| sensor.0.clone()),
        _ => None,
    }
}
