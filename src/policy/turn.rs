//! One agent turn, as a policy sees it: how it ended, what it said, what it used.

use serde::{Deserialize, Serialize};

/// Which budget a turn overran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutKind {
    /// Its awake time.
    Wall,
    /// Its time without output.
    Silence,
}

/// The kinds of trouble that an agent can report of its provider, its account or itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// [`Outcome::UsageLimit`].
    UsageLimit,
    /// [`Outcome::RateLimited`].
    RateLimited,
    /// [`Outcome::Auth`].
    Auth,
    /// [`Outcome::ContextOverflow`].
    ContextOverflow,
    /// [`Outcome::Overloaded`].
    Overloaded,
    /// [`Outcome::Server`].
    Server,
    /// [`Outcome::Network`].
    Network,
    /// [`Outcome::AgentError`].
    AgentError,
}

impl ErrorKind {
    /// The outcome of a turn that ended with it. `reset_at` in Unix seconds and `retry_after` in seconds are kept by
    /// the two kinds that know them.
    pub fn outcome(self, reset_at: Option<i64>, retry_after: Option<f64>) -> Outcome {
        match self {
            ErrorKind::UsageLimit => Outcome::UsageLimit { reset_at },
            ErrorKind::RateLimited => Outcome::RateLimited { retry_after },
            ErrorKind::Auth => Outcome::Auth,
            ErrorKind::ContextOverflow => Outcome::ContextOverflow,
            ErrorKind::Overloaded => Outcome::Overloaded,
            ErrorKind::Server => Outcome::Server,
            ErrorKind::Network => Outcome::Network,
            ErrorKind::AgentError => Outcome::AgentError,
        }
    }
}

/// How a turn ended. Success needs positive proof; everything else is named.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It says it ended well, exit code 0, and there is a final message.
    Done,
    /// It ended well and said nothing.
    Empty,
    /// Its answer was cut by a length limit.
    Truncated,
    /// A usage limit of the account; Unix seconds of the reset where told.
    UsageLimit {
        /// Unix seconds.
        reset_at: Option<i64>,
    },
    /// Too many requests; seconds to wait where told.
    RateLimited {
        /// Seconds.
        retry_after: Option<f64>,
    },
    /// Not logged in, wrong key, no credit. Trying again cannot help.
    Auth,
    /// The prompt or session was too long for the model.
    ContextOverflow,
    /// The provider has no room.
    Overloaded,
    /// The provider failed.
    Server,
    /// The provider could not be reached.
    Network,
    /// Any other error that the agent reports.
    AgentError,
    /// It ended without the event that says how.
    NoTerminalEvent,
    /// Its time ran out.
    TimedOut {
        /// Which time.
        which: TimeoutKind,
    },
    /// It died by a signal that was not ours.
    Crashed {
        /// Number of the signal.
        signal: i32,
    },
    /// It could not be started.
    SpawnFailed {
        /// True when trying again may help.
        transient: bool,
    },
    /// We stopped it: interrupt, kill switch or budget.
    Stopped,
}

impl Outcome {
    /// The name in journals and reports.
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Empty => "empty",
            Outcome::Truncated => "truncated",
            Outcome::UsageLimit { .. } => "usage_limit",
            Outcome::RateLimited { .. } => "rate_limited",
            Outcome::Auth => "auth",
            Outcome::ContextOverflow => "context_overflow",
            Outcome::Overloaded => "overloaded",
            Outcome::Server => "server",
            Outcome::Network => "network",
            Outcome::AgentError => "agent_error",
            Outcome::NoTerminalEvent => "no_terminal_event",
            Outcome::TimedOut { .. } => "timed_out",
            Outcome::Crashed { .. } => "crashed",
            Outcome::SpawnFailed { .. } => "spawn_failed",
            Outcome::Stopped => "stopped",
        }
    }

    /// True for trouble of the provider or the machine: back off and try again, no stall of the task.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Outcome::RateLimited { .. }
                | Outcome::Overloaded
                | Outcome::Server
                | Outcome::Network
                | Outcome::SpawnFailed { transient: true }
        )
    }
}

/// Tokens and money of one turn; `None` is unknown, never free.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens that were not read from a cache.
    pub input: Option<u64>,
    /// Input tokens read from a cache.
    pub cache_read: Option<u64>,
    /// Input tokens written to a cache.
    pub cache_write: Option<u64>,
    /// Output tokens, reasoning included.
    pub output: Option<u64>,
    /// Of which reasoning, where told.
    pub reasoning: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// All tokens that were processed, where any count is known.
    pub fn tokens(&self) -> Option<u64> {
        let known = [self.input, self.cache_read, self.cache_write, self.output];
        known.iter().any(Option::is_some).then(|| known.iter().flatten().sum())
    }
}

/// Sums over a run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct UsageTotals {
    /// Iterations that ended.
    pub iterations: u32,
    /// Tokens of the turns that told.
    pub tokens: u64,
    /// Turns that did not tell their tokens.
    pub turns_without_tokens: u32,
    /// Dollars of the turns that told.
    pub cost_usd: f64,
    /// Turns that did not tell their cost.
    pub turns_without_cost: u32,
    /// Awake seconds of the whole run.
    pub wall_s: f64,
    /// Awake seconds in agent turns.
    pub agent_s: f64,
    /// Awake seconds in sensors and fix commands.
    pub sensor_s: f64,
}

impl UsageTotals {
    /// Adds one turn.
    pub fn add_turn(&mut self, usage: &Usage, seconds: f64) {
        self.agent_s += seconds;
        match usage.tokens() {
            Some(tokens) => self.tokens += tokens,
            None => self.turns_without_tokens += 1,
        }
        match usage.cost_usd {
            Some(cost) => self.cost_usd += cost,
            None => self.turns_without_cost += 1,
        }
    }
}

/// A turn as policies and journals see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnSummary {
    /// Name of the agent, with its model.
    pub agent: String,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The final message; its tail when longer than 64 KiB.
    pub text: String,
    /// First line of the final message, or what went wrong.
    pub summary: String,
    /// Message of the error, where there was one.
    pub error: Option<String>,
    /// Exit code; `None` when it was killed or never started.
    pub exit: Option<i32>,
    /// True when a budget of the turn ended it.
    pub timed_out: bool,
    /// Tokens and cost.
    pub usage: Usage,
    /// Awake seconds.
    pub duration_s: f64,
    /// Processes that it left behind and that were ended, by name; at most 32.
    pub left_behind: Vec<String>,
    /// Blob with the raw output.
    pub output: Option<String>,
}

impl TurnSummary {
    /// True when the turn counts as a failed one: it neither ended well nor was stopped by us.
    /// A timed-out turn is scored on what it left in the tree, so it does not count by itself.
    pub fn failed(&self) -> bool {
        !matches!(self.outcome, Outcome::Done | Outcome::Truncated | Outcome::TimedOut { .. } | Outcome::Stopped)
    }
}
