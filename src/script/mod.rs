//! The Lua host: from a file named loop.lua to a loop that runs.
//!
//! Owns finding, trusting and loading scripts, the VM and its sandbox, options, errors with file and line, the bindings,
//! and the embedded standard library. The only layer that names mlua. Must not know the command line. Guarantees that
//! loading has no effect, that a script cannot reach anything but through the engine, and that one that does not come
//! back does not hold its host.

pub(crate) mod bindings;
mod data;
mod error;
mod find;
mod loaded;
mod manifest;
mod nearest;
mod options;
mod policy;
mod preset;
mod records;
mod source;
mod trust;
mod types;
mod vm;

pub use error::{ErrorKind, Place, ScriptError};
pub use find::{SCRIPT_NAME, find};
pub use loaded::{Kind, Loaded};
pub use manifest::{FileRole, Manifest, ManifestEntry};
pub use preset::{preset, preset_names};
pub use source::Source;
pub use trust::{Trust, TrustError, Trusted};
pub use types::annotations;
pub use vm::{HostFunction, HostFuture, LogSink, Vm, VmOptions};
