//! What a script turned out to be, and how it is run.

use std::sync::Arc;

use mlua::{Function, Value};

use super::bindings::objects::LoopObject;
use super::bindings::run::{ResultObject, RunObject};
use super::error::{ErrorKind, Place, ScriptError};
use super::manifest::Manifest;
use super::policy::LuaPolicy;
use super::source::Source;
use super::vm::{Phase, Shared, Vm, call, place, show};
use crate::engine::{EngineError, Run, RunResult};
use crate::policy::{LoopSpec, PolicyError, Reason};

/// What a script returned.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A loop, with every default filled in.
    Loop(Box<LoopSpec>),
    /// A function over a run.
    Function,
}

/// A script that was loaded: checked, and not yet run.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What it returned.
    pub kind: Kind,
    /// Every file that was read for it.
    pub manifest: Manifest,
    /// Paths that no agent of it may write, relative to the workspace: script, modules, prompt files.
    pub protected: Vec<String>,
    entry: Entry,
}

#[derive(Debug, Clone)]
enum Entry {
    Loop(Box<LoopObject>),
    Function(Function),
}

impl Loaded {
    /// The loop, where the script is one; `None` for a function, whose loops are known only while it runs.
    pub fn spec(&self) -> Option<&LoopSpec> {
        match &self.kind {
            Kind::Loop(spec) => Some(spec),
            Kind::Function => None,
        }
    }
}

/// Judges what the script's file returned.
pub(super) fn from_returned(shared: &Arc<Shared>, source: &Source, value: Value) -> Result<Loaded, ScriptError> {
    read_named_prompts(shared);
    let guard = shared.reader();
    let (manifest, protected) = match guard.as_ref() {
        Some(reader) => (reader.manifest.clone(), reader.protected()),
        None => (Manifest::default(), Vec::new()),
    };
    drop(guard);
    let (kind, entry) = match &value {
        Value::UserData(data) if data.is::<LoopObject>() => {
            let mut object = data.borrow::<LoopObject>().map_err(|e| super::error::from_mlua(&e))?.clone();
            object.protect(&protected);
            (Kind::Loop(Box::new(object.spec.clone())), Entry::Loop(Box::new(object)))
        }
        Value::Function(function) => (Kind::Function, Entry::Function(function.clone())),
        other => {
            let got = match other {
                Value::Nil => "nothing".to_owned(),
                other => show::short(other),
            };
            return Err(ScriptError::new(
                ErrorKind::Options,
                format!(
                    "this script returns {got}: end it with `return ln.loop{{…}}`, or with `return function(run) … end` \
                     for a loop by hand"
                ),
            )
            .at(Some(Place { file: source.name.clone(), line: None })));
        }
    };
    Ok(Loaded { kind, manifest, protected, entry })
}

/// Prompt files that a function script names as a plain string are read now, not when it comes to them: what an agent
/// of the same run wrote into them since is not what the author meant. Names that are computed are read when asked for.
fn read_named_prompts(shared: &Shared) {
    let mut reader = shared.reader();
    let Some(reader) = reader.as_mut() else { return };
    for file in shared.texts.prompt_names() {
        // A name that does not exist is reported by ln.prompt itself, with its line.
        let _ = reader.prompt(&file);
    }
}

/// Runs a loaded script.
pub(super) async fn run(vm: &Vm, loaded: &Loaded, run: Run) -> Result<RunResult, ScriptError> {
    let shared = Arc::clone(vm.shared());
    shared.set_runtime(tokio::runtime::Handle::current());
    let before = shared.set_phase(Phase::Running(run.clone()));
    let result = match &loaded.entry {
        Entry::Loop(object) => drive(vm, object, &run).await,
        Entry::Function(function) => run_function(vm, function.clone(), run, loaded.protected.clone()).await,
    };
    shared.set_phase(before);
    result
}

async fn drive(vm: &Vm, object: &LoopObject, run: &Run) -> Result<RunResult, ScriptError> {
    let seed = object.spec.seed.unwrap_or_else(|| run.random());
    vm.ask(move |lua| async move { seed_vm(&lua, seed) }).await?;
    let policy = LuaPolicy::new(vm.clone(), object.clone(), run.clone());
    run.drive(object.spec.clone(), &policy).await.map_err(|error| policy.into_script_error(error))
}

fn seed_vm(lua: &mlua::Lua, seed: u64) -> Result<(), ScriptError> {
    super::vm::inside(lua).seed(seed).map_err(|error| super::error::from_mlua(&error))
}

async fn run_function(vm: &Vm, function: Function, run: Run, protected: Vec<String>) -> Result<RunResult, ScriptError> {
    let seed = run.random();
    let own = run.clone();
    let shared = Arc::clone(vm.shared());
    let returned = vm
        .ask(move |lua| async move {
            seed_vm(&lua, seed)?;
            let object = RunObject::new(own, protected);
            let input = super::bindings::input::frozen(&lua).map_err(|e| super::error::from_mlua(&e))?;
            let mut returned = call(&lua, &shared, &function, (object, input)).await?;
            judge_end(&shared, &function, &returned.pop_front().unwrap_or(Value::Nil))
        })
        .await?;
    match returned {
        Returned::Result(result) => Ok(*result),
        Returned::Loop(object) => drive(vm, &object, &run).await,
        Returned::Nothing => run.stop("the script returned").await.map_err(|error| engine_error(&error)),
    }
}

enum Returned {
    Result(Box<RunResult>),
    Loop(Box<LoopObject>),
    Nothing,
}

fn judge_end(shared: &Shared, function: &Function, value: &Value) -> Result<Returned, ScriptError> {
    match value {
        Value::Nil => Ok(Returned::Nothing),
        Value::UserData(data) if data.is::<ResultObject>() => {
            let object = data.borrow::<ResultObject>().map_err(|e| super::error::from_mlua(&e))?;
            Ok(Returned::Result(Box::new(object.0.clone())))
        }
        Value::UserData(data) if data.is::<LoopObject>() => {
            let object = data.borrow::<LoopObject>().map_err(|e| super::error::from_mlua(&e))?;
            Ok(Returned::Loop(Box::new(object.clone())))
        }
        other => Err(ScriptError::new(
            ErrorKind::Runtime,
            format!(
                "the script's function returned {}: return it:done(\"why\"), run:stop(\"why\"), a loop, or nothing",
                show::short(other)
            ),
        )
        .at(place::of_function(function, &shared.texts))),
    }
}

/// An error of the engine that no script raised.
pub(super) fn engine_error(error: &EngineError) -> ScriptError {
    let kind = match error {
        error if error.is_cancelled() => ErrorKind::Cancelled,
        EngineError::Spec(_) | EngineError::Scope(_) => ErrorKind::Options,
        _ => ErrorKind::Runtime,
    };
    let mut out = ScriptError::new(kind, error.to_string());
    out.reason = Some(error.reason());
    out
}

/// The same for an error that came out of a policy's question.
pub(super) fn policy_error(error: &ScriptError) -> PolicyError {
    match error.kind {
        ErrorKind::Cancelled => PolicyError::Cancelled,
        _ => PolicyError::Failed { message: error.to_string(), place: error.place.as_ref().map(ToString::to_string) },
    }
}

impl ScriptError {
    /// Why a run ends that meets this error.
    pub fn run_reason(&self) -> Reason {
        self.reason.unwrap_or(match self.kind {
            ErrorKind::Cancelled => Reason::Interrupted,
            _ => Reason::ScriptError,
        })
    }
}
