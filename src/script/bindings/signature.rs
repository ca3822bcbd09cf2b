//! How a binding describes itself: the source of the annotations.

use mlua::{Lua, Value};

/// A function: its parameters and what it returns, in LuaCATS words.
#[derive(Debug)]
pub(in crate::script) struct Signature {
    pub(in crate::script) doc: &'static str,
    /// Name (with `?` when optional) and type.
    pub(in crate::script) params: &'static [(&'static str, &'static str)],
    pub(in crate::script) returns: Option<&'static str>,
}

/// One name in a namespace.
#[derive(Debug)]
pub(in crate::script) struct Member {
    pub(in crate::script) name: &'static str,
    pub(in crate::script) what: What,
}

/// What a member is.
#[derive(Debug)]
pub(in crate::script) enum What {
    Function(Signature),
    /// A value: its type and what it is.
    Value(&'static str, &'static str),
}

/// What a name in `ln` is.
#[derive(Debug)]
pub(in crate::script) enum Shape {
    Function(Signature),
    /// A table, which may be called too.
    Table {
        call: Option<Signature>,
        members: &'static [Member],
    },
    Value {
        kind: &'static str,
        doc: &'static str,
    },
}

/// One name in `ln`.
#[derive(Debug)]
pub(in crate::script) struct Namespace {
    pub(in crate::script) name: &'static str,
    pub(in crate::script) shape: Shape,
    /// Names in it that later versions bring.
    pub(in crate::script) later: &'static [&'static str],
    /// Makes it. For a table: its members, and under `()` what answers when it is called.
    pub(in crate::script) make: fn(&Lua) -> mlua::Result<Value>,
}

impl Namespace {
    pub(in crate::script) fn members(&self) -> &'static [Member] {
        match &self.shape {
            Shape::Table { members, .. } => members,
            Shape::Function(_) | Shape::Value { .. } => &[],
        }
    }
}
