//! How a VM is set up.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;

/// What a function of the embedding program gives back.
pub type HostFuture = Pin<Box<dyn Future<Output = anyhow::Result<Json>> + Send>>;

/// A function of the embedding program, called from scripts as `ln.<name>`; data in, data out.
#[derive(Clone)]
pub struct HostFunction {
    /// `namespace.name`, like `tickets.get`.
    pub name: String,
    /// What it does, in a line.
    pub doc: String,
    /// The function: gets the one argument of the call.
    pub call: Arc<dyn Fn(Json) -> HostFuture + Send + Sync>,
}

impl fmt::Debug for HostFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostFunction").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Where the script's own lines go while no run is on.
#[derive(Clone)]
pub struct LogSink(Arc<WriteLine>);

type WriteLine = dyn Fn(&str, &str) + Send + Sync;

impl LogSink {
    /// A sink that gets level (`debug`, `info`, `warn`, `error`) and text.
    pub fn new(write: impl Fn(&str, &str) + Send + Sync + 'static) -> LogSink {
        LogSink(Arc::new(write))
    }

    pub(in crate::script) fn write(&self, level: &str, text: &str) {
        (self.0)(level, text);
    }
}

impl fmt::Debug for LogSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogSink")
    }
}

/// How a VM is set up; `Default` is what the program uses.
#[derive(Debug, Clone)]
pub struct VmOptions {
    /// Bytes that Lua may use; default 64 MiB. Reached, the allocation fails as an error and the VM goes on.
    pub memory_limit: usize,
    /// Instructions between two effects; default 100 million, about a second.
    pub instruction_budget: u64,
    /// Real time after which Lua that has not come back is told to end; default 10 s.
    pub stuck_after: Duration,
    /// Real time after that until the VM is given up; default 2 s.
    pub stuck_grace: Duration,
    /// Seed of `math.random` until a run gives its own; default 0.
    pub seed: u64,
    /// What `ln.input` shows; default an empty object.
    pub input: Json,
    /// Functions of the embedding program.
    pub functions: Vec<HostFunction>,
    /// Names of agents of the embedding program: `ln.agent "name"` finds them before the presets.
    pub agents: Vec<String>,
    /// Names of sensors of the embedding program: `ln.sensor "name"` finds them before it makes a shell line.
    pub sensors: Vec<String>,
    /// Where the script's own lines go while no run is on; default nowhere but tracing.
    pub log: Option<LogSink>,
}

impl Default for VmOptions {
    fn default() -> VmOptions {
        VmOptions {
            memory_limit: 64 << 20,
            instruction_budget: 100_000_000,
            stuck_after: Duration::from_secs(10),
            stuck_grace: Duration::from_secs(2),
            seed: 0,
            input: Json::Object(serde_json::Map::new()),
            functions: Vec::new(),
            agents: Vec::new(),
            sensors: Vec::new(),
            log: None,
        }
    }
}
