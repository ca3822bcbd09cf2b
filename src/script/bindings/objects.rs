//! What the constructors make: opaque, immutable, and clear about what they do not have.

use std::collections::BTreeMap;

use mlua::{Function, Lua, MetaMethod, UserData, UserDataFields, UserDataMethods, Value};

use super::complete::Rule;
use super::{agent, prompt, sensors};
use crate::policy::{AgentSpec, LoopSpec, SensorSpec, SlotSpec};
use crate::script::error::ErrorKind;
use crate::script::nearest::did_you_mean;
use crate::script::vm::{Shared, place, show};

/// An agent, or a ladder of them, weakest first.
#[derive(Debug, Clone)]
pub(in crate::script) struct AgentObject {
    pub(in crate::script) rungs: Vec<AgentSpec>,
}

/// A sensor.
#[derive(Debug, Clone)]
pub(in crate::script) struct SensorObject(pub(in crate::script) SensorSpec);

/// Sensors that are read together.
#[derive(Debug, Clone)]
pub(in crate::script) struct SensorsObject(pub(in crate::script) Vec<SensorSpec>);

/// A prompt that was read.
#[derive(Debug, Clone)]
pub(in crate::script) struct PromptObject {
    pub(in crate::script) text: String,
    /// Relative to the workspace.
    pub(in crate::script) file: Option<String>,
    pub(in crate::script) slots: Vec<SlotSpec>,
    /// Functions of slots, by name.
    pub(in crate::script) readers: BTreeMap<String, Function>,
}

/// What counts as done.
#[derive(Debug, Clone)]
pub(in crate::script) struct CompleteObject(pub(in crate::script) Rule);

/// A tree that agents work in.
#[derive(Debug, Clone)]
pub(in crate::script) struct WorkspaceObject(pub(in crate::script) String);

/// A loop's functions.
#[derive(Debug, Clone, Default)]
pub(in crate::script) struct Functions {
    pub(in crate::script) prompt: Option<Function>,
    pub(in crate::script) decide: Option<Function>,
    pub(in crate::script) complete: Option<Function>,
    pub(in crate::script) on_stall: Option<Function>,
    pub(in crate::script) on_iteration: Option<Function>,
    /// Functions of the prompt's slots, by name.
    pub(in crate::script) slots: BTreeMap<String, Function>,
}

/// A loop that can be run.
#[derive(Debug, Clone)]
pub(in crate::script) struct LoopObject {
    pub(in crate::script) spec: LoopSpec,
    pub(in crate::script) functions: Functions,
    /// A completion that only a policy can judge.
    pub(in crate::script) rule: Option<Rule>,
}

impl LoopObject {
    /// Adds paths that no agent of it may write.
    pub(in crate::script) fn protect(&mut self, paths: &[String]) {
        for path in paths {
            if !self.spec.protected.contains(path) {
                self.spec.protected.push(path.clone());
            }
        }
    }
}

impl UserData for AgentObject {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "agent");
        fields.add_field_method_get("name", |_, this| Ok(this.rungs.first().map(|rung| rung.name.clone())));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_function("with", agent::with);
        methods.add_function("ladder", agent::ladder);
        closed(methods, "agent", &["name", "with", "ladder"], &["run", "ask"]);
    }
}

impl UserData for SensorObject {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "sensor");
        fields.add_field_method_get("id", |_, this| Ok(this.0.id.clone()));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        closed(methods, "sensor", &["id"], &[]);
    }
}

impl UserData for SensorsObject {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "list of sensors");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_async_function("sense", sensors::sense);
        closed(methods, "list of sensors", &["sense"], &[]);
    }
}

impl UserData for PromptObject {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "prompt");
        fields.add_field_method_get("file", |_, this| Ok(this.file.clone()));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_function("with", prompt::with);
        closed(methods, "prompt", &["file", "with"], &[]);
    }
}

impl UserData for CompleteObject {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "completion");
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        closed(methods, "completion", &[], &[]);
    }
}

impl UserData for WorkspaceObject {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "workspace");
        fields.add_field_method_get("path", |_, this| Ok(this.0.clone()));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        closed(methods, "workspace", &["path"], &[]);
    }
}

impl UserData for LoopObject {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(MetaMethod::Type, "loop");
        fields.add_field_method_get("id", |_, this| Ok(this.spec.id.clone()));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        closed(methods, "loop", &["id"], &["run"]);
    }
}

/// Unknown names and writes are errors that say what there is.
pub(super) fn closed<T: 'static, M: UserDataMethods<T>>(
    methods: &mut M,
    label: &'static str,
    names: &'static [&'static str],
    later: &'static [&'static str],
) {
    methods.add_meta_function(MetaMethod::Index, move |lua, (_, key): (Value, String)| -> mlua::Result<Value> {
        Err(unknown(lua, label, &key, names, later))
    });
    methods.add_meta_function(MetaMethod::NewIndex, move |lua, (_, key): (Value, String)| -> mlua::Result<()> {
        let message = format!("`{key}` cannot be set: {} does not change", show::with_article(label));
        Err(place::raise(lua, &Shared::of(lua).texts, ErrorKind::Runtime, message))
    });
}

pub(super) fn unknown(lua: &Lua, label: &str, key: &str, names: &[&str], later: &[&str]) -> mlua::Error {
    let message = if later.contains(&key) {
        format!("lunation {} has no {label}:{key} yet", super::VERSION)
    } else {
        let hint = did_you_mean(key, names.iter().copied());
        let has = if hint.is_empty() { format!("; it has {}", names.join(", ")) } else { hint };
        format!("{} has no `{key}`{has}", show::with_article(label))
    };
    place::raise(lua, &Shared::of(lua).texts, ErrorKind::Runtime, message)
}
