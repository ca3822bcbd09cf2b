//! The one place where errors become words for people, hints and exit codes.
//!
//! 0 completed and verified, or a reading command that could read · 1 anything else that failed · 2 a cap was reached ·
//! 3 waiting · 4 usage, configuration or script; nothing was launched · 5 somebody else holds it, or it cannot be
//! trusted · 128 + n by signal n.

use std::io::Write as _;
use std::process;

use clap::error::ErrorKind;
use lunation::host::HostError;
use lunation::journal::{FindError, JournalError};
use lunation::mechanism::repo::RepoError;
use lunation::policy::ExitCode;

use crate::present::{self, StdoutClosed};
use crate::quoting::quoted;

/// Something that the person who typed can put right.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct UsageError {
    message: String,
    hint: String,
}

impl UsageError {
    /// What is wrong, and what to type instead; an empty hint is not shown.
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> UsageError {
        UsageError { message: message.into(), hint: hint.into() }
    }
}

/// What the arguments' own errors lead to: help and version are no errors.
pub(crate) fn of_arguments(error: &clap::Error) -> process::ExitCode {
    // Nowhere is left to tell when even this cannot be written.
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => process::ExitCode::SUCCESS,
        _ => process::ExitCode::from(ExitCode::Usage.number()),
    }
}

/// Tells an error on standard error and gives its code. Whoever closed our output wants to hear nothing more.
pub(crate) fn of_error(error: &anyhow::Error, json: bool) -> process::ExitCode {
    if error.is::<StdoutClosed>() {
        tracing::debug!("standard output was closed by its reader");
        return process::ExitCode::SUCCESS;
    }
    let (code, hint) = judge(error);
    let message = present::clean_lines(&format!("{error:#}"));
    // As above: there is no third place to tell that standard error is gone.
    let mut err = anstream::stderr().lock();
    let _ = if json {
        let told = serde_json::json!({ "error": message, "hint": hint, "exit_code": code.number() });
        writeln!(err, "{told}")
    } else {
        present::error(&mut err, &message, hint.as_deref())
    };
    process::ExitCode::from(code.number())
}

/// The code of an error, with what to do about it.
fn judge(error: &anyhow::Error) -> (ExitCode, Option<String>) {
    for cause in error.chain() {
        if let Some(UsageError { hint, .. }) = cause.downcast_ref() {
            return (ExitCode::Usage, (!hint.is_empty()).then(|| hint.clone()));
        }
        if let Some(error) = cause.downcast_ref::<HostError>() {
            return of_host(error);
        }
        if let Some(error) = cause.downcast_ref::<RepoError>() {
            return of_repository(error);
        }
        if let Some(error) = cause.downcast_ref::<FindError>() {
            return of_find(error);
        }
        if let Some(error) = cause.downcast_ref::<JournalError>() {
            return of_journal(error);
        }
    }
    (ExitCode::Unverified, None)
}

fn of_host(error: &HostError) -> (ExitCode, Option<String>) {
    match error {
        HostError::Repository(error) => of_repository(error),
        HostError::Journal(error) => of_journal(error),
        HostError::Held { .. } => (ExitCode::Refused, Some("`lunation status` tells about that run".into())),
        HostError::Untrusted { script, .. } => {
            let script = quoted(&script.display().to_string());
            (ExitCode::Usage, Some(format!("read it, then: lunation trust {script}")))
        }
        error if error.is_usage() => (ExitCode::Usage, None),
        _ => (ExitCode::Unverified, None),
    }
}

fn of_repository(error: &RepoError) -> (ExitCode, Option<String>) {
    let code = match error {
        RepoError::NoRepository { .. }
        | RepoError::Bare(_)
        | RepoError::InsideGitFolder(_)
        | RepoError::TooWide(_)
        | RepoError::Unsupported { .. }
        | RepoError::NoCheckpoint { .. } => ExitCode::Usage,
        RepoError::DubiousOwnership { .. }
        | RepoError::Held { .. }
        | RepoError::GitLocked { .. }
        | RepoError::Guard { .. }
        | RepoError::Store { .. }
        | RepoError::Record { .. }
        | RepoError::Lost { .. } => ExitCode::Refused,
        _ => ExitCode::Unverified,
    };
    let hint = match error {
        RepoError::NoRepository { .. } => Some("-C DIR starts in another folder".into()),
        RepoError::Held { .. } => Some("`lunation status` tells about the run that holds it".into()),
        _ => None,
    };
    (code, hint)
}

fn of_find(error: &FindError) -> (ExitCode, Option<String>) {
    match error {
        FindError::NoRuns => (ExitCode::Usage, None),
        FindError::Journal(error) => of_journal(error),
        _ => (ExitCode::Usage, Some("`lunation report --all` lists the runs".into())),
    }
}

fn of_journal(error: &JournalError) -> (ExitCode, Option<String>) {
    match error {
        JournalError::InUse { .. } => (ExitCode::Refused, Some("`lunation status` tells about that run".into())),
        JournalError::NewerFormat { .. } | JournalError::DamagedBlob { .. } | JournalError::NotAFolder { .. } => {
            (ExitCode::Refused, None)
        }
        JournalError::NotARun { .. } | JournalError::BadBlobName { .. } => {
            (ExitCode::Usage, Some("`lunation report --all` lists the runs".into()))
        }
        _ => (ExitCode::Unverified, None),
    }
}
