//! A sensor as data: what is run to find out whether the work is right.

mod assertion;
mod command;
mod counting;
mod judge;
mod metric;
mod order;
mod picture;
mod service;

use serde::{Deserialize, Serialize};

pub use assertion::{Assertion, AssertionError};
pub use command::{CommandLine, CommandSpec};
pub use counting::{Counting, Format, Parse, PatternSpec, ScriptFunction};
pub use judge::{JudgeSpec, judged_score};
pub use metric::{MetricSpec, QueryLanguage, QueryRange};
pub use order::{OrderError, sensor_waves};
pub use picture::PictureSpec;
pub use service::{Ready, ServiceSpec};

/// Where a reading comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SensorSource {
    /// An exit code: 0 passed, 126, 127 and signals broken, all else failed; and what its output tells.
    Command(CommandSpec),
    /// A function that the embedding program registered under this name.
    Function(String),
    /// A function of the script that says whether it holds, and why not.
    Check(ScriptFunction),
    /// An agent that gives a score.
    Judge(Box<JudgeSpec>),
    /// A metric of a running system.
    Metric(Box<MetricSpec>),
    /// A picture.
    Picture(Box<PictureSpec>),
}

/// What goes with a failure: how it is mended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hint {
    /// These words.
    Text(String),
    /// What a function of the script answers to the reading.
    Function(ScriptFunction),
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
    /// What is read beyond the exit code.
    #[serde(default, skip_serializing_if = "Counting::is_default")]
    pub counting: Counting,
    /// Told with a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
    /// Sensors that are read before this one, whatever they say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// True: it is known to write into the tree. It is read alone, and what it wrote is undone before the next one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub scratch: bool,
    /// True: it gets no network but loopback, or is not run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub offline: bool,
    /// What must be running while it is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceSpec>,
}

fn twice() -> u32 {
    2
}

fn yes() -> bool {
    true
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl SensorSpec {
    /// A sensor with all defaults.
    pub fn new(id: impl Into<String>, source: SensorSource) -> SensorSpec {
        SensorSpec {
            id: id.into(),
            source,
            fix: None,
            timeout_is_broken: false,
            confirm: twice(),
            cache: true,
            counting: Counting::default(),
            hint: None,
            after: Vec::new(),
            scratch: false,
            offline: false,
            services: Vec::new(),
        }
    }

    /// A sensor that is a shell line, named by it.
    pub fn shell(line: &str) -> SensorSpec {
        let line = CommandLine::Shell(line.to_owned());
        SensorSpec::new(line.show(), SensorSource::Command(CommandSpec::new(line)))
    }

    /// A sensor that an embedding program registered as a function.
    pub fn function(name: impl Into<String>) -> SensorSpec {
        let name = name.into();
        SensorSpec::new(name.clone(), SensorSource::Function(name))
    }

    /// The commands that it runs by itself, its fix command not among them.
    pub fn commands(&self) -> Vec<&CommandSpec> {
        let own = match &self.source {
            SensorSource::Command(command) => Some(command),
            SensorSource::Picture(picture) => picture.take.as_ref(),
            _ => None,
        };
        let services = self.services.iter().flat_map(|service| [Some(&service.run), service.stop.as_ref()]);
        own.into_iter().chain(services.flatten()).collect()
    }
}
