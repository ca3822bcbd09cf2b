//! `lunation stop`: asks the run that is at work here to end. It reaches the run through a file, never by a signal.

use lunation::host::{StopRequest, ask_to_stop};
use lunation::mechanism::repo::RepoLock;
use lunation::policy::ExitCode;
use serde_json::json;

use crate::args::Stop;
use crate::present::{Output, Tone};
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &Stop, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let here = around.here()?;
    let Some(holder) = RepoLock::holder(&here.state)? else {
        if out.json() {
            out.value(&json!({ "run": null, "asked": false }))?;
        } else {
            out.line("no run is at work here: there is nothing to stop")?;
        }
        return Ok(ExitCode::Unverified);
    };
    ask_to_stop(&here.state, &StopRequest { run: holder.run.clone(), now: args.now })?;
    if out.json() {
        out.value(&json!({ "run": holder.run, "asked": true, "now": args.now }))?;
        return Ok(ExitCode::Verified);
    }
    let how = match args.now {
        true => "to abort its iteration, roll it back and end",
        false => "to end after its current iteration",
    };
    out.line(&format!("asked run {} (process {} on {}) {how}", holder.run, holder.pid, holder.host))?;
    if !args.now {
        out.extra(
            &Tone::Dim
                .paint("`lunation stop --now` does not wait for the iteration; `lunation status` shows where it is"),
        )?;
    }
    Ok(ExitCode::Verified)
}
