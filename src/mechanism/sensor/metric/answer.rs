//! What Prometheus and Loki answer.

use std::collections::BTreeMap;

use serde::Deserialize;

/// One series: its name and its samples, each with its time in seconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) samples: Vec<(f64, f64)>,
}

/// An answer that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unusable {
    /// Another time it may be better.
    Now(String),
    /// The question itself is wrong.
    Always(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    status: String,
    #[serde(default)]
    error_type: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    data: Option<Data>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: serde_json::Value,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    #[serde(default)]
    stream: BTreeMap<String, String>,
    #[serde(default)]
    value: Option<(f64, String)>,
    #[serde(default)]
    values: Vec<(serde_json::Value, String)>,
}

/// Reads an answer. `most_lines` is what was asked for at most of log lines: so many of them may not be all.
///
/// # Errors
/// [`Unusable`]; among others for warnings, which say that the answer is not whole.
pub(super) fn read(status: u16, body: &str, most_lines: usize) -> Result<Vec<Series>, Unusable> {
    let envelope: Envelope = match serde_json::from_str(body) {
        Ok(envelope) => envelope,
        Err(_) if status != 200 => {
            let first: String = body.lines().next().unwrap_or_default().chars().take(200).collect();
            let why = format!("it answered with status {status}: {first}");
            return Err(if matches!(status, 400 | 401 | 403 | 404 | 405 | 422) {
                Unusable::Always(why)
            } else {
                Unusable::Now(why)
            });
        }
        Err(error) => return Err(Unusable::Now(format!("its answer cannot be read: {error}"))),
    };
    if envelope.status != "success" {
        let why = format!("it refused the query: {} ({})", envelope.error, envelope.error_type);
        let always = matches!(envelope.error_type.as_str(), "bad_data" | "execution");
        return Err(if always { Unusable::Always(why) } else { Unusable::Now(why) });
    }
    let Some(data) = envelope.data else { return Err(Unusable::Now("its answer has no data".into())) };
    if let Some(warning) = envelope.warnings.first().or(data.warnings.first()) {
        return Err(Unusable::Now(format!("its answer may not be whole: {warning}")));
    }
    series(&data, most_lines)
}

fn series(data: &Data, most_lines: usize) -> Result<Vec<Series>, Unusable> {
    let wrong = |why: String| Unusable::Now(format!("its answer cannot be read: {why}"));
    match data.result_type.as_str() {
        "scalar" => {
            let (time, value): (f64, String) =
                Deserialize::deserialize(&data.result).map_err(|error: serde_json::Error| wrong(error.to_string()))?;
            Ok(vec![Series { name: "scalar".into(), samples: vec![(time, number(&value).map_err(wrong)?)] }])
        }
        "vector" | "matrix" => {
            let rows = rows(data).map_err(wrong)?;
            rows.into_iter()
                .map(|row| {
                    let name = name(&row.metric);
                    let single = row.value.map(|(time, value)| (serde_json::json!(time), value));
                    let samples = single
                        .into_iter()
                        .chain(row.values)
                        .map(|(time, value)| Ok((time.as_f64().unwrap_or(0.0), number(&value)?)))
                        .collect::<Result<Vec<_>, String>>();
                    Ok(Series { name, samples: samples.map_err(wrong)? })
                })
                .collect()
        }
        "streams" => {
            let rows = rows(data).map_err(wrong)?;
            let lines: usize = rows.iter().map(|row| row.values.len()).sum();
            if lines >= most_lines {
                return Err(Unusable::Always(format!(
                    "its answer may not be whole: it has {lines} lines, and no more are asked for; use count_over_time"
                )));
            }
            let of = |row: Row| Series { name: name(&row.stream), samples: vec![(0.0, row.values.len() as f64)] };
            Ok(rows.into_iter().map(of).collect())
        }
        other => Err(Unusable::Always(format!("the query gives a {other}, and not numbers"))),
    }
}

fn rows(data: &Data) -> Result<Vec<Row>, String> {
    Deserialize::deserialize(&data.result).map_err(|error: serde_json::Error| error.to_string())
}

fn number(text: &str) -> Result<f64, String> {
    match text {
        "+Inf" => Ok(f64::INFINITY),
        "-Inf" => Ok(f64::NEG_INFINITY),
        "NaN" => Ok(f64::NAN),
        text => text.parse().map_err(|_| format!("`{text}` is no number")),
    }
}

fn name(labels: &BTreeMap<String, String>) -> String {
    let metric = labels.get("__name__").map_or("", String::as_str);
    let rest: Vec<String> = labels
        .iter()
        .filter(|(label, _)| *label != "__name__")
        .map(|(label, value)| format!("{label}=\"{value}\""))
        .collect();
    format!("{metric}{{{}}}", rest.join(", "))
}
