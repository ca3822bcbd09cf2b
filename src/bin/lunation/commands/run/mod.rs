//! `lunation run`: the loop at work, told line by line.
//!
//! Owns trust at the start, signals, the telling, and the last words. The work itself is the host's.

pub(crate) mod ending;
pub(crate) mod events;
pub(crate) mod happenings;
pub(crate) mod printer;
pub(crate) mod signals;
mod trusting;

use std::io::Write as _;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lunation::host::{HostBuilder, Outcome, Script};
use lunation::journal::Record;
use lunation::policy::ExitCode;
use serde_json::Value;

use self::ending::Ended;
use self::events::EventStream;
use self::happenings::{Happenings, Line};
use self::printer::{Printer, Target, Teller};
use self::signals::Signals;
use super::runtime;
use crate::args::{Global, Run};
use crate::present::{self, Tone};
use crate::surroundings::Surroundings;

/// How long a run that was left at once may take to put its open iteration back.
const LEAVING: Duration = Duration::from_secs(3);
/// How long everything of ours may take to be gone then.
const KILLING: Duration = Duration::from_secs(3);

/// Runs a script.
pub(crate) fn run(global: &Global, args: &Run, around: &Surroundings) -> anyhow::Result<ExitCode> {
    runtime()?.block_on(to_the_end(global, args, around))
}

async fn to_the_end(global: &Global, args: &Run, around: &Surroundings) -> anyhow::Result<ExitCode> {
    let script = args.script.script();
    let builder = around.host()?.input(Value::Object(args.script.merged_input()));
    let for_program = global.json || args.events.is_some();
    trusting::settle(&builder.clone().build()?, &script, args.trust, !for_program).await?;
    let telling = Telling { events: args.events.is_some(), narrator: None };
    let printer = Printer::start(if for_program { Target::Stderr } else { Target::Stdout }, global.quiet)?;
    let driven = drive(builder, script, telling, &printer, around).await;
    let ended = driven.and_then(|outcome| Ok((ending::of(&outcome, &around.folder)?, outcome)));
    match ended {
        Ok((ended, outcome)) => {
            let code = exit_code(&outcome);
            if !tell_end(printer, &ended, global, args.events.is_some()) {
                // Whoever flushed standard output now would wait for the same reader.
                std::process::exit(i32::from(code.number()));
            }
            Ok(code)
        }
        Err(error) => {
            printer.finish();
            Err(error)
        }
    }
}

/// Adds lines of its own to those of a record.
pub(crate) type Narrator = Box<dyn FnMut(&Record) -> Vec<Line> + Send>;

/// How a run is told.
pub(crate) struct Telling {
    /// Records go to standard output.
    pub(crate) events: bool,
    /// Lines of somebody else between ours.
    pub(crate) narrator: Option<Narrator>,
}

/// Runs a script to its end, with signals and telling.
pub(crate) async fn drive(
    builder: HostBuilder,
    script: Script,
    telling: Telling,
    printer: &Printer,
    around: &Surroundings,
) -> anyhow::Result<Outcome> {
    let signals = Signals::listen()?;
    let teller = printer.teller();
    let mut builder = builder.subscribe_records(listener(teller.clone(), telling.narrator));
    let events = match telling.events {
        true => {
            let stream = EventStream::start()?;
            builder = builder.subscribe_records(stream.listener(around.runs()?));
            Some(stream)
        }
        false => None,
    };
    let mut handle = builder.build()?.run(script);
    let canceller = handle.canceller();
    let outcome = tokio::select! {
        outcome = &mut handle => outcome,
        () = signals.hand_to(canceller.clone(), teller.clone()) => {
            let left = tokio::task::block_in_place(|| canceller.kill_all(KILLING));
            match tokio::time::timeout(LEAVING, &mut handle).await {
                Ok(outcome) => outcome,
                Err(_) => leave(left, &teller),
            }
        }
    };
    if events.is_some_and(|events| !events.finish()) {
        // Whoever flushed standard output now would wait for the same reader.
        let code = outcome.as_ref().map_or(ExitCode::Unverified, exit_code);
        std::process::exit(i32::from(code.number()));
    }
    Ok(outcome?)
}

/// The last resort: the run does not come back, and nothing of it is left running but this process.
fn leave(left: usize, teller: &Teller) -> ! {
    if left > 0 {
        teller.line(Tone::Bad, format!("{left} commands could not be confirmed gone"));
    }
    teller.line(Tone::Bad, "left at once: the next `lunation run` here puts the open iteration back first");
    std::process::exit(i32::from(ExitCode::Signal(2).number()))
}

fn listener(teller: Teller, narrator: Option<Narrator>) -> impl Fn(&Record) + Send + Sync + 'static {
    let state = Arc::new(Mutex::new((Happenings::default(), narrator)));
    move |record| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (happenings, narrator) = &mut *state;
        let told = happenings.tell(record);
        told.lines.into_iter().for_each(|line| teller.tell(line));
        if let Some(busy) = told.busy {
            teller.busy(busy);
        }
        if let Some(narrator) = narrator {
            narrator(record).into_iter().for_each(|line| teller.tell(line));
        }
    }
}

/// Tells the last words; false when nobody takes them.
fn tell_end(printer: Printer, ended: &Ended, global: &Global, events: bool) -> bool {
    let teller = printer.teller();
    teller.line(Tone::Plain, "");
    ended.paragraph.iter().cloned().for_each(|line| teller.tell(line));
    teller.tell(ended.last.clone());
    let taken = printer.finish();
    if taken {
        tell_error(ended, global, events);
    }
    let last = match (global.json, global.quiet, events) {
        (true, _, false) => serde_json::to_string(&ended.summary),
        (false, true, false) => Ok(ended.last.text.clone()),
        _ => return taken,
    };
    // A reader that is gone does not change how the run ended.
    let told = last.map_err(std::io::Error::from).and_then(|text| writeln!(std::io::stdout(), "{text}"));
    if let Err(error) = told {
        tracing::debug!(%error, "the end could not be told");
    }
    taken
}

/// An error that ended the run is told on standard error too, where it was not printed there already.
fn tell_error(ended: &Ended, global: &Global, events: bool) {
    let was_on_stderr = (global.json || events) && !global.quiet;
    let was_seen = !global.quiet && is_same(std::io::stdout(), std::io::stderr());
    let Some(error) = ended.summary.error.as_ref().filter(|_| !was_on_stderr && !was_seen) else { return };
    let mut err = anstream::stderr().lock();
    if let Err(error) = present::error(&mut err, &present::clean_lines(error), None) {
        tracing::debug!(%error, "the error could not be told");
    }
}

/// True when both are the same file, pipe or terminal, so that what is printed on one is seen with the other.
fn is_same(one: impl AsFd, other: impl AsFd) -> bool {
    match (rustix::fs::fstat(one), rustix::fs::fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

/// The exit code that the record tells.
pub(crate) fn exit_code(outcome: &Outcome) -> ExitCode {
    match outcome.ended.exit_code {
        0 => ExitCode::Verified,
        2 => ExitCode::CapReached,
        3 => ExitCode::Waiting,
        4 => ExitCode::Usage,
        5 => ExitCode::Refused,
        signal @ 129.. => ExitCode::Signal(i32::from(signal) - 128),
        _ => ExitCode::Unverified,
    }
}
