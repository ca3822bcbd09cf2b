//! `lunation diff N`: what an iteration changed, and whether that was kept.

use lunation::journal::blob;
use lunation::policy::{Decision, ExitCode};
use lunation::report::IterationRow;
use serde_json::json;

use super::iteration::{self, Chosen};
use crate::args::OfIteration;
use crate::present::{Output, Tone, clean};
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &OfIteration, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let Chosen { run, row } = iteration::choose(args, around, out)?;
    let diff = row.diff.as_ref().map(|id| blob(&run.dir, id)).transpose()?;
    if out.json() {
        out.value(&json!({
            "run": run.id,
            "path": row.path,
            "iteration": row.iteration,
            "decision": row.decision,
            "note": row.note,
            "unchanged": row.unchanged,
            "files": row.files,
            "lines": row.lines,
            "diff": diff.as_ref().map(|diff| String::from_utf8_lossy(diff)),
        }))?;
        return Ok(ExitCode::Verified);
    }
    let (tone, what) = fate(&row);
    out.remark(tone, &what)?;
    if let Some(diff) = diff {
        out.content(&diff)?;
    }
    Ok(ExitCode::Verified)
}

/// What became of the change.
fn fate(row: &IterationRow) -> (Tone, String) {
    let note = row.note.as_ref().map(|note| format!(": {}", clean(note))).unwrap_or_default();
    let (tone, what) = match (row.unchanged, row.decision) {
        (None, _) => (Tone::Warn, "ended before its change was looked at"),
        (Some(true), _) => (Tone::Warn, "changed nothing"),
        (Some(false), None) => (Tone::Warn, "is not decided"),
        (Some(false), Some(Decision::Keep)) => (Tone::Good, "was kept"),
        (Some(false), Some(Decision::Rollback)) => (Tone::Bad, "was rolled back"),
        (Some(false), Some(Decision::Stall | Decision::Escalate)) => (Tone::Warn, "was no progress; its change stayed"),
        (Some(false), Some(Decision::Stop)) => (Tone::Plain, "was the last; its change stayed"),
    };
    (tone, format!("iteration {} {what}{note}", row.iteration))
}
