//! Why a command could not be run at all. Once it ran, its end is a [`Finished`](super::Finished), never an error.

use std::{ffi::OsString, io, path::PathBuf};

use super::Tier;

/// Why a command was not started.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// No such program.
    #[error("program {program:?} was not found{}", searched_in(.searched))]
    NotFound {
        /// The name or path as written.
        program: OsString,
        /// The folders that were searched, empty when a path was written.
        searched: Vec<PathBuf>,
    },
    /// The file is there but can't be run.
    #[error("{} can't be run: {why}", .program.display())]
    NotExecutable {
        /// The file.
        program: PathBuf,
        /// What is wrong with it and what to do.
        why: String,
    },
    /// The working folder can't be entered.
    #[error("can't enter the folder {}: {source}", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused to start a process.
    #[error("starting {} failed ({stage}): {}{}", .program.display(), io::Error::from_raw_os_error(*.errno), if *.transient { "; the machine is short of something, try again" } else { "" })]
    SpawnFailed {
        /// The program.
        program: PathBuf,
        /// Which step failed.
        stage: &'static str,
        /// The error number of the system.
        errno: i32,
        /// True for a shortage (processes, memory, descriptors) that may pass.
        transient: bool,
    },
    /// What was to be the standard input can't be had.
    #[error("can't prepare the standard input {}: {source}", .what.display())]
    Stdin {
        /// The file, or "(prompt)".
        what: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The private temporary folder can't be made.
    #[error("can't make the temporary folder {}: {source}", .folder.display())]
    PrivateTmp {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The log file can't be made.
    #[error("can't write the log file {}: {source}", .file.display())]
    Log {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An argument, variable or path can't be handed to a process (it contains a NUL byte, say).
    #[error("{what} can't be given to a process: {why}")]
    Unusable {
        /// Which one.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The warden could not be started or did not do its work.
    #[error("the warden ({}) failed: {message}", .program.display())]
    Warden {
        /// The program that was started as the warden.
        program: PathBuf,
        /// What happened and what to do.
        message: String,
    },
    /// The tier that was asked for is not to be had on this machine.
    #[error("process tier {tier} was asked for but can't be had here: {why}")]
    TierUnavailable {
        /// The tier.
        tier: Tier,
        /// Why not.
        why: String,
    },
    /// The system refused something that every command needs.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The runtime that runs the commands is gone, or the observer panicked; the command was ended.
    #[error("the task that watched the command is gone; the command was ended")]
    TaskLost,
}

impl ProcessError {
    /// True when the same command may well start in a while.
    pub fn is_transient(&self) -> bool {
        matches!(self, ProcessError::SpawnFailed { transient: true, .. })
    }

    pub(super) fn system(what: &'static str) -> impl FnOnce(io::Error) -> ProcessError {
        move |source| ProcessError::System { what, source }
    }
}

/// True for errors of starting that come from a shortage and may pass.
pub(super) fn is_transient(errno: i32) -> bool {
    [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE, libc::ETXTBSY, libc::EINTR].contains(&errno)
}

fn searched_in(folders: &[PathBuf]) -> String {
    if folders.is_empty() {
        return String::new();
    }
    let list: Vec<String> = folders.iter().take(20).map(|f| f.display().to_string()).collect();
    let more = if folders.len() > 20 { format!(" and {} more", folders.len() - 20) } else { String::new() };
    format!(" (searched: {}{more})", list.join(", "))
}
