//! Options as they were given, checked: what the reader hands to the bindings.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::policy::{CommandLine, CommandSpec};

/// One checked value.
#[derive(Debug, Clone)]
pub(in crate::script) enum Given {
    Text(String),
    Bool(bool),
    Integer(u64),
    Number(f64),
    Duration(Duration),
    Bytes(u64),
    Command(CommandLine),
    List(Vec<Given>),
    Map(BTreeMap<String, Given>),
    Table(Record),
    Object(mlua::AnyUserData),
    Function(mlua::Function),
    Data(serde_json::Value),
}

/// A checked table. Each field is taken once.
#[derive(Debug, Clone, Default)]
pub(in crate::script) struct Record {
    pub(in crate::script) list: Vec<Given>,
    pub(in crate::script) fields: BTreeMap<&'static str, Given>,
}

macro_rules! take {
    ($name:ident, $variant:ident, $type:ty) => {
        pub(in crate::script) fn $name(&mut self, field: &str) -> Option<$type> {
            match self.fields.remove(field) {
                Some(Given::$variant(value)) => Some(value),
                _ => None,
            }
        }
    };
}

impl Record {
    take!(text, Text, String);
    take!(flag, Bool, bool);
    take!(integer, Integer, u64);
    take!(number, Number, f64);
    take!(duration, Duration, Duration);
    take!(bytes, Bytes, u64);
    take!(command, Command, CommandLine);
    take!(list, List, Vec<Given>);
    take!(map, Map, BTreeMap<String, Given>);
    take!(table, Table, Record);
    take!(function, Function, mlua::Function);

    pub(in crate::script) fn any(&mut self, field: &str) -> Option<Given> {
        self.fields.remove(field)
    }

    /// A count, which the reader has checked to fit.
    pub(in crate::script) fn count(&mut self, field: &str) -> Option<u32> {
        self.integer(field).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    pub(in crate::script) fn texts(&mut self, field: &str) -> Option<Vec<String>> {
        self.list(field).map(texts)
    }

    pub(in crate::script) fn text_map(&mut self, field: &str) -> BTreeMap<String, String> {
        let entries = self.map(field).unwrap_or_default().into_iter();
        entries
            .filter_map(|(name, value)| match value {
                Given::Text(text) => Some((name, text)),
                _ => None,
            })
            .collect()
    }

    /// The list part as a command: one string for the shell, several words as they are.
    pub(in crate::script) fn command_of_list(&mut self) -> CommandLine {
        let mut words = texts(std::mem::take(&mut self.list));
        match words.len() {
            1 => CommandLine::Shell(words.remove(0)),
            _ => CommandLine::Words(words),
        }
    }

    /// The common options of commands.
    pub(in crate::script) fn command_spec(&mut self, line: CommandLine) -> CommandSpec {
        let mut spec = CommandSpec::new(line);
        spec.cwd = self.text("cwd");
        spec.env = self.text_map("env");
        if let Some(timeout) = self.duration("timeout") {
            spec.timeout = timeout;
        }
        spec.silence = self.duration("silence");
        spec
    }
}

pub(in crate::script) fn texts(list: Vec<Given>) -> Vec<String> {
    list.into_iter()
        .filter_map(|given| match given {
            Given::Text(text) => Some(text),
            _ => None,
        })
        .collect()
}
