//! `ln.log`: lines of the script's own, in the run's record.

use mlua::Value;

use super::{Member, Namespace, Shape, Signature, What};
use crate::script::vm::inside;

const fn level(name: &'static str, doc: &'static str) -> Member {
    let params = &[("format", "string"), ("...", "any")];
    Member { name, what: What::Function(Signature { doc, params, returns: None }) }
}

static LEVELS: &[Member] = &[
    level("debug", "Only with LUNATION_LOG=debug."),
    level("info", "A remark. With one argument the text itself, with more a format like string.format has it."),
    level("warn", "Something that a person should look at."),
    level("error", "Something that went wrong."),
];

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "log",
    shape: Shape::Table { call: None, members: LEVELS },
    later: &[],
    make: |lua| {
        let content = lua.create_table()?;
        for level in LEVELS {
            content.raw_set(level.name, inside(lua).logger.call::<Value>(level.name)?)?;
        }
        Ok(Value::Table(content))
    },
};
