//! When things are done: iterations, loops, budgets at work, requests to end.
//!
//! Owns the order of events in a run. Must not know mlua, the command line, or how an effect is had: it asks the world.
//! Guarantees that no script or policy skips the fence, the guard, the budgets or the record, and that an iteration left
//! by error, signal or cancellation is rolled back to its checkpoint.

mod diagnosis;
mod driver;
mod error;
mod governor;
mod interrupts;
mod iteration;
mod prompting;
mod pump;
mod recorder;
mod run;
mod session;
mod tried;

pub use error::EngineError;
pub use governor::{Aftermath, Governor, Limits, RungChange};
pub use interrupts::{Interrupts, Request, Urgency};
pub use iteration::{Iteration, OutOfOrder, Step, Wish};
pub use pump::{Pump, PumpSpec};
pub use recorder::{Announcer, MemoryRecorder, RecordError, Recorder};
pub use run::{Run, RunParts, RunResult};
