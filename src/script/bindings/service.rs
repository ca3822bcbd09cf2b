//! `ln.service`: something that is started for a pass over sensors.

use std::time::Duration;

use mlua::{Lua, Value};

use super::objects::ServiceObject;
use super::{Namespace, Shape, Signature, sensor};
use crate::policy::{CommandSpec, Ready, ServiceSpec};
use crate::script::options::sensor_tables::SERVICE;
use crate::script::options::{Problems, Record, read_table};
use crate::script::vm::{Shared, place};

const WITHIN: Duration = Duration::from_secs(30);
/// How long the command that asks it to end may take.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "service",
    shape: Shape::Function(Signature {
        doc: "Something that is started for a pass over the sensors that name it, and ended with it; not ready in time is broken.",
        params: &[("opts", "lunation.ServiceOpts")],
        returns: Some("lunation.Service"),
    }),
    later: &[],
    make: |lua| Ok(Value::Function(lua.create_function(make)?)),
};

fn make(lua: &Lua, value: Value) -> mlua::Result<ServiceObject> {
    let shared = Shared::of(lua);
    let mut problems = Problems::default();
    let mut record = read_table(&value, &SERVICE, "", &mut problems);
    let spec = spec(&mut record, &mut problems);
    problems.into_result("ln.service", place::of_caller(lua, &shared.texts)).map_err(|raised| raised.into_lua())?;
    spec.map(ServiceObject).ok_or_else(|| mlua::Error::runtime("ln.service: no service and no problem"))
}

/// `None` only where a problem says why.
fn spec(record: &mut Record, problems: &mut Problems) -> Option<ServiceSpec> {
    let (ready, ready_within) = match record.table("ready") {
        Some(mut table) => {
            let within = table.duration("within").unwrap_or(WITHIN);
            (ready(&mut table, problems), within)
        }
        None => (Ready::Port, WITHIN),
    };
    let stop = record.command("stop");
    let line = record.command("run")?;
    let id = record.text("id").unwrap_or_else(|| line.show());
    let run = record.command_spec(line);
    let stop = stop.map(|line| CommandSpec { line, timeout: STOP_TIMEOUT, ..run.clone() });
    Some(ServiceSpec { id, run, ready, ready_within, stop })
}

fn ready(table: &mut Record, problems: &mut Problems) -> Ready {
    let (http, port, line) = (table.text("http"), table.flag("port"), table.text("line"));
    if port == Some(false) {
        problems.add("ready.port", "is true or left out");
    }
    match (http, port, line) {
        (Some(path), None, None) => {
            if !path.starts_with('/') {
                problems.add("ready.http", format!("`{path}` is no path: it begins with `/`"));
            }
            Ready::Http(path)
        }
        (None, _, Some(line)) if port.is_none() => {
            sensor::check_pattern(&line, "ready.line", problems);
            Ready::Line(line)
        }
        (None, Some(_), None) => Ready::Port,
        _ => {
            if problems.is_empty() {
                problems.add("ready", "wants one of http, port and line");
            }
            Ready::Port
        }
    }
}
