//! Sensors, fix commands and the script's own commands in the live world.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::LiveWorld;
use crate::mechanism::process::environment::{Audience, EnvironmentRules, scrub};
use crate::mechanism::process::{Command, Ending, Finished, ProcessError};
use crate::mechanism::sensor::{self, SensorRequest};
use crate::policy::{CommandSpec, Reading, ReadingState, SensorSpec, cap_feedback};
use crate::world::{CommandResult, FixAnswer, WorldError};

/// What a script gets of each stream of a command.
const KEPT_HEAD: usize = 256 << 10;
const KEPT_TAIL: usize = 768 << 10;
/// What a script gets as the tail of both streams.
const TAIL: usize = 4 << 10;
/// The longest log of a sensor before packing.
const LOG_CAP: u64 = 64 << 20;

impl LiveWorld {
    /// The folder of a command, which must lie in the workspace.
    fn folder(&self, spec: &CommandSpec) -> Result<PathBuf, WorldError> {
        let Some(cwd) = &spec.cwd else { return Ok(self.root.clone()) };
        let folder = self.root.join(cwd);
        let inside = folder
            .canonicalize()
            .is_ok_and(|real| self.root.canonicalize().is_ok_and(|root| real.starts_with(root)) && real.is_dir());
        if inside {
            Ok(folder)
        } else {
            Err(WorldError::Other(anyhow::anyhow!(
                "`{}` cannot run in `{cwd}`: it is no folder in the workspace",
                spec.line.show()
            )))
        }
    }

    fn rules(&self, spec: &CommandSpec) -> EnvironmentRules {
        EnvironmentRules {
            set: spec.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            ..EnvironmentRules::default()
        }
    }

    async fn run_process(&self, spec: &CommandSpec, cancel: &CancellationToken) -> Result<Finished, WorldError> {
        let env = scrub(&self.ambient, Audience::Command, &self.rules(spec), &self.run).vars;
        let argv = spec.line.argv();
        let Some((program, args)) = argv.split_first() else {
            return Err(WorldError::Other(anyhow::anyhow!("a blank command")));
        };
        let command = Command::new(program, self.folder(spec)?, env)
            .args(args)
            .wall(spec.timeout)
            .silence(spec.silence)
            .keep_output(KEPT_HEAD, KEPT_TAIL)
            .private_tmp(self.scratch.join(format!("tmp-{}", self.launch())));
        let finished = self.processes.run(command, cancel.clone(), None).await.map_err(process_error)?;
        if cancel.is_cancelled() {
            return Err(WorldError::Cancelled);
        }
        Ok(finished)
    }

    pub(super) async fn run_command(
        &self,
        spec: &CommandSpec,
        cancel: &CancellationToken,
    ) -> Result<CommandResult, WorldError> {
        let finished = match self.run_process(spec, cancel).await {
            Ok(finished) => finished,
            Err(WorldError::Agent(message)) => return Ok(not_found(&message)),
            Err(error) => return Err(error),
        };
        let (code, timed_out) = match finished.ending {
            Ending::Exited(code) => (code, false),
            Ending::Signaled(signal) => (128 + signal, false),
            Ending::TimedOut(_) => (124, true),
            Ending::FinishedAsAsked => (0, false),
            Ending::Cancelled => return Err(WorldError::Cancelled),
            Ending::WardenLost => {
                return Err(WorldError::Process(anyhow::anyhow!("the warden of `{}` died", spec.line.show())));
            }
        };
        let stdout = self.journal.mask(&finished.stdout.text());
        let stderr = self.journal.mask(&finished.stderr.text());
        let both = format!("{stdout}{stderr}");
        let mut from = both.len().saturating_sub(TAIL);
        while !both.is_char_boundary(from) {
            from += 1;
        }
        Ok(CommandResult {
            ok: code == 0,
            code,
            tail: both[from..].to_owned(),
            stdout,
            stderr,
            timed_out,
            duration_s: finished.wall.as_secs_f64(),
        })
    }

    pub(super) async fn run_fix(&self, fix: &CommandSpec, cancel: &CancellationToken) -> Result<FixAnswer, WorldError> {
        let result = self.run_command(fix, cancel).await?;
        let mut notes = Vec::new();
        if result.timed_out {
            notes.push("its time ran out".to_owned());
        }
        if !result.ok {
            notes.push(cap_feedback(&result.tail, 512, None));
        }
        Ok(FixAnswer { exit: (!result.timed_out).then_some(result.code), duration_s: result.duration_s, notes })
    }

    pub(super) async fn read_command(
        &self,
        sensor: &SensorSpec,
        spec: &CommandSpec,
        cancel: &CancellationToken,
    ) -> Result<Reading, WorldError> {
        // One log for each sensor, kept until its next pass, so that the agent can look at what the feedback names.
        let name = &sensor::fingerprint(ReadingState::Passed, &sensor.id)[..12];
        let log = self.scratch.join(format!("sensor-{name}.log"));
        let request = SensorRequest {
            folder: self.folder(spec)?,
            tmp: self.scratch.join(format!("tmp-{}", self.launch())),
            run: self.run.clone(),
            ambient: &self.ambient,
            environment: EnvironmentRules::default(),
            log_file: log.clone(),
            log_name: None,
            log_cap: LOG_CAP,
            log_mask: Some(self.log_mask()),
        };
        let mut reading = sensor::read_command(&self.processes, sensor, spec, request, cancel.clone())
            .await
            .map_err(|error| WorldError::Process(error.into()))?;
        if cancel.is_cancelled() {
            return Err(WorldError::Cancelled);
        }
        reading.output = self.keep_log(log, false).await?;
        reading.feedback = self.journal.mask(&reading.feedback);
        reading.summary = self.journal.mask(&reading.summary);
        Ok(reading)
    }

    pub(super) async fn read_function(
        &self,
        sensor: &SensorSpec,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Reading, WorldError> {
        const LIMIT: Duration = Duration::from_secs(600);
        let function = Arc::clone(self.sensors.get(name).ok_or_else(|| WorldError::Unknown {
            kind: "sensor",
            name: name.to_owned(),
            known: self.sensors.keys().cloned().collect::<Vec<_>>().join(", "),
        })?);
        let context = self.context(cancel);
        let started = self.clock.awake();
        let mut task = self.runtime.spawn(async move { function.read(context).await });
        let ended = tokio::select! {
            ended = &mut task => Some(ended),
            () = tokio::time::sleep(LIMIT) => None,
            () = cancel.cancelled() => None,
        };
        task.abort();
        let duration_s = self.clock.awake().saturating_sub(started).as_secs_f64();
        let (state, failing, score, feedback) = match ended {
            _ if cancel.is_cancelled() => return Err(WorldError::Cancelled),
            Some(Ok(Ok(answer))) => {
                let state = if answer.failing == 0 { ReadingState::Passed } else { ReadingState::Failed };
                (state, Some(answer.failing), answer.score, self.journal.mask(&answer.feedback))
            }
            Some(Ok(Err(error))) => (ReadingState::Broken, None, None, self.journal.mask(&format!("{error:#}"))),
            Some(Err(error)) => (ReadingState::Broken, None, None, format!("the function did not return: {error}")),
            None => (ReadingState::Broken, None, None, "its time ran out".to_owned()),
        };
        let first = feedback.lines().next().unwrap_or_default().to_owned();
        let summary = match (state, failing) {
            (ReadingState::Passed, _) => "passed".to_owned(),
            (ReadingState::Failed, Some(failing)) if first.is_empty() => format!("{failing} failing"),
            _ => first,
        };
        Ok(Reading {
            id: sensor.id.clone(),
            state,
            failing,
            score,
            items: Vec::new(),
            fingerprint: sensor::fingerprint(state, &feedback),
            summary,
            feedback,
            exit: None,
            timed_out: false,
            duration_s,
            output: None,
            notes: Vec::new(),
            flaky: false,
            attribution: None,
        })
    }
}

fn not_found(message: &str) -> CommandResult {
    CommandResult {
        ok: false,
        code: 127,
        stdout: String::new(),
        stderr: message.to_owned(),
        tail: message.to_owned(),
        timed_out: false,
        duration_s: 0.0,
    }
}

fn process_error(error: ProcessError) -> WorldError {
    match error {
        ProcessError::NotFound { .. } => WorldError::Agent(error.to_string()),
        other => WorldError::Process(other.into()),
    }
}
