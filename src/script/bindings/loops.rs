//! `ln.loop`: a loop, from its options to its spec.

use mlua::{Lua, Value};

use super::objects::{CompleteObject, Functions, LoopObject};
use super::{Namespace, Shape, Signature, agent, complete::Rule, prompt, sensor};
use crate::policy::{
    AgentSpec, Breaker, Budget, Callbacks, CommandSpec, CommitSpec, Completion, FenceSpec, LoopSpec, PromptSource,
};
use crate::script::options::tables::LOOP;
use crate::script::options::{Given, Problems, Record, read_table};
use crate::script::vm::{Shared, place};

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "loop",
    shape: Shape::Function(Signature {
        doc: "A loop: one agent, one prompt, again and again, until its checks hold. A script returns it.",
        params: &[("opts", "lunation.LoopOpts")],
        returns: Some("lunation.Runnable"),
    }),
    later: &[],
    make: |lua| Ok(Value::Function(lua.create_function(make)?)),
};

fn make(lua: &Lua, value: Value) -> mlua::Result<LoopObject> {
    let shared = Shared::of(lua);
    let mut problems = Problems::default();
    let record = read_table(&value, &LOOP, "", &mut problems);
    let object = build(&shared, record, &mut problems);
    if let Some(object) = &object
        && let Err(errors) = object.spec.check()
    {
        for error in errors {
            // What the reader said about a field is more precise.
            if !problems.mention(&error.field) {
                problems.add(&error.field, error.problem);
            }
        }
    }
    problems.into_result("ln.loop", place::of_caller(lua, &shared.texts)).map_err(|raised| raised.into_lua())?;
    match object {
        Some(object) => Ok(object),
        None => Err(mlua::Error::runtime("ln.loop: no loop and no problem")),
    }
}

/// `None` only where a problem says why.
fn build(shared: &Shared, mut given: Record, problems: &mut Problems) -> Option<LoopObject> {
    let agents = given.any("agent").and_then(|value| agent::from_given(shared, value, "agent", problems));
    let mut functions = Functions::default();
    let mut slots = Vec::new();
    let source = match given.any("prompt") {
        Some(Given::Function(function)) => {
            functions.prompt = Some(function);
            Some(PromptSource::Function)
        }
        Some(value) => prompt::from_given(&value, "prompt", problems).map(|prompt| {
            slots = prompt.slots;
            functions.slots = prompt.readers;
            PromptSource::Text { template: prompt.text, file: prompt.file }
        }),
        None => None,
    };
    let sensors_given = given.fields.contains_key("sensors");
    let sensors =
        given.any("sensors").map(|value| sensor::from_given(shared, value, "sensors", problems)).unwrap_or_default();
    // What follows reads all other options too, so that their problems are told with these.
    let mut spec = LoopSpec::new(placeholder(), "");
    let has_sensors = !sensors.is_empty() || (sensors_given && problems.mention("sensors"));
    spec.slots = slots;
    spec.sensors = sensors;
    spec.id = given.text("id").unwrap_or(spec.id);
    spec.jobs = given.count("jobs").unwrap_or(spec.jobs);
    spec.context = context(given.list("context").unwrap_or_default());
    spec.fence = fence(given.any("fence"));
    spec.patience = given.count("patience").unwrap_or(spec.patience);
    spec.step_down = given.count("step_down").unwrap_or(spec.step_down);
    let max_iterations = given.count("max_iterations");
    spec.budget = budget(given.table("budget"), max_iterations, problems);
    let ladder = agents.as_ref().is_some_and(|agents| agents.len() > 1);
    spec.breaker = breaker(given.table("breaker"), ladder.then_some(spec.patience));
    spec.kill_switch = given.text("kill_switch").unwrap_or(spec.kill_switch);
    if let Some(bytes) = given.bytes("feedback_bytes") {
        spec.feedback_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    spec.commit = given.table("commit").and_then(|mut commit| Some(CommitSpec { message: commit.text("message")? }));
    spec.seed = given.integer("seed");
    functions.decide = given.function("decide");
    functions.on_stall = given.function("on_stall");
    functions.on_iteration = given.function("on_iteration");
    let mut rule = None;
    match given.any("complete") {
        Some(Given::Function(function)) => functions.complete = Some(function),
        Some(Given::Object(data)) => {
            let written = data.borrow::<CompleteObject>().ok()?.0.clone();
            if written.needs_sensors() && !has_sensors {
                problems.add("complete", "hangs on sensors, and this loop has none: add sensors = { \"cargo test\" }");
            }
            if let Some(n) = written.most_needed()
                && has_sensors
                && n as usize > spec.sensors.len()
            {
                problems
                    .add("complete", format!("wants {n} sensors to pass, and this loop has {}", spec.sensors.len()));
            }
            match written.plain(has_sensors) {
                Some(plain) => spec.completion = plain,
                None => rule = Some(written),
            }
        }
        _ => spec.completion = Completion::default_for(None, has_sensors),
    }
    if let Some(Rule::Any(_) | Rule::All(_)) = &rule {
        // The policy judges; the plain completion below it never completes by itself.
        spec.completion = Completion::default_for(None, has_sensors);
    }
    spec.callbacks = Callbacks {
        decide: functions.decide.is_some(),
        complete: functions.complete.is_some() || rule.is_some(),
        on_stall: functions.on_stall.is_some(),
        on_iteration: functions.on_iteration.is_some(),
    };
    spec.agents = agents?;
    spec.prompt = source?;
    Some(LoopObject { spec, functions, rule })
}

/// Stands in until the agents are known; never part of a loop that is returned.
fn placeholder() -> AgentSpec {
    AgentSpec::command(["agent"])
}

fn context(list: Vec<Given>) -> Vec<CommandSpec> {
    list.into_iter()
        .filter_map(|given| match given {
            Given::Command(line) => Some(CommandSpec::new(line)),
            _ => None,
        })
        .collect()
}

/// What a checked `fence` means.
pub(super) fn fence(given: Option<Given>) -> FenceSpec {
    match given {
        Some(list @ Given::List(_)) => FenceSpec { allow: globs(Some(list)), ..FenceSpec::default() },
        Some(Given::Table(mut table)) => FenceSpec {
            allow: globs(table.any("allow")),
            deny: globs(table.any("deny")),
            watch_ignored: table.text("ignored").is_some_and(|what| what == "watch"),
        },
        _ => FenceSpec::default(),
    }
}

fn globs(given: Option<Given>) -> Vec<String> {
    match given {
        Some(Given::List(list)) => crate::script::options::given::texts(list),
        _ => Vec::new(),
    }
}

fn budget(given: Option<Record>, max_iterations: Option<u32>, problems: &mut Problems) -> Budget {
    let mut budget = Budget::default();
    if let Some(mut given) = given {
        let iterations = given.count("iterations");
        if let (Some(inside), Some(beside)) = (iterations, max_iterations) {
            problems.add(
                "max_iterations",
                format!("is {beside} and budget.iterations is {inside}: they are the same option, write one of them"),
            );
        }
        limits(&mut budget, &mut given, iterations);
    }
    budget.iterations = max_iterations.or(budget.iterations);
    budget
}

/// The limits that `budget = {…}` and `run:iterations{…}` share.
pub(super) fn limits(budget: &mut Budget, given: &mut Record, iterations: Option<u32>) {
    budget.iterations = iterations.or(budget.iterations);
    budget.wall = given.duration("wall").or(budget.wall);
    budget.tokens = given.integer("tokens").or(budget.tokens);
    budget.cost_usd = given.number("cost_usd").or(budget.cost_usd);
}

/// What a checked `breaker` means. With a ladder, stalls are what makes it climb, so more of them are let pass.
pub(super) fn breaker(given: Option<Record>, patience_of_ladder: Option<u32>) -> Breaker {
    let mut breaker = Breaker::default();
    if let Some(patience) = patience_of_ladder {
        breaker.unchanged = patience.saturating_mul(3).max(breaker.unchanged);
    }
    let Some(mut given) = given else { return breaker };
    breaker.failures = given.count("failures").unwrap_or(breaker.failures);
    breaker.unchanged = given.count("unchanged").unwrap_or(breaker.unchanged);
    breaker.instant = given.count("instant").unwrap_or(breaker.instant);
    breaker.instant_s = given.count("instant_s").unwrap_or(breaker.instant_s);
    breaker.transient = given.count("transient").unwrap_or(breaker.transient);
    breaker.thrash = given.count("thrash").unwrap_or(breaker.thrash);
    breaker.diagnosis = given.text("diagnosis");
    breaker
}

/// Slots of `it:turn` are cut at this.
pub(super) const SLOT_BYTES: usize = 16 << 10;
