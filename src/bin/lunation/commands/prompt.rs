//! `lunation prompt N`: the exact prompt of an iteration, byte for byte as it was recorded.

use lunation::journal::blob;
use lunation::policy::ExitCode;
use serde_json::json;

use super::iteration::{self, Chosen};
use crate::args::OfIteration;
use crate::exit_code::UsageError;
use crate::present::Output;
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &OfIteration, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let Chosen { run, row } = iteration::choose(args, around, out)?;
    let Some(id) = &row.prompt else {
        let message = format!("iteration {} of run {} ended before it had a prompt", row.iteration, run.id);
        return Err(UsageError::new(message, "`lunation why` tells why").into());
    };
    let prompt = blob(&run.dir, id)?;
    if out.json() {
        out.value(&json!({
            "run": run.id,
            "path": row.path,
            "iteration": row.iteration,
            "sha256": id,
            "bytes": prompt.len(),
            "slots": row.slots,
            "prompt": String::from_utf8_lossy(&prompt),
        }))?;
    } else {
        out.content(&prompt)?;
    }
    Ok(ExitCode::Verified)
}
