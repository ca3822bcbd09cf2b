//! An agent as data: what to start, how it gets its prompt, and how to read what it says.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::json_lines::JsonLines;
use super::turn::ErrorKind;
use super::units;

/// How the prompt reaches the agent. Never through a shell, and never in argv unless asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum PromptChannel {
    /// Standard input, followed by end of file.
    #[default]
    Stdin,
    /// The argument `{prompt}`, or one more at the end; refused above 120,000 bytes (Linux allows 131,071).
    Arg,
    /// A file in the turn's own temporary folder, its path where `{prompt_file}` stands.
    File,
}

/// Where an agent's turns come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentSource {
    /// A program with its arguments; `{model}`, `{prompt}`, `{prompt_file}`, `{workspace}` and `{tmp}` are filled in.
    /// Where no model is set, an argument with `{model}` in it is left out, together with the option before it if it
    /// consists of nothing else. `{prompt}` is always an argument of its own.
    Command(Vec<String>),
    /// A function that the embedding program registered under this name.
    Function(String),
}

/// How an agent's output becomes a final message, an outcome and usage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Parser {
    /// Standard output as it is, without terminal codes, is the final message; exit code 0 is success.
    #[default]
    Text,
    /// JSON lines by rules; success needs a line that says so, exit code 0 and a text that is not empty.
    JsonLines(Box<JsonLines>),
}

/// A pattern of this agent's own error messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorPattern {
    /// What it means.
    pub kind: ErrorKind,
    /// Regular expression (crate `regex`, case is ignored), searched in the terminal or last error message, then in the
    /// tail of stderr.
    pub pattern: String,
    /// True: it is also compared with the final message of a turn that says that it ended well, and counts there only
    /// when it describes the *whole* message: an answer that merely speaks of limits is an answer. Default: false.
    #[serde(default)]
    pub whole_message: bool,
}

/// An agent, whole: what `ln.agent` makes, and what a preset is. Only `name` and `source` have no default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// Name in journals and reports: the preset's, or the program's.
    pub name: String,
    /// Where its turns come from.
    pub source: AgentSource,
    /// Fills `{model}`; default: the agent's own default.
    #[serde(default)]
    pub model: Option<String>,
    /// Put before every prompt, with a blank line between.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Awake time that one turn may take; default 20 minutes.
    #[serde(default = "defaults::timeout", with = "units::seconds")]
    pub timeout: Duration,
    /// Time that the agent may be without a byte of output; default 10 minutes.
    #[serde(default = "defaults::silence", with = "units::optional_seconds")]
    pub silence: Option<Duration>,
    /// After its terminal event an agent gets this long to leave by itself; default 5 seconds.
    #[serde(default = "defaults::settle", with = "units::seconds")]
    pub settle: Duration,
    /// Time between TERM and KILL; default 5 seconds.
    #[serde(default = "defaults::grace", with = "units::seconds")]
    pub grace: Duration,
    /// Added to the environment of its processes.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Names of ambient variables that reach it although they are scrubbed by default.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// How the prompt reaches it; default stdin.
    #[serde(default)]
    pub prompt_via: PromptChannel,
    /// How its output is read; default text.
    #[serde(default)]
    pub parse: Parser,
    /// Its own error messages, tried before the general ones.
    #[serde(default)]
    pub errors: Vec<ErrorPattern>,
    /// Command that prints its version; recorded in each run.
    #[serde(default)]
    pub version: Option<Vec<String>>,
    /// What to type to install it; told when the program is not found.
    #[serde(default)]
    pub install: Option<String>,
}

mod defaults {
    use std::time::Duration;

    pub(super) fn timeout() -> Duration {
        Duration::from_secs(20 * 60)
    }

    // The type is that of the field: serde and `new` both ask here.
    #[expect(clippy::unnecessary_wraps)]
    pub(super) fn silence() -> Option<Duration> {
        Some(Duration::from_secs(10 * 60))
    }

    pub(super) fn settle() -> Duration {
        Duration::from_secs(5)
    }

    pub(super) fn grace() -> Duration {
        Duration::from_secs(5)
    }
}

impl AgentSpec {
    /// An agent that is a plain command with all defaults. The name is the program's base name.
    pub fn command<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> AgentSpec {
        let argv: Vec<String> = argv.into_iter().map(Into::into).collect();
        let name = argv.first().map(|program| program.rsplit('/').next().unwrap_or(program).to_owned());
        AgentSpec::new(name.unwrap_or_default(), AgentSource::Command(argv))
    }

    /// An agent that an embedding program registered as a function.
    pub fn function(name: impl Into<String>) -> AgentSpec {
        let name = name.into();
        AgentSpec::new(name.clone(), AgentSource::Function(name))
    }

    fn new(name: String, source: AgentSource) -> AgentSpec {
        AgentSpec {
            name,
            source,
            model: None,
            instructions: None,
            timeout: defaults::timeout(),
            silence: defaults::silence(),
            settle: defaults::settle(),
            grace: defaults::grace(),
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            prompt_via: PromptChannel::Stdin,
            parse: Parser::Text,
            errors: Vec::new(),
            version: None,
            install: None,
        }
    }

    /// Name with the model, for reports: `claude (opus)`.
    pub fn label(&self) -> String {
        match &self.model {
            Some(model) => format!("{} ({model})", self.name),
            None => self.name.clone(),
        }
    }
}
