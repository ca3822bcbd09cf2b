//! `lunation log`: everything that happened, in order, one line or one JSON object for each record.

use std::collections::VecDeque;

use lunation::journal::{Event, Item, Record, RecordReader};
use lunation::policy::ExitCode;

use crate::args::Log;
use crate::exit_code::UsageError;
use crate::present::{Output, Tone, clean, event_line, seconds};
use crate::surroundings::Surroundings;

/// Names less alike than this are not suggested.
const NEAR: f64 = 0.8;

pub(crate) fn run(args: &Log, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let run = around.run(&args.run)?;
    check_kinds(&args.kind)?;
    if !out.json() {
        out.extra(&Tone::Strong.paint(&format!("run {}", run.id)))?;
    }
    let mut reader = RecordReader::open(&run.dir)?;
    // With `--last` only that many are held, however long the journal is.
    let mut held = VecDeque::new();
    while let Some(item) = reader.next_item()? {
        match item {
            Item::Problem(problem) => out.remark(Tone::Bad, &format!("record: {}", problem.what))?,
            Item::Record(record) if wanted(&record, &args.kind) => match args.last {
                None => show(&record, out)?,
                Some(most) => {
                    held.push_back(record);
                    if held.len() > most as usize {
                        held.pop_front();
                    }
                }
            },
            Item::Record(_) => {}
        }
    }
    for record in held {
        show(&record, out)?;
    }
    if reader.torn_tail() {
        out.remark(Tone::Warn, "record: the last record was cut off; all before it is whole")?;
    }
    Ok(ExitCode::Verified)
}

fn show(record: &Record, out: &mut Output) -> anyhow::Result<()> {
    if out.json() {
        return out.value(record);
    }
    let (tone, text) = event_line(&record.event);
    let time = Tone::Dim.paint(&format!("{:>8}", seconds(record.awake_s)));
    let path = if record.path.is_empty() { String::new() } else { format!("{}  ", clean(&record.path)) };
    out.line(&format!("{time}  {}{}", Tone::Dim.paint(&path), tone.paint(&text)))
}

fn wanted(record: &Record, kinds: &[String]) -> bool {
    kinds.is_empty() || kinds.iter().any(|kind| kind == record.event.kind())
}

fn check_kinds(kinds: &[String]) -> Result<(), UsageError> {
    for kind in kinds {
        if !Event::KINDS.contains(&kind.as_str()) {
            let near = Event::KINDS
                .iter()
                .map(|known| (strsim::jaro_winkler(known, kind), known))
                .filter(|(likeness, _)| *likeness >= NEAR)
                .max_by(|(a, _), (b, _)| a.total_cmp(b));
            let near = near.map(|(_, near)| format!("did you mean {near}? ")).unwrap_or_default();
            return Err(UsageError::new(
                format!("there is no kind of record called `{kind}`"),
                format!("{near}All kinds: {}", Event::KINDS.join(", ")),
            ));
        }
    }
    Ok(())
}
