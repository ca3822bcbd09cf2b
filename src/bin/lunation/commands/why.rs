//! `lunation why`: why a run stands where it stands, or why an iteration was kept or rolled back.

use lunation::journal::Recording;
use lunation::policy::ExitCode;
use lunation::report::{Summary, Why};

use crate::args::Why as Args;
use crate::exit_code::UsageError;
use crate::present::{Output, clean_lines};
use crate::surroundings::Surroundings;

pub(crate) fn run(args: &Args, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let run = around.run(&args.run)?;
    let recording = Recording::read(&run.dir)?;
    let summary = Summary::of(&recording, Recording::is_being_written(&run.dir));
    let Some(why) = Why::of(&recording, &summary, args.iteration) else {
        let message = format!("iteration {} of run {} was never decided", args.iteration.unwrap_or_default(), run.id);
        return Err(UsageError::new(message, "`lunation log` shows how far it got").into());
    };
    if out.json() {
        out.value(&why)?;
    } else {
        out.line(clean_lines(&why.to_text()).trim_end())?;
    }
    Ok(ExitCode::Verified)
}
