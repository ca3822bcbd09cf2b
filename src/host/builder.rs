//! What a host is made of.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::error::HostError;
use super::handle::RunHandle;
use super::plan::Plan;
use super::{preflight, start};
use crate::journal::{Event, Record};
use crate::mechanism::process::{Tier, WardenProgram};
use crate::policy::{LoopSpec, Policy};
use crate::script::{HostFunction, HostFuture};
use crate::world::{AgentFunction, Clock, SensorFunction, SystemClock};

/// Which script a host runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    /// `loop.lua`, found upwards from the host's root like git finds its folder.
    Find,
    /// This file; relative paths are relative to the host's root.
    File(PathBuf),
}

impl Script {
    /// `loop.lua`, found upwards.
    pub fn find() -> Script {
        Script::Find
    }
}

impl<P: Into<PathBuf>> From<P> for Script {
    fn from(path: P) -> Script {
        Script::File(path.into())
    }
}

/// What happens to a script that nobody has trusted yet, or that changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrustMode {
    /// It is refused, with the command that trusts it.
    #[default]
    Refuse,
    /// It runs, and the trust store stays as it is: for programs whose scripts are their own.
    Accept,
}

pub(super) type Listener = Arc<dyn Fn(&Event) + Send + Sync>;
pub(super) type RecordListener = crate::journal::Listener;

/// Everything that a host needs to know; all of it is handed in, nothing is read from the surroundings.
#[derive(Clone)]
pub struct HostBuilder {
    pub(super) root: PathBuf,
    pub(super) state: Option<PathBuf>,
    pub(super) ambient: Vec<(OsString, OsString)>,
    pub(super) warden: Option<WardenProgram>,
    pub(super) tier: Option<Tier>,
    pub(super) trust: TrustMode,
    pub(super) input: serde_json::Value,
    pub(super) agents: BTreeMap<String, Arc<dyn AgentFunction>>,
    pub(super) sensors: BTreeMap<String, Arc<dyn SensorFunction>>,
    pub(super) functions: Vec<HostFunction>,
    pub(super) policy: Option<Arc<dyn Policy>>,
    pub(super) listeners: Vec<Listener>,
    pub(super) record_listeners: Vec<RecordListener>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) seed: Option<u64>,
    pub(super) memory_limit: usize,
    pub(super) instruction_budget: u64,
    pub(super) cancel: Option<CancellationToken>,
    pub(super) secrets: Vec<String>,
}

impl Default for HostBuilder {
    fn default() -> HostBuilder {
        HostBuilder {
            root: PathBuf::from("."),
            state: None,
            ambient: Vec::new(),
            warden: None,
            tier: None,
            trust: TrustMode::Refuse,
            input: serde_json::Value::Object(serde_json::Map::new()),
            agents: BTreeMap::new(),
            sensors: BTreeMap::new(),
            functions: Vec::new(),
            policy: None,
            listeners: Vec::new(),
            record_listeners: Vec::new(),
            clock: Arc::new(SystemClock),
            seed: None,
            memory_limit: 64 << 20,
            instruction_budget: 100_000_000,
            cancel: None,
            secrets: Vec::new(),
        }
    }
}

impl HostBuilder {
    /// A folder in the project, default: the current one. The repository around it is the workspace.
    pub fn root(mut self, path: impl Into<PathBuf>) -> HostBuilder {
        self.root = path.into();
        self
    }

    /// Where lunation keeps what is its own: locks, shadow stores, trust. Default: `LUNATION_HOME` of the ambient
    /// environment, else the usual folder for state below its `HOME`.
    pub fn state(mut self, path: impl Into<PathBuf>) -> HostBuilder {
        self.state = Some(path.into());
        self
    }

    /// The environment that the agents' and sensors' are made from, after scrubbing; default: empty.
    pub fn ambient(mut self, vars: impl IntoIterator<Item = (OsString, OsString)>) -> HostBuilder {
        self.ambient = vars.into_iter().collect();
        self
    }

    /// The program that is started as a warden; default: this executable, whose `main` must begin with
    /// [`crate::enter_warden_if_asked`].
    pub fn warden(mut self, program: WardenProgram) -> HostBuilder {
        self.warden = Some(program);
        self
    }

    /// Forces a tier of process containment; default: the best that the machine has.
    pub fn tier(mut self, tier: Tier) -> HostBuilder {
        self.tier = Some(tier);
        self
    }

    /// What happens to scripts that nobody trusted; default: they are refused.
    pub fn trust(mut self, mode: TrustMode) -> HostBuilder {
        self.trust = mode;
        self
    }

    /// The run's input, `ln.input` in scripts; default: empty.
    pub fn input(mut self, input: serde_json::Value) -> HostBuilder {
        self.input = input;
        self
    }

    /// An agent that is a function; scripts name it like any other: `agent = "house"`.
    pub fn agent(mut self, name: impl Into<String>, agent: impl AgentFunction + 'static) -> HostBuilder {
        self.agents.insert(name.into(), Arc::new(agent));
        self
    }

    /// A sensor that is a function; scripts name it with `ln.sensor { host = "coverage" }`.
    pub fn sensor(mut self, name: impl Into<String>, sensor: impl SensorFunction + 'static) -> HostBuilder {
        self.sensors.insert(name.into(), Arc::new(sensor));
        self
    }

    /// A function that scripts call as `ln.<path>(argument)`, for example `"tickets.get"`. Serde in, serde out; its
    /// errors become script errors with the whole chain. `doc` is one line for annotations.
    pub fn function<A, R, F, Fut>(mut self, path: impl Into<String>, doc: impl Into<String>, function: F) -> HostBuilder
    where
        A: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = anyhow::Result<R>> + Send + 'static,
    {
        let function = Arc::new(function);
        let call = Arc::new(move |argument: serde_json::Value| -> HostFuture {
            let function = Arc::clone(&function);
            Box::pin(async move {
                let argument: A = serde_json::from_value(argument)?;
                Ok(serde_json::to_value(function(argument).await?)?)
            })
        });
        self.functions.push(HostFunction { name: path.into(), doc: doc.into(), call });
        self
    }

    /// The policy of [`Host::run_spec`]; default: [`crate::policy::DefaultPolicy`].
    pub fn policy(mut self, policy: impl Policy + 'static) -> HostBuilder {
        self.policy = Some(Arc::new(policy));
        self
    }

    /// Hears every event after it is recorded, on the thread that recorded it: be quick.
    pub fn subscribe(mut self, listener: impl Fn(&Event) + Send + Sync + 'static) -> HostBuilder {
        self.listeners.push(Arc::new(listener));
        self
    }

    /// Sees every record as it was written: masked, with its number, its time and the run. It is called while the
    /// journal is locked: be quick, and never wait for the run.
    pub fn subscribe_records(mut self, listener: impl Fn(&Record) + Send + Sync + 'static) -> HostBuilder {
        self.record_listeners.push(Arc::new(listener));
        self
    }

    /// Where time comes from; default: the machine.
    pub fn clock(mut self, clock: impl Clock + 'static) -> HostBuilder {
        self.clock = Arc::new(clock);
        self
    }

    /// Seed of all randomness; default: drawn and recorded.
    pub fn seed(mut self, seed: u64) -> HostBuilder {
        self.seed = Some(seed);
        self
    }

    /// Memory of a script, in bytes; default 64 MiB.
    pub fn memory_limit(mut self, bytes: usize) -> HostBuilder {
        self.memory_limit = bytes;
        self
    }

    /// Instructions of a script between two calls of the host; default 100 million.
    pub fn instruction_budget(mut self, instructions: u64) -> HostBuilder {
        self.instruction_budget = instructions;
        self
    }

    /// Ends runs at once when this fires; their open iteration is rolled back.
    pub fn cancel_on(mut self, token: CancellationToken) -> HostBuilder {
        self.cancel = Some(token);
        self
    }

    /// Names of variables whose values are masked in everything that is recorded, beside those that look like keys.
    pub fn secrets(mut self, names: impl IntoIterator<Item = String>) -> HostBuilder {
        self.secrets = names.into_iter().collect();
        self
    }

    /// A host.
    ///
    /// # Errors
    /// When no folder for state can be told.
    pub fn build(mut self) -> Result<Host, HostError> {
        if self.state.is_none() {
            self.state = Some(default_state(&self.ambient).ok_or(HostError::NoStateFolder)?);
        }
        Ok(Host(Arc::new(self)))
    }
}

fn default_state(ambient: &[(OsString, OsString)]) -> Option<PathBuf> {
    let var = |wanted: &str| {
        ambient.iter().find(|(name, value)| name == wanted && !value.is_empty()).map(|(_, value)| PathBuf::from(value))
    };
    var("LUNATION_HOME")
        .or_else(|| var("XDG_STATE_HOME").map(|state| state.join("lunation")))
        .or_else(|| var("HOME").map(|home| home.join(".local/state/lunation")))
}

/// A host: cheap to clone, usable from any thread, at work only while a run is.
#[derive(Clone)]
pub struct Host(pub(super) Arc<HostBuilder>);

impl Host {
    /// Starts to describe a host.
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }

    pub(super) fn warden(&self) -> WardenProgram {
        self.0.warden.clone().unwrap_or_else(WardenProgram::this_executable)
    }

    /// Folder of lunation's own.
    pub fn state(&self) -> &Path {
        self.0.state.as_deref().unwrap_or(Path::new("."))
    }

    /// Loads a script and checks all that can be checked without launching anything; trust is not needed, since
    /// loading has no effects.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub async fn check(&self, script: impl Into<Script>) -> Result<Plan, HostError> {
        preflight::plan(self, &script.into()).await
    }

    /// Remembers a script, with every module and prompt that it loads, as trusted. Returns what was trusted.
    pub async fn grant_trust(&self, script: impl Into<Script>) -> Result<Plan, HostError> {
        preflight::trust(self, &script.into(), None).await
    }

    /// The same, but only while the files are those of `seen`, a plan that a person looked at.
    ///
    /// # Errors
    /// Everything that is wrong with the script, and [`HostError::Config`] when a file changed meanwhile; nothing is
    /// remembered then.
    pub async fn grant_trust_as_seen(&self, script: impl Into<Script>, seen: &Plan) -> Result<Plan, HostError> {
        preflight::trust(self, &script.into(), Some(seen)).await
    }

    /// Runs a script. Must be called within a tokio runtime; work begins at once, whether or not the handle is awaited.
    pub fn run(&self, script: impl Into<Script>) -> RunHandle {
        start::script(self, script.into())
    }

    /// Runs a loop with the host's policy, without any Lua.
    pub fn run_spec(&self, spec: LoopSpec) -> RunHandle {
        let policy = self.0.policy.clone().unwrap_or_else(|| Arc::new(crate::policy::DefaultPolicy));
        start::spec(self, spec, policy)
    }

    /// Runs a loop with this policy, without any Lua.
    pub fn run_policy(&self, spec: LoopSpec, policy: impl Policy + 'static) -> RunHandle {
        start::spec(self, spec, Arc::new(policy))
    }
}
