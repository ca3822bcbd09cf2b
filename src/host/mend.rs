//! What happens when a host dies: its last warden starts this executable once more, which puts the repository back.
//!
//! A warden is needed for that at every moment, also between two commands: [`Standby`] is one whose command only waits.
//!
//! Owns the command line of that program. Guarantees that nobody else is at work meanwhile: the warden hands the
//! repository's lock on. What cannot be mended now is found and told by the next run.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::preflight;
use crate::mechanism::process::{self, Command, Processes};
use crate::mechanism::repo::{self, RepoLock};

/// The word that asks for it.
const RECOVER: &str = "--lunation-recover";

/// What finding a repository may look at; nothing else of the surroundings reaches that program.
const NEEDED: [&str; 4] = ["HOME", "XDG_CONFIG_HOME", "PATH", "SUDO_UID"];

/// The command for the warden: the word, the state folder, and what is needed of the environment as `NAME=value`.
pub(super) fn command(program: &Path, state: &Path, ambient: &[(OsString, OsString)]) -> Vec<OsString> {
    let mut command = vec![program.as_os_str().to_owned(), OsString::from(RECOVER), state.as_os_str().to_owned()];
    for (name, value) in ambient.iter().filter(|(name, _)| NEEDED.iter().any(|needed| name == needed)) {
        let mut word = name.clone();
        word.push("=");
        word.push(value);
        command.push(word);
    }
    command
}

/// The word of a process that does nothing until it is ended.
const STANDBY: &str = "--lunation-standby";

/// Longer than any run.
const EVER: Duration = Duration::from_secs(10 * 366 * 86_400);

/// A warden that is there for the whole run.
pub(super) struct Standby {
    over: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Standby {
    pub(super) fn start(processes: &Processes, program: &Path) -> Standby {
        let over = CancellationToken::new();
        let command = Command::new(program, "/", Vec::new()).arg(STANDBY).wall(EVER).term_grace(Duration::ZERO);
        let (processes, token) = (processes.clone(), over.clone());
        let task = tokio::spawn(async move {
            match processes.run(command, token.clone(), None).await {
                Ok(_) if token.is_cancelled() => {}
                Ok(finished) => tracing::warn!(ending = ?finished.ending, "the standby of this run ended early"),
                Err(error) => tracing::warn!(%error, "the standby of this run could not be started"),
            }
        });
        Standby { over, task }
    }

    pub(super) async fn end(self) {
        self.over.cancel();
        if let Err(error) = self.task.await {
            tracing::warn!(%error, "the standby of this run died");
        }
    }
}

/// Does it and ends this process, when it was started for that: see [`crate::enter_warden_if_asked`].
pub(crate) fn mend_if_asked() {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(word) if word == RECOVER => {}
        Some(word) if word == STANDBY => loop {
            std::thread::park();
        },
        _ => return,
    }
    let state = args.next().map(PathBuf::from);
    let ambient: Vec<_> = args.filter_map(split).collect();
    std::process::exit(i32::from(mend(state, &ambient).is_none()));
}

fn split(word: OsString) -> Option<(OsString, OsString)> {
    let bytes = word.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=')?;
    Some((OsString::from_vec(bytes[..at].to_vec()), OsString::from_vec(bytes[at + 1..].to_vec())))
}

fn mend(state: Option<PathBuf>, ambient: &[(OsString, OsString)]) -> Option<()> {
    let state = state?;
    let lock = RepoLock::inherited(&state, process::inherited_hold()?).ok()?;
    repo::recover(&state, &lock, &preflight::repository_options(ambient)).ok().map(drop)
}
