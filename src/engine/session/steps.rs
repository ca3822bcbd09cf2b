//! The steps of an iteration: turn, guard, fence, comparison, fix, sense.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;

use super::{Session, shorten};
use crate::engine::error::EngineError;
use crate::engine::iteration::{Step, Wish};
use crate::journal::Event;
use crate::policy::{AgentSpec, Reading, ReadingState, Sense, SensorSpec, TurnSummary};
use crate::world::{Point, TurnAsk, World, WorldError};

/// How often a broken sensor is read again before it is believed to be broken.
const BROKEN_RETRIES: u32 = 2;
/// Pause before a broken sensor is read again.
const BROKEN_PAUSE: Duration = Duration::from_millis(500);

impl Session {
    /// One agent turn with everything that follows from it: all gone, guard, fence, comparison.
    pub(in crate::engine) async fn turn(
        &mut self,
        agent: &AgentSpec,
        prompt: &str,
    ) -> Result<TurnSummary, EngineError> {
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
    pub(in crate::engine) async fn sense(&mut self, sensors: &[SensorSpec]) -> Result<Sense, EngineError> {
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
    pub(in crate::engine) async fn baseline(&mut self, sensors: &[SensorSpec]) -> Result<Sense, EngineError> {
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

    pub(super) async fn guard(&mut self) -> Result<(), EngineError> {
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
