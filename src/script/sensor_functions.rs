//! Functions of a script that belong to its sensors: `parse`, `check` and `hint`.
//!
//! Owns the questions and the checks of their answers. Must not know when a sensor is read. Guarantees that one of them
//! is asked at a time, and that an answer that is no answer is an error that says so.

use std::sync::Arc;

use async_trait::async_trait;
use mlua::{IntoLua, Lua, MultiValue, Value};
use serde::Deserialize;

use super::bindings::objects::WorkspaceObject;
use super::error::{ErrorKind, ScriptError, from_mlua};
use super::records;
use super::vm::{Phase, Shared, Vm, call, place, show};
use crate::engine::Run;
use crate::mechanism::sensor::Parsed;
use crate::policy::{Reading, ScriptFunction};
use crate::world::{CommandResult, ScriptFunctions};

/// Names of failing items that are taken from a script's own parser.
const MOST_ITEMS: usize = 200;
/// Longest text of a hint or reason, in bytes.
const MOST_TEXT: usize = 8 << 10;

/// Asks a script's functions.
pub(super) struct LuaSensorFunctions {
    vm: Vm,
    run: Run,
    turn: tokio::sync::Mutex<()>,
}

impl LuaSensorFunctions {
    pub(super) fn new(vm: Vm, run: Run) -> Arc<LuaSensorFunctions> {
        Arc::new(LuaSensorFunctions { vm, run, turn: tokio::sync::Mutex::new(()) })
    }

    /// `pure`: no effect is allowed while it answers.
    async fn ask<T: Send + 'static>(
        &self,
        hook: &'static str,
        pure: bool,
        function: &ScriptFunction,
        argument: impl FnOnce(&Lua) -> mlua::Result<Value> + Send + 'static,
        judge: impl FnOnce(MultiValue) -> Result<T, String> + Send + 'static,
    ) -> anyhow::Result<T> {
        let _turn = self.turn.lock().await;
        let (number, run) = (function.number, self.run.clone());
        let answer = self.vm.ask(move |lua| async move {
            let shared = Shared::of(&lua);
            let Some(function) = shared.kept(number) else {
                return Err(ScriptError::new(
                    ErrorKind::Runtime,
                    format!("the script has no function number {number}"),
                ));
            };
            let before = shared.set_phase(Phase::Asking { hook, pure, run });
            let answer = async {
                let argument = argument(&lua).map_err(|error| from_mlua(&error))?;
                call(&lua, &shared, &function, argument).await
            }
            .await;
            shared.set_phase(before);
            let wrong = |message| {
                ScriptError::new(ErrorKind::Runtime, message).at(place::of_function(&function, &shared.texts))
            };
            answer.and_then(|values| judge(values).map_err(wrong)).map_err(|error| shared.with_source(error))
        });
        let answer: Result<T, ScriptError> = answer.await;
        answer.map_err(|mut error| {
            error.hook = Some(hook);
            anyhow::anyhow!("{error}")
        })
    }
}

#[async_trait]
impl ScriptFunctions for LuaSensorFunctions {
    async fn parse(&self, function: &ScriptFunction, output: &CommandResult) -> anyhow::Result<Parsed> {
        let output = records::plain(output);
        let argument = move |lua: &Lua| records::freeze(lua, &output, "out");
        self.ask("parse", true, function, argument, |values| parsed(values.front())).await
    }

    async fn check(&self, function: &ScriptFunction) -> anyhow::Result<(bool, Option<String>)> {
        let root = self.run.workspace().display().to_string();
        let argument = move |lua: &Lua| WorkspaceObject(root).into_lua(lua);
        self.ask("check", false, function, argument, |values| checked(&values)).await
    }

    async fn hint(&self, function: &ScriptFunction, reading: &Reading) -> anyhow::Result<Option<String>> {
        let reading = records::reading(reading);
        let argument = move |lua: &Lua| records::freeze(lua, &reading, "reading");
        self.ask("hint", true, function, argument, |values| match values.front() {
            None | Some(Value::Nil) => Ok(None),
            Some(value) => text("a hint function", value).map(Some),
        })
        .await
    }
}

fn text(what: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(crate::policy::cap_feedback(&text.to_string_lossy(), MOST_TEXT, None)),
        other => Err(format!("{what} returns a string or nil, got {}", show::short(other))),
    }
}

fn checked(values: &MultiValue) -> Result<(bool, Option<String>), String> {
    let holds = match values.front() {
        Some(Value::Boolean(holds)) => *holds,
        other => return Err(format!("a check returns true or false, and a reason, got {}", got(other))),
    };
    let reason = match values.get(1) {
        None | Some(Value::Nil) => None,
        Some(value) => Some(text("as reason a check", value)?),
    };
    Ok((holds, reason))
}

fn got(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Nil) => "nothing".into(),
        Some(value) => show::short(value),
    }
}

/// What a parser may return.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    failing: Option<u64>,
    total: Option<u64>,
    score: Option<f64>,
    summary: Option<String>,
    #[serde(default)]
    items: Option<Vec<String>>,
}

fn parsed(value: Option<&Value>) -> Result<Parsed, String> {
    const SHAPE: &str =
        "a parser returns { failing = 2, total = 57, score = 0.5, summary = \"…\", items = {…} } or parts of it";
    let Some(table @ Value::Table(_)) = value else { return Err(format!("{SHAPE}, got {}", got(value))) };
    let mut json = super::data::to_json(table)?;
    // An empty table of Lua has no shape.
    if json.get("items").is_some_and(|items| items.as_object().is_some_and(serde_json::Map::is_empty)) {
        json["items"] = serde_json::json!([]);
    }
    let answer: Answer = serde_json::from_value(json).map_err(|error| format!("{SHAPE}: {error}"))?;
    if let (Some(failing), Some(total)) = (answer.failing, answer.total)
        && failing > total
    {
        return Err(format!("this parser says that {failing} of {total} fail"));
    }
    let mut items = answer.items.unwrap_or_default();
    items.truncate(MOST_ITEMS);
    Ok(Parsed { failing: answer.failing, total: answer.total, score: answer.score, summary: answer.summary, items })
}
