//! A policy whose answers are Lua functions.
//!
//! Owns the questions and the checks of their answers. Must not know how decisions are carried out. Guarantees that a
//! question sees the observation and nothing else, and that an answer that is no answer is an error at the function.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use mlua::{Function, MultiValue, Value};

use super::bindings::complete::Rule;
use super::bindings::objects::LoopObject;
use super::error::{ErrorKind, ScriptError};
use super::loaded::{engine_error, policy_error};
use super::records;
use super::vm::{Phase, Shared, Vm, call, place, show};
use crate::engine::{EngineError, Run};
use crate::policy::{Decision, DefaultPolicy, Observation, Policy, PolicyError, Verdict, read_prompt};

/// Asks a script's functions.
pub(super) struct LuaPolicy {
    vm: Vm,
    object: LoopObject,
    run: Run,
    /// The whole error of a function that failed; the engine carries only its text.
    failed: Mutex<Option<ScriptError>>,
}

/// Longest note of a decision, in bytes; it is shown in prompts.
const MOST_NOTE: usize = 2 << 10;

impl LuaPolicy {
    pub(super) fn new(vm: Vm, object: LoopObject, run: Run) -> LuaPolicy {
        LuaPolicy { vm, object, run, failed: Mutex::new(None) }
    }

    /// The error of a run, with all that is known of it when a function of the script caused it.
    pub(super) fn into_script_error(self, error: EngineError) -> ScriptError {
        let failed = self.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        match (&error, failed) {
            (EngineError::Policy(_), Some(failed)) => failed,
            _ => engine_error(&error),
        }
    }

    /// `pure`: no effect is allowed while it answers.
    async fn question<T: Send + 'static>(
        &self,
        hook: &'static str,
        pure: bool,
        function: &Function,
        observation: &Observation,
        judge: impl FnOnce(MultiValue) -> Result<T, String> + Send + 'static,
    ) -> Result<T, PolicyError> {
        let observation = records::observation(observation);
        let function = function.clone();
        let run = self.run.clone();
        let answer = self
            .vm
            .ask(move |lua| async move {
                let shared = Shared::of(&lua);
                let before = shared.set_phase(Phase::Asking { hook, pure, run });
                let answer = async {
                    let frozen = records::freeze(&lua, &observation, "o").map_err(|e| super::error::from_mlua(&e))?;
                    call(&lua, &shared, &function, frozen).await
                }
                .await;
                shared.set_phase(before);
                let wrong = |message| {
                    ScriptError::new(ErrorKind::Runtime, message).at(place::of_function(&function, &shared.texts))
                };
                answer.and_then(|values| judge(values).map_err(wrong)).map_err(|error| shared.with_source(error))
            })
            .await;
        answer.map_err(|mut error| {
            error.hook = Some(hook);
            let told = policy_error(&error);
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            told
        })
    }
}

#[async_trait]
impl Policy for LuaPolicy {
    async fn prompt(&self, observation: &Observation) -> Result<String, PolicyError> {
        let Some(function) = &self.object.functions.prompt else {
            return Err(PolicyError::Failed { message: "this loop has no prompt function".into(), place: None });
        };
        self.question("prompt", false, function, observation, |values| match values.front() {
            Some(Value::String(text)) => {
                read_prompt("the prompt that this function returned", &text.as_bytes()).map_err(|e| e.to_string())
            }
            other => Err(format!("a prompt function returns a string, got {}", got(other))),
        })
        .await
    }

    async fn slot(&self, name: &str, observation: &Observation) -> Result<String, PolicyError> {
        let Some(function) = self.object.functions.slots.get(name) else {
            return Err(PolicyError::Failed { message: format!("the slot `{name}` has no function"), place: None });
        };
        self.question("read", false, function, observation, |values| match values.front() {
            Some(Value::String(text)) => Ok(text.to_string_lossy()),
            None | Some(Value::Nil) => Ok(String::new()),
            other => Err(format!("a slot's function returns a string, got {}", got(other))),
        })
        .await
    }

    async fn decide(&self, observation: &Observation) -> Result<Verdict, PolicyError> {
        match &self.object.functions.decide {
            Some(function) => self.question("decide", true, function, observation, |values| verdict(&values)).await,
            None => Ok(DefaultPolicy.verdict(observation)),
        }
    }

    async fn complete(&self, observation: &Observation) -> Result<Option<(bool, Option<String>)>, PolicyError> {
        if let Some(rule) = &self.object.rule {
            return Ok(Some((Rule::holds(rule, observation), None)));
        }
        match &self.object.functions.complete {
            Some(function) => {
                self.question("complete", true, function, observation, |values| completion(&values)).await
            }
            None => Ok(None),
        }
    }

    async fn on_stall(&self, observation: &Observation) -> Result<Option<Verdict>, PolicyError> {
        match &self.object.functions.on_stall {
            Some(function) => {
                self.question("on_stall", true, function, observation, |values| match values.front() {
                    None | Some(Value::Nil) => Ok(None),
                    Some(_) => verdict(&values).map(Some),
                })
                .await
            }
            None => Ok(None),
        }
    }

    async fn on_iteration(&self, observation: &Observation) -> Result<(), PolicyError> {
        match &self.object.functions.on_iteration {
            Some(function) => self.question("on_iteration", false, function, observation, |_| Ok(())).await,
            None => Ok(()),
        }
    }
}

fn got(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Nil) => "nothing".into(),
        Some(value) => show::short(value),
    }
}

/// A decision's name and a note.
fn verdict(values: &MultiValue) -> Result<Verdict, String> {
    let names = || Decision::NAMES.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let decision = match values.front() {
        Some(Value::String(name)) => {
            let name = name.to_string_lossy();
            Decision::NAMES.iter().find(|(known, _)| *known == name).map(|(_, decision)| *decision).ok_or_else(
                || {
                    let hint = super::nearest::did_you_mean(&name, Decision::NAMES.iter().map(|(known, _)| *known));
                    format!("this function must return one of {}, got \"{name}\"{hint}", names())
                },
            )?
        }
        other => {
            return Err(format!("this function must return one of {} and perhaps a note, got {}", names(), got(other)));
        }
    };
    Ok(Verdict { decision, note: note(values.get(1))? })
}

fn completion(values: &MultiValue) -> Result<Option<(bool, Option<String>)>, String> {
    match values.front() {
        Some(Value::Boolean(done)) => Ok(Some((*done, note(values.get(1))?))),
        None | Some(Value::Nil) => Ok(Some((false, note(values.get(1))?))),
        other => Err(format!("`complete` must return true or false and perhaps a remark, got {}", got(other))),
    }
}

fn note(value: Option<&Value>) -> Result<Option<String>, String> {
    match value {
        None | Some(Value::Nil) => Ok(None),
        Some(Value::String(text)) => Ok(Some(crate::policy::cap_feedback(&text.to_string_lossy(), MOST_NOTE, None))),
        Some(other) => Err(format!("the note must be a string, got {}", show::short(other))),
    }
}
