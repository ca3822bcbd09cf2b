//! `ln.sensor`: a check by a command or a function, or a sensor of the embedding program.

mod metric;
mod picture;

use mlua::{Lua, Value};

use super::objects::{ParserObject, SensorObject, ServiceObject};
use super::{Member, Namespace, Shape, Signature, What};
use crate::policy::{CommandSpec, Counting, Format, Hint, Parse, SensorSource, SensorSpec, ServiceSpec};
use crate::script::options::schema::Kind;
use crate::script::options::sensor_tables::SENSOR;
use crate::script::options::{Given, Problems, Record, join, read};
use crate::script::vm::{Shared, place};

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "sensor",
    shape: Shape::Table {
        call: Some(Signature {
            doc: "A check: exit code 0 is passed; 126, 127 and signals are broken; all else is failed.",
            params: &[("opts", "string|lunation.SensorOpts")],
            returns: Some("lunation.Sensor"),
        }),
        members: &[
            Member {
                name: "metric",
                what: What::Function(Signature {
                    doc: "A metric of a running system, asked of Prometheus or Loki.",
                    params: &[("opts", "lunation.MetricOpts")],
                    returns: Some("lunation.Sensor"),
                }),
            },
            Member {
                name: "picture",
                what: What::Function(Signature {
                    doc: "A picture that must look like another one.",
                    params: &[("opts", "lunation.PictureOpts")],
                    returns: Some("lunation.Sensor"),
                }),
            },
        ],
    },
    later: &["score"],
    make: |lua| {
        let content = lua.create_table()?;
        content.raw_set("()", lua.create_function(make)?)?;
        content.raw_set("metric", lua.create_function(metric::make)?)?;
        content.raw_set("picture", lua.create_function(picture::make)?)?;
        Ok(Value::Table(content))
    },
};

static MADE_FROM: Kind = Kind::Either(&[Kind::Text, Kind::Table(&SENSOR)]);

fn make(lua: &Lua, (_, value): (Value, Value)) -> mlua::Result<SensorObject> {
    let shared = Shared::of(lua);
    let mut problems = Problems::default();
    let spec = read(&value, &MADE_FROM, "", &mut problems).and_then(|given| one(&shared, given, "", &mut problems));
    finish(lua, "ln.sensor", spec, problems)
}

/// The sensor, or all problems of the call.
pub(super) fn finish(
    lua: &Lua,
    call: &'static str,
    spec: Option<SensorSpec>,
    problems: Problems,
) -> mlua::Result<SensorObject> {
    let shared = Shared::of(lua);
    problems.into_result(call, place::of_caller(lua, &shared.texts)).map_err(|raised| raised.into_lua())?;
    spec.map(SensorObject).ok_or_else(|| mlua::Error::runtime(format!("{call}: no sensor and no problem")))
}

fn from_text(shared: &Shared, line: &str, path: &str, problems: &mut Problems) -> Option<SensorSpec> {
    if shared.options.sensors.iter().any(|known| known == line) {
        return Some(SensorSpec::function(line));
    }
    if line.trim().is_empty() {
        problems.add(path, "is a blank command: write what to run, for example \"cargo test\"");
        return None;
    }
    Some(SensorSpec::shell(line))
}

fn from_record(shared: &Shared, mut record: Record, path: &str, problems: &mut Problems) -> Option<SensorSpec> {
    let line = record.command_of_list();
    let check = record.function("check").map(|function| shared.keep(function));
    if line.is_blank() && check.is_none() {
        if problems.is_empty() {
            problems.add(path, "there is no command: write it first, like ln.sensor{ \"cargo test\" }");
        }
        return None;
    }
    if !line.is_blank() && check.is_some() {
        problems.add(&join(path, "check"), "stands instead of a command: write one of them");
    }
    let id = match (record.text("id"), &check) {
        (Some(id), _) => id,
        (None, None) => line.show(),
        (None, Some(check)) => format!("check at {}", check.place),
    };
    let counting = counting(shared, &mut record, path, problems);
    let common = common(shared, &mut record, path, problems);
    let mut fix = record.command("fix").map(CommandSpec::new);
    let timeout_is_broken = record.text("timeout_is").is_some_and(|is| is == "broken");
    let command = record.command_spec(line);
    if let Some(fix) = &mut fix {
        fix.cwd.clone_from(&command.cwd);
        fix.env.clone_from(&command.env);
        fix.timeout = command.timeout;
    }
    if check.is_some() && (!counting.is_default() || common.offline) {
        problems
            .add(path, "a `check` has no output and no process: parse, report, patterns and network go with a command");
    }
    let source = check.map_or(SensorSource::Command(command), SensorSource::Check);
    let confirm = record.count("confirm").unwrap_or(common.confirm);
    let cache = record.flag("cache").unwrap_or(common.cache);
    Some(SensorSpec { id, source, fix, timeout_is_broken, counting, confirm, cache, ..common })
}

/// The options that sensors of all kinds share; the rest is default.
pub(super) fn common(shared: &Shared, record: &mut Record, path: &str, problems: &mut Problems) -> SensorSpec {
    let mut spec = SensorSpec::function("");
    spec.hint = match record.any("hint") {
        Some(Given::Text(text)) => Some(Hint::Text(text)),
        Some(Given::Function(function)) => Some(Hint::Function(shared.keep(function))),
        _ => None,
    };
    spec.after = texts(record.any("after"));
    spec.scratch = record.flag("scratch").unwrap_or(false);
    spec.offline = record.flag("network").is_some_and(|network| !network);
    spec.services = services(record.any("service"));
    for (at, one) in spec.services.iter().enumerate() {
        if spec.services[..at].iter().any(|other| other.id == one.id) {
            problems.add(&join(path, "service"), format!("names `{}` twice", one.id));
        }
    }
    spec
}

fn services(given: Option<Given>) -> Vec<ServiceSpec> {
    let of = |given: &Given| match given {
        Given::Object(data) => data.borrow::<ServiceObject>().ok().map(|service| service.0.clone()),
        _ => None,
    };
    match given {
        Some(Given::List(items)) => items.iter().filter_map(of).collect(),
        Some(one) => of(&one).into_iter().collect(),
        None => Vec::new(),
    }
}

fn counting(shared: &Shared, record: &mut Record, path: &str, problems: &mut Problems) -> Counting {
    let parse = match record.any("parse") {
        Some(Given::Text(name)) => match name.as_str() {
            "auto" => Parse::Auto,
            "off" => Parse::Off,
            name => Format::named(name).map_or(Parse::Auto, Parse::Format),
        },
        Some(Given::Function(function)) => Parse::Function(shared.keep(function)),
        Some(Given::Object(data)) => data.borrow::<ParserObject>().map_or(Parse::Auto, |parser| parser.parse.clone()),
        _ => Parse::Auto,
    };
    let mut patterns = |name: &str| {
        let patterns = texts(record.any(name));
        for pattern in &patterns {
            check_pattern(pattern, &join(path, name), problems);
        }
        patterns
    };
    let (must_match, broken_if, keep_lines) = (patterns("must_match"), patterns("broken_if"), patterns("keep_lines"));
    let report = texts(record.any("report"));
    for glob in &report {
        if let Err(error) = globset::Glob::new(glob) {
            problems.add(&join(path, "report"), format!("`{glob}` is no glob: {}", error.kind()));
        }
        if glob.starts_with('/') || glob.split('/').any(|part| part == "..") {
            problems.add(&join(path, "report"), format!("`{glob}` must be below the root: write it relative to that"));
        }
    }
    let min_total = record.integer("min_total");
    if parse == Parse::Off && (min_total.is_some() || !report.is_empty()) {
        problems
            .add(&join(path, "parse"), "is \"off\", so nobody counts: leave out `min_total` and `report`, or parse");
    }
    if matches!(parse, Parse::Function(_)) && !report.is_empty() {
        problems.add(&join(path, "report"), "goes with a format, and `parse` is a function");
    }
    Counting { parse, report, min_total, must_match, broken_if, keep_lines, threshold: record.number("threshold") }
}

/// Says what is wrong with a regular expression.
pub(super) fn check_pattern(pattern: &str, path: &str, problems: &mut Problems) {
    if let Err(error) = crate::mechanism::sensor::check_pattern(pattern) {
        problems.add(path, error.to_string());
    }
}

/// One string, or several.
pub(super) fn texts(given: Option<Given>) -> Vec<String> {
    match given {
        Some(Given::Text(text)) => vec![text],
        Some(Given::List(list)) => crate::script::options::given::texts(list),
        _ => Vec::new(),
    }
}

/// What a checked list or table of sensors means. Names of a table become ids.
pub(in crate::script) fn from_given(
    shared: &Shared,
    given: Given,
    path: &str,
    problems: &mut Problems,
) -> Vec<SensorSpec> {
    match given {
        Given::List(items) => items
            .into_iter()
            .enumerate()
            .filter_map(|(at, item)| one(shared, item, &format!("{path}[{}]", at + 1), problems))
            .collect(),
        Given::Map(items) => items
            .into_iter()
            .filter_map(|(name, item)| {
                let spec = one(shared, item, &join(path, &name), problems)?;
                Some(SensorSpec { id: name, ..spec })
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn one(shared: &Shared, given: Given, path: &str, problems: &mut Problems) -> Option<SensorSpec> {
    match given {
        Given::Text(line) => from_text(shared, &line, path, problems),
        Given::Table(record) => from_record(shared, record, path, problems),
        Given::Object(data) => data.borrow::<SensorObject>().ok().map(|sensor| sensor.0.clone()),
        _ => None,
    }
}
