//! Agent turns in the live world: processes by the agent mechanism, functions of the embedding program.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::LiveWorld;
use crate::journal::{MaskStream, Secrets};
use crate::mechanism::agent::{self, LogMask, TurnRequest};
use crate::mechanism::process::{LogFilter, Tier, environment::EnvironmentRules};
use crate::policy::{AgentSource, AgentSpec, Outcome, TimeoutKind, TurnSummary, Usage};
use crate::world::functions::AgentFunction;
use crate::world::{TurnAnswer, TurnAsk, WorldError};

/// The longest raw output of one turn that is kept before packing, in bytes.
const LOG_CAP: u64 = 64 << 20;

impl LiveWorld {
    pub(super) fn check_agent_now(&self, spec: &AgentSpec) -> Result<(), WorldError> {
        if let AgentSource::Function(name) = &spec.source {
            return self.agent_function(name).map(drop);
        }
        let path = self.ambient.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        agent::check(spec).map_err(|error| WorldError::Agent(error.to_string()))?;
        agent::resolve(spec, &path.unwrap_or_default(), &self.root)
            .map(drop)
            .map_err(|error| WorldError::Agent(error.to_string()))
    }

    fn agent_function(&self, name: &str) -> Result<&Arc<dyn AgentFunction>, WorldError> {
        self.agents.get(name).ok_or_else(|| WorldError::Unknown {
            kind: "agent",
            name: name.to_owned(),
            known: self.agents.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }

    pub(super) async fn take_turn(&self, ask: TurnAsk, cancel: &CancellationToken) -> Result<TurnAnswer, WorldError> {
        let answer = match ask.agent.source.clone() {
            AgentSource::Command(_) => self.process_turn(ask, cancel).await?,
            AgentSource::Function(name) => self.function_turn(ask, &name, cancel).await?,
        };
        if cancel.is_cancelled() {
            return Err(WorldError::Cancelled);
        }
        Ok(answer)
    }

    async fn process_turn(&self, ask: TurnAsk, cancel: &CancellationToken) -> Result<TurnAnswer, WorldError> {
        let launch = self.launch();
        let log_file = self.scratch.join(format!("turn-{launch}.log"));
        let request = TurnRequest {
            spec: &ask.agent,
            prompt: ask.prompt,
            workspace: self.root.clone(),
            tmp: self.scratch.join(format!("tmp-{launch}")),
            run: self.run.clone(),
            iteration: ask.iteration,
            ambient: &self.ambient,
            environment: EnvironmentRules::default(),
            wall_left: ask.wall_left,
            log_file: log_file.clone(),
            log_cap: LOG_CAP,
            log_mask: Some(self.log_mask()),
            zone: jiff::tz::TimeZone::system(),
        };
        let report = agent::take_turn(&self.processes, request, cancel.clone())
            .await
            .map_err(|error| WorldError::Process(error.into()))?;
        // The process-group tier can never confirm an end; that it is in force was said at the start.
        let can_confirm = self.processes.tier().tier != Tier::ProcessGroup;
        if can_confirm && !report.confirmed_gone && !cancel.is_cancelled() {
            // Something may still be writing into the tree: no checkpoint taken now could be trusted.
            return Err(WorldError::Process(anyhow::anyhow!(
                "{} left processes that could not be ended{}",
                ask.agent.label(),
                match report.still_there.as_slice() {
                    [] => String::new(),
                    names => format!(": {}", names.join(", ")),
                }
            )));
        }
        let mut summary = report.summary;
        summary.output = self.keep_log(report.log, true).await?;
        summary.text = self.journal.mask(&summary.text);
        summary.summary = self.journal.mask(&summary.summary);
        summary.error = summary.error.map(|error| self.journal.mask(&error));
        Ok(TurnAnswer { summary, scrubbed: report.scrubbed })
    }

    pub(super) fn log_mask(&self) -> LogMask {
        let secrets: Secrets = self.journal.secrets().clone();
        Arc::new(move |_stream| Box::new(Masked(Some(secrets.stream()))) as Box<dyn LogFilter>)
    }

    async fn function_turn(
        &self,
        ask: TurnAsk,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<TurnAnswer, WorldError> {
        let function = Arc::clone(self.agent_function(name)?);
        let context = self.context(cancel);
        let started = self.clock.awake();
        let limit = ask.wall_left.map_or(ask.agent.timeout, |left| left.min(ask.agent.timeout));
        let prompt = match &ask.agent.instructions {
            Some(instructions) => format!("{instructions}\n\n{}", ask.prompt),
            None => ask.prompt,
        };
        let mut task = self.runtime.spawn(async move { function.turn(context, prompt).await });
        let ended = tokio::select! {
            ended = &mut task => Some(ended),
            () = tokio::time::sleep(limit) => None,
            () = cancel.cancelled() => None,
        };
        task.abort();
        let seconds = self.clock.awake().saturating_sub(started).as_secs_f64();
        let summary = match ended {
            Some(Ok(Ok(turn))) => {
                let outcome = if turn.text.trim().is_empty() { Outcome::Empty } else { Outcome::Done };
                summary(&ask.agent, outcome, self.journal.mask(&turn.text), None, turn.usage, seconds)
            }
            Some(Ok(Err(error))) => {
                let message = self.journal.mask(&format!("{error:#}"));
                summary(&ask.agent, Outcome::AgentError, String::new(), Some(message), Usage::default(), seconds)
            }
            Some(Err(error)) => {
                let message = format!("the agent function did not return: {error}");
                summary(&ask.agent, Outcome::AgentError, String::new(), Some(message), Usage::default(), seconds)
            }
            None if cancel.is_cancelled() => return Err(WorldError::Cancelled),
            None => {
                let outcome = Outcome::TimedOut { which: TimeoutKind::Wall };
                summary(&ask.agent, outcome, String::new(), None, Usage::default(), seconds)
            }
        };
        Ok(TurnAnswer { summary, scrubbed: Vec::new() })
    }
}

fn summary(
    agent: &AgentSpec,
    outcome: Outcome,
    text: String,
    error: Option<String>,
    usage: Usage,
    duration_s: f64,
) -> TurnSummary {
    let first = text.lines().find(|line| !line.trim().is_empty()).map(str::to_owned);
    TurnSummary {
        agent: agent.label(),
        summary: error.clone().or(first).unwrap_or_else(|| outcome.name().to_owned()),
        timed_out: matches!(outcome, Outcome::TimedOut { .. }),
        exit: None,
        outcome,
        text,
        error,
        usage,
        duration_s,
        left_behind: Vec::new(),
        output: None,
    }
}

/// Masks secrets in a log, also those that are split over two reads.
struct Masked(Option<MaskStream>);

impl LogFilter for Masked {
    fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if let Some(stream) = &mut self.0 {
            out.extend(stream.push(bytes));
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(stream) = self.0.take() {
            out.extend(stream.finish());
        }
    }
}
