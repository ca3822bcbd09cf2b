//! lunation: a host that makes loops of coding agents trustworthy, and scriptable in Lua.
//!
//! People leave coding agents working alone in a git repository for hours. A bare loop believes the agent when it says
//! "done", leaks processes, burns money and wrecks the tree. lunation is the host that such a loop runs in.
//!
//! ```text
//!     loop.lua ──▶ script ──▶ policy ──▶ loop ──▶ mechanism ──▶ journal
//!     (text)       (mlua)     (data)     (when)   (how)         (record)
//! ```
//!
//! A script says what it wants; that becomes a validated plan; the plan is carried out; what happened is recorded. The
//! only thing that flows back is a [`policy::Observation`], by value, through the trait that [`policy`] owns. Scripts
//! answer with decisions as data, and Rust carries them out. So a policy runs in three worlds without changing a letter:
//! live, replayed and simulated.
//!
//! # Where things are
//!
//! | module | owns |
//! |---|---|
//! | [`policy`] | specs, observations, decisions: pure data |
//! | [`journal`] | the record of a run, and how it is read back |
//! | [`mechanism`] | processes, the repository, agents, sensors: how |
//! | [`world`] | the one door for effects |
//! | [`engine`] | iterations, loops, budgets, requests to end: when |
//! | [`script`] | the Lua host |
//! | [`host`] | all of it put together for one project: start here to embed |
//! | [`report`] | what journals tell |
//!
//! # Embedding
//!
//! [`host::Host`] is the entrance; `examples/embed.rs` brings an agent, a sensor and a function of its own, and
//! `examples/policy_in_rust.rs` runs a loop with no Lua at all. A program that embeds lunation calls
//! [`enter_warden_if_asked`] first thing in its `main`, or names the path of the `lunation` program as its warden.

pub mod engine;
pub mod host;
pub mod journal;
pub mod mechanism;
pub mod policy;
pub mod report;
pub mod script;
pub mod world;

/// Call this first thing in `main`, before threads and anything else: when this process was started as a warden, or to
/// mend what a host left that was killed, it does that and never returns.
pub fn enter_warden_if_asked() {
    mechanism::process::enter_warden_if_asked();
    host::mend_if_asked();
}

/// The Rust of the README, as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
