//! The loop that `ln.loop` and Rust policies use: iteration after iteration until a mechanical reason ends it.
//!
//! Owns the order between iterations: stop reasons, prompt, turn, completion, decision, ladder, back-off. Must not know
//! how a step is done. Guarantees that completion is judged before any cap.

use std::sync::Arc;
use std::time::Duration;

use super::error::EngineError;
use super::prompting;
use super::session::Session;
use crate::policy::{
    AgentSpec, BreakerKind, Decision, LoopSpec, Observation, Outcome, Policy, Reason, RenderedPrompt, Sense,
    TurnSummary, Verdict, says_sentinel,
};
use crate::world::World;

/// How a loop ended.
#[derive(Debug, Clone)]
pub(super) struct LoopEnd {
    pub(super) reason: Reason,
    pub(super) verified: bool,
    pub(super) summary: String,
}

impl LoopEnd {
    fn because(reason: Reason, summary: impl Into<String>) -> LoopEnd {
        LoopEnd { reason, verified: false, summary: summary.into() }
    }
}

pub(super) async fn drive(
    world: &Arc<dyn World>,
    session: &mut Session,
    spec: &LoopSpec,
    policy: &dyn Policy,
) -> Result<LoopEnd, EngineError> {
    let context = prompting::gather_context(world, session, spec).await?;
    if !spec.sensors.is_empty() {
        let baseline = session.baseline(&spec.sensors).await?;
        if let Some(end) = broken(&baseline) {
            return Ok(end);
        }
    }
    loop {
        if session.open().await?.is_none() {
            let reason = session.stop_reason().unwrap_or(Reason::Stopped);
            return Ok(LoopEnd::because(reason, capped_summary(session, reason)));
        }
        let end = match one_iteration(session, spec, policy, &context).await {
            Ok(end) => end,
            Err(error) => {
                // Whatever a policy did wrong, the iteration is not left half done.
                session.abort().await?;
                return Err(error);
            }
        };
        if let Some(end) = end {
            if let Reason::Breaker(kind) = end.reason {
                session.open_breaker(kind, spec.breaker.diagnosis.as_deref()).await?;
            }
            return Ok(end);
        }
    }
}

async fn one_iteration(
    session: &mut Session,
    spec: &LoopSpec,
    policy: &dyn Policy,
    context: &str,
) -> Result<Option<LoopEnd>, EngineError> {
    let rung = session.governor.rung();
    let agent = &spec.agents[rung as usize - 1];
    session.announce(rung, agent)?;
    let prompt = prompting::compose(session, spec, policy, context).await?;
    let turn = match take_turn(session, spec, agent, &prompt).await? {
        Ok(turn) => turn,
        Err(end) => {
            let verdict = Verdict::because(Decision::Stall, end.summary.clone());
            session.decide(verdict, None).await?;
            return Ok(Some(end));
        }
    };
    let unchanged = session.change().is_some_and(|change| change.empty);
    if !unchanged && !spec.sensors.is_empty() {
        let sense = session.sense(&spec.sensors).await?;
        if let Some(end) = broken(&sense) {
            // Broken is no reason to keep or to roll back: the tree stays for a person to look at.
            session.decide(Verdict::because(Decision::Stop, end.summary.clone()), None).await?;
            return Ok(Some(end));
        }
    }
    let observation = session.observe();
    let (complete, remark) = judge_completion(spec, policy, &turn, &observation).await?;
    let verdict = match complete {
        Some(_) => Verdict::because(Decision::Keep, remark.unwrap_or_else(|| "complete".into())),
        None => decide(policy, &observation, unchanged).await?,
    };
    let stop = verdict.decision == Decision::Stop;
    let note = verdict.note.clone();
    let (aftermath, observation) = session.decide(verdict, complete).await?;
    policy.on_iteration(&observation).await?;
    if let Some(verified) = complete {
        let summary = completion_summary(&observation, verified);
        return Ok(Some(LoopEnd { reason: Reason::Completed, verified, summary }));
    }
    if stop {
        return Ok(Some(LoopEnd::because(Reason::Stopped, note.unwrap_or_else(|| "the policy stopped it".into()))));
    }
    if let Some(reason) = aftermath.stop {
        return Ok(Some(LoopEnd::because(reason, breaker_summary(reason, &turn))));
    }
    if let Some(pause) = aftermath.back_off
        && session.governor.cap().is_none()
    {
        session.back_off(pause, &format!("the agent ended at once: {}", turn.summary)).await?;
    }
    Ok(None)
}

/// A turn of the agent; trouble of the provider before anything changed is waited out within the same iteration.
async fn take_turn(
    session: &mut Session,
    spec: &LoopSpec,
    agent: &AgentSpec,
    prompt: &RenderedPrompt,
) -> Result<Result<TurnSummary, LoopEnd>, EngineError> {
    loop {
        let turn = session.turn(agent, prompt).await?;
        let unchanged = session.change().is_some_and(|change| change.empty);
        let wait = match &turn.outcome {
            _ if !unchanged => return Ok(Ok(turn)),
            Outcome::UsageLimit { reset_at } => match limit_wait(session, *reset_at) {
                Some(wait) => wait,
                None => {
                    let summary = format!("{}: the limit resets later than the budget lasts", turn.summary);
                    return Ok(Err(LoopEnd::because(Reason::LimitWaitTooLong, summary)));
                }
            },
            outcome if outcome.is_transient() => match session.governor.transient(outcome, session.jitter()) {
                Ok(wait) => wait,
                Err(reason) => {
                    let times = spec.breaker.transient;
                    let summary = format!("{times} attempts in a row failed: {}", turn.summary);
                    return Ok(Err(LoopEnd::because(reason, summary)));
                }
            },
            _ => return Ok(Ok(turn)),
        };
        session.back_off(wait, &format!("{}: {}", turn.outcome.name(), turn.summary)).await?;
        if let Some(reason) = session.must_end() {
            return Ok(Err(LoopEnd::because(reason, turn.summary)));
        }
    }
}

/// How long until a usage limit resets, with a little jitter; an untold reset is tried again after five minutes.
/// `None` when that is later than the budget lasts.
fn limit_wait(session: &mut Session, reset_at: Option<i64>) -> Option<Duration> {
    const UNTOLD: Duration = Duration::from_secs(300);
    const JITTER: Duration = Duration::from_secs(60);
    let wait = match reset_at {
        Some(reset) => Duration::from_secs(reset.saturating_sub(session.wall_seconds()).max(0) as u64),
        None => UNTOLD,
    };
    let wait = wait + JITTER.mul_f64(session.jitter());
    match session.wall_left() {
        Some(left) if wait >= left => None,
        _ => Some(wait),
    }
}

async fn judge_completion(
    spec: &LoopSpec,
    policy: &dyn Policy,
    turn: &TurnSummary,
    observation: &Observation,
) -> Result<(Option<bool>, Option<String>), EngineError> {
    if spec.callbacks.complete
        && let Some((complete, remark)) = policy.complete(observation).await?
    {
        return Ok((complete.then_some(observation.ok), remark));
    }
    let said = match &spec.completion.sentinel {
        Some(sentinel) => turn.outcome == Outcome::Done && says_sentinel(&turn.text, sentinel),
        None => false,
    };
    let checks = observation.sense.as_ref().map(|sense| sense.ok);
    Ok((spec.completion.judge(said, checks), None))
}

async fn decide(policy: &dyn Policy, observation: &Observation, unchanged: bool) -> Result<Verdict, EngineError> {
    if !unchanged {
        return Ok(policy.decide(observation).await?);
    }
    let stall = || Verdict::because(Decision::Stall, "nothing changed");
    Ok(policy.on_stall(observation).await?.unwrap_or_else(stall))
}

fn broken(sense: &Sense) -> Option<LoopEnd> {
    sense.broken.then(|| {
        let names: Vec<String> = sense
            .readings
            .iter()
            .filter(|reading| reading.state == crate::policy::ReadingState::Broken)
            .map(|reading| format!("{} ({})", reading.id, reading.summary))
            .collect();
        LoopEnd::because(Reason::SensorBroken, format!("no verdict from: {}", names.join(", ")))
    })
}

fn completion_summary(observation: &Observation, verified: bool) -> String {
    let after = iterations(observation.iteration);
    match (verified, &observation.sense) {
        (true, Some(sense)) => {
            format!("complete after {after}: {} of {} checks hold", passed(sense), sense.readings.len())
        }
        (true, None) => format!("complete after {after}"),
        (false, _) => format!("the agent says that it is complete after {after}; no check verified it"),
    }
}

fn iterations(number: u32) -> String {
    match number {
        1 => "1 iteration".to_owned(),
        number => format!("{number} iterations"),
    }
}

fn passed(sense: &Sense) -> usize {
    sense.readings.iter().filter(|reading| reading.ok()).count()
}

fn breaker_summary(reason: Reason, turn: &TurnSummary) -> String {
    match reason {
        Reason::AgentAuth | Reason::AgentMissing => turn.error.clone().unwrap_or_else(|| turn.summary.clone()),
        Reason::Breaker(BreakerKind::Instant) => {
            format!("the agent ended at once, again and again; last: {} ({})", turn.outcome.name(), turn.summary)
        }
        Reason::Breaker(BreakerKind::Failures) => {
            format!("failed turns in a row; last: {} ({})", turn.outcome.name(), turn.summary)
        }
        Reason::Breaker(BreakerKind::Unchanged) => "iterations in a row changed nothing".into(),
        Reason::Breaker(BreakerKind::Thrash) => "iterations in a row came to states that were seen before".into(),
        other => other.name().into(),
    }
}

fn capped_summary(session: &Session, reason: Reason) -> String {
    let state = match session.governor.last_sense() {
        Some(sense) if sense.ok => "all checks hold, but the loop is not complete".to_owned(),
        Some(sense) => format!("{} failing; nothing was verified", sense.failing),
        None => "nothing was verified".to_owned(),
    };
    format!("{} after {}: {state}", reason.name(), iterations(session.governor.iteration()))
}
