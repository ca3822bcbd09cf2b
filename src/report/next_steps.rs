//! What to type next, by where a run stands.

use serde::Serialize;

use super::summary::{RunState, Summary};
use crate::policy::{BreakerKind, Reason};

/// A command and what it is good for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NextStep {
    /// As it is typed.
    pub command: String,
    /// What it does, or why now.
    pub what: String,
}

fn step(command: impl Into<String>, what: &str) -> NextStep {
    NextStep { command: command.into(), what: what.into() }
}

/// The next steps, the likeliest first; at least one. `reason` is why the run ended, when it did.
pub fn next_steps(summary: &Summary, reason: Option<Reason>) -> Vec<NextStep> {
    let last = summary.iterations.last().map(|row| row.iteration);
    let log = || step("lunation log", "shows all that happened");
    let again = |what| step("lunation run", what);
    let prompt = |what| last.map(|n| step(format!("lunation prompt {n}"), what));
    let reason = match (summary.state, reason) {
        (RunState::Running, _) => {
            return vec![
                step("lunation status", "shows where it is now"),
                step("lunation stop", "ends it after the current iteration"),
            ];
        }
        (RunState::Unfinished, _) | (RunState::Ended, None) => {
            return vec![
                step("git status", "shows the tree as the run left it"),
                log(),
                again("cleans up what the dead run left, and starts a new one"),
            ];
        }
        (RunState::Ended, Some(reason)) => reason,
    };
    let mut steps = match reason {
        Reason::Completed if summary.commit.is_some() => vec![step("git show", "shows the committed result")],
        Reason::Completed => vec![step("git diff", "shows the result, which is in the work tree")],
        Reason::Stopped => vec![log()],
        Reason::MaxIterations | Reason::MaxWall | Reason::MaxTokens | Reason::MaxCost => {
            vec![again("goes on from the tree as it is; raise the budget in the script to give it more at once"), log()]
        }
        Reason::Breaker(BreakerKind::Thrash) => {
            vec![log(), again("tries again, best after the checks or the prompt were changed")]
        }
        Reason::Breaker(_) => {
            [prompt("shows what the agent was asked; try it by hand"), Some(log())].into_iter().flatten().collect()
        }
        Reason::AgentAuth => vec![again("goes on, after you logged the agent in or renewed its key")],
        Reason::AgentMissing => vec![step("lunation doctor", "tells which agents are there, and how to install them")],
        Reason::LimitWaitTooLong | Reason::Parked => vec![again("goes on, once the limit was reset")],
        Reason::SensorBroken => vec![step("lunation check", "checks the script; then run the sensor by hand"), log()],
        Reason::RouterBroken | Reason::HostError => vec![log()],
        Reason::RepoLost => vec![step("git fsck", "tells what is wrong with the repository")],
        Reason::DiskFull => vec![step("df -h .", "shows the room that is left"), again("goes on, once there is room")],
        Reason::Killed | Reason::Interrupted => vec![again("goes on from the tree as it is")],
        Reason::ScriptError => vec![step("lunation check", "shows the error with its line")],
    };
    if summary.change.as_ref().is_some_and(|change| !change.empty) && reason != Reason::Completed {
        steps.push(step("git diff", "shows what was kept so far"));
    }
    steps
}
