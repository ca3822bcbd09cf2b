//! The steps of an iteration: turn, guard, fence, comparison, fix, sense.

use super::Session;
use crate::engine::error::EngineError;
use crate::engine::iteration::{Step, Wish};
use crate::journal::Event;
use crate::policy::{AgentSpec, RenderedPrompt, Sense, SensorSpec, TurnSummary};
use crate::world::{Point, TurnAsk};

impl Session {
    /// One agent turn with everything that follows from it: all gone, guard, fence, comparison.
    pub(in crate::engine) async fn turn(
        &mut self,
        agent: &AgentSpec,
        prompt: &RenderedPrompt,
    ) -> Result<TurnSummary, EngineError> {
        self.wish(Wish::Turn)?;
        match self.turn_steps(agent, prompt).await {
            Ok(turn) => Ok(turn),
            Err(error) => Err(self.abort_because(error).await),
        }
    }

    async fn turn_steps(&mut self, agent: &AgentSpec, prompt: &RenderedPrompt) -> Result<TurnSummary, EngineError> {
        let number = self.opened()?.number;
        let blob = self.recorder.blob(prompt.text.as_bytes())?;
        self.record(&Event::Prompted {
            iteration: number,
            prompt: blob,
            bytes: prompt.text.len() as u64,
            slots: prompt.slots.clone(),
        })?;
        let ask = TurnAsk {
            agent: agent.clone(),
            prompt: prompt.text.clone(),
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
        let point = self.opened()?.point.clone();
        let sense = self.pass(sensors, &tree, &point).await?;
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

    /// Looks at the tree again after a command of the script, which may have changed it while the iteration is open:
    /// guard and fence hold for that too, and readings of another tree count no more.
    pub(in crate::engine) async fn after_command(&mut self) -> Result<(), EngineError> {
        if !self.open.as_ref().is_some_and(|open| open.machine.is_waiting()) {
            return Ok(());
        }
        match self.look_again().await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.abort_because(error).await),
        }
    }

    async fn look_again(&mut self) -> Result<(), EngineError> {
        self.guard().await?;
        self.fence().await?;
        let open = self.opened()?;
        let tree = self.world.tree().await?;
        if tree == open.change.tree {
            return Ok(());
        }
        self.compare().await?;
        self.opened_mut()?.sense = None;
        Ok(())
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
        let sense = self.pass(sensors, &point.tree, point).await?;
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
}
