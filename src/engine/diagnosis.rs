//! The written diagnosis of a breaker: what a person needs who finds the loop stopped in the morning.

use crate::policy::{BreakerKind, Observation};

/// A short text in Markdown.
pub(super) fn write(o: &Observation, loop_id: &str, breaker: BreakerKind) -> String {
    let (what, advice) = match breaker {
        BreakerKind::Failures => (
            "turns failed in a row",
            "Run the agent by hand with the same prompt (`lunation prompt N`) and look at its error. If the provider has trouble, run again later.",
        ),
        BreakerKind::Unchanged => (
            "iterations in a row changed nothing",
            "Read what the agent answered (`lunation log`). Often the prompt asks for something that the write scope forbids, or the work is done already and no check says so.",
        ),
        BreakerKind::Instant => (
            "turns ended at once with nothing",
            "The agent probably does not start rightly: a wrong model name, no login, a refused nested session. Start it by hand in this folder.",
        ),
        BreakerKind::Thrash => (
            "the same states came again and again",
            "Two checks may contradict each other. Compare the rolled-back attempts below.",
        ),
    };
    let mut text = format!("# Loop `{loop_id}` stopped: {what}\n\n{advice}\n\n");
    if let Some(turn) = &o.turn {
        text.push_str(&format!(
            "Last turn: {} ended as `{}` after {:.1} s{}.\n{}\n",
            turn.agent,
            turn.outcome.name(),
            turn.duration_s,
            turn.exit.map(|code| format!(", exit code {code}")).unwrap_or_default(),
            turn.error.as_deref().unwrap_or(&turn.summary),
        ));
    }
    text.push_str("\n| iteration | decision | failing | note |\n|---|---|---|---|\n");
    for entry in o.history.iter().rev().take(10).rev() {
        text.push_str(&format!(
            "| {} | {} | {} | {} |\n",
            entry.iteration,
            entry.decision.name(),
            entry.failing.map(|n| n.to_string()).unwrap_or_else(|| "not sensed".into()),
            entry.note.as_deref().unwrap_or("").replace('|', "/").replace('\n', " "),
        ));
    }
    if !o.tried.is_empty() {
        text.push_str(&format!("\n## Tried and rolled back\n\n{}\n", o.tried));
    }
    if !o.feedback.is_empty() {
        text.push_str(&format!("\n## What the checks say\n\n~~~\n{}\n~~~\n", o.feedback));
    }
    text
}
