//! `ln.judge`: an agent that judges the work by a rubric.

use mlua::{Lua, Value};

use super::objects::SensorObject;
use super::sensor::{common, finish};
use super::{Namespace, Shape, Signature, agent};
use crate::policy::{JudgeSpec, SensorSource, SensorSpec, read_prompt};
use crate::script::options::sensor_tables::JUDGE;
use crate::script::options::{Problems, Record, read_table};
use crate::script::vm::Shared;

const THRESHOLD: f64 = 80.0;

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "judge",
    shape: Shape::Function(Signature {
        doc: "An agent that judges the work by a rubric and ends its answer with `SCORE: n`, n from 0 to 100. Any other answer is broken, not red.",
        params: &[("opts", "lunation.JudgeOpts")],
        returns: Some("lunation.Sensor"),
    }),
    later: &[],
    make: |lua| Ok(Value::Function(lua.create_function(make)?)),
};

fn make(lua: &Lua, value: Value) -> mlua::Result<SensorObject> {
    let shared = Shared::of(lua);
    let mut problems = Problems::default();
    let mut record = read_table(&value, &JUDGE, "", &mut problems);
    let common = common(&shared, &mut record, "", &mut problems);
    let id = record.text("id").unwrap_or_else(|| "judge".into());
    let spec = judge(&shared, &mut record, &mut problems).map(|judge| SensorSpec {
        id,
        source: SensorSource::Judge(Box::new(judge)),
        // A verdict is taken once.
        confirm: 1,
        ..common
    });
    finish(lua, "ln.judge", spec, problems)
}

/// `None` only where a problem says why.
fn judge(shared: &Shared, record: &mut Record, problems: &mut Problems) -> Option<JudgeSpec> {
    let agents = record.any("agent").and_then(|given| agent::from_given(shared, given, "agent", problems));
    let rubric = record.text("rubric").and_then(|file| rubric(shared, &file, problems));
    let threshold = record.number("threshold").unwrap_or(THRESHOLD);
    if threshold > 100.0 {
        problems.add("threshold", format!("must be at most 100, got {threshold}"));
    }
    let mut agent = agents?.into_iter().next()?;
    if let Some(timeout) = record.duration("timeout") {
        agent.timeout = timeout;
    }
    let (rubric_file, rubric) = rubric?;
    Some(JudgeSpec { agent, rubric_file, rubric, task: record.text("task"), threshold })
}

/// The file's shown name and its text.
fn rubric(shared: &Shared, file: &str, problems: &mut Problems) -> Option<(String, String)> {
    let found = match shared.reader().as_mut() {
        Some(reader) => reader.prompt(file),
        None => return None,
    };
    let read = match found {
        Ok(found) => match read_prompt(&found.name, &found.bytes) {
            Ok(text) => Ok((found.name, text)),
            Err(problem) => Err(problem.to_string()),
        },
        Err(error) => Err(error.message.replace("the prompt file", "the file")),
    };
    read.map_err(|problem| problems.add("rubric", problem)).ok()
}
