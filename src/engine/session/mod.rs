//! One loop at work: takes each step of its iterations through the world and writes down what came of it.
//!
//! Owns the open iteration and the loop's governor. Must not know what a policy or script wants.
//! Guarantees that a step that fails leaves the iteration aborted: guarded, rolled back, recorded.

mod decide;
mod pass;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::diagnosis;
use super::error::EngineError;
use super::governor::Governor;
use super::interrupts::Interrupts;
use super::iteration::{Iteration, OutOfOrder, Step, Wish};
use super::recorder::Recorder;
use crate::journal::Event;
use crate::policy::scope::Scope;
use crate::policy::{AgentSpec, BreakerKind, ChangeSummary, Observation, Reason, Sense, Strategy, TurnSummary};
use crate::world::{Point, World};

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
    /// Which loop of its run, from 0.
    number: u32,
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
    /// What was known when the last iteration was decided.
    closed: Option<Observation>,
    memory: pass::Memory,
    /// Why the loop takes no further iteration.
    stop: Option<Reason>,
    asleep: Duration,
}

/// What a session needs from the run that it belongs to.
pub(super) struct Around {
    /// Which loop of the run, from 0.
    pub(super) number: u32,
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
            number: around.number,
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
            memory: pass::Memory::default(),
            stop: None,
            asleep,
        }
    }

    /// Which loop of its run, from 0.
    pub(super) fn number(&self) -> u32 {
        self.number
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

    /// The door to everything outside.
    pub(super) fn world(&self) -> &Arc<dyn World> {
        &self.world
    }

    /// The change of the iteration that is open or was closed last.
    pub(super) fn last_change(&self) -> Option<&ChangeSummary> {
        self.change().or(self.closed.as_ref().map(|closed| &closed.change))
    }

    /// Writes down that a breaker opened, with a diagnosis for the person who finds the loop stopped; `file` takes it too.
    pub(super) async fn open_breaker(&self, kind: BreakerKind, file: Option<&str>) -> Result<(), EngineError> {
        let known = self.closed.clone().unwrap_or_else(|| self.observe());
        let diagnosis = diagnosis::write(&known, &self.path, kind);
        if let Some(file) = file {
            self.world.write(file, &diagnosis).await?;
        }
        self.record(&Event::BreakerOpened { breaker: kind, diagnosis })
    }

    /// A remark of the host for the record.
    pub(super) fn note(&self, text: &str) -> Result<(), EngineError> {
        self.record(&Event::Noted { level: "warn".into(), text: text.to_owned() })
    }

    /// Fires when the run is to end now. Hand it to everything that takes time.
    pub(super) fn asked_now(&self) -> &CancellationToken {
        self.interrupts.now()
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

    /// What asks for an end now: a request, or the kill switch in the tree.
    async fn asked_to_stop(&self) -> Result<Option<Reason>, EngineError> {
        if let Some(request) = self.interrupts.pending() {
            return Ok(Some(request.reason));
        }
        let Some(path) = &self.kill_switch else { return Ok(None) };
        if self.world.peek(path, 0).await?.is_none() {
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
