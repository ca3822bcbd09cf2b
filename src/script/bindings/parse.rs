//! `ln.parse`: who counts in a command's output.

use mlua::{Lua, Value};
use serde_json::json;

use super::objects::ParserObject;
use super::{Member, Namespace, Shape, Signature, What, sensor};
use crate::mechanism::sensor::count;
use crate::policy::{Format, Parse, PatternSpec};
use crate::script::error::ErrorKind;
use crate::script::options::sensor_tables::PATTERN;
use crate::script::options::{Problems, read_table};
use crate::script::vm::{Shared, place, show};

const fn format(name: &'static str, doc: &'static str) -> Member {
    Member { name, what: What::Value("lunation.Parser", doc) }
}

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "parse",
    shape: Shape::Table {
        call: None,
        members: &[
            format("libtest", "`cargo test`"),
            format("nextest", "`cargo nextest run`"),
            format("pytest", "`pytest`"),
            format("go", "`go test`, plain or -json"),
            format("jest", "`jest`, plain or --json"),
            format("vitest", "`vitest run`, plain or --reporter=json"),
            format("mocha", "`mocha`, its spec or json reporter"),
            format("node", "`node --test`, its spec reporter"),
            format("tap", "the Test Anything Protocol"),
            format("junit", "JUnit's XML"),
            format("cargo", "`cargo check`, `build` or `clippy`, plain or --message-format=json"),
            format("eslint", "`eslint`, plain or --format json"),
            format("ruff", "`ruff check`, plain or --output-format json"),
            format("tsc", "`tsc`"),
            format("github", "annotations like `::error file=a.js::message`"),
            format("sarif", "SARIF 2.1"),
            Member {
                name: "pattern",
                what: What::Function(Signature {
                    doc: "Counts by regular expressions.",
                    params: &[("opts", "lunation.PatternOpts")],
                    returns: Some("lunation.Parser"),
                }),
            },
        ],
    },
    later: &[],
    make: |lua| {
        let content = lua.create_table()?;
        for (name, format) in Format::NAMES {
            content.raw_set(name, lua.create_userdata(ParserObject { name, parse: Parse::Format(format) })?)?;
        }
        content.raw_set("pattern", lua.create_function(pattern)?)?;
        Ok(Value::Table(content))
    },
};

fn pattern(lua: &Lua, value: Value) -> mlua::Result<ParserObject> {
    let shared = Shared::of(lua);
    let mut problems = Problems::default();
    let mut record = read_table(&value, &PATTERN, "", &mut problems);
    let mut one = |name: &str| {
        let pattern = record.text(name)?;
        sensor::check_pattern(&pattern, name, &mut problems);
        Some(pattern)
    };
    let spec = PatternSpec { failing: one("failing"), total: one("total"), passed: one("passed"), item: one("item") };
    if spec.failing.is_none() && spec.item.is_none() && problems.is_empty() {
        problems.add("", "wants `failing` or `item`: what says that something failed");
    }
    problems
        .into_result("ln.parse.pattern", place::of_caller(lua, &shared.texts))
        .map_err(|raised| raised.into_lua())?;
    Ok(ParserObject { name: "pattern", parse: Parse::Pattern(spec) })
}

/// `ln.parse.tap(out)`: what it counts in a text, or in both streams of a command's result.
pub(super) fn call(lua: &Lua, this: &ParserObject, value: Value) -> mlua::Result<Value> {
    let text = match &value {
        Value::String(text) => text.to_string_lossy(),
        Value::Table(table) => {
            let part = |name: &str| table.get::<Option<String>>(name).ok().flatten().unwrap_or_default();
            format!("{}\n{}", part("stdout"), part("stderr"))
        }
        other => {
            let message =
                format!("ln.parse.{} wants what ln.sh returned, or text, got {}", this.name, show::short(other));
            return Err(place::raise(lua, &Shared::of(lua).texts, ErrorKind::Options, message));
        }
    };
    let parsed = match count(&this.parse, &text) {
        Some(counted) => json!({
            "failing": counted.failing,
            "total": counted.total,
            "summary": counted.line(),
            "items": counted.items,
        }),
        None => json!({ "items": [] }),
    };
    crate::script::data::to_lua(lua, &parsed)
}
