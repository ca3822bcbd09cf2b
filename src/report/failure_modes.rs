//! What went wrong in a run, in the words of reports. The rules are here, and each is a test.

use crate::journal::{Event, Record};
use crate::policy::{BreakerKind, FailureMode, Outcome, Reason, TurnSummary};

/// The failure modes of a run, in the order of their names' definition. `reason` is why it ended, when it did.
///
/// | mode | when |
/// |---|---|
/// | `scope-fighting` | the fence reverted something in more than half of the iterations |
/// | `agent-silent` | the breaker for unchanged iterations opened, or the one for instant ends after an empty answer, or at least two iterations and half of all changed nothing or said nothing |
/// | `agent-error` | the agent is missing or not logged in, the breaker for failures opened, or the one for instant ends after an error, or at least half of the turns ended in an error |
/// | `budget-exhausted` | a cap on iterations, time, tokens or cost was reached |
/// | `thrash` | the breaker for thrash opened |
/// | `needed-escalation` | it completed, and climbed before |
/// | `sensor-timeout` | a sensor ran out of time, in any reading |
/// | `sensor-broken` | it ended because a sensor gave no verdict |
/// | `limit-parked` | a turn met a usage limit, or it ended because of one |
///
/// A run can have several, also one that passed.
pub fn failure_modes(records: &[Record], reason: Option<Reason>) -> Vec<FailureMode> {
    let course = Course::of(records);
    let more_than_half = |part: usize| part * 2 > course.iterations;
    let instant = reason == Some(Reason::Breaker(BreakerKind::Instant));
    let last_empty = course.turns.last().is_some_and(|turn| turn.outcome == Outcome::Empty);
    let silent = reason == Some(Reason::Breaker(BreakerKind::Unchanged))
        || instant && last_empty
        || course.silent >= 2 && course.silent * 2 >= course.iterations;
    let errors = course.turns.iter().filter(|turn| is_error(&turn.outcome)).count();
    let erring =
        matches!(reason, Some(Reason::AgentAuth | Reason::AgentMissing | Reason::Breaker(BreakerKind::Failures)))
            || instant && !last_empty
            || errors > 0 && errors * 2 >= course.turns.len();
    let exhausted =
        matches!(reason, Some(Reason::MaxIterations | Reason::MaxWall | Reason::MaxTokens | Reason::MaxCost));
    let limited = course.turns.iter().any(|turn| matches!(turn.outcome, Outcome::UsageLimit { .. }))
        || matches!(reason, Some(Reason::LimitWaitTooLong));
    [
        (FailureMode::ScopeFighting, more_than_half(course.fenced)),
        (FailureMode::AgentSilent, silent),
        (FailureMode::AgentError, erring),
        (FailureMode::BudgetExhausted, exhausted),
        (FailureMode::Thrash, reason == Some(Reason::Breaker(BreakerKind::Thrash))),
        (FailureMode::NeededEscalation, reason == Some(Reason::Completed) && course.climbed),
        (FailureMode::SensorTimeout, course.sensor_timed_out),
        (FailureMode::SensorBroken, reason == Some(Reason::SensorBroken)),
        (FailureMode::LimitParked, limited),
    ]
    .into_iter()
    .filter_map(|(mode, holds)| holds.then_some(mode))
    .collect()
}

/// The name in reports.
pub fn mode_name(mode: FailureMode) -> &'static str {
    match mode {
        FailureMode::ScopeFighting => "scope-fighting",
        FailureMode::AgentSilent => "agent-silent",
        FailureMode::AgentError => "agent-error",
        FailureMode::BudgetExhausted => "budget-exhausted",
        FailureMode::Thrash => "thrash",
        FailureMode::NeededEscalation => "needed-escalation",
        FailureMode::SensorTimeout => "sensor-timeout",
        FailureMode::SensorBroken => "sensor-broken",
        FailureMode::LimitParked => "limit-parked",
    }
}

/// An error of the agent or its provider. Empty answers are silence, limits are told apart, and a turn that we ended
/// or that ran out of time says nothing about the agent.
fn is_error(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Auth
        | Outcome::ContextOverflow
        | Outcome::Overloaded
        | Outcome::Server
        | Outcome::Network
        | Outcome::AgentError
        | Outcome::NoTerminalEvent
        | Outcome::Crashed { .. }
        | Outcome::SpawnFailed { .. } => true,
        Outcome::Done
        | Outcome::Empty
        | Outcome::Truncated
        | Outcome::UsageLimit { .. }
        | Outcome::RateLimited { .. }
        | Outcome::TimedOut { .. }
        | Outcome::Stopped => false,
    }
}

/// What the rules look at.
#[derive(Default)]
struct Course<'r> {
    iterations: usize,
    /// Iterations in which the fence reverted something.
    fenced: usize,
    /// Iterations that changed nothing, or whose agent said nothing.
    silent: usize,
    turns: Vec<&'r TurnSummary>,
    climbed: bool,
    sensor_timed_out: bool,
}

impl<'r> Course<'r> {
    fn of(records: &'r [Record]) -> Course<'r> {
        let mut course = Course::default();
        let mut fenced = None;
        let mut silent = None;
        for record in records {
            match &record.event {
                Event::IterationStarted { .. } => course.iterations += 1,
                Event::TurnEnded { iteration, turn, .. } => {
                    course.turns.push(turn);
                    if turn.outcome == Outcome::Empty {
                        count_once(&mut course.silent, &mut silent, (&record.path, *iteration));
                    }
                }
                Event::Fenced { iteration, paths } if !paths.is_empty() => {
                    count_once(&mut course.fenced, &mut fenced, (&record.path, *iteration));
                }
                Event::Changed { iteration, change } if change.empty => {
                    count_once(&mut course.silent, &mut silent, (&record.path, *iteration));
                }
                Event::RungChanged { from, to, .. } => course.climbed |= to > from,
                Event::Sensed { sense, .. } | Event::Baseline { sense } => {
                    course.sensor_timed_out |= sense.readings.iter().any(|reading| reading.timed_out);
                }
                _ => {}
            }
        }
        course
    }
}

/// Counts an iteration the first time that it comes up.
fn count_once<'r>(count: &mut usize, last: &mut Option<(&'r str, u32)>, this: (&'r str, u32)) {
    if last.replace(this) != Some(this) {
        *count += 1;
    }
}
