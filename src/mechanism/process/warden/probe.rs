//! What this machine really lets a warden do, found out by doing it once.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::net::UnixStream,
    },
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
    gate::{self, Gate, GateMaker},
    namespace,
};

/// The longest that one probe may take.
const BOUND: Duration = Duration::from_secs(5);

/// Tries each tier; `set` is what setting the subreaper answered.
pub(super) fn abilities(set: Result<(), String>) -> Abilities {
    let subreaper = set.and_then(|()| an_orphan_comes_to_us()).err();
    let fork_gate = match (&subreaper, gate::unsupported()) {
        (_, Some(why)) => Some(why),
        (Some(why), None) => Some(format!("it needs the subreaper: {why}")),
        (None, None) => a_closed_gate_stops_forks().err(),
    };
    Abilities {
        pid_namespace: namespace::try_out().err(),
        user_namespace: namespace::with_user_namespace(),
        signal_scope: fork_gate.clone().or_else(|| in_a_child(gate::scope_signals).err()),
        fork_gate,
        subreaper,
    }
}

/// Forks a child behind a gate, lets it fork once, closes the gate and lets it try again.
fn a_closed_gate_stops_forks() -> Result<(), String> {
    let (maker, coming) = GateMaker::new().map_err(|error| format!("no socket ({error})"))?;
    let (mut ours, mut theirs) = UnixStream::pair().map_err(|error| format!("no socket ({error})"))?;
    ours.set_read_timeout(Some(BOUND)).map_err(|error| format!("no socket ({error})"))?;
    let child = sys::fork(|| {
        sys::close_all_but(&mut [maker.descriptor(), theirs.as_raw_fd()]);
        let made = maker.make().map_err(|error| error.raw_os_error().unwrap_or(libc::EIO));
        let _ = theirs.write_all(&made.err().unwrap_or(0).to_ne_bytes());
        if made.is_err() {
            return;
        }
        let forks = || sys::fork(|| sys::exit_now(0)).map_or(0u8, |_| 1);
        let first = forks();
        let mut closed = [0];
        let _ = theirs.write_all(&[first]).and_then(|()| theirs.read_exact(&mut closed));
        let _ = theirs.write_all(&[forks()]);
    })
    .map_err(|error| format!("no fork ({error})"))?;
    drop((maker, theirs));
    let gate = coming.take();
    let found = ask_behind_gate(gate, &mut ours);
    // Our own child, not reaped; it may wait for an answer that does not come.
    let killed = kill(Pid::from_raw(child), Signal::SIGKILL);
    reap_within(child)?;
    while let Ok(Found::Ended(_)) = sys::reap_any() {}
    killed.map_err(|error| format!("a child can't be killed ({error})"))?;
    found
}

fn ask_behind_gate(gate: Option<Gate>, line: &mut UnixStream) -> Result<(), String> {
    let silent = |error: io::Error| format!("a child behind the gate did not answer ({error})");
    let mut errno = [0; 4];
    line.read_exact(&mut errno).map_err(silent)?;
    match (i32::from_ne_bytes(errno), &gate) {
        (0, Some(_)) => {}
        (0, None) => return Err("the gate did not arrive".into()),
        (errno, _) => {
            let why = if errno == libc::EBUSY { "there is a gate around us already" } else { "the kernel refused it" };
            return Err(format!("{why} ({})", io::Error::from_raw_os_error(errno)));
        }
    }
    let until = Instant::now() + BOUND;
    let mut answer = [0];
    line.set_nonblocking(true).map_err(silent)?;
    while let Err(error) = line.read_exact(&mut answer) {
        let open = gate.as_ref().is_some_and(Gate::serve);
        if error.kind() != io::ErrorKind::WouldBlock || !open || Instant::now() > until {
            return Err("a fork did not pass the open gate".into());
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    line.set_nonblocking(false).map_err(silent)?;
    drop(gate);
    let [passed] = answer;
    line.write_all(b"c").and_then(|()| line.read_exact(&mut answer)).map_err(silent)?;
    match (passed, answer) {
        (1, [0]) => Ok(()),
        (1, _) => Err("a fork passed the closed gate".into()),
        _ => Err("a fork did not pass the open gate".into()),
    }
}

/// Does something that can't be undone in a child, which is over afterwards.
fn in_a_child(what: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let (mut reader, mut writer) = io::pipe().map_err(|error| format!("no pipe ({error})"))?;
    let child = sys::fork(|| {
        let answer = what().err().unwrap_or_else(|| "ok".into());
        let _ = writer.write_all(answer.as_bytes());
    })
    .map_err(|error| format!("no fork ({error})"))?;
    drop(writer);
    let mut answer = String::new();
    let read = reader.read_to_string(&mut answer);
    reap_within(child)?;
    match (read, answer.as_str()) {
        (Ok(_), "ok") => Ok(()),
        (Ok(_), why) if !why.is_empty() => Err(why.to_owned()),
        _ => Err("the child that tried it did not answer".into()),
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
