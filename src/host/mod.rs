//! Embedding: everything put together for one project, by whoever runs it. The command line is one such program.
//!
//! Owns the order in which a run starts and ends: find the repository, load and check the script, take the lock, mend
//! what a crash left, save the tree as found, record, drive, record the end. Must not know the command line.
//! Guarantees that bad input launches nothing, that two runs never share a repository, and that a run leaves an end
//! record and no open iteration.
//!
//! ```no_run
//! # async fn example() -> Result<(), lunation::host::HostError> {
//! use lunation::host::{Host, Script};
//!
//! let host = Host::builder().root("/path/to/project").ambient(std::env::vars_os()).build()?;
//! let outcome = host.run(Script::find()).await?;
//! println!("{} after {} iterations", outcome.ended.summary, outcome.ended.iterations);
//! # Ok(())
//! # }
//! ```

mod builder;
mod error;
mod handle;
mod mend;
mod plan;
mod preflight;
mod recorder;
mod requests;
mod start;
mod stop_file;

pub(crate) use mend::mend_if_asked;

pub use builder::{Host, HostBuilder, Script, TrustMode};
pub use error::HostError;
pub use handle::{Canceller, Outcome, RunHandle};
pub use plan::{AgentPlan, Plan};
pub use stop_file::{StopRequest, ask_to_stop};

pub use crate::engine::Urgency;
pub use crate::mechanism::process::{Tier, TierReport, WardenProgram};
pub use crate::world::{AgentFunction, FunctionContext, FunctionReading, FunctionTurn, SensorFunction};
