//! Finding the iteration that `prompt` and `diff` are about.

use std::collections::BTreeSet;

use lunation::journal::{Recording, RunEntry};
use lunation::report::{IterationRow, Summary};

use crate::args::{IterationChoice, OfIteration};
use crate::exit_code::UsageError;
use crate::present::{Output, Tone, count};
use crate::surroundings::Surroundings;

/// An iteration of a run.
pub(super) struct Chosen {
    pub(super) run: RunEntry,
    pub(super) row: IterationRow,
}

/// The iteration that the arguments name; remarks about the choice go to standard error.
pub(super) fn choose(args: &OfIteration, around: &Surroundings, out: &mut Output) -> anyhow::Result<Chosen> {
    let run = around.run(&args.run)?;
    let recording = Recording::read(&run.dir)?;
    for problem in &recording.problems {
        out.remark(Tone::Bad, &format!("record: {}", problem.what))?;
    }
    let rows = Summary::of(&recording, false).iterations;
    let mut fitting = fitting(&rows, &args.iteration)?;
    let paths: BTreeSet<&str> = fitting.iter().map(|row| row.path.as_str()).collect();
    if paths.len() > 1 {
        let paths = paths.into_iter().collect::<Vec<_>>().join(", ");
        return Err(UsageError::new(
            format!("several loops of run {} have this iteration: {paths}", run.id),
            "name one with --path",
        )
        .into());
    }
    let number = fitting.len() as u64;
    let Some(row) = fitting.pop() else {
        return Err(UsageError::new(missing(&rows, &args.iteration, &run), "`lunation log` shows all of it").into());
    };
    if number > 1 && args.iteration.iteration.is_some() {
        out.remark(Tone::Warn, &format!("{} have this number; this is the last", count(number, "iteration")))?;
    }
    Ok(Chosen { row: row.clone(), run })
}

fn fitting<'r>(rows: &'r [IterationRow], choice: &IterationChoice) -> Result<Vec<&'r IterationRow>, UsageError> {
    let here: Vec<&IterationRow> =
        rows.iter().filter(|row| choice.path.as_ref().is_none_or(|path| *path == row.path)).collect();
    if let (Some(path), true, Some(row)) = (&choice.path, here.is_empty(), rows.first()) {
        let paths: BTreeSet<&str> = rows.iter().map(|row| row.path.as_str()).collect();
        let near = paths.iter().max_by_key(|known| (strsim::jaro_winkler(known, path) * 1000.0) as u64);
        return Err(UsageError::new(
            format!("no loop has the path `{path}`"),
            format!("did you mean --path {}?", near.unwrap_or(&row.path.as_str())),
        ));
    }
    Ok(match choice.iteration {
        Some(number) => here.into_iter().filter(|row| row.iteration == number).collect(),
        None => here.into_iter().next_back().into_iter().collect(),
    })
}

fn missing(rows: &[IterationRow], choice: &IterationChoice, run: &RunEntry) -> String {
    match (choice.iteration, rows.iter().map(|row| row.iteration).max()) {
        (_, None) => format!("run {} has no iterations", run.id),
        (Some(number), Some(last)) => format!("run {} has no iteration {number}: its last one is {last}", run.id),
        (None, Some(_)) => format!("run {} has no such iteration", run.id),
    }
}
