//! The program from end to end, as a person or another program uses it: real git, real processes, fake agents.

mod bad_input;
mod by_hand;
mod demo;
mod ending_early;
mod newcomer;
mod output;
mod project;
mod restoring;
mod running;
mod setting_up;
mod terminal;
mod two_runs;
