//! The badly behaved program of the tests, compiled here too, and a look at the process table.

use std::{
    ffi::OsString,
    path::PathBuf,
    sync::OnceLock,
    time::{Duration, Instant},
};

use lunation::mechanism::process::{Command, Finished, Observer, Processes, Stream, Wish};
use tokio_util::sync::CancellationToken;

/// The program; every process of it ends by itself after a minute.
pub(super) fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = PROGRAM.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (source, made) = (folder.path().join("evil.c"), folder.path().join("evil"));
        std::fs::write(&source, include_bytes!("../../../tests/processes/evil.c")).expect("room for a file");
        let status = std::process::Command::new("cc").args(["-O1", "-pthread", "-o"]).args([&made, &source]).status();
        assert!(status.expect("cc is needed").success());
        (folder, made)
    });
    program
}

/// A text that no other process has in its arguments.
pub(super) fn marker() -> String {
    format!("bench-{}-{:08x}", std::process::id(), rand::random::<u32>())
}

pub(super) fn env() -> Vec<(OsString, OsString)> {
    vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]
}

pub(super) fn command(mode: &str, marker: &str, more: &[&str]) -> Command {
    Command::new(program(), "/", env()).args([mode, marker]).args(more.iter().copied())
}

/// Runs it until it says that it is ready, and then ends it: how long that took.
pub(super) async fn end_when_ready(processes: &Processes, command: Command) -> anyhow::Result<(Finished, Duration)> {
    let cancel = CancellationToken::new();
    let (ready, heard) = tokio::sync::oneshot::channel();
    let observer = WhenReady { seen: 0, ready: Some(ready) };
    let run = processes.run(command.term_grace(Duration::ZERO), cancel.clone(), Some(Box::new(observer)));
    let end = async {
        let heard = heard.await;
        let at = Instant::now();
        cancel.cancel();
        heard.map(|()| at)
    };
    let (done, asked) = tokio::join!(run, end);
    Ok((done?, asked?.elapsed()))
}

struct WhenReady {
    seen: usize,
    ready: Option<tokio::sync::oneshot::Sender<()>>,
}

impl Observer for WhenReady {
    fn output(&mut self, _: Stream, bytes: &[u8]) -> Wish {
        self.seen += bytes.len();
        if self.seen >= b"ready\n".len()
            && let Some(ready) = self.ready.take()
        {
            // The other side waits for it as long as the command runs.
            let _ = ready.send(());
        }
        Wish::GoOn
    }
}

/// The processes with this text in their arguments.
pub(super) fn alive(marker: &str) -> std::io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let Ok(arguments) = std::fs::read(format!("/proc/{pid}/cmdline")) else { continue };
        if arguments.windows(marker.len()).any(|w| w == marker.as_bytes()) {
            found.push(pid);
        }
    }
    Ok(found)
}
