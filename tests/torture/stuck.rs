//! Uninterruptible sleep: nothing ends such a process, and that is said and not waited for without end.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use lunation::mechanism::process::Ending;
use tokio_util::sync::CancellationToken;

use crate::stage::{everywhere, say, with_argument};

/// A small file system in a file, mounted and frozen: who writes to it sleeps until it thaws.
struct Frozen {
    folder: tempfile::TempDir,
    mounted: bool,
}

impl Frozen {
    /// `None` where that can't be had.
    fn make() -> Option<Frozen> {
        let folder = tempfile::tempdir().ok()?;
        let image = folder.path().join("image");
        std::fs::File::create(&image).ok()?.set_len(8 << 20).ok()?;
        std::fs::create_dir(folder.path().join("on")).ok()?;
        let mut frozen = Frozen { folder, mounted: false };
        let image = image.to_str()?.to_owned();
        let on = frozen.on().to_str()?.to_owned();
        let done = run(&["mkfs.ext4", "-q", "-F", &image]) && run(&["mount", "-o", "loop", &image, &on]);
        frozen.mounted = done;
        (done && run(&["fsfreeze", "-f", &on])).then_some(frozen)
    }

    fn on(&self) -> PathBuf {
        self.folder.path().join("on")
    }

    fn thaw(&self) {
        run(&["fsfreeze", "-u", &self.on().to_string_lossy()]);
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        if self.mounted {
            self.thaw();
            let until = Instant::now() + Duration::from_secs(20);
            while !run(&["umount", &self.on().to_string_lossy()]) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

fn run(argv: &[&str]) -> bool {
    let path = "/usr/sbin:/usr/bin:/sbin:/bin";
    let output = std::process::Command::new(argv[0]).args(&argv[1..]).env("PATH", path).output();
    output.is_ok_and(|output| output.status.success())
}

#[test]
fn a_process_that_nothing_can_end_is_named_and_never_called_gone() {
    // What happens after the thaw is part of the case: the warden goes on, and then nobody is left.
    everywhere(async |stage| {
        if !nix::unistd::geteuid().is_root() {
            return say("skipped: only root can freeze a file system");
        }
        let Some(frozen) = Frozen::make() else { return say("skipped: no file system can be frozen here") };
        let script = format!("exec sh -c 'echo x > {}/file' \"$MARK\"", frozen.on().display());
        let command = stage.sh(&script).wall(Duration::from_millis(300)).term_grace(Duration::ZERO);
        let began = Instant::now();
        let done = stage.processes.run(command, CancellationToken::new(), None).await.unwrap();
        assert!(matches!(done.ending, Ending::TimedOut(_)), "{}: {done:?}", stage.tier);
        assert!(!done.confirmed_gone && !done.still_there.is_empty(), "{}: {done:?}", stage.tier);
        assert!(began.elapsed() < Duration::from_secs(30), "{}", stage.tier);
        frozen.thaw();
        crate::stage::eventually("nobody is left", || with_argument(&stage.marker).is_empty()).await;
        drop(frozen);
    });
}
