//! `run`: what a function script is given.

use std::sync::Arc;

use mlua::{AnyUserData, Lua, MetaMethod, UserData, UserDataFields, UserDataMethods, Value};

use super::effect;
use super::iteration::IterationObject;
use super::loops::{breaker, fence, limits};
use super::objects::{WorkspaceObject, closed, unknown};
use crate::engine::{Pump, PumpSpec, Run, RunResult};
use crate::script::error::ErrorKind;
use crate::script::options::tables::ITERATIONS;
use crate::script::options::{Problems, read_table};
use crate::script::records;
use crate::script::vm::{self, Shared, place, show};

/// One run, in the hands of a script.
pub(in crate::script) struct RunObject {
    run: Run,
    protected: Vec<String>,
}

impl RunObject {
    pub(in crate::script) fn new(run: Run, protected: Vec<String>) -> RunObject {
        RunObject { run, protected }
    }
}

/// How a loop or a run ended.
#[derive(Debug, Clone)]
pub(in crate::script) struct ResultObject(pub(in crate::script) RunResult);

const NAMES: &[&str] = &["workspace", "input", "iterations", "stop"];

impl UserData for RunObject {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "run");
        fields.add_field_method_get("workspace", |_, this| {
            Ok(WorkspaceObject(this.run.workspace().to_string_lossy().into_owned()))
        });
        fields.add_field_method_get("input", |lua, _| super::input::frozen(lua));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_async_function("iterations", iterations);
        methods.add_async_function("stop", stop);
        closed(methods, "run", NAMES, &["turn", "loop", "use"]);
    }
}

impl UserData for ResultObject {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "result");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_function(MetaMethod::Index, |lua, (this, key): (AnyUserData, String)| {
            let json = records::plain(&this.borrow::<ResultObject>()?.0);
            match json.get(&key) {
                Some(value) => records::freeze(lua, value, "diff"),
                None => {
                    let names: Vec<String> =
                        json.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    Err(unknown(lua, "result", &key, &names, &["output"]))
                }
            }
        });
    }
}

fn this_run(lua: &Lua, this: &Value, call: &str) -> mlua::Result<(Run, Vec<String>)> {
    match this.as_userdata().and_then(|data| data.borrow::<RunObject>().ok()) {
        Some(object) => Ok((object.run.clone(), object.protected.clone())),
        None => {
            Err(place::raise(lua, &Shared::of(lua).texts, ErrorKind::Options, format!("write run:{call} with a colon")))
        }
    }
}

/// `run:iterations{…}`: the pump.
fn iterations(lua: Lua, (this, options): (Value, Value)) -> impl Future<Output = mlua::Result<mlua::Function>> + Send {
    let prepared = prepare(&lua, &this, &options);
    async move {
        let (run, spec) = prepared?;
        let pump = Arc::new(vm::effect(&lua, async move { run.iterations(spec).await }).await?);
        lua.create_async_function(move |lua: Lua, ()| next(lua, Arc::clone(&pump)))
    }
}

fn prepare(lua: &Lua, this: &Value, options: &Value) -> mlua::Result<(Run, PumpSpec)> {
    let (run, mut protected) = this_run(lua, this, "iterations{…}")?;
    let shared = Shared::of(lua);
    effect::allowed_outside_of_loops(lua, "run:iterations", "use the `run` of a script's function while it runs")?;
    let mut problems = Problems::default();
    let mut spec = PumpSpec::default();
    if !options.is_nil() {
        let mut given = read_table(options, &ITERATIONS, "", &mut problems);
        spec.id = given.text("id").unwrap_or(spec.id);
        let max = given.count("max");
        limits(&mut spec.budget, &mut given, max);
        spec.fence = fence(given.any("fence"));
        spec.breaker = breaker(given.table("breaker"), None);
        spec.kill_switch = given.text("kill_switch").unwrap_or(spec.kill_switch);
    }
    problems.into_result("run:iterations", place::of_caller(lua, &shared.texts)).map_err(|raised| raised.into_lua())?;
    if let Some(reader) = shared.reader().as_ref() {
        protected.extend(reader.protected());
    }
    protected.sort();
    protected.dedup();
    spec.protected = protected;
    Ok((run, spec))
}

async fn next(lua: Lua, pump: Arc<Pump>) -> mlua::Result<Value> {
    let own = Arc::clone(&pump);
    let opened = vm::effect(&lua, async move {
        let number = own.next().await?;
        Ok((number, own.observation().await.ok()))
    })
    .await?;
    match opened {
        (Some(number), Some(observation)) => {
            let iteration =
                lua.create_userdata(IterationObject::new(pump, number, records::observation(&observation)))?;
            Ok(Value::UserData(iteration))
        }
        _ => Ok(Value::Nil),
    }
}

/// `run:stop(reason)`
fn stop(lua: Lua, (this, reason): (Value, Value)) -> impl Future<Output = mlua::Result<ResultObject>> + Send {
    let prepared = this_run(&lua, &this, "stop(\"why\")").and_then(|(run, _)| {
        let reason = match &reason {
            Value::Nil => "stopped by the script".to_owned(),
            Value::String(text) => text.to_string_lossy(),
            other => {
                let message = format!("run:stop wants a string, got {}", show::short(other));
                return Err(place::raise(&lua, &Shared::of(&lua).texts, ErrorKind::Options, message));
            }
        };
        Ok((run, reason))
    });
    async move {
        let (run, reason) = prepared?;
        vm::effect(&lua, async move { run.stop(&reason).await }).await.map(ResultObject)
    }
}
