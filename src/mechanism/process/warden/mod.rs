//! The warden: the small process that stands between the host and one command.
//!
//! Owns the command's whole tree: start, TERM, sweep, proof of the end. It must not know budgets, output or files; those
//! are the host's. It has one thread, takes orders from one socket, and holds that when it says *gone* and *confirmed*,
//! no descendant of the command exists.

mod children;
mod control;
mod descendants;
mod entry;
mod gate;
mod leader;
mod muster;
pub(super) use muster::HOLD_VARIABLE;
mod namespace;
mod probe;
mod sweep;
mod tree;
mod watch;

pub use entry::enter_warden_if_asked;
