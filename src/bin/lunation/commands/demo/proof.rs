//! Whether the demonstration showed what it promises: read in the journal, in git, and in the process table.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use lunation::host::Outcome;
use lunation::journal::{Event, Record, Recording};
use lunation::policy::Reason;
use serde::Serialize;

use super::project::{EDITED_TEST, Project, SOURCE};

/// One thing that had to be seen.
#[derive(Debug, Serialize)]
pub(super) struct Seen {
    /// What, for people.
    pub(super) what: &'static str,
    /// Whether it was.
    pub(super) ok: bool,
    /// Where it was looked for and what was found.
    pub(super) evidence: String,
}

/// Looks for everything.
pub(super) fn of(outcome: &Outcome, project: &Project) -> anyhow::Result<Vec<Seen>> {
    let records = Recording::read(&outcome.folder).context("the record of the demonstration cannot be read")?.records;
    Ok(vec![
        fenced(&records, project)?,
        reaped(&records, project),
        guarded(&records, project)?,
        rolled_back(&records),
        verified(outcome, project)?,
    ])
}

fn all<T>(records: &[Record], pick: impl Fn(&Event) -> Option<Vec<T>>) -> Vec<T> {
    records.iter().filter_map(|record| pick(&record.event)).flatten().collect()
}

fn fenced(records: &[Record], project: &Project) -> anyhow::Result<Seen> {
    let paths: Vec<String> = all(records, |event| match event {
        Event::Fenced { paths, .. } => Some(paths.clone()),
        _ => None,
    });
    let unchanged = project.git(&["diff", "--name-only", "HEAD", "--", "tests"])?.trim().is_empty();
    Ok(Seen {
        what: "the fence put an edited test back",
        ok: paths.iter().any(|path| path.contains(EDITED_TEST)) && unchanged,
        evidence: format!("journal: {}; git: tests as committed: {}", paths.join(", "), yes(unchanged)),
    })
}

fn reaped(records: &[Record], project: &Project) -> Seen {
    let left: Vec<String> = all(records, |event| match event {
        Event::TurnEnded { turn, .. } => Some(turn.left_behind.clone()),
        _ => None,
    });
    let lived = fs::read_to_string(project.daemon_trace()).unwrap_or_default();
    let alive = processes_of(&project.daemon_script());
    Seen {
        what: "the reaper ended a daemon",
        ok: !left.is_empty() && !lived.trim().is_empty() && alive.is_empty(),
        evidence: format!(
            "journal: {}; it had written its number {}; process table: {}",
            left.join(", "),
            lived.trim(),
            if alive.is_empty() { "gone".to_owned() } else { format!("alive as {}", alive.join(", ")) }
        ),
    }
}

fn guarded(records: &[Record], project: &Project) -> anyhow::Result<Seen> {
    let undone: Vec<String> = all(records, |event| match event {
        Event::Guarded { undone, .. } => Some(undone.clone()),
        _ => None,
    });
    let commits = project.git(&["rev-list", "--count", "HEAD"])?.trim().to_owned();
    Ok(Seen {
        what: "the guard undid a commit",
        ok: !undone.is_empty() && commits == "1",
        evidence: format!("journal: {}; git: {commits} commit on the branch", undone.join(", ")),
    })
}

fn rolled_back(records: &[Record]) -> Seen {
    let back = records.iter().find_map(|record| match &record.event {
        Event::RolledBack { iteration, restored, conflicts, .. } if conflicts.is_empty() => {
            Some((*iteration, *restored))
        }
        _ => None,
    });
    Seen {
        what: "a bad iteration was rolled back",
        ok: back.is_some(),
        evidence: match back {
            Some((iteration, restored)) => format!("journal: iteration {iteration}, {restored} path put back"),
            None => "journal: no rollback".into(),
        },
    }
}

fn verified(outcome: &Outcome, project: &Project) -> anyhow::Result<Seen> {
    let ended = &outcome.ended;
    let status = project.git(&["status", "--porcelain"])?;
    let only_the_fix = status == format!(" M {SOURCE}\n");
    Ok(Seen {
        what: "the finish was verified",
        ok: ended.reason == Reason::Completed && ended.verified && only_the_fix,
        evidence: format!(
            "journal: {}, verified: {}; git status: {}",
            ended.reason.name(),
            yes(ended.verified),
            status.trim()
        ),
    })
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

/// Processes that have this path in their arguments, by number.
fn processes_of(script: &Path) -> Vec<String> {
    let Some(wanted) = script.to_str() else { return Vec::new() };
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok());
    numbers
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|number| {
            // One that ended meanwhile cannot be read, and is gone.
            let arguments = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
            arguments.split(|byte| *byte == 0).any(|argument| argument == wanted.as_bytes())
        })
        .collect()
}
