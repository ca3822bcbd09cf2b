//! Command lines, and commands with their limits.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::policy::units;

/// A command line: words as they are, or a line for `sh -c`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CommandLine {
    /// For the shell.
    Shell(String),
    /// Program and arguments, no shell.
    Words(Vec<String>),
}

impl CommandLine {
    /// The program and arguments that are started.
    pub fn argv(&self) -> Vec<String> {
        match self {
            CommandLine::Shell(line) => vec!["/bin/sh".into(), "-c".into(), line.clone()],
            CommandLine::Words(words) => words.clone(),
        }
    }

    /// True when there is nothing to run.
    pub fn is_blank(&self) -> bool {
        match self {
            CommandLine::Shell(line) => line.trim().is_empty(),
            CommandLine::Words(words) => words.first().is_none_or(|program| program.trim().is_empty()),
        }
    }

    /// The line as a person would type it; also the default name of a sensor.
    pub fn show(&self) -> String {
        match self {
            CommandLine::Shell(line) => line.clone(),
            CommandLine::Words(words) => words.join(" "),
        }
    }

    /// The same with every `{port}` replaced.
    pub fn with_port(&self, port: u16) -> CommandLine {
        let fill = |text: &String| text.replace("{port}", &port.to_string());
        match self {
            CommandLine::Shell(line) => CommandLine::Shell(fill(line)),
            CommandLine::Words(words) => CommandLine::Words(words.iter().map(fill).collect()),
        }
    }
}

/// A command with its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// What to run.
    pub line: CommandLine,
    /// Folder to run in, relative to the workspace; default: its root.
    pub cwd: Option<String>,
    /// Added to the environment.
    pub env: BTreeMap<String, String>,
    /// Awake time that it may take; default 10 minutes.
    #[serde(with = "units::seconds")]
    pub timeout: Duration,
    /// Time that it may be without a byte of output; default: none but the timeout.
    #[serde(with = "units::optional_seconds")]
    pub silence: Option<Duration>,
}

impl CommandSpec {
    /// A command with default limits.
    pub fn new(line: CommandLine) -> CommandSpec {
        CommandSpec { line, cwd: None, env: BTreeMap::new(), timeout: Duration::from_secs(600), silence: None }
    }
}
