//! `lunation demo`: what the program does, shown on a small broken project. No key, no network, half a minute.
//!
//! Exits with 0 only when everything that it promises was really seen.

mod narration;
mod project;
mod proof;

use std::path::Path;

use anyhow::Context as _;
use lunation::host::{Host, Outcome, Script, TrustMode};
use lunation::policy::ExitCode;
use serde_json::json;

use self::project::Project;
use self::proof::Seen;
use super::run::happenings::Line;
use super::run::printer::{Printer, Target};
use super::run::{Narrator, Telling, drive, ending, exit_code};
use super::runtime;
use crate::args::Demo;
use crate::present::{Output, Tone, clean};
use crate::quoting::quoted;
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &Demo, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let folder = tempfile::Builder::new()
        .prefix("lunation-demo-")
        .disable_cleanup(args.keep)
        .tempdir()
        .context("no temporary folder can be made")?;
    let project = Project::make(folder.path())?;
    let printer = Printer::start(if out.json() { Target::Stderr } else { Target::Stdout }, out.quiet())?;
    let shown = runtime()?.block_on(show(&project, around, &printer));
    printer.finish();
    let (outcome, seen) = shown?;
    let all = seen.iter().all(|seen| seen.ok);
    if out.json() {
        out.value(&json!({ "ok": all, "seen": seen, "outcome": outcome, "kept": args.keep.then_some(&project.root) }))?;
    } else {
        say_goodbye(&project, folder.path(), args.keep, out)?;
    }
    if !args.keep {
        let path = folder.path().to_owned();
        folder.close().with_context(|| format!("{} cannot be removed", path.display()))?;
    }
    Ok(match (all, exit_code(&outcome)) {
        (true, _) => ExitCode::Verified,
        (false, ExitCode::Verified) => ExitCode::Unverified,
        // A run that was interrupted is no failed demonstration.
        (false, code) => code,
    })
}

async fn show(project: &Project, around: &Surroundings, printer: &Printer) -> anyhow::Result<(Outcome, Vec<Seen>)> {
    let teller = printer.teller();
    for line in narration::OPENING {
        teller.line(Tone::Plain, *line);
    }
    let script = project.root.join("loop.lua");
    teller.line(Tone::Plain, "");
    for line in std::fs::read_to_string(&script)?.lines() {
        teller.line(Tone::Dim, format!("    {line}"));
    }
    teller.line(Tone::Plain, "");
    let mut builder =
        Host::builder().root(&project.root).state(&project.state).ambient(around.vars.clone()).trust(TrustMode::Accept);
    if let Some(tier) = around.tier()? {
        builder = builder.tier(tier);
    }
    let narrator: Narrator = Box::new(narration::after);
    let telling = Telling { events: false, narrator: Some(narrator) };
    let there = Surroundings { folder: project.root.clone(), ..around.clone() };
    let outcome = drive(builder, Script::File(script), telling, printer, &there).await?;
    teller.line(Tone::Plain, "");
    // What to type to keep or drop it is for a project that stays.
    ending::of(&outcome, &project.root)?.paragraph.into_iter().take(2).for_each(|line| teller.tell(line));
    let seen = proof::of(&outcome, project)?;
    teller.line(Tone::Plain, "");
    teller.line(Tone::Strong, "What was seen, in the journal, in git and in the process table:");
    for seen in &seen {
        let (tone, mark) = if seen.ok { (Tone::Good, "yes") } else { (Tone::Bad, "NO ") };
        teller.tell(Line::new(tone, format!("  {mark}  {}", seen.what)));
        teller.tell(Line::new(Tone::Dim, format!("       {}", clean(&seen.evidence))));
    }
    Ok((outcome, seen))
}

fn say_goodbye(project: &Project, folder: &Path, keep: bool, out: &mut Output) -> anyhow::Result<()> {
    out.extra("")?;
    if keep {
        let root = quoted(&project.root.display().to_string());
        let state = quoted(&project.state.display().to_string());
        out.line(&format!("The project was kept: {}", project.root.display()))?;
        out.extra(&format!("  look at it:  cd {root} && git diff && LUNATION_HOME={state} lunation report"))?;
        out.extra(&format!("  remove it:   rm -rf {}", quoted(&folder.display().to_string())))?;
    } else {
        out.line("The project was removed; `lunation demo --keep` leaves it for you to look at.")?;
    }
    out.extra("next: go into a repository of your own and type `lunation init`")
}
