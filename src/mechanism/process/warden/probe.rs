//! What this machine really lets a warden do, found out by doing it once.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{
    super::{
        protocol::Abilities,
        sys::{self, Found},
    },
    children::OwnChildren,
};

/// The longest that one probe may take.
const BOUND: Duration = Duration::from_secs(5);

/// Tries each tier; `set` is what setting the subreaper answered.
pub(super) fn abilities(set: Result<(), String>) -> Abilities {
    Abilities {
        pid_namespace: Some("not built in this version".into()),
        fork_gate: Some("not built in this version".into()),
        subreaper: set.and_then(|()| an_orphan_comes_to_us()).err(),
    }
}

/// Forks a child that leaves an orphan, and looks whether the orphan becomes a listed child of this process.
fn an_orphan_comes_to_us() -> Result<(), String> {
    let (reader, writer) = io::pipe().map_err(|error| format!("no pipe ({error})"))?;
    let mut writer = File::from(OwnedFd::from(writer));
    let middle = sys::fork(|| {
        let orphan = sys::fork(|| std::thread::sleep(BOUND));
        let _ = writer.write_all(&orphan.unwrap_or(0).to_ne_bytes());
    })
    .map_err(|error| format!("no fork ({error})"))?;
    drop(writer);
    let mut bytes = [0u8; 4];
    let told = File::from(OwnedFd::from(reader)).read_exact(&mut bytes);
    reap_within(middle)?;
    let orphan = i32::from_ne_bytes(bytes);
    if told.is_err() || orphan <= 0 {
        return Err("no second fork".into());
    }
    let listed = OwnChildren::new().list().map_err(|error| format!("/proc can't be read ({error})"))?;
    if !listed.contains(&orphan) {
        return Err("orphans do not come to the subreaper, or /proc does not show them".into());
    }
    kill(Pid::from_raw(orphan), Signal::SIGKILL).map_err(|error| format!("an orphan can't be killed ({error})"))?;
    reap_within(orphan)
}

fn reap_within(pid: i32) -> Result<(), String> {
    let until = Instant::now() + BOUND;
    loop {
        match sys::reap(pid) {
            Ok(Found::Ended(_)) => return Ok(()),
            Ok(Found::NoChild) => return Err("an orphan did not become a child".into()),
            Ok(Found::NoneEnded) if Instant::now() < until => std::thread::sleep(Duration::from_micros(200)),
            Ok(Found::NoneEnded) => return Err("a killed process did not end in time".into()),
            Err(error) => return Err(format!("waiting failed ({error})")),
        }
    }
}
