//! One loop at work: takes each step of its iterations through the world and writes down what came of it.
//!
//! Owns the open iteration and the loop's governor. Must not know what a policy or script wants.
//! Guarantees that a step that fails leaves the iteration aborted: guarded, rolled back, recorded.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;

use super::error::EngineError;
use super::governor::{Aftermath, Governor};
use super::interrupts::Interrupts;
use super::iteration::{Iteration, OutOfOrder, Step, Wish};
use super::recorder::Recorder;
use crate::journal::Event;
use crate::policy::scope::Scope;
use crate::policy::{
    AgentSpec, ChangeSummary, Decision, Observation, Outcome, Reading, ReadingState, Reason, Sense, SensorSpec,
    Strategy, TurnSummary, Verdict,
};
use crate::world::{Point, TurnAsk, World, WorldError};

/// How often a broken sensor is read again before it is believed to be broken.
const BROKEN_RETRIES: u32 = 2;
/// Pause before a broken sensor is read again.
const BROKEN_PAUSE: Duration = Duration::from_millis(500);

/// The iteration that is open.
#[derive(Debug, Clone)]
struct Open {
    number: u32,
    point: Point,
    machine: Iteration,
    turn: Option<TurnSummary>,
    change: ChangeSummary,
    sense: Option<Sense>,
    guarded: Vec<String>,
    fenced: Vec<String>,
}

/// How a loop senses.
#[derive(Debug, Clone)]
pub(super) struct Sensing {
    pub(super) strategy: Strategy,
    pub(super) jobs: usize,
    pub(super) feedback_bytes: usize,
}

/// A loop at work.
pub(super) struct Session {
    world: Arc<dyn World>,
    recorder: Arc<dyn Recorder>,
    interrupts: Arc<Interrupts>,
    path: String,
    scope: Scope,
    kill_switch: Option<String>,
    sensing: Sensing,
    /// Memory and limits.
    pub(super) governor: Governor,
    open: Option<Open>,
    closed: Option<ChangeSummary>,
    /// Why the loop takes no further iteration.
    stop: Option<Reason>,
    asleep: Duration,
}

/// What a session needs from the run that it belongs to.
pub(super) struct Around {
    pub(super) world: Arc<dyn World>,
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) interrupts: Arc<Interrupts>,
    pub(super) path: String,
}

impl Session {
    pub(super) fn new(
        around: Around,
        scope: Scope,
        kill_switch: Option<String>,
        sensing: Sensing,
        governor: Governor,
    ) -> Session {
        let asleep = around.world.clock().asleep();
        Session {
            world: around.world,
            recorder: around.recorder,
            interrupts: around.interrupts,
            path: around.path,
            scope,
            kill_switch,
            sensing,
            governor,
            open: None,
            closed: None,
            stop: None,
            asleep,
        }
    }

    pub(super) fn stop_reason(&self) -> Option<Reason> {
        self.stop
    }

    pub(super) fn stop_with(&mut self, reason: Reason) {
        self.stop.get_or_insert(reason);
    }

    pub(super) fn record(&self, event: &Event) -> Result<(), EngineError> {
        Ok(self.recorder.record(&self.path, event, false)?)
    }

    /// What is known now, for policies and scripts.
    pub(super) fn observe(&self) -> Observation {
        match &self.open {
            Some(open) => self.governor.observe(open.turn.as_ref(), &open.change, open.sense.as_ref()),
            None => self.governor.observe(None, &ChangeSummary { empty: true, ..Default::default() }, None),
        }
    }

    pub(super) fn change(&self) -> Option<&ChangeSummary> {
        self.open.as_ref().map(|open| &open.change)
    }

    /// The change of the iteration that is open or was closed last.
    pub(super) fn last_change(&self) -> Option<&ChangeSummary> {
        self.change().or(self.closed.as_ref())
    }

    /// A remark of the host for the record.
    pub(super) fn note(&self, text: &str) -> Result<(), EngineError> {
        self.record(&Event::Noted { level: "warn".into(), text: text.to_owned() })
    }

    /// A number between 0 and 1 from the run's seed.
    pub(super) fn jitter(&self) -> f64 {
        self.world.random() as f64 / u64::MAX as f64
    }

    /// The time of day in Unix seconds.
    pub(super) fn wall_seconds(&self) -> i64 {
        self.world.clock().wall().as_second()
    }

    /// Awake time that is left, `None` without a limit.
    pub(super) fn wall_left(&self) -> Option<Duration> {
        self.governor.wall_left(self.world.clock().awake())
    }

    /// The reason that forbids another launch in this iteration, if any.
    pub(super) fn must_end(&self) -> Option<Reason> {
        let asked = self.interrupts.pending().map(|request| request.reason);
        let worn_out = self.wall_left().is_some_and(|left| left.is_zero()).then_some(Reason::MaxWall);
        self.stop.or(asked).or(worn_out)
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Opens the next iteration, or says that the loop is over. Completion was judged before caps are.
    pub(super) async fn open(&mut self) -> Result<Option<u32>, EngineError> {
        self.tick()?;
        if self.stop.is_none() {
            self.stop = self.asked_to_stop().await?;
        }
        if self.stop.is_none() {
            self.stop = self.governor.cap();
        }
        if self.stop.is_some() {
            return Ok(None);
        }
        let number = self.governor.iteration() + 1;
        let point = self.world.checkpoint(number).await?;
        self.governor.open_iteration();
        let change = ChangeSummary { empty: true, tree: point.tree.clone(), ..Default::default() };
        self.open = Some(Open {
            number,
            point,
            machine: Iteration::open(),
            turn: None,
            change,
            sense: None,
            guarded: Vec::new(),
            fenced: Vec::new(),
        });
        Ok(Some(number))
    }

    /// Writes down which agent the iteration starts with.
    pub(super) fn announce(&self, rung: u32, agent: &AgentSpec) -> Result<(), EngineError> {
        let open = self.opened()?;
        self.record(&Event::IterationStarted {
            iteration: open.number,
            rung,
            agent: agent.label(),
            checkpoint: open.point.id.clone(),
            tree: open.point.tree.clone(),
        })
    }

    /// One agent turn with everything that follows from it: all gone, guard, fence, comparison.
    pub(super) async fn turn(&mut self, agent: &AgentSpec, prompt: &str) -> Result<TurnSummary, EngineError> {
        self.wish(Wish::Turn)?;
        match self.turn_steps(agent, prompt).await {
            Ok(turn) => Ok(turn),
            Err(error) => Err(self.abort_because(error).await),
        }
    }

    async fn turn_steps(&mut self, agent: &AgentSpec, prompt: &str) -> Result<TurnSummary, EngineError> {
        let number = self.opened()?.number;
        let blob = self.recorder.blob(prompt.as_bytes())?;
        self.record(&Event::Prompted { iteration: number, prompt: blob, bytes: prompt.len() as u64 })?;
        let ask = TurnAsk {
            agent: agent.clone(),
            prompt: prompt.to_owned(),
            iteration: number,
            wall_left: self.governor.wall_left(self.world.clock().awake()),
        };
        let answer = self.world.turn(ask, self.interrupts.now()).await?;
        self.governor.add_turn(&answer.summary);
        self.tick()?;
        self.record(&Event::TurnEnded {
            iteration: number,
            turn: Box::new(answer.summary.clone()),
            scrubbed: answer.scrubbed,
        })?;
        self.opened_mut()?.turn = Some(answer.summary.clone());
        self.step_done(Step::Turn)?;
        if self.interrupts.now().is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        // The kill switch is looked at before the fence, which would revert a file that a person put there meanwhile.
        if let Some(reason) = self.asked_to_stop().await? {
            self.stop.get_or_insert(reason);
        }
        self.guard().await?;
        self.step_done(Step::Guard)?;
        self.fence().await?;
        self.step_done(Step::Fence)?;
        self.compare().await?;
        self.step_done(Step::Compare)?;
        Ok(answer.summary)
    }

    /// A pass over the sensors, after their fix commands.
    pub(super) async fn sense(&mut self, sensors: &[SensorSpec]) -> Result<Sense, EngineError> {
        self.wish(Wish::Sense { fixes: sensors.iter().any(|sensor| sensor.fix.is_some()) })?;
        match self.sense_steps(sensors).await {
            Ok(sense) => Ok(sense),
            Err(error) => Err(self.abort_because(error).await),
        }
    }

    async fn sense_steps(&mut self, sensors: &[SensorSpec]) -> Result<Sense, EngineError> {
        if self.opened()?.machine.step() == Step::Fix {
            self.fix(sensors).await?;
            self.step_done(Step::Fix)?;
            self.guard().await?;
            self.fence().await?;
            self.step_done(Step::FenceFixes)?;
            self.compare().await?;
            self.step_done(Step::CompareFixes)?;
        }
        let tree = self.opened()?.change.tree.clone();
        let mut sense = self.read_all(sensors, &tree).await?;
        self.guard().await?;
        self.undo_dirt(&tree, &mut sense).await?;
        self.tick()?;
        let number = self.opened()?.number;
        self.record(&Event::Sensed { iteration: number, sense: Box::new(sense.clone()), carried: false })?;
        self.opened_mut()?.sense = Some(sense.clone());
        self.step_done(Step::Sense)?;
        if self.interrupts.now().is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        Ok(sense)
    }

    /// Reads sensors outside of an iteration: the base of all comparisons.
    pub(super) async fn baseline(&mut self, sensors: &[SensorSpec]) -> Result<Sense, EngineError> {
        let point = self.world.checkpoint(0).await?;
        let result = self.baseline_at(&point, sensors).await;
        match result {
            Ok(sense) => {
                self.world.settle().await?;
                Ok(sense)
            }
            Err(error) => {
                self.world.guard(&point).await?;
                self.world.restore(&point).await?;
                Err(error)
            }
        }
    }

    async fn baseline_at(&mut self, point: &Point, sensors: &[SensorSpec]) -> Result<Sense, EngineError> {
        let mut sense = self.read_all(sensors, &point.tree).await?;
        self.world.guard(point).await?;
        self.undo_dirt(&point.tree, &mut sense).await?;
        self.tick()?;
        self.record(&Event::Baseline { sense: Box::new(sense.clone()) })?;
        self.governor.baseline(sense.clone());
        Ok(sense)
    }

    /// Decides the open iteration: recorded first, then carried out, then closed.
    pub(super) async fn decide(
        &mut self,
        verdict: Verdict,
        complete: Option<bool>,
    ) -> Result<(Aftermath, Observation), EngineError> {
        self.wish(Wish::Decide(verdict.decision))?;
        match self.decide_steps(verdict, complete).await {
            Ok(done) => Ok(done),
            Err(error) => Err(self.abort_because(error).await),
        }
    }

    async fn decide_steps(
        &mut self,
        verdict: Verdict,
        complete: Option<bool>,
    ) -> Result<(Aftermath, Observation), EngineError> {
        self.record_decision(&verdict, complete)?;
        self.step_done(Step::RecordDecision(verdict.decision))?;
        let observation = self.observe();
        let open = self.opened()?.clone();
        self.apply(&open, verdict.decision).await?;
        self.step_done(Step::Apply(verdict.decision))?;
        let aftermath = self.governor.close_iteration(
            open.turn.as_ref(),
            &open.change,
            open.sense.as_ref(),
            verdict.decision,
            verdict.note.as_deref(),
        );
        self.note_for_next_prompt(&open, &verdict);
        self.close(&open, verdict.decision)?;
        if let Some(change) = &aftermath.rung {
            self.record(&Event::RungChanged { from: change.from, to: change.to, why: change.why.clone() })?;
        }
        Ok((aftermath, observation))
    }

    fn record_decision(&self, verdict: &Verdict, complete: Option<bool>) -> Result<(), EngineError> {
        let event = Event::Decided {
            iteration: self.opened()?.number,
            verdict: verdict.clone(),
            complete,
            observation: Box::new(self.observe()),
        };
        Ok(self.recorder.record(&self.path, &event, true)?)
    }

    async fn apply(&self, open: &Open, decision: Decision) -> Result<(), EngineError> {
        if decision != Decision::Rollback {
            return Ok(self.world.settle().await?);
        }
        let restored = self.world.restore(&open.point).await?;
        self.record(&Event::RolledBack {
            iteration: open.number,
            checkpoint: open.point.id.clone(),
            restored: restored.restored,
            conflicts: restored.conflicts,
        })
    }

    fn close(&mut self, open: &Open, decision: Decision) -> Result<(), EngineError> {
        let tree = if decision == Decision::Rollback { &open.point.tree } else { &open.change.tree };
        self.tick()?;
        self.record(&Event::IterationEnded {
            iteration: open.number,
            tree: tree.clone(),
            usage: self.governor.totals,
        })?;
        self.step_done(Step::RecordEnd)?;
        self.closed = self.open.take().map(|open| open.change);
        Ok(())
    }

    fn note_for_next_prompt(&mut self, open: &Open, verdict: &Verdict) {
        if let Some(TurnSummary { outcome: Outcome::TimedOut { .. }, duration_s, .. }) = &open.turn {
            self.governor.note(format!(
                "The last turn was cut short after {duration_s:.0} s: its time ran out. What it had written was {}.",
                if verdict.decision == Decision::Rollback { "rolled back" } else { "kept" }
            ));
        }
        if !open.fenced.is_empty() {
            self.governor.note(format!(
                "These paths are outside of your write scope and were reverted: {}.",
                shorten(&open.fenced)
            ));
        }
        if !open.guarded.is_empty() {
            self.governor.note(format!(
                "The repository's own state is not yours to change; this was undone: {}. Edit files only; do not commit.",
                shorten(&open.guarded)
            ));
        }
    }

    /// Ends the open iteration without a decision of the loop's: guard, roll back, record.
    pub(super) async fn abort(&mut self) -> Result<(), EngineError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.machine = open.machine.abort();
        let open = open.clone();
        let mut carried_out = Decision::Rollback;
        if open.machine.step() == Step::Guard {
            // Both must be tried: a git folder that cannot be put back is no reason to leave the tree half done.
            let guarded = self.world.guard(&open.point).await;
            self.opened_mut()?.machine = open.machine.done();
            let verdict = Verdict::because(Decision::Rollback, "the iteration was aborted");
            let recorded = self.record_decision(&verdict, None);
            let applied = self.apply(&open, Decision::Rollback).await;
            self.opened_mut()?.machine = open.machine.done().done().done();
            applied?;
            let undone = guarded?;
            recorded?;
            if !undone.is_empty() {
                self.record(&Event::Guarded { iteration: open.number, undone })?;
            }
        } else if let Step::Apply(decision) = open.machine.step() {
            self.apply(&open, decision).await?;
            self.opened_mut()?.machine = open.machine.done();
            carried_out = decision;
        }
        self.close(&open, carried_out)
    }

    /// Aborts after an error; an error of the abort itself is told with the first one.
    async fn abort_because(&mut self, error: EngineError) -> EngineError {
        if self.open.as_ref().is_none_or(|open| open.machine.is_over()) {
            self.open = None;
            return error;
        }
        match self.abort().await {
            Ok(()) => error,
            Err(second) => {
                self.open = None;
                tracing::error!(%error, %second, "the open iteration could not be rolled back");
                second
            }
        }
    }

    async fn guard(&mut self) -> Result<(), EngineError> {
        let open = self.opened()?;
        let (number, undone) = (open.number, self.world.guard(&open.point).await?);
        if !undone.is_empty() {
            self.record(&Event::Guarded { iteration: number, undone: undone.clone() })?;
            self.opened_mut()?.guarded.extend(undone);
        }
        Ok(())
    }

    async fn fence(&mut self) -> Result<(), EngineError> {
        let open = self.opened()?;
        let (number, paths) = (open.number, self.world.fence(&open.point, &self.scope).await?);
        if !paths.is_empty() {
            self.record(&Event::Fenced { iteration: number, paths: paths.clone() })?;
            self.opened_mut()?.fenced.extend(paths);
        }
        Ok(())
    }

    async fn compare(&mut self) -> Result<(), EngineError> {
        let open = self.opened()?;
        let mut change = self.world.changes(&open.point).await?;
        change.fenced.clone_from(&open.fenced);
        change.guarded.clone_from(&open.guarded);
        self.record(&Event::Changed { iteration: open.number, change: Box::new(change.clone()) })?;
        self.opened_mut()?.change = change;
        Ok(())
    }

    async fn fix(&mut self, sensors: &[SensorSpec]) -> Result<(), EngineError> {
        let number = self.opened()?.number;
        for sensor in sensors {
            let Some(fix) = &sensor.fix else { continue };
            let answer = self.world.fix(fix, self.interrupts.now()).await?;
            self.governor.add_sensor_time(answer.duration_s);
            self.record(&Event::Fixed {
                iteration: number,
                sensor: sensor.id.clone(),
                exit: answer.exit,
                duration_s: answer.duration_s,
                notes: answer.notes,
            })?;
        }
        Ok(())
    }

    async fn read_all(&mut self, sensors: &[SensorSpec], tree: &str) -> Result<Sense, EngineError> {
        let (world, now) = (&self.world, self.interrupts.now());
        // Made before the first wait: a closure over borrowed sensors that lives across one is not `Send`.
        let reads: Vec<_> = sensors.iter().map(|sensor| read_again_if_broken(world, sensor, now)).collect();
        let results: Vec<Result<Reading, WorldError>> =
            futures_util::stream::iter(reads).buffered(self.sensing.jobs.max(1)).collect().await;
        let readings = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        self.governor.add_sensor_time(readings.iter().map(|reading| reading.duration_s).sum());
        Ok(Sense::combine(tree.to_owned(), readings, self.sensing.strategy, self.sensing.feedback_bytes))
    }

    /// Sensors look; what they write into the tree is undone and noted.
    async fn undo_dirt(&self, tree: &str, sense: &mut Sense) -> Result<(), EngineError> {
        let undone = self.world.undo(tree).await?;
        if !undone.is_empty() {
            let note = format!("the sensors changed the tree, which was undone: {}", shorten(&undone));
            self.record(&Event::Noted { level: "warn".into(), text: note.clone() })?;
            for reading in &mut sense.readings {
                reading.notes.push(note.clone());
            }
        }
        Ok(())
    }

    /// What asks for an end now: a request, or the kill switch in the tree.
    async fn asked_to_stop(&self) -> Result<Option<Reason>, EngineError> {
        if let Some(request) = self.interrupts.pending() {
            return Ok(Some(request.reason));
        }
        let Some(path) = &self.kill_switch else { return Ok(None) };
        if self.world.peek(path).await?.is_none() {
            return Ok(None);
        }
        self.record(&Event::Interrupted { by: format!("kill switch {path}"), how: "after this iteration".into() })?;
        Ok(Some(Reason::Killed))
    }

    /// Keeps the clock of the budget; a machine that slept is noted and charged to nobody.
    pub(super) fn tick(&mut self) -> Result<(), EngineError> {
        let clock = self.world.clock();
        self.governor.tick(clock.awake());
        let slept = clock.asleep().saturating_sub(self.asleep);
        if slept >= Duration::from_secs(2) {
            self.asleep += slept;
            self.record(&Event::Suspended { seconds: slept.as_secs_f64() })?;
        }
        Ok(())
    }

    /// Waits, unless an end is asked for.
    pub(super) async fn back_off(&mut self, duration: Duration, why: &str) -> Result<(), EngineError> {
        let left = self.governor.wall_left(self.world.clock().awake());
        let duration = left.map_or(duration, |left| duration.min(left));
        self.record(&Event::BackedOff { seconds: duration.as_secs_f64(), why: why.to_owned() })?;
        tokio::select! {
            () = self.world.wait(duration, self.interrupts.now()) => {}
            () = self.interrupts.any() => {}
        }
        self.tick()
    }

    fn wish(&mut self, wish: Wish) -> Result<(), EngineError> {
        let open = self.opened_mut()?;
        open.machine = open.machine.wish(wish)?;
        Ok(())
    }

    fn step_done(&mut self, step: Step) -> Result<(), EngineError> {
        let open = self.opened_mut()?;
        if open.machine.step() != step {
            return Err(OutOfOrder::Busy.into());
        }
        open.machine = open.machine.done();
        Ok(())
    }

    fn opened(&self) -> Result<&Open, EngineError> {
        self.open.as_ref().ok_or_else(no_iteration)
    }

    fn opened_mut(&mut self) -> Result<&mut Open, EngineError> {
        self.open.as_mut().ok_or_else(no_iteration)
    }
}

async fn read_again_if_broken(
    world: &Arc<dyn World>,
    sensor: &SensorSpec,
    now: &tokio_util::sync::CancellationToken,
) -> Result<Reading, WorldError> {
    let mut reading = world.read(sensor, now).await?;
    for _ in 0..BROKEN_RETRIES {
        if reading.state != ReadingState::Broken || now.is_cancelled() {
            break;
        }
        world.wait(BROKEN_PAUSE, now).await;
        reading = world.read(sensor, now).await?;
    }
    Ok(reading)
}

fn no_iteration() -> EngineError {
    EngineError::Misuse("no iteration is open: use this inside `for it in run:iterations{…} do`".into())
}

/// At most ten names, and how many more there are.
fn shorten(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
