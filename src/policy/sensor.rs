//! A sensor as data: what is run to find out whether the work is right.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::units;

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

/// Where a reading comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SensorSource {
    /// An exit code: 0 passed, 126, 127 and signals broken, all else failed.
    Command(CommandSpec),
    /// A function that the embedding program registered under this name.
    Function(String),
}

/// A sensor, whole: what `ln.sensor` makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SensorSpec {
    /// Name, unique in its loop.
    pub id: String,
    /// Where the reading comes from.
    pub source: SensorSource,
    /// Runs after the fence and before the pass; what it changes is fenced too.
    pub fix: Option<CommandSpec>,
    /// True: a timeout is *broken*. False (default): it is *failed* with a constant fingerprint.
    pub timeout_is_broken: bool,
    /// How often a result must come out the same before it may roll work back or complete a loop; default 2. A result
    /// that does not come again on the same tree is flaky: marked, and left out of every comparison. 1: never repeated.
    #[serde(default = "twice")]
    pub confirm: u32,
    /// False: read again even where the same tree was read before; default true.
    #[serde(default = "yes")]
    pub cache: bool,
}

fn twice() -> u32 {
    2
}

fn yes() -> bool {
    true
}

impl SensorSpec {
    /// A sensor that is a shell line, named by it.
    pub fn shell(line: &str) -> SensorSpec {
        let line = CommandLine::Shell(line.to_owned());
        SensorSpec {
            id: line.show(),
            source: SensorSource::Command(CommandSpec::new(line)),
            fix: None,
            timeout_is_broken: false,
            confirm: twice(),
            cache: true,
        }
    }

    /// A sensor that an embedding program registered as a function.
    pub fn function(name: impl Into<String>) -> SensorSpec {
        let name = name.into();
        SensorSpec {
            id: name.clone(),
            source: SensorSource::Function(name),
            fix: None,
            timeout_is_broken: false,
            confirm: twice(),
            cache: true,
        }
    }
}
