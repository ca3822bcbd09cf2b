//! The end of a run in words: what came out, what changed, how to keep or drop it, and what to type next.
//!
//! Guarantees that the last line names the reason and the next command.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::Context as _;
use lunation::host::Outcome;
use lunation::journal::{Event, Recording};
use lunation::policy::{ChangeSummary, MOST_PATHS, Reason};
use lunation::report::Summary;

use super::happenings::Line;
use crate::present::{Tone, clean, count, seconds};
use crate::quoting::quoted;

/// Paths that are named on a command line before a list file is used.
const MOST_ON_A_LINE: usize = 12;
/// Paths that are shown.
const MOST_SHOWN: usize = 20;

/// What a finished run tells.
pub(crate) struct Ended {
    /// Its journal in short.
    pub(crate) summary: Summary,
    /// The paragraph about the result.
    pub(crate) paragraph: Vec<Line>,
    /// The last line.
    pub(crate) last: Line,
}

/// Sums up a run that has just ended. `folder` is where the person types.
///
/// # Errors
/// When its journal cannot be read back.
pub(crate) fn of(outcome: &Outcome, folder: &Path) -> anyhow::Result<Ended> {
    let recording = Recording::read(&outcome.folder).context("the record of this run cannot be read back")?;
    let summary = Summary::of(&recording, false);
    let mut paragraph = vec![headline(outcome)];
    if let Some(error) = &outcome.ended.error {
        // Script errors have lines of their own: place, source line, trace.
        paragraph
            .extend(error.lines().map(|line| Line::new(Tone::Bad, format!("  {}", crate::present::clean_lines(line)))));
    }
    let was_dirty = recording.records.iter().any(|record| match &record.event {
        Event::RunStarted(started) => started.dirty,
        _ => false,
    });
    paragraph.extend(result(outcome, &summary, &git(&summary, folder), was_dirty)?);
    let last = last_line(outcome, &summary);
    Ok(Ended { summary, paragraph, last })
}

/// Git at the root of the work tree, from where the person types.
fn git(summary: &Summary, folder: &Path) -> String {
    match &summary.root {
        Some(root) if Path::new(root) != folder => format!("git -C {}", quoted(root)),
        _ => "git".into(),
    }
}

fn headline(outcome: &Outcome) -> Line {
    let ended = &outcome.ended;
    let (tone, what) = match (ended.reason, ended.verified) {
        (Reason::Completed, true) => (Tone::Good, "completed and verified"),
        (Reason::Completed, false) => (Tone::Warn, "completed, not verified by any check"),
        _ => (Tone::Bad, "not completed"),
    };
    let summary = clean(&ended.summary);
    let why = match (ended.error.is_some(), summary.strip_prefix("complete ")) {
        (true, _) => String::new(),
        (false, Some(rest)) if ended.reason == Reason::Completed => format!(" {rest}"),
        (false, _) => format!(": {summary}"),
    };
    Line::new(tone, format!("{what}{why} (in {})", seconds(ended.usage.wall_s)))
}

fn result(outcome: &Outcome, summary: &Summary, git: &str, was_dirty: bool) -> anyhow::Result<Vec<Line>> {
    let plain = |text: String| Line::new(Tone::Plain, text);
    let change = &outcome.ended.change;
    if change.empty {
        let mut lines = vec![plain("result: nothing changed".into())];
        lines.extend(not_covered(change));
        return Ok(lines);
    }
    let size = format!("{} in {}", count(change.lines, "line"), count(change.file_count, "file"));
    if let Some(commit) = &summary.commit {
        let mut lines = vec![plain(format!("result: {size}, committed as {commit}"))];
        lines.extend(not_covered(change));
        return Ok(lines);
    }
    let mut lines = vec![plain(format!("result: {size}, in your work tree; nothing was committed"))];
    lines.extend(change.files.iter().take(MOST_SHOWN).map(|path| plain(format!("  {}", clean(path)))));
    if change.files.len() > MOST_SHOWN {
        lines.push(plain(format!("  and {} more", change.file_count - MOST_SHOWN as u64)));
    }
    lines.push(plain(format!("keep it: {}", keep(change, git, &outcome.folder)?)));
    if was_dirty {
        lines.push(plain(
            "         you had changes of your own: where they are in the same files, pick with git add -p".into(),
        ));
    }
    lines.push(plain(format!("drop it: lunation restore 0 --run {}", outcome.run.short())));
    lines.extend(not_covered(change));
    Ok(lines)
}

/// What could be neither watched nor put back.
fn not_covered(change: &ChangeSummary) -> Option<Line> {
    const MOST: usize = 5;
    let shown: Vec<String> = change.left_alone.iter().take(MOST).map(|left| clean(left)).collect();
    let more = match change.left_alone.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!shown.is_empty()).then(|| Line::new(Tone::Warn, format!("not covered: {}{more}", shown.join(", "))))
}

/// The commands that commit exactly what the run changed.
fn keep(change: &ChangeSummary, git: &str, folder: &Path) -> anyhow::Result<String> {
    if change.file_count > MOST_PATHS as u64 {
        return Ok(format!("{git} add -A && {git} commit"));
    }
    // What git would take for a pattern is a name here.
    let is_pattern = |path: &String| path.starts_with(':') || path.contains(['*', '?', '[', '\\']);
    let literal = if change.files.iter().any(is_pattern) { " --literal-pathspecs" } else { "" };
    if change.files.len() <= MOST_ON_A_LINE {
        let paths: Vec<String> = change.files.iter().map(|path| quoted(path)).collect();
        return Ok(format!("{git}{literal} add -A -- {} && {git} commit", paths.join(" ")));
    }
    let list = folder.join("changed-paths");
    let mut bytes = Vec::new();
    for path in &change.files {
        bytes.extend_from_slice(path.as_bytes());
        bytes.push(0);
    }
    fs::write(&list, bytes).with_context(|| format!("{} cannot be written", list.display()))?;
    let list = String::from_utf8_lossy(list.as_os_str().as_bytes()).into_owned();
    Ok(format!("{git}{literal} add -A --pathspec-from-file={} --pathspec-file-nul && {git} commit", quoted(&list)))
}

fn last_line(outcome: &Outcome, summary: &Summary) -> Line {
    let ended = &outcome.ended;
    let verified = if ended.verified { "verified" } else { "nothing verified" };
    let next = match summary.next.first() {
        Some(next) => format!("; next: {}", next.command),
        None => String::new(),
    };
    let tone = if ended.verified && ended.reason == Reason::Completed { Tone::Good } else { Tone::Bad };
    let modes: Vec<&str> = summary.failure_modes.iter().map(|mode| lunation::report::mode_name(*mode)).collect();
    let modes = if modes.is_empty() { String::new() } else { format!(", {}", modes.join(", ")) };
    Line::new(tone, format!("ended: {}, {verified}{modes} (exit code {}){next}", ended.reason.name(), ended.exit_code))
}
