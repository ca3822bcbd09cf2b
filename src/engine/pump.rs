//! A loop by hand: the script drives, the governor holds.
//!
//! Owns the rules of `for it in run:iterations{…} do`. Must not know Lua. Guarantees that budgets, breaker, kill switch,
//! fence, guard and record hold exactly as in `ln.loop`, and that no iteration ends undecided.

use super::error::EngineError;
use super::run::{Run, RunResult};
use super::session::Session;
use crate::policy::{
    AgentSpec, Breaker, Budget, ChangeSummary, Decision, FenceSpec, Observation, Reason, Sense, SensorSpec, Slot,
    TurnSummary, Verdict, render_prompt,
};

/// Options of `run:iterations`.
#[derive(Debug, Clone)]
pub struct PumpSpec {
    /// Name in journals; default `loop`.
    pub id: String,
    /// Limits; `max` and `wall` of scripts.
    pub budget: Budget,
    /// When to stop a loop that goes nowhere.
    pub breaker: Breaker,
    /// What agents may write.
    pub fence: FenceSpec,
    /// Paths that they may never write.
    pub protected: Vec<String>,
    /// A file below the root; when it exists the loop ends. Default `.lunation/STOP`.
    pub kill_switch: String,
    /// How many sensors run at a time; default 1.
    pub jobs: u32,
    /// Bytes of feedback; default 16 KiB.
    pub feedback_bytes: usize,
}

impl Default for PumpSpec {
    fn default() -> PumpSpec {
        PumpSpec {
            id: "loop".into(),
            budget: Budget::default(),
            breaker: Breaker::default(),
            fence: FenceSpec::default(),
            protected: Vec::new(),
            kill_switch: ".lunation/STOP".into(),
            jobs: 1,
            feedback_bytes: 16 << 10,
        }
    }
}

/// A loop by hand. All methods fail with [`EngineError::Misuse`] when called out of order.
pub struct Pump {
    run: Run,
    number: u32,
    budget: Budget,
    diagnosis: Option<String>,
    last: std::sync::Mutex<Option<Observation>>,
}

impl Pump {
    /// The loop of this number in the run; a written diagnosis of a breaker goes to `diagnosis` too.
    pub(super) fn new(run: Run, number: u32, budget: Budget, diagnosis: Option<String>) -> Pump {
        Pump { run, number, budget, diagnosis, last: std::sync::Mutex::new(None) }
    }

    /// The session of this loop. That of another loop is never touched: each has its own budget and fence.
    fn own<'a>(&self, slot: &'a mut Option<Session>) -> Result<&'a mut Session, EngineError> {
        match slot.as_mut() {
            Some(session) if session.number() == self.number => Ok(session),
            Some(_) => Err(EngineError::Misuse(
                "this loop is over, because another run:iterations has begun since: loops by hand follow each other and do not nest".into(),
            )),
            None => Err(EngineError::Misuse("this loop is over".into())),
        }
    }

    /// Number of the iteration that is open in this loop.
    pub async fn open_iteration(&self) -> Option<u32> {
        let mut slot = self.run.session().lock().await;
        self.own(&mut slot).ok().filter(|session| session.is_open()).map(|session| session.governor.iteration())
    }

    /// The budget that was given.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Opens the next iteration; `None` when a cap, breaker or request has ended the loop.
    ///
    /// # Errors
    /// When the iteration before was left undecided; it has been rolled back.
    pub async fn next(&self) -> Result<Option<u32>, EngineError> {
        let mut slot = self.run.session().lock().await;
        let session = self.own(&mut slot)?;
        if session.is_open() {
            let number = session.governor.iteration();
            session.abort().await?;
            return Err(EngineError::Misuse(format!(
                "iteration {number} was left undecided and has been rolled back: end each with it:keep(), it:rollback(), it:stall() or it:done()"
            )));
        }
        session.open().await
    }

    /// An agent turn. Slots are put after the prompt as marked data.
    pub async fn turn(&self, agent: &AgentSpec, prompt: &str, slots: Vec<Slot>) -> Result<TurnSummary, EngineError> {
        self.run.world().check_agent(agent).await?;
        let mut slot = self.run.session().lock().await;
        let session = self.own(&mut slot)?;
        session.announce(session.governor.rung(), agent)?;
        let notes = session.governor.take_notes();
        let mut slots = slots;
        slots.push(Slot::new("notes", notes, super::governor::NOTES_BYTES));
        session.turn(agent, &render_prompt(prompt, &slots)).await
    }

    /// A pass over sensors.
    pub async fn sense(&self, sensors: &[SensorSpec]) -> Result<Sense, EngineError> {
        let mut slot = self.run.session().lock().await;
        let session = self.own(&mut slot)?;
        let sense = session.sense(sensors).await?;
        if sense.broken {
            let broken: Vec<&str> = sense
                .readings
                .iter()
                .filter(|reading| reading.state == crate::policy::ReadingState::Broken)
                .map(|reading| reading.id.as_str())
                .collect();
            session.note(&format!("no verdict from: {}", broken.join(", ")))?;
            session.stop_with(Reason::SensorBroken);
        }
        Ok(sense)
    }

    /// Keeps what the iteration did.
    pub async fn keep(&self, note: Option<String>) -> Result<(), EngineError> {
        self.decide(Decision::Keep, note).await
    }

    /// Puts the tree back; the note is told to later prompts.
    pub async fn rollback(&self, note: Option<String>) -> Result<(), EngineError> {
        self.decide(Decision::Rollback, note).await
    }

    /// Counts as no progress; the tree stays.
    pub async fn stall(&self, note: Option<String>) -> Result<(), EngineError> {
        self.decide(Decision::Stall, note).await
    }

    async fn decide(&self, decision: Decision, note: Option<String>) -> Result<(), EngineError> {
        let mut slot = self.run.session().lock().await;
        let session = self.own(&mut slot)?;
        let (aftermath, observation) = session.decide(Verdict { decision, note }, None).await?;
        self.remember(observation);
        if let Some(reason) = aftermath.stop {
            session.stop_with(reason);
            if let Reason::Breaker(kind) = reason {
                session.open_breaker(kind, self.diagnosis.as_deref()).await?;
            }
        } else if let Some(pause) = aftermath.back_off
            && session.governor.cap().is_none()
        {
            session.back_off(pause, "the agent ended at once").await?;
        }
        Ok(())
    }

    /// Keeps what the iteration did and ends the loop as complete. Verified is it only when the sensors hold on this
    /// very tree.
    pub async fn done(&self, reason: Option<String>) -> Result<RunResult, EngineError> {
        let verified = {
            let mut slot = self.run.session().lock().await;
            let session = self.own(&mut slot)?;
            let verified = session.observe().ok;
            let verdict = Verdict { decision: Decision::Keep, note: reason.clone() };
            let (_, observation) = session.decide(verdict, Some(verified)).await?;
            self.remember(observation);
            verified
        };
        Ok(self.run.end_pump(Reason::Completed, verified, reason).await)
    }

    /// What is known now; after a decision, what was known then.
    pub async fn observation(&self) -> Result<Observation, EngineError> {
        let mut slot = self.run.session().lock().await;
        let session = self.own(&mut slot);
        match session {
            Ok(session) if session.is_open() => Ok(session.observe()),
            other => {
                let last = self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
                last.map_or_else(|| other.map(|session| session.observe()), Ok)
            }
        }
    }

    /// The change of the open iteration so far.
    pub async fn change(&self) -> Result<ChangeSummary, EngineError> {
        Ok(self.observation().await?.change)
    }

    fn remember(&self, observation: Observation) {
        *self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(observation);
    }
}
