//! Commands under a warden: how they end, what they leave, what they read and write, and what is left when their host
//! dies. Every claim that something is gone is checked by looking at the process table.

mod endings;
mod harness;
mod host_death;
mod hostile;
mod input_output;
mod leftovers;
