//! A metric of a running system: asked again and again until the answer is fresh and whole, then judged once.
//!
//! Owns the questions and what counts as an answer. Must not know loops or clocks of ours: fresh is what is newer, by the
//! clock of the service itself, than the moment when the sensor started. Guarantees that an answer that is empty,
//! partial, stale or no number is broken, never green and never red.

mod answer;

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use self::answer::{Series, Unusable, read};
use super::http;
use crate::policy::{MetricSpec, QueryLanguage, Reading, ReadingState, SensorSpec};

/// One question may take this.
const ONE_QUESTION: Duration = Duration::from_secs(10);
/// Pause before the next try.
const PAUSE: Duration = Duration::from_millis(500);
/// Log lines that are asked for.
const MOST_LINES: usize = 5_000;
/// Series that are told.
const MOST_TOLD: usize = 50;

/// Reads a metric. Blocks, at most for the spec's timeout and one question; `cancel` ends it at the next one. `token` is
/// the bearer token, where there is one.
pub fn read_metric(sensor: &SensorSpec, spec: &MetricSpec, token: Option<&str>, cancel: &CancellationToken) -> Reading {
    let started = Instant::now();
    let asking = Asking { spec, token, until: started + spec.timeout };
    let reading = match asking.until_usable(cancel) {
        Ok(series) => judge(sensor, spec, &series),
        Err(why) => super::command::broken(sensor, &why),
    };
    Reading { duration_s: started.elapsed().as_secs_f64(), ..reading }
}

struct Asking<'a> {
    spec: &'a MetricSpec,
    token: Option<&'a str>,
    until: Instant,
}

impl Asking<'_> {
    fn until_usable(&self, cancel: &CancellationToken) -> Result<Vec<Series>, String> {
        let mut asked_at = None;
        loop {
            let why = match self.once(&mut asked_at) {
                Ok(series) => return Ok(series),
                Err(Unusable::Always(why)) => return Err(why),
                Err(Unusable::Now(why)) => why,
            };
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(why);
            }
            if cancel.is_cancelled() {
                return Err("it was stopped".into());
            }
            std::thread::sleep(PAUSE.min(left));
        }
    }

    /// `asked_at`: when the sensor started, by the clock of the service.
    fn once(&self, asked_at: &mut Option<f64>) -> Result<Vec<Series>, Unusable> {
        if let Some(age) = self.spec.fresh {
            let asked_at = match *asked_at {
                Some(time) => time,
                None => *asked_at.insert(self.service_time()?),
            };
            self.check_fresh(asked_at - age.as_secs_f64())?;
        }
        let series = match &self.spec.range {
            None => self.ask("query", vec![("query", self.spec.query.clone())])?,
            Some(range) => {
                let now = self.service_time()?;
                let (back, step) = (range.back.as_secs_f64(), range.step.as_secs_f64());
                let series = self.ask(
                    "query_range",
                    vec![
                        ("query", self.spec.query.clone()),
                        ("start", format!("{:.3}", now - back)),
                        ("end", format!("{now:.3}")),
                        ("step", format!("{step:.3}")),
                    ],
                )?;
                whole(series, (back / step).floor() as usize)?
            }
        };
        if series.is_empty() {
            return Err(Unusable::Now(
                "the answer is empty: nothing matches the query (a count that may be nothing needs `or vector(0)`)"
                    .into(),
            ));
        }
        for one in &series {
            if let Some((_, value)) = one.samples.iter().find(|(_, value)| !value.is_finite()) {
                return Err(Unusable::Now(format!("{} is {value}, which is no number to go by", one.name)));
            }
            if one.samples.is_empty() {
                return Err(Unusable::Now(format!("{} has no sample", one.name)));
            }
        }
        Ok(series)
    }

    /// What time it is for the service; Loki has no such question, and its times are ours.
    fn service_time(&self) -> Result<f64, Unusable> {
        if self.spec.language == QueryLanguage::Logql {
            return Ok(jiff::Timestamp::now().as_millisecond() as f64 / 1000.0);
        }
        let series = self.ask("query", vec![("query", "time()".into())])?;
        let time = series.first().and_then(|one| one.samples.first()).map(|(_, value)| *value);
        time.ok_or_else(|| Unusable::Now("it does not tell its time".into()))
    }

    fn check_fresh(&self, oldest: f64) -> Result<(), Unusable> {
        let source = self.spec.source.as_ref().unwrap_or(&self.spec.query);
        let series = self.ask("query", vec![("query", format!("timestamp({source})"))])?;
        if series.is_empty() {
            return Err(Unusable::Now(format!("the answer is empty: there is no sample of `{source}`")));
        }
        for one in &series {
            let time = one.samples.first().map_or(f64::NEG_INFINITY, |(_, value)| *value);
            if time < oldest {
                let late = oldest - time;
                return Err(Unusable::Now(format!("{} is stale: its last sample is {late:.1}s too old", one.name)));
            }
        }
        Ok(())
    }

    fn ask(&self, question: &str, mut query: Vec<(&str, String)>) -> Result<Vec<Series>, Unusable> {
        let base = self.spec.url.trim_end_matches('/');
        let path = match self.spec.language {
            QueryLanguage::Promql => "api/v1",
            QueryLanguage::Logql => "loki/api/v1",
        };
        if self.spec.language == QueryLanguage::Logql {
            query.push(("limit", MOST_LINES.to_string()));
        }
        let mut headers = self.spec.headers.clone();
        if let Some(token) = self.token {
            headers.insert("Authorization".into(), format!("Bearer {token}"));
        }
        let left = self.until.saturating_duration_since(Instant::now()).max(Duration::from_secs(1));
        let answer = http::get(&format!("{base}/{path}/{question}"), &query, &headers, ONE_QUESTION.min(left))
            .map_err(|why| Unusable::Now(format!("{base} cannot be asked: {why}")))?;
        read(answer.status, &answer.body, MOST_LINES)
    }
}

/// A range in which a series has gaps says nothing about them. The first and the last sample may lie beside the border.
fn whole(series: Vec<Series>, steps: usize) -> Result<Vec<Series>, Unusable> {
    match series.iter().find(|one| one.samples.len() < steps.max(1)) {
        Some(one) => Err(Unusable::Now(format!(
            "the answer is partial: {} has {} samples where {} belong",
            one.name,
            one.samples.len(),
            steps + 1
        ))),
        None => Ok(series),
    }
}

fn judge(sensor: &SensorSpec, spec: &MetricSpec, series: &[Series]) -> Reading {
    let bad = |one: &&Series| one.samples.iter().any(|(_, value)| !spec.assert.holds(*value));
    let failing: Vec<&Series> = series.iter().filter(bad).collect();
    let state = if failing.is_empty() { ReadingState::Passed } else { ReadingState::Failed };
    // Values change from one question to the next; which series do not hold is the result.
    let names: Vec<&str> = failing.iter().map(|one| one.name.as_str()).collect();
    let print = super::fingerprint(state, &format!("{}\n{}", spec.query, names.join("\n")));
    let told: Vec<String> = series.iter().take(MOST_TOLD).map(|one| tell(one, spec)).collect();
    let summary = match (failing.len(), series) {
        (0, [only]) => format!("passed: {}", tell(only, spec)),
        (0, _) => "passed".to_owned(),
        (_, [only]) => format!("{}, and must be {}", tell(only, spec), spec.assert),
        (count, _) => format!("{count} of {} series are not {}", series.len(), spec.assert),
    };
    let more = series.len().saturating_sub(MOST_TOLD);
    let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
    let feedback = format!("`{}` must be {}:\n{}{more}\n", spec.query, spec.assert, told.join("\n"));
    Reading {
        failing: Some(failing.len() as u64),
        total: Some(series.len() as u64),
        items: failing.iter().take(MOST_TOLD).map(|one| one.name.clone()).collect(),
        feedback: crate::policy::cap_feedback(&feedback, super::FEEDBACK_CAP, None),
        ..Reading::new(&sensor.id, state, summary, print)
    }
}

/// A series with the value that matters: the first that does not hold, or else the last.
fn tell(one: &Series, spec: &MetricSpec) -> String {
    let bad = one.samples.iter().find(|(_, value)| !spec.assert.holds(*value));
    let value = bad.or(one.samples.last()).map_or(f64::NAN, |(_, value)| *value);
    let mark = if bad.is_some() { " (not as asserted)" } else { "" };
    format!("{} is {value}{mark}", one.name)
}
