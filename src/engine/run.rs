//! One run: the handle that loops, scripts and embedders hold, from its first record to its last.
//!
//! Owns the run's result. Must not know scripts. Guarantees that a run ends with exactly one end record, and that no
//! iteration is left open by it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::driver;
use super::error::EngineError;
use super::governor::{Governor, Limits};
use super::interrupts::Interrupts;
use super::pump::{Pump, PumpSpec};
use super::recorder::Recorder;
use super::session::{Around, Sensing, Session};
use crate::journal::{Event, RunEnded};
use crate::policy::scope::Scope;
use crate::policy::{
    ChangeSummary, CommandSpec, CommitFacts, CommitSpec, ExitCode, LoopSpec, Policy, PromptSource, Reason, Sense,
    SensorSpec, Status, Strategy, UsageTotals, template_digest,
};
use crate::world::{CommandResult, GitQuestion, Point, World, WorldError};

/// How a loop or a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// In one word.
    pub status: Status,
    /// Why.
    pub reason: String,
    /// The same, typed.
    #[serde(skip)]
    pub why: Option<Reason>,
    /// True when it is complete.
    pub ok: bool,
    /// True only when a check that ran holds on the final tree.
    pub verified: bool,
    /// Iterations.
    pub iterations: u32,
    /// Climbs of the ladder.
    pub escalations: u32,
    /// One line for people.
    pub summary: String,
    /// What changed.
    pub diff: ChangeSummary,
    /// Sums.
    pub usage: UsageTotals,
}

/// What a run is made of.
pub struct RunParts {
    /// The run's id.
    pub id: String,
    /// The door to everything outside.
    pub world: Arc<dyn World>,
    /// Where events go.
    pub recorder: Arc<dyn Recorder>,
    /// Where requests to end arrive.
    pub interrupts: Arc<Interrupts>,
    /// Root of the workspace.
    pub root: PathBuf,
    /// The tree as found, before anything ran.
    pub start: Point,
    /// The run's input.
    pub input: serde_json::Value,
    /// Paths that no loop of this run may write, beside each loop's own.
    pub protected: Vec<String>,
}

/// What the loops of a run came to.
#[derive(Debug, Clone, Default)]
struct Tally {
    reason: Option<Reason>,
    verified: bool,
    iterations: u32,
    escalations: u32,
    usage: UsageTotals,
    summary: Option<String>,
    stopped: Option<String>,
    /// The tree that the checks held on.
    checked: Option<String>,
    /// How the result of which loop is committed.
    commit: Option<(CommitSpec, String)>,
}

struct Inner {
    parts: RunParts,
    session: Mutex<Option<Session>>,
    tally: std::sync::Mutex<Tally>,
    loops: AtomicU32,
}

/// A handle of one run; cheap to clone.
#[derive(Clone)]
pub struct Run(Arc<Inner>);

impl Run {
    /// A run that has not done anything yet.
    pub fn new(parts: RunParts) -> Run {
        Run(Arc::new(Inner {
            parts,
            session: Mutex::new(None),
            tally: std::sync::Mutex::new(Tally::default()),
            loops: AtomicU32::new(0),
        }))
    }

    /// Root of the workspace.
    pub fn workspace(&self) -> &Path {
        &self.0.parts.root
    }

    /// The run's input.
    pub fn input(&self) -> &serde_json::Value {
        &self.0.parts.input
    }

    /// A random number from the run's seed.
    pub fn random(&self) -> u64 {
        self.0.parts.world.random()
    }

    /// The door to everything outside.
    pub fn world(&self) -> &Arc<dyn World> {
        &self.0.parts.world
    }

    /// Where requests to end arrive.
    pub fn interrupts(&self) -> &Arc<Interrupts> {
        &self.0.parts.interrupts
    }

    /// Writes a line of the script's own to the record.
    pub fn log(&self, level: &str, text: &str) -> Result<(), EngineError> {
        self.record(&Event::Logged { level: level.to_owned(), text: text.to_owned() })
    }

    /// Writes a remark of the host to the record.
    pub fn note(&self, level: &str, text: &str) -> Result<(), EngineError> {
        self.record(&Event::Noted { level: level.to_owned(), text: text.to_owned() })
    }

    fn record(&self, event: &Event) -> Result<(), EngineError> {
        Ok(self.0.parts.recorder.record("", event, false)?)
    }

    /// Runs a loop to its end.
    ///
    /// # Errors
    /// A spec that cannot be run launches nothing. Any other error has rolled the open iteration back.
    pub async fn drive(&self, spec: LoopSpec, policy: &dyn Policy) -> Result<RunResult, EngineError> {
        spec.check().map_err(EngineError::Spec)?;
        let scope = self.scope(&spec.fence, &spec.protected, &spec.kill_switch)?;
        for agent in &spec.agents {
            self.0.parts.world.check_agent(agent).await?;
        }
        let sensing = Sensing {
            strategy: spec.completion.strategy,
            jobs: spec.jobs as usize,
            feedback_bytes: spec.feedback_bytes,
        };
        let limits = Limits {
            budget: spec.budget.clone(),
            breaker: spec.breaker.clone(),
            patience: spec.patience,
            step_down: spec.step_down,
            rungs: spec.agents.len() as u32,
            feedback_bytes: spec.feedback_bytes,
        };
        let session = self.start_session(&spec.id, scope, Some(spec.kill_switch.clone()), sensing, limits);
        session.record(&Event::LoopStarted {
            template_sha256: match &spec.prompt {
                PromptSource::Text { template, .. } => Some(template_digest(template)),
                PromptSource::Function => None,
            },
            protected: spec.protected.clone(),
            spec: Box::new(spec.clone()),
        })?;
        let mut slot = self.0.session.lock().await;
        if slot.is_some() {
            return Err(EngineError::Misuse("a loop is at work already in this run".into()));
        }
        let outcome = driver::drive(&self.0.parts.world, slot.insert(session), &spec, policy).await;
        let session = slot.take();
        drop(slot);
        self.absorb(session.as_ref(), outcome.as_ref().ok().map(|end| (end.reason, end.verified)));
        let end = outcome?;
        self.tally().commit = spec.commit.clone().map(|commit| (commit, spec.id.clone()));
        self.tally().summary = Some(end.summary.clone());
        Ok(self.result(session.as_ref(), end.reason, end.verified, end.summary))
    }

    /// Starts a loop by hand: the pump that scripts drive step by step.
    ///
    /// # Errors
    /// When the fence cannot be read, or asks for ignored paths: those are watched from the start of a run or not at all.
    pub async fn iterations(&self, spec: PumpSpec) -> Result<Pump, EngineError> {
        if spec.fence.watch_ignored {
            let what = "run:iterations cannot watch ignored paths: use ln.loop with fence = { ignored = \"watch\" }";
            return Err(EngineError::Misuse(what.into()));
        }
        let scope = self.scope(&spec.fence, &spec.protected, &spec.kill_switch)?;
        let sensing =
            Sensing { strategy: Strategy::All, jobs: spec.jobs as usize, feedback_bytes: spec.feedback_bytes };
        let limits = Limits {
            budget: spec.budget.clone(),
            breaker: spec.breaker.clone(),
            patience: u32::MAX,
            step_down: u32::MAX,
            rungs: 1,
            feedback_bytes: spec.feedback_bytes,
        };
        let session = self.start_session(&spec.id, scope, Some(spec.kill_switch.clone()), sensing, limits);
        let number = session.number();
        let mut slot = self.0.session.lock().await;
        if slot.as_ref().is_some_and(Session::is_open) {
            return Err(EngineError::Misuse("an iteration of another loop is still open in this run".into()));
        }
        if let Some(old) = slot.take() {
            self.absorb(Some(&old), old.stop_reason().map(|reason| (reason, false)));
        }
        *slot = Some(session);
        Ok(Pump::new(self.clone(), number, spec.budget, spec.breaker.diagnosis))
    }

    /// Reads sensors outside of a loop.
    pub async fn sense(&self, sensors: &[SensorSpec]) -> Result<Sense, EngineError> {
        let mut slot = self.0.session.lock().await;
        if let Some(session) = slot.as_mut() {
            if session.is_open() {
                return session.sense(sensors).await;
            }
            return session.baseline(sensors).await;
        }
        let sensing = Sensing { strategy: Strategy::All, jobs: 1, feedback_bytes: 16 << 10 };
        let limits = Limits {
            budget: Default::default(),
            breaker: Default::default(),
            patience: u32::MAX,
            step_down: u32::MAX,
            rungs: 1,
            feedback_bytes: 16 << 10,
        };
        let mut session = Session::new(
            self.around(String::new(), u32::MAX),
            Scope::everything(),
            None,
            sensing,
            Governor::new(limits, self.0.parts.world.clock().awake()),
        );
        let sense = session.baseline(sensors).await?;
        let seconds = session.governor.totals.sensor_s;
        self.tally().usage.sensor_s += seconds;
        Ok(sense)
    }

    /// Runs a command of the script in the workspace.
    pub async fn command(&self, spec: &CommandSpec) -> Result<CommandResult, EngineError> {
        let result = self.0.parts.world.command(spec, self.0.parts.interrupts.now()).await?;
        let output = self.0.parts.recorder.blob(format!("{}{}", result.stdout, result.stderr).as_bytes())?;
        self.record(&Event::Command {
            line: spec.line.show(),
            exit: (!result.timed_out).then_some(result.code),
            duration_s: result.duration_s,
            output: Some(output),
        })?;
        // A driven loop holds the lock: it compares by itself, after the turn that comes next.
        if let Ok(mut slot) = self.0.session.try_lock()
            && let Some(session) = slot.as_mut()
        {
            session.after_command().await?;
        }
        Ok(result)
    }

    /// Answers a question about the repository.
    pub async fn git(&self, question: GitQuestion) -> Result<serde_json::Value, EngineError> {
        Ok(self.0.parts.world.git(&question).await?)
    }

    /// The script ends the run by its own rule: after a cap was reached, that stays the reason.
    pub async fn stop(&self, why: &str) -> Result<RunResult, EngineError> {
        let mut slot = self.0.session.lock().await;
        if let Some(session) = slot.as_mut() {
            session.abort().await?;
        }
        let session = slot.take();
        drop(slot);
        let reason = session.as_ref().and_then(Session::stop_reason).unwrap_or(Reason::Stopped);
        self.absorb(session.as_ref(), Some((reason, false)));
        self.tally().stopped = Some(why.to_owned());
        Ok(self.result(session.as_ref(), reason, false, why.to_owned()))
    }

    pub(super) fn session(&self) -> &Mutex<Option<Session>> {
        &self.0.session
    }

    pub(super) async fn end_pump(&self, reason: Reason, verified: bool, why: Option<String>) -> RunResult {
        let session = self.0.session.lock().await.take();
        self.absorb(session.as_ref(), Some((reason, verified)));
        let summary = why.unwrap_or_else(|| reason.name().to_owned());
        self.tally().summary = Some(summary.clone());
        self.result(session.as_ref(), reason, verified, summary)
    }

    /// Rolls back what is open. For whoever ends a run whose script cannot.
    pub async fn abort_open_iteration(&self) -> Result<(), EngineError> {
        let mut slot = self.0.session.lock().await;
        let Some(session) = slot.as_mut() else { return Ok(()) };
        let aborted = session.abort().await;
        let session = slot.take();
        drop(slot);
        self.absorb(session.as_ref(), None);
        aborted
    }

    /// Writes the last record. `failure` is the error that ended the run, if one did.
    ///
    /// # Errors
    /// When the record cannot be written, or the result cannot be committed although that was asked for.
    pub async fn finish(&self, failure: Option<(Reason, String)>) -> Result<RunEnded, EngineError> {
        let aborted = self.abort_open_iteration().await;
        let tally = self.tally().clone();
        let request = self.0.parts.interrupts.pending();
        let mut reason = match (&failure, &request) {
            (_, Some(request)) if failure.is_some() || tally.reason.is_none() => request.reason,
            (Some((reason, _)), _) => *reason,
            (None, _) => tally.reason.unwrap_or(Reason::Stopped),
        };
        // An end that somebody asked for is no error: the reason and the record say who asked.
        let mut error = failure
            .filter(|(reason, _)| request.is_none() || *reason != Reason::Interrupted)
            .map(|(_, message)| message);
        if let Err(problem) = aborted {
            reason = problem.reason();
            error = Some(problem.to_string());
        }
        let world = &self.0.parts.world;
        let change = match world.changes(&self.0.parts.start).await {
            Ok(change) => change,
            Err(problem) => {
                error.get_or_insert_with(|| problem.to_string());
                ChangeSummary { empty: true, ..Default::default() }
            }
        };
        let mut verified = reason == Reason::Completed && tally.verified;
        if verified && tally.checked.as_ref() != Some(&change.tree) {
            verified = false;
            self.note("warn", "the tree changed after the checks had run, so nothing verifies it as it is now")?;
        }
        if let (Some((commit, id)), Reason::Completed, false) = (&tally.commit, reason, change.empty) {
            let run = &self.0.parts.id;
            let facts = CommitFacts { id, run, iterations: tally.iterations, reason: reason.name() };
            let message = commit.filled(&facts);
            match world.commit(&self.0.parts.start, &message).await {
                Ok(committed) => {
                    for left_out in committed.left_out {
                        self.note("warn", &format!("not committed: {left_out}"))?;
                    }
                    if let Some(commit) = committed.commit {
                        self.record(&Event::Committed { commit, paths: committed.paths })?;
                    }
                }
                // It says itself that the result was not committed.
                Err(WorldError::Repository { source, .. }) => error = Some(format!("{source:#}")),
                Err(problem) => error = Some(format!("the result could not be committed: {problem}")),
            }
        }
        let exit = match &error {
            Some(_) if reason == Reason::Completed => ExitCode::Unverified,
            _ => reason.exit_code(verified, request.and_then(|request| request.signal)),
        };
        let mut usage = tally.usage;
        usage.iterations = tally.iterations;
        let ended = RunEnded {
            status: reason.status(),
            reason,
            verified,
            exit_code: exit.number(),
            iterations: tally.iterations,
            escalations: tally.escalations,
            usage,
            change,
            summary: tally.stopped.or(tally.summary).unwrap_or_else(|| reason.name().to_owned()),
            error,
        };
        self.0.parts.recorder.record("", &Event::RunEnded(Box::new(ended.clone())), true)?;
        Ok(ended)
    }

    fn scope(
        &self,
        fence: &crate::policy::FenceSpec,
        protected: &[String],
        kill_switch: &str,
    ) -> Result<Scope, EngineError> {
        let mut all = self.0.parts.protected.clone();
        all.extend(protected.iter().cloned());
        all.push(kill_switch.to_owned());
        Ok(Scope::new(fence.clone(), all)?)
    }

    fn around(&self, path: String, number: u32) -> Around {
        Around {
            number,
            world: Arc::clone(&self.0.parts.world),
            recorder: Arc::clone(&self.0.parts.recorder),
            interrupts: Arc::clone(&self.0.parts.interrupts),
            path,
        }
    }

    fn start_session(
        &self,
        id: &str,
        scope: Scope,
        kill_switch: Option<String>,
        sensing: Sensing,
        limits: Limits,
    ) -> Session {
        // Loops of one run that share a name still have a path of their own.
        let number = self.0.loops.fetch_add(1, Ordering::Relaxed);
        let path = if number == 0 { id.to_owned() } else { format!("{id}#{}", number + 1) };
        let governor = Governor::new(limits, self.0.parts.world.clock().awake());
        Session::new(self.around(path, number), scope, kill_switch, sensing, governor)
    }

    fn absorb(&self, session: Option<&Session>, end: Option<(Reason, bool)>) {
        let mut tally = self.tally();
        if let Some(session) = session {
            let totals = &session.governor.totals;
            tally.iterations += session.governor.iteration();
            tally.escalations += session.governor.escalations;
            tally.usage.tokens += totals.tokens;
            tally.usage.turns_without_tokens += totals.turns_without_tokens;
            tally.usage.cost_usd += totals.cost_usd;
            tally.usage.turns_without_cost += totals.turns_without_cost;
            tally.usage.wall_s += totals.wall_s;
            tally.usage.agent_s += totals.agent_s;
            tally.usage.sensor_s += totals.sensor_s;
        }
        if let Some((reason, verified)) = end {
            tally.reason = Some(reason);
            tally.verified = verified;
            tally.checked =
                session.and_then(Session::last_change).map(|change| change.tree.clone()).filter(|_| verified);
        }
    }

    fn tally(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.0.tally.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn result(&self, session: Option<&Session>, reason: Reason, verified: bool, summary: String) -> RunResult {
        RunResult {
            status: reason.status(),
            reason: reason.name().to_owned(),
            why: Some(reason),
            ok: reason == Reason::Completed,
            verified,
            iterations: session.map_or(0, |session| session.governor.iteration()),
            escalations: session.map_or(0, |session| session.governor.escalations),
            summary,
            diff: session.and_then(Session::last_change).cloned().unwrap_or_default(),
            usage: session.map(|session| session.governor.totals).unwrap_or_default(),
        }
    }
}
