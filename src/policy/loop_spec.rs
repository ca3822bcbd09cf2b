//! A loop as data: what `ln.loop` makes, with every default filled in.

use serde::{Deserialize, Serialize};

use super::agent::AgentSpec;
use super::budget::{Breaker, Budget};
use super::commit::CommitSpec;
use super::completion::{Completion, Mode};
use super::prompt::{PromptSource, STANDARD_SLOTS, SlotSource, SlotSpec};
use super::sensor::{CommandSpec, SensorSource, SensorSpec};

/// Write scope as written; [`super::scope::Scope`] is its resolved form.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FenceSpec {
    /// Globs of paths that the agent may write; empty: everything.
    pub allow: Vec<String>,
    /// Globs that it may not write, stronger than `allow`.
    pub deny: Vec<String>,
    /// True: paths that git ignores are fenced too.
    pub watch_ignored: bool,
}

/// Which questions the policy wants to answer itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Callbacks {
    /// `decide`
    pub decide: bool,
    /// `complete`
    pub complete: bool,
    /// `on_stall`
    pub on_stall: bool,
    /// `on_iteration`
    pub on_iteration: bool,
}

/// A loop, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopSpec {
    /// Name in journals; default `loop`.
    pub id: String,
    /// The ladder, weakest agent first; at least one rung.
    pub agents: Vec<AgentSpec>,
    /// Where the prompt comes from.
    pub prompt: PromptSource,
    /// Data of the prompt beside the standard slots, and other caps for those.
    #[serde(default)]
    pub slots: Vec<SlotSpec>,
    /// What is checked; may be empty.
    pub sensors: Vec<SensorSpec>,
    /// How many sensors run at a time; default 1.
    pub jobs: u32,
    /// Commands that run once before iteration 1; their output becomes the `context` slot of every prompt.
    pub context: Vec<CommandSpec>,
    /// What the agent may write.
    pub fence: FenceSpec,
    /// Paths that it may never write, whatever the fence says: scripts, modules, prompt files.
    pub protected: Vec<String>,
    /// What counts as done.
    pub completion: Completion,
    /// Stalls before the ladder is climbed; default 3.
    pub patience: u32,
    /// Good iterations before the ladder is climbed down again; default 2.
    pub step_down: u32,
    /// Limits.
    pub budget: Budget,
    /// When to stop a loop that goes nowhere.
    pub breaker: Breaker,
    /// A file below the root; when it exists the run stops. Default `.lunation/STOP`.
    pub kill_switch: String,
    /// Bytes of feedback that a prompt may show; default 16 KiB.
    pub feedback_bytes: usize,
    /// Commits the result when set.
    pub commit: Option<CommitSpec>,
    /// Seed of all randomness; default: drawn and recorded.
    pub seed: Option<u64>,
    /// Which questions the policy answers itself.
    pub callbacks: Callbacks,
}

/// The smallest cap of a slot, in bytes.
const LEAST_SLOT_BYTES: usize = 128;

/// A spec that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct SpecError {
    /// Path of the field, as a script writes it: `sensors[2].timeout`.
    pub field: String,
    /// What is wrong and what to write instead.
    pub problem: String,
}

impl LoopSpec {
    /// A loop with all defaults.
    pub fn new(agent: AgentSpec, prompt: impl Into<String>) -> LoopSpec {
        LoopSpec {
            id: "loop".into(),
            agents: vec![agent],
            prompt: PromptSource::Text { template: prompt.into(), file: None },
            slots: Vec::new(),
            sensors: Vec::new(),
            jobs: 1,
            context: Vec::new(),
            fence: FenceSpec::default(),
            protected: Vec::new(),
            completion: Completion::default_for(None, false),
            patience: 3,
            step_down: 2,
            budget: Budget::default(),
            breaker: Breaker::default(),
            kill_switch: ".lunation/STOP".into(),
            feedback_bytes: 16 << 10,
            commit: None,
            seed: None,
            callbacks: Callbacks::default(),
        }
    }

    /// Checks what no type can: limits, blank commands, double names.
    ///
    /// # Errors
    /// Every problem at once, in the order of the fields.
    pub fn check(&self) -> Result<(), Vec<SpecError>> {
        let mut problems = Vec::new();
        let mut say = |field: &str, problem: String| problems.push(SpecError { field: field.into(), problem });
        if self.agents.is_empty() {
            say("agent", "a loop needs an agent: agent = \"claude\"".into());
        }
        if self.budget.iterations == Some(0) {
            say("budget.iterations", "must be at least 1; leave it out for the default of 10".into());
        }
        if self.budget.iterations.is_none() && self.budget.wall.is_none() && self.budget.cost_usd.is_none() {
            say("budget", "nothing would ever end this loop: set iterations, wall or cost_usd".into());
        }
        if self.budget.wall.is_some_and(|wall| wall.is_zero()) {
            say("budget.wall", "must be more than 0; leave it out for the default of \"2h\"".into());
        }
        if self.budget.cost_usd.is_some_and(|cost| !cost.is_finite() || cost <= 0.0) {
            say("budget.cost_usd", "must be more than 0".into());
        }
        if self.budget.tokens == Some(0) {
            say("budget.tokens", "must be at least 1".into());
        }
        for (name, value) in [
            ("breaker.failures", self.breaker.failures),
            ("breaker.unchanged", self.breaker.unchanged),
            ("breaker.instant", self.breaker.instant),
            ("breaker.thrash", self.breaker.thrash),
            ("patience", self.patience),
            ("jobs", self.jobs),
        ] {
            if value == 0 {
                say(name, "must be at least 1".into());
            }
        }
        if let Some(name) = self.commit.as_ref().and_then(CommitSpec::unknown) {
            let known = "{id}, {run}, {iterations} and {reason} are filled in";
            say("commit.message", format!("nothing is known for {{{name}}}; {known}"));
        }
        for (at, sensor) in self.sensors.iter().enumerate() {
            let field = format!("sensors[{}]", at + 1);
            let commands = match &sensor.source {
                SensorSource::Command(command) => vec![command],
                SensorSource::Function(_) => vec![],
            };
            if sensor.id.trim().is_empty() {
                say(&field, "has a blank name".into());
            }
            if commands.into_iter().chain(&sensor.fix).any(|command| command.line.is_blank()) {
                say(&field, "has a blank command: write what to run, for example \"cargo test\"".into());
            }
            if self.sensors[..at].iter().any(|other| other.id == sensor.id) {
                say(&field, format!("is the second sensor named `{}`: give it an id of its own", sensor.id));
            }
        }
        for (at, slot) in self.slots.iter().enumerate() {
            let field = format!("prompt.slots.{}", slot.name);
            let standard = STANDARD_SLOTS.contains(&slot.name.as_str());
            if standard != (slot.source == SlotSource::Standard) {
                let problem = match standard {
                    true => "is filled by the loop itself: give it max_bytes and keep only".to_owned(),
                    false => {
                        format!("needs text, file, glob or read; the loop itself fills {}", STANDARD_SLOTS.join(", "))
                    }
                };
                say(&field, problem);
            }
            if slot.max_bytes < LEAST_SLOT_BYTES {
                say(
                    &field,
                    format!("max_bytes must be at least {LEAST_SLOT_BYTES}: less holds not even the note of a cut"),
                );
            }
            if self.slots[..at].iter().any(|other| other.name == slot.name) {
                say(&field, "is there twice".into());
            }
        }
        let needs_sensors = matches!(self.completion.mode, Mode::Verify);
        if needs_sensors && self.sensors.is_empty() && !self.callbacks.complete {
            say("complete", "mode \"verify\" needs at least one sensor".into());
        }
        if matches!(self.completion.mode, Mode::Verify | Mode::LlmOnly)
            && self.completion.sentinel.is_none()
            && !self.callbacks.complete
        {
            say("complete", "this mode needs a sentinel: ln.complete.sentinel \"RALPH COMPLETE\"".into());
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }
}
