//! `lunation restore N`: the work tree as it was before iteration N of a run; 0 is the tree as the run found it.
//!
//! Guarantees that nothing is lost: the tree as it is now is saved first, and the command that brings it back is told.
//! Branches, HEAD and the index stay as they are. Refused while a run is at work.

use std::time::{Duration, Instant};

use lunation::journal::{Event, Recording};
use lunation::mechanism::repo::{
    Change, Checkpoint, LockHolder, RepoError, RepoLock, RestoreReport, Workspace, WorkspaceOptions, recover,
};
use lunation::policy::ExitCode;
use serde_json::json;

use crate::args::Restore;
use crate::exit_code::UsageError;
use crate::present::{Output, Tone, clean, count};
use crate::surroundings::{Here, Surroundings};

/// Paths that are shown.
const MOST_SHOWN: usize = 20;
/// How long the wardens of a run that was killed are waited for.
const HANDOVER: Duration = Duration::from_secs(15);

pub(crate) fn run(args: &Restore, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let here = around.here()?;
    let (id, what) = target(args, around)?;
    let lock = hold(&here)?;
    let options = around.repository_options();
    if let Some(recovered) = recover(&here.state, &lock, &options)? {
        out.remark(
            Tone::Warn,
            &format!("a run had been killed here, and was put back first: {}", recovered.intent.run),
        )?;
    }
    let mut workspace = Workspace::open(here.repository, &here.state, WorkspaceOptions::default())?;
    let to = workspace.load(&id)?;
    let undo = workspace.checkpoint()?;
    let changes = workspace.changes(&to)?;
    let report = workspace.restore(&to)?;
    tell(&what, &to, &undo, &changes.paths, &report, out)?;
    Ok(if report.conflicts.is_empty() { ExitCode::Verified } else { ExitCode::Unverified })
}

/// The checkpoint that is meant, and its name for people.
fn target(args: &Restore, around: &Surroundings) -> anyhow::Result<(String, String)> {
    if let Some(id) = &args.to {
        return Ok((id.clone(), format!("checkpoint {id}")));
    }
    let Some(number) = args.iteration else {
        return Err(UsageError::new(
            "restore what?",
            "`lunation restore 0` brings back the tree as the run found it, `lunation restore 3` the tree before iteration 3",
        )
        .into());
    };
    let run = around.run(&args.run)?;
    let recording = Recording::read(&run.dir)?;
    let found = recording.records.iter().rev().find_map(|record| match &record.event {
        Event::RunStarted(started) if number == 0 => Some(started.checkpoint.clone()),
        Event::IterationStarted { iteration, checkpoint, .. }
            if *iteration == number && args.path.as_ref().is_none_or(|path| *path == record.path) =>
        {
            Some(checkpoint.clone())
        }
        _ => None,
    });
    let what = match number {
        0 => format!("the start of run {}", run.id),
        _ => format!("the start of iteration {number} of run {}", run.id),
    };
    match found {
        Some(id) => Ok((id, what)),
        None => Err(UsageError::new(
            format!("run {} has no iteration {number}", run.id),
            "`lunation report` lists them; 0 is the tree as the run found it",
        )
        .into()),
    }
}

/// The lock. A run that was killed leaves it to its wardens until they are done, and that is waited for.
fn hold(here: &Here) -> anyhow::Result<RepoLock> {
    let who = LockHolder::this_process("restore", &jiff::Timestamp::now().to_string());
    let deadline = Instant::now() + HANDOVER;
    loop {
        match RepoLock::acquire(&here.state, &who) {
            Err(RepoError::Held { holder })
                if holder.as_ref().is_some_and(|holder| !holder.seems_alive()) && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(50));
            }
            lock => return Ok(lock?),
        }
    }
}

fn tell(
    what: &str,
    to: &Checkpoint,
    undo: &Checkpoint,
    changed: &[Change],
    report: &RestoreReport,
    out: &mut Output,
) -> anyhow::Result<()> {
    let undo_command = format!("lunation restore --to {}", undo.id);
    let conflicts: Vec<String> =
        report.conflicts.iter().map(|conflict| format!("{}: {}", conflict.path, conflict.why)).collect();
    if out.json() {
        let paths: Vec<String> = changed.iter().map(|change| change.path.to_string()).collect();
        return out.value(&json!({
            "restored": to.id, "exact": report.exact, "paths": paths, "written": report.written,
            "removed": report.removed, "conflicts": conflicts, "undo": undo_command,
        }));
    }
    if changed.is_empty() {
        return out.line(&format!("the work tree is as at {what} already: nothing changed"));
    }
    out.line(&format!("put back {} to {what}", count(changed.len() as u64, "path")))?;
    for change in changed.iter().take(MOST_SHOWN) {
        out.extra(&format!("  {}", clean(&change.path.to_string())))?;
    }
    if changed.len() > MOST_SHOWN {
        out.extra(&format!("  and {} more", changed.len() - MOST_SHOWN))?;
    }
    for conflict in &conflicts {
        out.line(&Tone::Bad.paint(&format!("not put back: {}", clean(conflict))))?;
    }
    out.line(&format!("undo this: {undo_command}"))
}
