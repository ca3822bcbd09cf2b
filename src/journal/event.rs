//! The events of a run, in their versioned form: what happened, in the order in which it happened.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::policy::{
    BreakerKind, ChangeSummary, LoopSpec, Observation, Reason, Sense, SlotSize, Status, TurnSummary, UsageTotals,
    Verdict,
};

/// Version of the format. Readers accept this one and older ones, and refuse newer ones by name.
pub const FORMAT_VERSION: u32 = 1;

/// One thing that happened. Names and fields are a public format: new fields get a default, nothing is renamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The first record of a run.
    RunStarted(Box<RunStarted>),
    /// A loop was started; nested ones have a path of their own.
    LoopStarted {
        /// The loop as resolved.
        spec: Box<LoopSpec>,
        /// SHA-256 of the prompt template, where it is fixed.
        template_sha256: Option<String>,
        /// Paths that are always fenced here.
        protected: Vec<String>,
    },
    /// Sensors were read before the first iteration, or by a script outside of one.
    Baseline {
        /// What they said.
        sense: Box<Sense>,
    },
    /// An iteration began.
    IterationStarted {
        /// Its number, from 1.
        iteration: u32,
        /// Rung of the ladder, from 1.
        rung: u32,
        /// The agent of that rung.
        agent: String,
        /// Its checkpoint.
        checkpoint: String,
        /// The tree at that point.
        tree: String,
    },
    /// The exact prompt that goes to the agent.
    Prompted {
        /// Iteration.
        iteration: u32,
        /// Blob with the prompt.
        prompt: String,
        /// Its size.
        bytes: u64,
        /// Its slots, with what was cut of each.
        #[serde(default)]
        slots: Vec<SlotSize>,
    },
    /// An agent turn ended and nothing of it is left running.
    TurnEnded {
        /// Iteration.
        iteration: u32,
        /// How it went.
        turn: Box<TurnSummary>,
        /// Names of variables that were kept from it.
        scrubbed: Vec<String>,
    },
    /// The guard put parts of the git folder back.
    Guarded {
        /// Iteration.
        iteration: u32,
        /// What it undid.
        undone: Vec<String>,
    },
    /// The fence reverted paths.
    Fenced {
        /// Iteration.
        iteration: u32,
        /// The paths, each with what was reverted.
        paths: Vec<String>,
    },
    /// Trees were compared.
    Changed {
        /// Iteration.
        iteration: u32,
        /// What changed.
        change: Box<ChangeSummary>,
    },
    /// A fix command ran.
    Fixed {
        /// Iteration.
        iteration: u32,
        /// The sensor that it belongs to.
        sensor: String,
        /// Exit code; none when it was killed.
        exit: Option<i32>,
        /// Awake seconds.
        duration_s: f64,
        /// Remarks.
        notes: Vec<String>,
    },
    /// Sensors were read.
    Sensed {
        /// Iteration.
        iteration: u32,
        /// What they said.
        sense: Box<Sense>,
        /// True when nothing changed and the readings of the same tree were carried over.
        carried: bool,
    },
    /// What is to happen with the iteration; written before it is carried out.
    Decided {
        /// Iteration.
        iteration: u32,
        /// The decision.
        verdict: Verdict,
        /// Whether the loop is complete, and if so whether that was verified.
        complete: Option<bool>,
        /// What the policy saw.
        observation: Box<Observation>,
    },
    /// The tree was put back.
    RolledBack {
        /// Iteration.
        iteration: u32,
        /// The checkpoint that it was put back to.
        checkpoint: String,
        /// How many paths were restored.
        restored: u64,
        /// Paths that could not be, with the reason.
        conflicts: Vec<String>,
    },
    /// The iteration is over.
    IterationEnded {
        /// Iteration.
        iteration: u32,
        /// The tree that it leaves.
        tree: String,
        /// Sums so far.
        usage: UsageTotals,
    },
    /// The ladder was climbed, up or down.
    RungChanged {
        /// From rung, from 1.
        from: u32,
        /// To rung.
        to: u32,
        /// Why.
        why: String,
    },
    /// The loop waits before it tries again.
    BackedOff {
        /// Seconds.
        seconds: f64,
        /// Why.
        why: String,
    },
    /// A breaker opened.
    BreakerOpened {
        /// Which one.
        breaker: BreakerKind,
        /// The diagnosis.
        diagnosis: String,
    },
    /// A command that the script ran.
    Command {
        /// The command line.
        line: String,
        /// Exit code; none when it was killed.
        exit: Option<i32>,
        /// Awake seconds.
        duration_s: f64,
        /// Blob with its output.
        output: Option<String>,
    },
    /// Somebody asked for an end.
    Interrupted {
        /// `signal`, `stop command`, `kill switch file` or `cancelled`.
        by: String,
        /// `after this iteration`, `now` or `at once`.
        how: String,
    },
    /// The machine slept; this time is charged to nobody.
    Suspended {
        /// Seconds.
        seconds: f64,
    },
    /// A remark of the host: recovered state, a stale lock, a weaker tier.
    Noted {
        /// `info`, `warn` or `error`.
        level: String,
        /// The remark.
        text: String,
    },
    /// A line that the script logged.
    Logged {
        /// `debug`, `info`, `warn` or `error`.
        level: String,
        /// The line.
        text: String,
    },
    /// The result was committed.
    Committed {
        /// Id of the commit.
        commit: String,
        /// Committed paths.
        paths: Vec<String>,
    },
    /// The journal reached its size cap; what follows is left out but for the end.
    Capped {
        /// The cap in bytes.
        cap: u64,
    },
    /// The last record of a run.
    RunEnded(Box<RunEnded>),
}

impl Event {
    /// The names of all kinds.
    pub const KINDS: [&'static str; 25] = [
        "run_started",
        "loop_started",
        "baseline",
        "iteration_started",
        "prompted",
        "turn_ended",
        "guarded",
        "fenced",
        "changed",
        "fixed",
        "sensed",
        "decided",
        "rolled_back",
        "iteration_ended",
        "rung_changed",
        "backed_off",
        "breaker_opened",
        "command",
        "interrupted",
        "suspended",
        "noted",
        "logged",
        "committed",
        "capped",
        "run_ended",
    ];

    /// The name of its kind, as in the journal.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::RunStarted(_) => "run_started",
            Event::LoopStarted { .. } => "loop_started",
            Event::Baseline { .. } => "baseline",
            Event::IterationStarted { .. } => "iteration_started",
            Event::Prompted { .. } => "prompted",
            Event::TurnEnded { .. } => "turn_ended",
            Event::Guarded { .. } => "guarded",
            Event::Fenced { .. } => "fenced",
            Event::Changed { .. } => "changed",
            Event::Fixed { .. } => "fixed",
            Event::Sensed { .. } => "sensed",
            Event::Decided { .. } => "decided",
            Event::RolledBack { .. } => "rolled_back",
            Event::IterationEnded { .. } => "iteration_ended",
            Event::RungChanged { .. } => "rung_changed",
            Event::BackedOff { .. } => "backed_off",
            Event::BreakerOpened { .. } => "breaker_opened",
            Event::Command { .. } => "command",
            Event::Interrupted { .. } => "interrupted",
            Event::Suspended { .. } => "suspended",
            Event::Noted { .. } => "noted",
            Event::Logged { .. } => "logged",
            Event::Committed { .. } => "committed",
            Event::Capped { .. } => "capped",
            Event::RunEnded(_) => "run_ended",
        }
    }
}

/// What is known when a run starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// Version of lunation.
    pub version: String,
    /// The script; none when a policy in Rust runs.
    pub script: Option<ScriptRecord>,
    /// Root of the work tree.
    pub root: String,
    /// Branch that HEAD names; none when detached.
    pub branch: Option<String>,
    /// Commit at HEAD; none on an unborn branch.
    pub head: Option<String>,
    /// Checkpoint of the tree as found.
    pub checkpoint: String,
    /// True when the user had changes of their own.
    pub dirty: bool,
    /// Tier of process containment.
    pub tier: String,
    /// Why not a better tier, and what the tier takes from commands or can't promise.
    pub tier_notes: Vec<String>,
    /// Agents by name with the version that they print; unknown ones are null.
    pub agents: BTreeMap<String, Option<String>>,
    /// The run's input.
    pub input: serde_json::Value,
    /// Seed of all randomness.
    pub seed: u64,
}

/// The script of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScriptRecord {
    /// Path, relative to the root where it is inside.
    pub path: String,
    /// SHA-256 by path, of the script and every module that it loaded.
    pub sha256: BTreeMap<String, String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEnded {
    /// In one word.
    pub status: Status,
    /// Why.
    #[serde(flatten)]
    pub reason: Reason,
    /// True only when a check that ran holds on the final tree.
    pub verified: bool,
    /// Exit code.
    pub exit_code: u8,
    /// Iterations.
    pub iterations: u32,
    /// Climbs of the ladder.
    pub escalations: u32,
    /// Sums.
    pub usage: UsageTotals,
    /// What changed over the whole run.
    pub change: ChangeSummary,
    /// One line for people.
    pub summary: String,
    /// Error, where there was one.
    pub error: Option<String>,
}
