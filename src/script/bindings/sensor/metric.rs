//! `ln.sensor.metric`: a query and what its answer must be.

use std::time::Duration;

use mlua::{Lua, Value};

use super::{common, finish};
use crate::policy::{MetricSpec, QueryLanguage, QueryRange, SensorSource, SensorSpec};
use crate::script::bindings::objects::SensorObject;
use crate::script::options::sensor_tables::METRIC;
use crate::script::options::{Given, Problems, Record, read_table};
use crate::script::vm::Shared;

const TIMEOUT: Duration = Duration::from_secs(120);
const STEP: Duration = Duration::from_secs(15);

pub(super) fn make(lua: &Lua, value: Value) -> mlua::Result<SensorObject> {
    let shared = Shared::of(lua);
    let mut problems = Problems::default();
    let mut record = read_table(&value, &METRIC, "", &mut problems);
    let common = common(&shared, &mut record, "", &mut problems);
    let spec = spec(&mut record, &mut problems).map(|metric| SensorSpec {
        id: record.text("id").unwrap_or_else(|| metric.query.clone()),
        source: SensorSource::Metric(Box::new(metric)),
        // A running system changes while its tree does not.
        confirm: 1,
        cache: false,
        ..common
    });
    finish(lua, "ln.sensor.metric", spec, problems)
}

/// `None` only where a problem says why.
fn spec(record: &mut Record, problems: &mut Problems) -> Option<MetricSpec> {
    let (language, query) = match (record.text("promql"), record.text("logql")) {
        (Some(query), None) => (QueryLanguage::Promql, query),
        (None, Some(query)) => (QueryLanguage::Logql, query),
        _ => {
            problems.add("", "wants one query: write promql = \"…\" or logql = \"…\"");
            return None;
        }
    };
    let url = record.text("url");
    if let Some(url) = &url
        && !(url.starts_with("http://") || url.starts_with("https://"))
    {
        problems.add("url", format!("`{url}` is no address: it begins with http:// or https://"));
    }
    let assert = record.text("assert").and_then(|text| match text.parse() {
        Ok(assertion) => Some(assertion),
        Err(error) => {
            let error: crate::policy::AssertionError = error;
            problems.add("assert", error.to_string());
            None
        }
    });
    let step = record.duration("step");
    let range = record.duration("range").map(|back| QueryRange { back, step: step.unwrap_or(STEP) });
    if range.is_none() && step.is_some() {
        problems.add("step", "goes with a range: write range = \"5m\" too");
    }
    let source = record.text("source");
    let fresh = record.any("fresh");
    if language == QueryLanguage::Logql && (source.is_some() || fresh.is_some()) {
        problems.add("fresh", "goes with promql: Loki does not tell how old its newest line is");
    }
    let fresh = match (language, fresh) {
        (QueryLanguage::Logql, _) => None,
        (_, None) => Some(Duration::ZERO),
        (_, Some(Given::Duration(age))) => Some(age),
        (_, Some(Given::Text(text))) if text == "any" => None,
        (_, Some(Given::Text(text))) => match crate::policy::units::parse_duration(&text) {
            Ok(age) => Some(age),
            Err(error) => {
                problems.add("fresh", error.to_string());
                None
            }
        },
        (_, Some(_)) => None,
    };
    Some(MetricSpec {
        language,
        query,
        url: url?,
        assert: assert?,
        range,
        source,
        fresh,
        timeout: record.duration("timeout").unwrap_or(TIMEOUT),
        headers: record.text_map("headers"),
        token_env: record.text("token_env"),
    })
}
