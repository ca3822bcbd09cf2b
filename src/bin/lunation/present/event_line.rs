//! One line for each event, for `log` and for whoever watches a run.

use lunation::journal::Event;
use lunation::policy::{Decision, Outcome, Reading, ReadingState, Sense, SlotSize, TurnSummary};

use super::{Tone, count, seconds, short};

/// Longest part of a line that comes from agents, sensors or scripts, in characters.
const MOST: usize = 160;

/// The line of an event, and how it is meant. Text of others in it is clean and cut.
pub(crate) fn event_line(event: &Event) -> (Tone, String) {
    match event {
        Event::RunStarted(started) => {
            let script = started.script.as_ref().map_or("a policy in Rust", |script| script.path.as_str());
            let dirty = if started.dirty { ", with changes of your own in the tree" } else { "" };
            (Tone::Strong, format!("run started: {}, containment: {}{dirty}", short(script, MOST), started.tier))
        }
        Event::LoopStarted { spec, .. } => {
            let agents = spec.agents.iter().map(|agent| agent.label()).collect::<Vec<_>>().join(", then ");
            let sensors = count(spec.sensors.len() as u64, "sensor");
            (Tone::Plain, format!("loop `{}` started: {}, {sensors}", short(&spec.id, MOST), short(&agents, MOST)))
        }
        Event::Baseline { sense } => (Tone::Plain, format!("before the first iteration: {}", sensed(sense))),
        Event::IterationStarted { iteration, rung, agent, .. } => {
            let rung = if *rung > 1 { format!(" (rung {rung})") } else { String::new() };
            (Tone::Strong, format!("iteration {iteration}: {}{rung}", short(agent, MOST)))
        }
        Event::Prompted { bytes, slots, .. } => {
            let of = |slot: &SlotSize| match slot.bytes == slot.of {
                true => format!("{} {}", slot.name, slot.bytes),
                false => format!("{} {} of {}", slot.name, slot.bytes, slot.of),
            };
            let slots: Vec<String> = slots.iter().map(of).collect();
            let slots = if slots.is_empty() { String::new() } else { format!(" ({})", slots.join(", ")) };
            (Tone::Dim, format!("prompt of {}{slots}", count(*bytes, "byte")))
        }
        Event::TurnEnded { turn, .. } => turn_line(turn),
        Event::Guarded { undone, .. } => (Tone::Warn, format!("guard put back: {}", listed(undone))),
        Event::Fenced { paths, .. } => (Tone::Warn, format!("fence reverted: {}", listed(paths))),
        Event::Changed { change, .. } if change.empty => (Tone::Warn, "nothing changed".into()),
        Event::Changed { change, .. } => {
            let what = format!("{} and {}", count(change.file_count, "file"), count(change.lines, "line"));
            (Tone::Plain, format!("changed {what}: {}", listed(&change.files)))
        }
        Event::Fixed { sensor, exit, duration_s, .. } => {
            (Tone::Dim, format!("fix of {} {} in {}", short(sensor, MOST), ended(*exit), seconds(*duration_s)))
        }
        Event::Sensed { sense, carried, .. } => {
            let tone = if sense.broken || !sense.ok { Tone::Plain } else { Tone::Good };
            let carried = if *carried { " (the tree is the same)" } else { "" };
            (tone, format!("{}{carried}", sensed(sense)))
        }
        Event::Decided { iteration, verdict, complete, .. } => {
            let (tone, what) = match verdict.decision {
                Decision::Keep => (Tone::Good, "kept"),
                Decision::Rollback => (Tone::Bad, "rolled back"),
                Decision::Stall => (Tone::Warn, "no progress"),
                Decision::Escalate => (Tone::Warn, "no progress, the ladder is climbed"),
                Decision::Stop => (Tone::Strong, "stopped by decision of the policy"),
            };
            // A loop that is complete says so below.
            let note = verdict.note.as_ref().filter(|note| *note != "complete");
            let note = note.map(|note| format!(": {}", short(note, MOST))).unwrap_or_default();
            let complete = match complete {
                Some(true) => ", complete and verified",
                Some(false) => ", complete but not verified",
                None => "",
            };
            (tone, format!("iteration {iteration} {what}{note}{complete}"))
        }
        Event::RolledBack { restored, conflicts, .. } if conflicts.is_empty() => {
            (Tone::Plain, format!("put back {}", count(*restored, "path")))
        }
        Event::RolledBack { restored, conflicts, .. } => {
            (Tone::Bad, format!("put back {}, but not: {}", count(*restored, "path"), listed(conflicts)))
        }
        Event::IterationEnded { usage, .. } => {
            (Tone::Dim, format!("iteration ended, {} so far", seconds(usage.wall_s)))
        }
        Event::RungChanged { from, to, why } => {
            (Tone::Warn, format!("ladder: rung {from} to {to}: {}", short(why, MOST)))
        }
        Event::BackedOff { seconds: wait, why } => {
            (Tone::Warn, format!("waits {}: {}", seconds(*wait), short(why, MOST)))
        }
        Event::BreakerOpened { diagnosis, .. } => {
            let first = diagnosis.lines().next().unwrap_or_default();
            (Tone::Bad, format!("breaker opened: {}", short(first.trim_start_matches(['#', ' ']), MOST)))
        }
        Event::Command { line, exit, duration_s, .. } => {
            (Tone::Plain, format!("command {} in {}: {}", ended(*exit), seconds(*duration_s), short(line, MOST)))
        }
        Event::Interrupted { by, how } => (Tone::Warn, format!("asked to end {how}, by {}", short(by, MOST))),
        Event::Suspended { seconds: slept } => (Tone::Dim, format!("the machine slept for {}", seconds(*slept))),
        Event::Noted { level, text } => (level_tone(level), short(text, 2 * MOST)),
        Event::Logged { level, text } => (level_tone(level), format!("script: {}", short(text, 2 * MOST))),
        Event::Committed { commit, paths } => {
            let short_id = commit.get(..12).unwrap_or(commit);
            (Tone::Good, format!("committed {} as {short_id}", count(paths.len() as u64, "path")))
        }
        Event::Capped { cap } => {
            (Tone::Bad, format!("the record reached its cap of {cap} bytes; what follows is left out but for the end"))
        }
        Event::RunEnded(ended) => {
            let tone = if ended.verified { Tone::Good } else { Tone::Bad };
            let verified = if ended.verified { "verified" } else { "not verified" };
            (tone, format!("run ended: {}, {verified}: {}", ended.reason.name(), short(&ended.summary, MOST)))
        }
        // Events of later versions of the library.
        _ => (Tone::Dim, "an event that this program has no words for; see it with --json".into()),
    }
}

fn turn_line(turn: &TurnSummary) -> (Tone, String) {
    let tone = if turn.outcome == Outcome::Done { Tone::Plain } else { Tone::Warn };
    let said = turn.error.as_deref().unwrap_or(&turn.summary);
    let said = if said.is_empty() { String::new() } else { format!(": {}", short(said, MOST)) };
    let left = match turn.left_behind.len() {
        0 => String::new(),
        _ => format!("; ended what it left behind: {}", listed(&turn.left_behind)),
    };
    (tone, format!("turn ended as {} after {}{said}{left}", turn.outcome.name(), seconds(turn.duration_s)))
}

fn sensed(sense: &Sense) -> String {
    if sense.readings.is_empty() {
        return "no sensors".into();
    }
    sense.readings.iter().map(reading).collect::<Vec<_>>().join("; ")
}

fn reading(reading: &Reading) -> String {
    let state = match (reading.state, reading.failing) {
        (ReadingState::Passed, _) => "passed".to_owned(),
        (ReadingState::Failed, _) if reading.timed_out => "out of time".to_owned(),
        (ReadingState::Failed, Some(failing)) => format!("{failing} failing"),
        (ReadingState::Failed, None) => "failed".to_owned(),
        (ReadingState::Broken, _) => format!("broken ({})", short(&reading.summary, MOST)),
    };
    format!("{}: {state}", short(&reading.id, MOST))
}

fn ended(exit: Option<i32>) -> String {
    exit.map_or_else(|| "was killed".to_owned(), |code| format!("ended with {code}"))
}

/// How many names are shown before the rest is counted.
const MOST_LISTED: usize = 5;

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(MOST_LISTED).map(|name| short(name, MOST)).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn level_tone(level: &str) -> Tone {
    match level {
        "error" => Tone::Bad,
        "warn" => Tone::Warn,
        "debug" => Tone::Dim,
        _ => Tone::Plain,
    }
}
