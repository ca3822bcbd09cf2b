//! `lunation plan`: what a run would do, with every default filled in, and what it would launch. No effect.

use lunation::host::{Plan, Script};
use lunation::policy::units::show_duration;
use lunation::policy::{
    AgentSource, Budget, Completion, ExitCode, LoopSpec, Mode, PromptSource, SensorSource, SensorSpec, Strategy,
};
use serde_json::Value;

use super::runtime;
use crate::args::{self, ScriptChoice};
use crate::present::{Output, Tone, clean, count};
use crate::surroundings::Surroundings;

/// Loads the script that was asked for.
pub(super) fn loaded(choice: &ScriptChoice, around: &Surroundings) -> anyhow::Result<Plan> {
    let host = around.host()?.input(Value::Object(choice.merged_input())).build()?;
    Ok(runtime()?.block_on(host.check(choice.script()))?)
}

impl ScriptChoice {
    /// The script that was asked for.
    pub(crate) fn script(&self) -> Script {
        match self.file.as_ref().or(self.named.as_ref()) {
            Some(file) => Script::File(file.clone()),
            None => Script::Find,
        }
    }
}

pub(crate) fn run(args: &args::Plan, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let plan = loaded(&args.script, around)?;
    if out.json() {
        out.value(&plan)?;
        return Ok(ExitCode::Verified);
    }
    let trusted = if plan.trusted { Tone::Good.paint("trusted") } else { Tone::Warn.paint("not trusted yet") };
    out.line(&format!("script      {} ({trusted})", plan.script.display()))?;
    for (file, digest) in &plan.files {
        out.line(&format!("              {}  {file}", &digest[..digest.len().min(16)]))?;
    }
    out.line(&format!("workspace   {}", plan.root.display()))?;
    match &plan.spec {
        Some(spec) => {
            for line in of_loop(spec, &plan) {
                out.line(&line)?;
            }
        }
        None => {
            out.line("loop        by hand: the script is a function over a run, and says only then what it does")?
        }
    }
    for warning in &plan.warnings {
        out.line(&format!("{} {}", Tone::Warn.paint("warning:"), clean(warning)))?;
    }
    out.extra(&Tone::Dim.paint("nothing was launched"))?;
    Ok(ExitCode::Verified)
}

fn of_loop(spec: &LoopSpec, plan: &Plan) -> Vec<String> {
    let mut lines = vec![format!("loop        {}", clean(&spec.id))];
    for (at, agent) in spec.agents.iter().enumerate() {
        let name = if at == 0 { "agents" } else { "" };
        let program = plan.agents.get(at).and_then(|found| found.program.as_ref());
        let program = program.map(|program| format!(": {}", program.display())).unwrap_or_default();
        lines.push(format!("{name:11} {}. {}{program}", at + 1, clean(&agent.label())));
        if let AgentSource::Command(argv) = &agent.source {
            lines.push(format!("              runs {}", clean(&argv.join(" "))));
        }
        let silence =
            agent.silence.map(|silence| format!(", {} of silence", show_duration(silence))).unwrap_or_default();
        lines.push(format!("              a turn may take {}{silence}", show_duration(agent.timeout)));
    }
    lines.push(format!("prompt      {}", of_prompt(&spec.prompt)));
    for command in &spec.context {
        lines.push(format!("context     {}", clean(&command.line.show())));
    }
    lines.extend(of_sensors(&spec.sensors, spec.jobs));
    lines.extend(of_fence(spec));
    lines.push(format!("complete    {}", of_completion(&spec.completion, spec)));
    lines.push(format!("budget      {}", of_budget(&spec.budget)));
    let breaker = &spec.breaker;
    lines.push(format!(
        "breaker     {} failed, {} unchanged or {} instant (under {}s) iterations in a row",
        breaker.failures, breaker.unchanged, breaker.instant, breaker.instant_s
    ));
    lines.push(format!(
        "ladder      climbs after {}, steps down after {} good iterations",
        count(u64::from(spec.patience), "stall"),
        spec.step_down
    ));
    lines.push(format!("stop file   {}", clean(&spec.kill_switch)));
    lines.push(match &spec.commit {
        Some(commit) => format!("result      committed on your branch as: {}", clean(&commit.message)),
        None => "result      stays in the work tree; nothing is committed".into(),
    });
    let own = [
        (spec.callbacks.decide, "decide"),
        (spec.callbacks.complete, "complete"),
        (spec.callbacks.on_stall, "on_stall"),
        (spec.callbacks.on_iteration, "on_iteration"),
    ];
    let own: Vec<&str> = own.iter().filter(|(asked, _)| *asked).map(|(_, name)| *name).collect();
    if !own.is_empty() {
        lines.push(format!("functions   {}", own.join(", ")));
    }
    lines
}

fn of_prompt(prompt: &PromptSource) -> String {
    match prompt {
        PromptSource::Text { file: Some(file), template } => {
            format!("{} ({})", clean(file), count(template.len() as u64, "byte"))
        }
        PromptSource::Text { file: None, template } => crate::present::short(template, 100),
        PromptSource::Function => "asked of the script before each iteration".into(),
    }
}

fn of_sensors(sensors: &[SensorSpec], jobs: u32) -> Vec<String> {
    let mut lines = Vec::new();
    for sensor in sensors {
        let (what, limit) = match &sensor.source {
            SensorSource::Command(command) => (clean(&command.line.show()), show_duration(command.timeout)),
            SensorSource::Function(name) => (format!("function {}", clean(name)), "no limit".into()),
        };
        let name = if lines.is_empty() { "sensors" } else { "" };
        let id = if sensor.id == what { String::new() } else { format!("{}: ", clean(&sensor.id)) };
        lines.push(format!("{name:11} {id}{what} (at most {limit})"));
        if let Some(fix) = &sensor.fix {
            lines.push(format!("              fixed by {}", clean(&fix.line.show())));
        }
    }
    match sensors {
        [] => vec!["sensors     none".into()],
        [_] => lines,
        _ => {
            lines.push(format!("              {} at a time", jobs));
            lines
        }
    }
}

fn of_fence(spec: &LoopSpec) -> Vec<String> {
    let allow = if spec.fence.allow.is_empty() { "everything".into() } else { clean(&spec.fence.allow.join(", ")) };
    let mut deny = spec.fence.deny.clone();
    deny.extend(spec.protected.iter().cloned());
    let mut lines = vec![format!("fence       may write {allow}")];
    if !deny.is_empty() {
        lines.push(format!("              never {}", clean(&deny.join(", "))));
    }
    if spec.fence.watch_ignored {
        lines.push("              paths that git ignores are fenced too".into());
    }
    lines
}

fn of_completion(completion: &Completion, spec: &LoopSpec) -> String {
    if spec.callbacks.complete {
        return "asked of the script after each iteration".into();
    }
    let checks = match completion.strategy {
        Strategy::All => "all sensors pass".to_owned(),
        Strategy::Any => "one sensor passes".to_owned(),
        Strategy::NOf(n) => format!("{n} sensors pass"),
    };
    let said = completion.sentinel.as_ref().map(|word| format!("the agent's last line is `{}`", clean(word)));
    match (completion.mode, said) {
        (Mode::Verify, Some(said)) => format!("when {said} and {checks}"),
        (Mode::LlmOnly, Some(said)) => format!("when {said}; no check verifies it"),
        _ if spec.sensors.is_empty() => "never: there is nothing that could complete it".into(),
        _ => format!("when {checks}"),
    }
}

fn of_budget(budget: &Budget) -> String {
    let mut parts = Vec::new();
    parts.extend(budget.iterations.map(|n| count(u64::from(n), "iteration")));
    parts.extend(budget.wall.map(show_duration));
    parts.extend(budget.tokens.map(|n| count(n, "token")));
    parts.extend(budget.cost_usd.map(|dollars| format!("${dollars:.2}")));
    parts.join(", ")
}
