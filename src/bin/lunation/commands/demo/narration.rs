//! What a newcomer is told between the lines of the run: what the agent is about to do, and what lunation did about it.

use lunation::journal::{Event, Record};
use lunation::policy::Decision;

use super::super::run::happenings::Line;
use crate::present::Tone;

/// What is told before anything runs.
pub(super) const OPENING: &[&str] = &[
    "A small project in shell was made: three checks, two of which fail, and a loop.lua of ten lines.",
    "A scripted agent works on it. It misbehaves first, in four ways that real agents do, and then does its work.",
    "Git, the checks and the processes are real. No key, no network.",
];

/// The lines that follow those of a record.
pub(super) fn after(record: &Record) -> Vec<Line> {
    let text = match &record.event {
        Event::IterationStarted { iteration, .. } => match iteration {
            1 => "The agent is told to make the checks pass. It will edit a test instead.",
            2 => "Now it fixes one bug, and leaves a process running in the background.",
            3 => "Now it commits to your branch, although nobody asked for that.",
            4 => "Now it breaks a check that passed before.",
            _ => "Now it fixes the last bug.",
        },
        Event::Fenced { .. } => {
            "^ The fence: the agent may write src/** only, so the test is as it was. Nothing else changed."
        }
        Event::TurnEnded { turn, .. } if !turn.left_behind.is_empty() => {
            "^ The reaper: a turn is over when every process of it is gone. This one was found and ended."
        }
        Event::Guarded { .. } => {
            "^ The guard: the branch, HEAD and the index are as they were. What it wrote is still in the tree."
        }
        Event::RolledBack { .. } => {
            "^ The rollback: more checks failed than before, so the tree is as it was, byte for byte."
        }
        Event::Decided { verdict, complete: Some(true), .. } if verdict.decision == Decision::Keep => {
            "^ The finish: all checks pass on the tree as it is. That is what verified means here."
        }
        _ => return Vec::new(),
    };
    vec![Line::new(Tone::Dim, format!("    {text}"))]
}
