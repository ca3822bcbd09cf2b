//! lunation: a host that makes loops of coding agents trustworthy and scriptable.

pub mod engine;
pub mod journal;
pub mod mechanism;
pub mod policy;
pub mod report;
pub mod script;
pub mod world;

pub use mechanism::process::enter_warden_if_asked;
