//! The end of an iteration: its decision recorded, carried out and closed, or its abort.

use super::{Open, Session, shorten};
use crate::engine::error::EngineError;
use crate::engine::governor::Aftermath;
use crate::engine::iteration::{Step, Wish};
use crate::journal::Event;
use crate::policy::{Decision, Observation, Outcome, TurnSummary, Verdict};

impl Session {
    /// Decides the open iteration: recorded first, then carried out, then closed.
    pub(in crate::engine) async fn decide(
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
        self.closed = Some(observation.clone());
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
        for warning in self.governor.warnings() {
            self.record(&Event::Noted { level: "warn".into(), text: warning })?;
        }
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
        self.open = None;
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
    pub(in crate::engine) async fn abort(&mut self) -> Result<(), EngineError> {
        if self.open.is_some() {
            self.closed = Some(self.observe());
        }
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
    pub(super) async fn abort_because(&mut self, error: EngineError) -> EngineError {
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
}
