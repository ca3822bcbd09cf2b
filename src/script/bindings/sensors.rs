//! `ln.sensors`: sensors that are read together, for loops by hand.

use mlua::{Lua, Value};

use super::objects::{SensorsObject, WorkspaceObject};
use super::{Namespace, Shape, Signature, effect, sensor};
use crate::script::error::ErrorKind;
use crate::script::options::schema::Kind;
use crate::script::options::tables::SENSORISH;
use crate::script::options::{Problems, read};
use crate::script::records;
use crate::script::vm::{Shared, place, show};

static LIST: Kind = Kind::ListOrMap(&SENSORISH);

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "sensors",
    shape: Shape::Function(Signature {
        doc: "Sensors that are read together: commands, or what ln.sensor made.",
        params: &[("list", "table<integer|string, lunation.Sensorish>")],
        returns: Some("lunation.Sensors"),
    }),
    later: &[],
    make: |lua| Ok(Value::Function(lua.create_function(make)?)),
};

fn make(lua: &Lua, value: Value) -> mlua::Result<SensorsObject> {
    let shared = Shared::of(lua);
    let mut problems = Problems::default();
    let sensors = match read(&value, &LIST, "", &mut problems) {
        Some(given) => sensor::from_given(&shared, given, "", &mut problems),
        None => Vec::new(),
    };
    if sensors.is_empty() && problems.is_empty() {
        problems.add("", "there are none: write ln.sensors{ \"cargo test\" }");
    }
    for (at, one) in sensors.iter().enumerate() {
        if sensors[..at].iter().any(|other| other.id == one.id) {
            problems.add(
                &format!("[{}]", at + 1),
                format!("is the second sensor named `{}`: give it an id of its own", one.id),
            );
        }
    }
    problems.into_result("ln.sensors", place::of_caller(lua, &shared.texts)).map_err(|raised| raised.into_lua())?;
    Ok(SensorsObject(sensors))
}

/// `sensors:sense(workspace)`
pub(super) fn sense(lua: Lua, (this, workspace): (Value, Value)) -> impl Future<Output = mlua::Result<Value>> + Send {
    let prepared = prepare(&lua, &this, &workspace);
    async move {
        let (run, sensors) = prepared?;
        let sense = crate::script::vm::effect(&lua, async move { run.sense(&sensors).await }).await?;
        records::freeze(&lua, &records::sense(&sense), "sense")
    }
}

fn prepare(
    lua: &Lua,
    this: &Value,
    workspace: &Value,
) -> mlua::Result<(crate::engine::Run, Vec<crate::policy::SensorSpec>)> {
    let texts = &Shared::of(lua).texts;
    let wrong = |message: String| place::raise(lua, texts, ErrorKind::Options, message);
    let Some(sensors) = this.as_userdata().and_then(|data| Some(data.borrow::<SensorsObject>().ok()?.0.clone())) else {
        return Err(wrong("write sensors:sense(run.workspace) with a colon".into()));
    };
    let is_workspace = workspace.as_userdata().is_some_and(mlua::AnyUserData::is::<WorkspaceObject>);
    if !is_workspace && !workspace.is_nil() {
        return Err(wrong(format!("sensors:sense wants run.workspace, got {}", show::short(workspace))));
    }
    let run = effect::allowed_outside_of_loops(
        lua,
        "sensors:sense",
        "do it in a function of the run: `return function(run) … sensors:sense(run.workspace) … end`",
    )?;
    Ok((run, sensors))
}
