//! Why a run ended, and what that means for whoever waits for it.

use serde::{Deserialize, Serialize};

/// Which breaker opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerKind {
    /// Failed turns in a row.
    Failures,
    /// Iterations without a change in a row.
    Unchanged,
    /// Turns that ended at once with nothing, in a row.
    Instant,
    /// The same states again and again.
    Thrash,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", content = "breaker", rename_all = "snake_case")]
pub enum Reason {
    /// The configured completion holds.
    Completed,
    /// The script or policy ended it by its own rule.
    Stopped,
    /// The cap on iterations was reached.
    MaxIterations,
    /// The awake time was used up.
    MaxWall,
    /// The tokens were used up.
    MaxTokens,
    /// The money was used up.
    MaxCost,
    /// A breaker opened.
    Breaker(BreakerKind),
    /// The agent is not logged in, or its key or credit is bad.
    AgentAuth,
    /// The agent's program is not there any more.
    AgentMissing,
    /// A usage limit resets later than the budget lasts.
    LimitWaitTooLong,
    /// A sensor could not give a verdict.
    SensorBroken,
    /// The router could not name what to run.
    RouterBroken,
    /// The repository was damaged beyond what can be put back.
    RepoLost,
    /// The disk is full.
    DiskFull,
    /// The kill switch: its file, or `lunation stop`.
    Killed,
    /// A signal.
    Interrupted,
    /// The script failed.
    ScriptError,
    /// lunation itself or the machine failed in a way that has no other name.
    HostError,
    /// Waiting for a person.
    Parked,
}

impl Reason {
    /// The name in journals and reports: `breaker` with its kind after a colon.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Completed => "completed",
            Reason::Stopped => "stopped",
            Reason::MaxIterations => "max_iterations",
            Reason::MaxWall => "max_wall",
            Reason::MaxTokens => "max_tokens",
            Reason::MaxCost => "max_cost",
            Reason::Breaker(BreakerKind::Failures) => "breaker:failures",
            Reason::Breaker(BreakerKind::Unchanged) => "breaker:unchanged",
            Reason::Breaker(BreakerKind::Instant) => "breaker:instant",
            Reason::Breaker(BreakerKind::Thrash) => "breaker:thrash",
            Reason::AgentAuth => "agent_auth",
            Reason::AgentMissing => "agent_missing",
            Reason::LimitWaitTooLong => "limit_wait_too_long",
            Reason::SensorBroken => "sensor_broken",
            Reason::RouterBroken => "router_broken",
            Reason::RepoLost => "repo_lost",
            Reason::DiskFull => "disk_full",
            Reason::Killed => "killed",
            Reason::Interrupted => "interrupted",
            Reason::ScriptError => "script_error",
            Reason::HostError => "host_error",
            Reason::Parked => "parked",
        }
    }

    /// How a script sees it.
    pub fn status(self) -> Status {
        match self {
            Reason::Completed => Status::Passed,
            Reason::Stopped
            | Reason::MaxIterations
            | Reason::MaxWall
            | Reason::MaxTokens
            | Reason::MaxCost
            | Reason::Breaker(_)
            | Reason::LimitWaitTooLong
            | Reason::Parked => Status::Stopped,
            Reason::AgentAuth
            | Reason::AgentMissing
            | Reason::SensorBroken
            | Reason::RouterBroken
            | Reason::RepoLost
            | Reason::DiskFull
            | Reason::HostError => Status::Failed,
            Reason::Killed | Reason::Interrupted => Status::Interrupted,
            Reason::ScriptError => Status::Crashed,
        }
    }

    /// The exit code, given whether a check that ran has verified the result, and the signal of an interrupt.
    pub fn exit_code(self, verified: bool, signal: Option<i32>) -> ExitCode {
        match self {
            Reason::Completed if verified => ExitCode::Verified,
            Reason::MaxIterations | Reason::MaxWall | Reason::MaxTokens | Reason::MaxCost => ExitCode::CapReached,
            Reason::Parked => ExitCode::Waiting,
            Reason::RepoLost => ExitCode::Refused,
            Reason::ScriptError => ExitCode::Usage,
            Reason::Interrupted => ExitCode::Signal(signal.unwrap_or(2)),
            _ => ExitCode::Unverified,
        }
    }
}

/// How a run ended, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Complete.
    Passed,
    /// A limit or a rule ended it.
    Stopped,
    /// Something that it needs does not work.
    Failed,
    /// Somebody ended it.
    Interrupted,
    /// Its script failed.
    Crashed,
}

/// Exit codes of the program (design.md section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitCode {
    /// 0: completed and verified.
    Verified,
    /// 1: ended without that.
    Unverified,
    /// 2: a cap or budget was reached.
    CapReached,
    /// 3: parked, or waiting for a person.
    Waiting,
    /// 4: usage, configuration or script error; nothing launched.
    Usage,
    /// 5: somebody else holds the repository, or the state cannot be trusted.
    Refused,
    /// 128 plus the signal.
    Signal(i32),
}

impl ExitCode {
    /// The number.
    pub fn number(self) -> u8 {
        match self {
            ExitCode::Verified => 0,
            ExitCode::Unverified => 1,
            ExitCode::CapReached => 2,
            ExitCode::Waiting => 3,
            ExitCode::Usage => 4,
            ExitCode::Refused => 5,
            ExitCode::Signal(signal) => 128u8.wrapping_add(signal as u8),
        }
    }
}

/// What went wrong in a run, in the words of reports (source D).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureMode {
    /// The fence reverted something in most iterations.
    ScopeFighting,
    /// The agent changed nothing or said nothing, again and again.
    AgentSilent,
    /// The agent reported errors.
    AgentError,
    /// A cap or budget was reached.
    BudgetExhausted,
    /// The same states again and again.
    Thrash,
    /// It passed only after a climb.
    NeededEscalation,
    /// A sensor ran out of time.
    SensorTimeout,
    /// A sensor could not give a verdict.
    SensorBroken,
    /// It waited for a usage limit.
    LimitParked,
}
