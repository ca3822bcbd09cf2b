//! `ln.sh`: a command in the workspace.

use mlua::{Lua, Value};

use super::{Namespace, Shape, Signature, effect};
use crate::engine::Run;
use crate::policy::{CommandLine, CommandSpec};
use crate::script::options::schema::Kind;
use crate::script::options::tables::SH;
use crate::script::options::{Given, Problems, read};
use crate::script::records;
use crate::script::vm::{Shared, place};

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "sh",
    shape: Shape::Function(Signature {
        doc: "Runs a command in the workspace and waits for it; all its processes end with it. An exit code that is not 0 is no error. Inside of an open iteration, fence and guard hold for it too.",
        params: &[("cmd", "string|lunation.ShOpts")],
        returns: Some("lunation.CmdResult"),
    }),
    later: &[],
    make: |lua| {
        let function = lua.create_async_function(|lua: Lua, value: Value| {
            let prepared = prepare(&lua, &value);
            async move {
                let (run, spec) = prepared?;
                let result = crate::script::vm::effect(&lua, async move { run.command(&spec).await }).await?;
                records::freeze(&lua, &records::plain(&result), "result")
            }
        })?;
        Ok(Value::Function(function))
    },
};

static LINE: Kind = Kind::Either(&[Kind::AnyText, Kind::Table(&SH)]);

fn prepare(lua: &Lua, value: &Value) -> mlua::Result<(Run, CommandSpec)> {
    let mut problems = Problems::default();
    let spec = match read(value, &LINE, "", &mut problems) {
        Some(Given::Text(line)) => CommandSpec::new(CommandLine::Shell(line)),
        Some(Given::Table(mut record)) => {
            let line = record.command_of_list();
            record.command_spec(line)
        }
        _ => CommandSpec::new(CommandLine::Words(Vec::new())),
    };
    if spec.line.is_blank() && problems.is_empty() {
        problems.add("", "there is no command: write ln.sh \"git status\" or ln.sh{ \"git\", \"status\" }");
    }
    let shared = Shared::of(lua);
    problems.into_result("ln.sh", place::of_caller(lua, &shared.texts)).map_err(|raised| raised.into_lua())?;
    let run = effect::allowed(
        lua,
        "ln.sh",
        "do it in a function of the run (`return function(run) … end`), as a sensor, or as `context = { … }` of a loop",
    )?;
    Ok((run, spec))
}
