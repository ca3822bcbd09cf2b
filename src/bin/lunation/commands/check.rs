//! `lunation check`: is the script right? Loads it, launches nothing, and needs no trust, since loading has no effects.

use lunation::policy::ExitCode;
use serde_json::json;

use super::plan::loaded;
use crate::args::Check;
use crate::present::{Output, Tone, clean, count};
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &Check, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let plan = loaded(&args.script, around)?;
    if out.json() {
        out.value(&json!({ "ok": true, "script": plan.script, "warnings": plan.warnings, "trusted": plan.trusted }))?;
        return Ok(ExitCode::Verified);
    }
    let what = match &plan.spec {
        Some(spec) => format!(
            "a loop with {} and {}",
            count(spec.agents.len() as u64, "agent"),
            count(spec.sensors.len() as u64, "sensor")
        ),
        None => "a function over a run".to_owned(),
    };
    out.line(&format!("{} {}: {what}", Tone::Good.paint("OK"), plan.script.display()))?;
    for warning in &plan.warnings {
        out.line(&format!("{} {}", Tone::Warn.paint("warning:"), clean(warning)))?;
    }
    let next = if plan.trusted { "lunation run" } else { "lunation trust && lunation run" };
    out.extra(&Tone::Dim.paint(&format!("next: {next}")))?;
    Ok(ExitCode::Verified)
}
