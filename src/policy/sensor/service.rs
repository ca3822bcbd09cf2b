//! A service as data: what is started so that sensors can look at it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::command::CommandSpec;
use crate::policy::units;

/// When a service is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// This path on its port answers with a status below 400.
    Http(String),
    /// Its port takes connections.
    Port,
    /// It printed a line that this regular expression matches.
    Line(String),
}

/// A service. `{port}` in its commands and the variable `PORT` are a free port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceSpec {
    /// Name, unique in its loop.
    pub id: String,
    /// What is started. Its timeout does not count: it runs for as long as a pass over the sensors.
    pub run: CommandSpec,
    /// When it can be looked at.
    pub ready: Ready,
    /// How long that may take; default 30 seconds.
    #[serde(with = "units::seconds")]
    pub ready_within: Duration,
    /// Asks it to end; without it, and after it, its processes are ended.
    pub stop: Option<CommandSpec>,
}
