//! `lunation trust`: remembers a script, with every module that it loads, as it is now.

use lunation::policy::ExitCode;

use super::runtime;
use crate::args::Trust;
use crate::present::{Output, Tone};
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &Trust, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let input = serde_json::Value::Object(args.script.merged_input());
    let host = around.host()?.input(input).build()?;
    let plan = runtime()?.block_on(host.grant_trust(args.script.script()))?;
    if out.json() {
        out.value(&plan)?;
        return Ok(ExitCode::Verified);
    }
    out.line(&format!("trusted as it is now: {}", plan.script.display()))?;
    for (file, digest) in &plan.files {
        out.extra(&format!("  {digest}  {file}"))?;
    }
    for warning in &plan.warnings {
        out.remark(Tone::Warn, &format!("warning: {warning}"))?;
    }
    out.extra(&Tone::Dim.paint("a change of any of these asks again; next: lunation run"))?;
    Ok(ExitCode::Verified)
}
