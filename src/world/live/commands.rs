//! Fix commands and the script's own commands in the live world.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::LiveWorld;
use crate::mechanism::process::environment::{Audience, EnvironmentRules, scrub};
use crate::mechanism::process::{Command, Ending, Finished, ProcessError};
use crate::policy::{CommandSpec, cap_feedback};
use crate::world::{CommandResult, FixAnswer, WorldError};

/// What a script gets of each stream of a command.
const KEPT_HEAD: usize = 256 << 10;
const KEPT_TAIL: usize = 768 << 10;
/// What a script gets as the tail of both streams.
const TAIL: usize = 4 << 10;

impl LiveWorld {
    /// The folder of a command, which must lie in the workspace.
    pub(super) fn folder(&self, spec: &CommandSpec) -> Result<PathBuf, WorldError> {
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

    pub(super) fn rules(&self, spec: &CommandSpec) -> EnvironmentRules {
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
        Ok(self.result(&finished, code, timed_out))
    }

    /// What a script sees of a command that ended.
    pub(super) fn result(&self, finished: &Finished, code: i32, timed_out: bool) -> CommandResult {
        let stdout = self.journal.mask(&finished.stdout.text());
        let stderr = self.journal.mask(&finished.stderr.text());
        let both = format!("{stdout}{stderr}");
        let mut from = both.len().saturating_sub(TAIL);
        while !both.is_char_boundary(from) {
            from += 1;
        }
        CommandResult {
            ok: code == 0,
            code,
            tail: both[from..].to_owned(),
            stdout,
            stderr,
            timed_out,
            duration_s: finished.wall.as_secs_f64(),
        }
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
