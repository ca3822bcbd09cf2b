//! Into the namespaces: PID and mount, and a user namespace when this is not root. Owns what is different inside, which
//! is as little as can be:
//!
//! * `/proc` is a fresh one that shows the namespace only. No other mount is made, changed or removed. What the machine
//!   mounts later appears inside too; nothing goes the other way.
//! * With a user namespace, the user and the group are mapped to themselves and nobody else is mapped: other people's
//!   files show as nobody's, with the same permissions as ever, and set-user-id programs do nothing.

use std::{
    fs,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use nix::{
    sys::{
        prctl,
        signal::{Signal, kill},
    },
    unistd::{Pid, getegid, geteuid, setsid},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    mount::{MountFlags, MountPropagationFlags, mount, mount_change},
};

use super::super::{
    super::sys::{self, Found},
    children::OwnChildren,
    watch::timespec,
};

/// What the child needs to know of the outside.
pub(super) struct Entry {
    /// Who is to be mapped, when there is a user namespace.
    mapped: Option<(u32, u32)>,
}

/// Whether a user namespace is needed to make the others.
pub(in super::super) fn with_user_namespace() -> bool {
    !geteuid().is_root()
}

/// Forks a child into new namespaces, where it is PID 1.
pub(super) fn fork(child: impl FnOnce(Entry)) -> io::Result<i32> {
    let mapped = with_user_namespace().then(|| (geteuid().as_raw(), getegid().as_raw()));
    let mut namespaces = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    if mapped.is_some() {
        namespaces |= libc::CLONE_NEWUSER;
    }
    sys::fork_into(namespaces, || child(Entry { mapped }))
}

/// Why the inside could not be made ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Death,
    User,
    Propagation,
    Proc,
}

impl Step {
    const ALL: [Step; 4] = [Step::Death, Step::User, Step::Propagation, Step::Proc];

    fn what(self) -> &'static str {
        match self {
            Step::Death => "no parent-death signal",
            Step::User => {
                "a user namespace without its own user (on Ubuntu see kernel.apparmor_restrict_unprivileged_userns)"
            }
            Step::Propagation => "mounts can't be made private",
            Step::Proc => "a fresh /proc can't be mounted (in a container it may be masked)",
        }
    }
}

/// Makes the inside ready. `line` ends when the warden does.
pub(super) fn prepare(entry: &Entry, line: &UnixStream) -> Result<(), (Step, io::Error)> {
    // The warden has one thread, so this is the death of the process.
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| (Step::Death, error.into()))?;
    if has_hung_up(line) {
        // It died before the signal was armed.
        sys::exit_now(0);
    }
    if let Some((user, group)) = entry.mapped {
        map(user, group).map_err(|error| (Step::User, error))?;
    }
    // What the machine mounts later still arrives, and nothing of ours goes out.
    let inwards = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", inwards).map_err(|error| (Step::Propagation, error.into()))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(|error| (Step::Proc, error.into()))
}

fn map(user: u32, group: u32) -> io::Result<()> {
    // The files of a process that may not be looked into belong to root; the warden is one and this is its copy.
    prctl::set_dumpable(true)?;
    // Without this no group can be mapped. The groups that the process has, it keeps.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1\n"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1\n"))
}

pub(super) fn has_hung_up(line: &UnixStream) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(line.as_fd(), PollFlags::empty())];
    matches!(poll(&mut fds, Some(&timespec(Duration::ZERO))), Ok(n) if n > 0)
}

/// The longest that the probe may take.
const BOUND: Duration = Duration::from_secs(5);

/// Makes a namespace, leaves a daemon in it, and looks whether killing PID 1 ends both.
pub(in super::super) fn try_out() -> Result<(), String> {
    let no_socket = |error: io::Error| format!("no socket ({error})");
    let (mut ours, mut answer) = UnixStream::pair().map_err(no_socket)?;
    ours.set_read_timeout(Some(BOUND)).map_err(no_socket)?;
    // Held by everybody in the namespace, so its end means that they are gone.
    let (life, held) = io::pipe().map_err(no_socket)?;
    let init = fork(|entry| {
        sys::close_all_but(&mut [answer.as_raw_fd(), held.as_raw_fd()]);
        live_in_probe(&entry, &mut answer);
    })
    .map_err(|error| format!("the kernel refused the namespaces ({error})"))?;
    drop((answer, held));
    let mut said = [0u8; 5];
    let heard = ours.read_exact(&mut said);
    // Our own child, not reaped.
    let killed = kill(Pid::from_raw(init), Signal::SIGKILL);
    let until = Instant::now() + BOUND;
    while !matches!(sys::reap(init), Ok(Found::Ended(_) | Found::NoChild)) {
        if Instant::now() >= until {
            return Err("killed, it did not end in time".into());
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    killed.map_err(|error| format!("PID 1 can't be killed ({error})"))?;
    heard.map_err(|_| "PID 1 ended before it could say what it found".to_owned())?;
    let [step, errno @ ..] = said;
    if let Some(step) = Step::ALL.into_iter().find(|s| *s as u8 == step) {
        let error = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
        return Err(format!("{}: {error}", step.what()));
    }
    if step != READY {
        return Err("orphans do not come to PID 1, or /proc does not show them".into());
    }
    let mut fds = [PollFd::new(&life, PollFlags::empty())];
    match poll(&mut fds, Some(&timespec(Duration::ZERO))) {
        Ok(n) if n > 0 => Ok(()),
        _ => Err("a process outlived its PID 1".into()),
    }
}

const READY: u8 = 200;
const NOT_SEEN: u8 = 201;

fn live_in_probe(entry: &Entry, line: &mut UnixStream) {
    let mut said = vec![READY];
    match prepare(entry, line) {
        Ok(()) => {
            let daemon = sys::fork(|| {
                let _ = setsid();
                std::thread::sleep(BOUND * 2);
            });
            let listed = OwnChildren::new().list().unwrap_or_default();
            if daemon.is_err() || daemon.ok() != listed.first().copied() {
                said = vec![NOT_SEEN];
            }
            said.extend([0; 4]);
        }
        Err((step, error)) => {
            said = vec![step as u8];
            said.extend(error.raw_os_error().unwrap_or(0).to_ne_bytes());
        }
    }
    if line.write_all(&said).is_ok() {
        nix::unistd::pause();
    }
}
