//! An agent as data: what to start, how it gets its prompt, and how to read what it says.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::units;

/// How the prompt reaches the agent. Never through a shell, and never in argv unless asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum PromptChannel {
    /// Standard input, followed by end of file.
    #[default]
    Stdin,
    /// The last argument, or where `{prompt}` stands; refused above 120,000 bytes.
    Arg,
    /// A file in the turn's own temporary folder, its path where `{prompt_file}` stands.
    File,
}

/// Where an agent's turns come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentSource {
    /// A program with its arguments; `{model}`, `{prompt_file}`, `{workspace}` and `{tmp}` are filled in.
    /// An argument that consists of an unset `{model}` is left out together with the option before it.
    Command(Vec<String>),
    /// A function that the embedding program registered under this name.
    Function(String),
}

/// One condition on a JSON line: each dotted path must have this value.
/// A value that starts with `^` or is wrapped in `/…/` is a regular expression over the string there.
pub type Match = BTreeMap<String, serde_json::Value>;

/// Where token counts stand in a JSON line, and by which convention. Paths are dotted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UsageRule {
    /// Which lines hold it.
    pub when: Match,
    /// Path of the input tokens.
    pub input: Option<String>,
    /// Path of the tokens read from the cache.
    pub cache_read: Option<String>,
    /// Path of the tokens written to the cache.
    pub cache_write: Option<String>,
    /// Path of the output tokens.
    pub output: Option<String>,
    /// Path of the reasoning tokens.
    pub reasoning: Option<String>,
    /// Path of the cost in US dollars.
    pub cost: Option<String>,
    /// True: every matching line adds. False: the last matching line holds the total.
    pub sum: bool,
    /// True where `input` counts cached tokens too.
    pub input_includes_cache: bool,
    /// True where `output` leaves reasoning tokens out.
    pub output_excludes_reasoning: bool,
}

/// How to read an agent that speaks in JSON lines (agents/README section 6). All conditions are alternatives.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JsonLines {
    /// Lines with (part of) the final message, and the dotted path of its text. A path may cross lists: `content[].text`.
    pub text: Vec<TextRule>,
    /// Lines that say that the turn ended well.
    pub done: Vec<Match>,
    /// Lines that say that the turn ended badly, and where the message and the HTTP-like status stand.
    pub failed: Vec<FailedRule>,
    /// Lines about a retry; they count as signs of life and name the trouble.
    pub retry: Vec<FailedRule>,
    /// Token counts and cost.
    pub usage: Vec<UsageRule>,
    /// Lines with the name of the session, and its path.
    pub session: Vec<TextRule>,
    /// Values of `type` whose lines are dropped before they are parsed, because they are huge and say nothing.
    pub ignore: Vec<String>,
}

/// A line that holds text.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextRule {
    /// Which lines.
    pub when: Match,
    /// Lines that match this too are passed over (a sub-agent's own message is not the agent's).
    pub unless: Match,
    /// Dotted path of the text.
    pub text: String,
}

/// A line that reports trouble.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FailedRule {
    /// Which lines.
    pub when: Match,
    /// Dotted paths of the message; the first that holds text counts.
    pub message: Vec<String>,
    /// Dotted path of a numeric status like 429.
    pub status: Option<String>,
    /// Dotted path of the time of reset in Unix seconds.
    pub resets_at: Option<String>,
}

/// How an agent's output becomes a final message, an outcome and usage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Parser {
    /// Standard output as it is, without terminal codes, is the final message; exit code 0 is success.
    #[default]
    Text,
    /// JSON lines by rules; success needs a line of `done`, exit code 0 and a text that is not empty.
    JsonLines(Box<JsonLines>),
}

/// A pattern of this agent's own error messages: kind of [`super::Outcome`] and regular expression.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errors {
    /// `usage_limit`, `rate_limited`, `auth`, `context_overflow`, `overloaded`, `server`, `network` or `agent_error`.
    pub kind: String,
    /// Regular expression (crate `regex`), searched in the terminal or last error message, then in the tail of stderr.
    pub pattern: String,
}

/// An agent, whole: what `ln.agent` makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentSpec {
    /// Name in journals and reports: the preset's, or the program's.
    pub name: String,
    /// Where its turns come from.
    pub source: AgentSource,
    /// Fills `{model}`; default: the agent's own default.
    pub model: Option<String>,
    /// Put before every prompt, with a blank line between.
    pub instructions: Option<String>,
    /// Awake time that one turn may take; default 20 minutes.
    #[serde(with = "units::seconds")]
    pub timeout: Duration,
    /// Time that the agent may be without a byte of output; default 10 minutes.
    #[serde(with = "units::optional_seconds")]
    pub silence: Option<Duration>,
    /// After its terminal event an agent gets this long to leave by itself; default 5 seconds.
    #[serde(with = "units::seconds")]
    pub settle: Duration,
    /// Time between TERM and KILL; default 5 seconds.
    #[serde(with = "units::seconds")]
    pub grace: Duration,
    /// Added to the environment of its processes.
    pub env: BTreeMap<String, String>,
    /// Names of ambient variables that reach it although they are scrubbed by default.
    pub pass_env: Vec<String>,
    /// How the prompt reaches it; default stdin.
    pub prompt_via: PromptChannel,
    /// How its output is read; default text.
    pub parse: Parser,
    /// Its own error messages, tried before the general ones.
    pub errors: Vec<Errors>,
    /// Command that prints its version; recorded in each run.
    pub version: Option<Vec<String>>,
    /// What to type to install it; told when the program is not found.
    pub install: Option<String>,
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
            timeout: Duration::from_secs(20 * 60),
            silence: Some(Duration::from_secs(10 * 60)),
            settle: Duration::from_secs(5),
            grace: Duration::from_secs(5),
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
