//! `ln.VERSION`, `ln.API`: what runs the script.

use mlua::{IntoLua as _, Value};

use super::{Namespace, Shape};

/// Version of lunation.
pub(in crate::script) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Version of what scripts see; it changes when a script that ran may not run any more.
const API: i64 = 1;

pub(super) static VERSION_NAME: Namespace = Namespace {
    name: "VERSION",
    shape: Shape::Value { kind: "string", doc: "version of lunation" },
    later: &[],
    make: |lua| VERSION.into_lua(lua),
};

pub(super) static API_NAME: Namespace = Namespace {
    name: "API",
    shape: Shape::Value { kind: "integer", doc: "version of what scripts see" },
    later: &[],
    make: |_| Ok(Value::Integer(API)),
};
