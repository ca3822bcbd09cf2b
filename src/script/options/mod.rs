//! Options: one schema of every table that a script may write, and the reader that holds scripts to it.
//!
//! Owns names, types, units, defaults and their words. Must not know what the options do. Guarantees that a value that
//! reaches a binding is what the schema says, that nothing is ignored or cut, and that all problems of a call are told at
//! once, with their path, the place of the call and the nearest known name.

mod amounts;
pub(super) mod given;
pub(super) mod problem;
mod reader;
pub(super) mod schema;
pub(super) mod tables;
mod unknown;

#[cfg(test)]
mod tests;

pub(super) use given::{Given, Record};
pub(super) use problem::Problems;
pub(super) use reader::{join, read, read_table};

use schema::Object;

/// Whether a userdata is what the named constructor made.
fn is_made(data: &mlua::AnyUserData, object: Object) -> bool {
    use super::bindings::objects::{AgentObject, CompleteObject, PromptObject, SensorObject};
    match object {
        Object::Agent => data.is::<AgentObject>(),
        Object::Prompt => data.is::<PromptObject>(),
        Object::Sensor => data.is::<SensorObject>(),
        Object::Complete => data.is::<CompleteObject>(),
    }
}
