//! What is wanted, as plain data: specs as written, plans as resolved, and what is observed and decided.
//!
//! Owns the vocabulary of lunation: agents, sensors, readings, decisions, budgets, completion, reasons.
//! Must not know files, clocks, processes, Lua or git: everything here is a value or a pure function of values.
//! Guarantees that the same observation always gives the same default decision, in every world.

mod agent;
mod budget;
mod change;
mod commit;
mod completion;
mod decision;
mod default_policy;
mod feedback;
mod json_lines;
mod loop_spec;
mod observation;
mod prompt;
mod reading;
mod reason;
pub mod scope;
mod sensor;
mod sentinel;
mod turn;
pub mod units;

pub use agent::{AgentSource, AgentSpec, ErrorPattern, Parser, PromptChannel};
pub use budget::{Breaker, Budget, Left};
pub use change::{ChangeSummary, MOST_PATHS};
pub use commit::{CommitFacts, CommitSpec};
pub use completion::{Completion, Mode, Strategy, Ternary};
pub use decision::{Decision, Policy, PolicyError, Verdict};
pub use default_policy::DefaultPolicy;
pub use feedback::{cap_feedback, cap_feedback_with_gap};
pub use json_lines::{FailedRule, JsonLines, Match, TextRule, UsageRule};
pub use loop_spec::{Callbacks, FenceSpec, LoopSpec, SpecError};
pub use observation::{HistoryEntry, Observation};
pub use prompt::{
    Keep, MOST_PROMPT_BYTES, PromptError, PromptSource, RenderedPrompt, STANDARD_SLOTS, Slot, SlotSize, SlotSource,
    SlotSpec, read_prompt, render_prompt, template_digest,
};
pub(crate) use reading::hex;
pub use reading::{Attribution, Reading, ReadingState, Sense};
pub use reason::{BreakerKind, ExitCode, FailureMode, Reason, Status};
pub use scope::{Scope, ScopeError};
pub use sensor::{CommandLine, CommandSpec, SensorSource, SensorSpec};
pub use sentinel::{SentinelError, check_sentinel, says_sentinel};
pub use turn::{ErrorKind, Outcome, TimeoutKind, TurnSummary, Usage, UsageTotals};
