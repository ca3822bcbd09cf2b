//! A metric as data: a query, and what its answer must be.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::assertion::Assertion;
use crate::policy::units;

/// The language of a query, and so the service that answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryLanguage {
    /// Prometheus and what speaks its API.
    Promql,
    /// Loki.
    Logql,
}

/// A range query: from so long ago until now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryRange {
    /// How far back.
    #[serde(with = "units::seconds")]
    pub back: Duration,
    /// Distance of two samples.
    #[serde(with = "units::seconds")]
    pub step: Duration,
}

/// A metric and what is asserted of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricSpec {
    /// Who answers.
    pub language: QueryLanguage,
    /// The query.
    pub query: String,
    /// Base address of the service: `http://localhost:9090`.
    pub url: String,
    /// What every value of the answer must be.
    pub assert: Assertion,
    /// A range instead of an instant; every sample must hold.
    pub range: Option<QueryRange>,
    /// PromQL only: the selector whose samples must be fresh; default: the query itself. Values of a computed query are
    /// as old as the question, so its freshness can be seen in its source alone.
    pub source: Option<String>,
    /// How old a sample may be when the sensor starts; default 0: taken after the sensor started. `None`: any age.
    #[serde(with = "units::optional_seconds")]
    pub fresh: Option<Duration>,
    /// How long a fresh and whole answer is waited for; default 2 minutes.
    #[serde(with = "units::seconds")]
    pub timeout: Duration,
    /// Sent with every question.
    pub headers: BTreeMap<String, String>,
    /// Name of the variable that holds a bearer token.
    pub token_env: Option<String>,
}
