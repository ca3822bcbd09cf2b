//! Failures that tools like ours really had, each under its id, each come out right.
//!
//! `cargo test --test cases -- --list` lists them. Every case runs the real program on a real repository with an agent
//! that does what the report says.

#[path = "../scene/mod.rs"]
mod scene;

mod done;
mod fence;
mod git;
mod looping;
mod lua;
mod proc;
mod sense;
mod state;
mod text;
