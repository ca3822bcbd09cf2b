//! `run.toml`: what a person wants to know of a run before opening its journal.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::Serialize;

use super::error::JournalError;
use super::event::RunStarted;
use super::record::Record;

const FILE: &str = "run.toml";

#[derive(Serialize)]
struct Card<'r> {
    run: &'r str,
    started: String,
    format: u32,
    lunation: &'r str,
    tier: &'r str,
    root: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<&'r str>,
    /// By path: the script and every module that it loaded.
    sha256: BTreeMap<&'r str, &'r str>,
    agents: BTreeMap<&'r str, &'r str>,
}

/// Writes the card from a record that is masked already.
pub(super) fn write(run_dir: &Path, record: &Record, started: &RunStarted) -> Result<(), JournalError> {
    let script = started.script.as_ref();
    let card = Card {
        run: record.run.as_str(),
        started: record.at.to_string(),
        format: record.version,
        lunation: &started.version,
        tier: &started.tier,
        root: &started.root,
        script: script.map(|script| script.path.as_str()),
        sha256: script
            .map(|script| script.sha256.iter().map(|(path, digest)| (path.as_str(), digest.as_str())).collect())
            .unwrap_or_default(),
        agents: started
            .agents
            .iter()
            .map(|(name, version)| (name.as_str(), version.as_deref().unwrap_or("unknown")))
            .collect(),
    };
    let path = run_dir.join(FILE);
    let staged = run_dir.join("run.toml.new");
    let wrap = |error| JournalError::from_io("write", &path, error);
    let text = toml::to_string(&card).map_err(|error| wrap(std::io::Error::other(error)))?;
    let mut options = std::fs::OpenOptions::new();
    options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    options.open(&staged).and_then(|mut file| file.write_all(text.as_bytes())).map_err(wrap)?;
    std::fs::rename(&staged, &path).map_err(wrap)
}
