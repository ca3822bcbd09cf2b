//! What the changes of a git folder are called.

use std::collections::BTreeSet;

use super::super::path::escape;
use super::super::snapshot::{Delta, DeltaKind};
use super::{Refs, Undone};

/// Most single files that are named; the rest is counted.
const MOST_NAMED: usize = 50;

/// What there is to tell the changes by.
pub(crate) struct UndoneInput<'a> {
    pub(crate) deltas: &'a [Delta],
    pub(crate) before: &'a Refs,
    pub(crate) after: &'a Refs,
    /// path of `HEAD` of the working tree, relative to the folder
    pub(crate) head: &'a str,
    /// does the index say something else than before? (Not only its stamps.)
    pub(crate) index_differs: bool,
}

/// Names the changes, refs first.
pub(crate) fn name_undone(input: &UndoneInput<'_>) -> Vec<Undone> {
    let mut undone = Vec::new();
    let current = input.before.0.get(input.head).and_then(|head| head.strip_prefix("ref: "));
    let names: BTreeSet<&String> = input.before.0.keys().chain(input.after.0.keys()).collect();
    for name in names {
        let (old, new) = (input.before.0.get(name), input.after.0.get(name));
        if old != new {
            undone.push(name_ref(name, old, new, current, input.head));
        }
    }
    let told = !undone.is_empty();
    let mut files = Vec::new();
    let mut reflog = Vec::new();
    for delta in input.deltas {
        match class(&delta.path) {
            Class::Silent | Class::Ref => {}
            Class::Reflog => reflog.push(delta),
            Class::Index if input.index_differs => files.push(Undone::new("index", how(delta))),
            Class::Index => {}
            Class::Named(what) => files.push(Undone::new(what, how(delta))),
        }
    }
    if !told && let Some(first) = reflog.first() {
        files.push(Undone::new("reflog", how(first)));
    }
    let more = files.len().saturating_sub(MOST_NAMED);
    undone.extend(files.into_iter().take(MOST_NAMED));
    if more > 0 {
        undone.push(Undone::new("file", format!("{more} more")));
    }
    undone
}

fn name_ref(name: &str, old: Option<&String>, new: Option<&String>, current: Option<&str>, head: &str) -> Undone {
    let short = |value: &String| value.strip_prefix("ref: ").map_or(value.chars().take(12).collect(), str::to_string);
    let what = match name {
        _ if name == head => "HEAD",
        _ if Some(name) == current => "commit",
        "refs/stash" => "stash",
        _ if name.starts_with("refs/heads/") => "branch",
        _ if name.starts_with("refs/tags/") => "tag",
        _ if name.starts_with("refs/remotes/") => "remote",
        _ if name.starts_with("worktrees/") => "worktree",
        _ => "ref",
    };
    let detail = match (old, new) {
        (Some(old), Some(new)) => format!("{name} was moved from {} to {}", short(old), short(new)),
        (Some(old), None) => format!("{name} was deleted (it was {})", short(old)),
        (None, Some(new)) => format!("{name} was made ({})", short(new)),
        (None, None) => name.to_string(),
    };
    Undone::new(what, detail)
}

enum Class {
    /// what follows from something else, or means nothing to anybody
    Silent,
    /// told by name and value
    Ref,
    Reflog,
    Index,
    Named(&'static str),
}

fn class(path: &[u8]) -> Class {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let first = path.split(|byte| *byte == b'/').next().unwrap_or(path);
    // HEAD, index and the rest of a linked working tree have the same names one level down
    let own = if first == b"worktrees" { path.splitn(3, |byte| *byte == b'/').nth(2).unwrap_or(path) } else { path };
    match own {
        _ if name.ends_with(b".lock") && first != b"hooks" => Class::Named("lock"),
        b"HEAD" | b"packed-refs" => Class::Ref,
        b"index" => Class::Index,
        b"config" | b"config.worktree" => Class::Named("config"),
        b"ORIG_HEAD" | b"FETCH_HEAD" | b"COMMIT_EDITMSG" | b"gc.log" | b"gc.pid" | b"AUTO_MERGE" => Class::Silent,
        b"MERGE_HEAD" | b"CHERRY_PICK_HEAD" | b"REVERT_HEAD" | b"REBASE_HEAD" | b"BISECT_LOG" => {
            Class::Named("operation")
        }
        b"MERGE_MSG" | b"MERGE_MODE" | b"SQUASH_MSG" | b"MERGE_RR" => Class::Silent,
        b"rebase-merge" | b"rebase-apply" | b"sequencer" => Class::Named("operation"),
        b"hooks" | b"info" | b"logs" | b"refs" | b"objects" | b"modules" | b"worktrees" | b"branches" => Class::Silent,
        _ => match first {
            b"refs" => Class::Ref,
            b"logs" => Class::Reflog,
            b"hooks" => Class::Named("hook"),
            b"info" if name == b"refs" => Class::Silent,
            b"info" => Class::Named("info"),
            b"objects" if name == b"alternates" || name == b"http-alternates" => Class::Named("alternates"),
            b"objects" => Class::Silent,
            b"rebase-merge" | b"rebase-apply" | b"sequencer" => Class::Silent,
            b"worktrees" if own.starts_with(b"logs/") => Class::Reflog,
            b"worktrees" => Class::Named("worktree"),
            b"modules" => Class::Named("submodule"),
            b"reftable" => Class::Named("ref"),
            _ if name.starts_with(b"sharedindex.") => Class::Silent,
            _ => Class::Named("file"),
        },
    }
}

fn how(delta: &Delta) -> String {
    let path = if delta.path.is_empty() { "the folder itself".to_string() } else { escape(&delta.path) };
    let verb = match delta.kind() {
        DeltaKind::Added => "was made",
        DeltaKind::Edited => "was changed",
        DeltaKind::Deleted => "was deleted",
        DeltaKind::ModeChanged => "had its mode changed",
        DeltaKind::TypeChanged => "was replaced by something else",
    };
    format!("{path} {verb}")
}
