//! SARIF 2.1.

use serde::Deserialize;

use super::counted::Counted;
use super::document::{Fold, Summary};

/// A log file.
#[derive(Deserialize)]
pub(super) struct Document {
    runs: Fold<Runs>,
}

#[derive(Deserialize)]
struct Run {
    #[serde(default)]
    results: Fold<Results>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    #[serde(default)]
    level: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    rule_id: Option<String>,
    message: Text,
    #[serde(default)]
    locations: Vec<Location>,
    #[serde(default)]
    suppressions: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Text {
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(default)]
    physical_location: Option<Physical>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Physical {
    #[serde(default)]
    artifact_location: Option<Artifact>,
    #[serde(default)]
    region: Option<Region>,
}

#[derive(Deserialize)]
struct Artifact {
    #[serde(default)]
    uri: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    #[serde(default)]
    start_line: u64,
}

#[derive(Default)]
struct Runs(Counted);

#[derive(Default)]
struct Results(Counted);

impl Summary for Runs {
    type Item = Run;

    fn add(&mut self, run: Run) {
        self.0.add(&run.results.0.0);
    }
}

impl Summary for Results {
    type Item = Finding;

    fn add(&mut self, finding: Finding) {
        let counts = finding.suppressions.is_empty() && finding.kind.is_none_or(|kind| kind == "fail");
        let is_error = match finding.level.as_deref().unwrap_or("warning") {
            "error" => true,
            "warning" => false,
            _ => return,
        };
        if !counts {
            return;
        }
        let physical = finding.locations.into_iter().find_map(|location| location.physical_location);
        let place = match physical.map(|place| (place.artifact_location, place.region)) {
            Some((Some(artifact), Some(region))) => format!("{}:{}: ", artifact.uri, region.start_line),
            Some((Some(artifact), None)) => format!("{}: ", artifact.uri),
            _ => String::new(),
        };
        let rule = finding.rule_id.map(|rule| format!("{rule} ")).unwrap_or_default();
        self.0.finding(is_error, &format!("{place}{rule}{}", finding.message.text));
    }
}

impl Document {
    pub(super) fn counted(self) -> Counted {
        self.runs.0.0
    }
}
