//! The fork gate: every creation of a process below the leader asks the warden first, which lets it pass. Closing the
//! gate makes each later one fail, so that a storm of forks is over at one stroke.
//!
//! The question is a seccomp user notification. Answers never depend on memory of the asking process, so there is
//! nothing that it could change after it was looked at. The price is `no_new_privs`: programs below the gate gain
//! nothing from a set-user-id bit (`sudo` does not work); and a signal that arrives while a fork waits to be let pass
//! interrupts it, which a program sees if its handler does not restart calls. Hence the gate is never taken unasked.
//!
//! With it goes, where the kernel has it, the Landlock scope of signals: what is below the gate can't signal anybody
//! else, its warden included.

mod filter;

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use landlock::{CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, RulesetStatus, Scope};
use nix::sys::prctl;
use rustix::{
    event::{PollFd, PollFlags, poll},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
        recvmsg, sendmsg,
    },
};

use super::{super::sys, watch::timespec};

/// How many questions are answered before the warden looks at anything else.
const MOST_AT_ONCE: usize = 64;

/// The warden's side. Dropping it closes the gate.
pub(super) struct Gate(OwnedFd);

impl Gate {
    /// Lets those pass who wait now; false when nobody is left behind the gate.
    pub(super) fn serve(&self) -> bool {
        for _ in 0..MOST_AT_ONCE {
            let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
            if !matches!(poll(&mut fds, Some(&timespec(Duration::ZERO))), Ok(n) if n > 0) {
                return true;
            }
            let seen = fds[0].revents();
            if !seen.contains(PollFlags::IN) {
                return !seen.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
            }
            if sys::let_pass(self.0.as_fd()).is_err() {
                return false;
            }
        }
        true
    }
}

impl AsFd for Gate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The leader's side, used once, just before exec.
pub(super) struct GateMaker(UnixStream);

/// The way on which the gate comes to the warden.
pub(super) struct ComingGate(UnixStream);

impl GateMaker {
    pub(super) fn new() -> io::Result<(GateMaker, ComingGate)> {
        let (theirs, ours) = UnixStream::pair()?;
        Ok((GateMaker(theirs), ComingGate(ours)))
    }

    pub(super) fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Puts the gate around this process and hands it to the warden.
    pub(super) fn make(&self) -> io::Result<()> {
        prctl::set_no_new_privs()?;
        // Where the kernel is too old the probe has said so, and the gate holds without it.
        let _ = scope_signals();
        let listener = sys::seccomp_listener(&mut filter::program())?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [listener.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(&self.0, &[IoSlice::new(b"g")], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

impl ComingGate {
    /// Waits for it; `None` when the other side ended first. All its other holders must have dropped their [`GateMaker`].
    pub(super) fn take(self) -> Option<Gate> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0u8];
        loop {
            match recvmsg(&self.0, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return None,
                Ok(_) => break,
            }
        }
        let gate = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        gate.map(Gate)
    }
}

/// Why the gate can't be had on this kind of processor.
pub(super) fn unsupported() -> Option<String> {
    filter::ABIS.is_empty().then(|| "not known for this kind of processor".into())
}

/// Keeps this process, and what comes of it, from signalling anybody else.
pub(super) fn scope_signals() -> Result<(), String> {
    let enforced = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self)
        .map_err(|error| format!("the kernel has no Landlock signal scope ({error})"))?;
    match enforced.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        _ => Err("the kernel has no Landlock signal scope".into()),
    }
}
