//! The torture set: programs that try to outlive their turn, on every tier that this machine has, as the user that runs
//! the tests and, when that is root, as an unprivileged user made up for it. After each one the process table shows that
//! nobody is left and that a bystander of the same user lives.
//!
//! The weakest tier promises nothing of this and is not tortured. What can't be had here is skipped, and said on stderr.

mod daemons;
mod nesting;
mod pipes;
mod signals;
mod stage;
mod storms;
mod stuck;
mod terminals;
