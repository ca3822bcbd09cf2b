//! What happens after the host's death: the descriptors that outlive it, and the one warden that starts the program for
//! that moment. Owns the election; knows nothing of the command.
//!
//! All wardens of a host share two pipes. Each holds the write end of the first one until its own sweep is over, as the
//! host does while it lives, so its end of file means: host dead *and* nothing of it left anywhere. The second pipe
//! holds a single byte; who reads it starts the program.

use std::{
    fs::File,
    io::Read,
    os::fd::{AsRawFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{FdFlags, fcntl_setfd},
};

use super::{
    super::protocol::{AfterHostDeath, Order, SWEEP_BOUND},
    leader,
    watch::timespec,
};

/// The variable that tells the program which descriptor keeps the host's lock.
pub(in crate::mechanism::process) const HOLD_VARIABLE: &str = "LUNATION_HOLD_FD";

struct Election {
    program: AfterHostDeath,
    all_done: OwnedFd,
    not_done: OwnedFd,
    token: File,
}

/// This warden's part in it.
pub(super) struct Muster {
    hold: Option<OwnedFd>,
    election: Option<Election>,
    died: bool,
    farewell: bool,
}

impl Muster {
    /// Takes the descriptors that the order announces; `None` when they did not come.
    pub(super) fn new(order: &Order, mut descriptors: impl Iterator<Item = OwnedFd>) -> Option<Muster> {
        let hold = if order.hold { Some(descriptors.next()?) } else { None };
        let election = match &order.after_host_death {
            None => None,
            Some(program) => Some(Election {
                program: program.clone(),
                all_done: descriptors.next()?,
                not_done: descriptors.next()?,
                token: descriptors.next()?.into(),
            }),
        };
        Some(Muster { hold, election, died: false, farewell: false })
    }

    /// The end of the socket was seen.
    pub(super) fn host_died(&mut self) {
        self.died = true;
    }

    /// The host said that it leaves on purpose: its end is no death.
    pub(super) fn farewell(&mut self) {
        self.farewell = true;
    }

    /// The sweep is over. If the host died, waits (bounded) for the other wardens and starts the program if elected.
    pub(super) fn finish(&mut self) {
        let Some(election) = self.election.take() else { return };
        if !self.died || self.farewell {
            return;
        }
        let Election { program, all_done, not_done, mut token } = election;
        drop(not_done);
        let until = Instant::now() + SWEEP_BOUND * 2;
        while !hung_up(&all_done) && Instant::now() < until {}
        let mut byte = [0u8];
        if !matches!(token.read(&mut byte), Ok(1)) {
            return;
        }
        let mut env = program.env;
        if let Some(hold) = &self.hold
            && fcntl_setfd(hold, FdFlags::empty()).is_ok()
        {
            env.push(format!("{HOLD_VARIABLE}={}", hold.as_raw_fd()).into());
        }
        // Comes back only when the program can't be executed. Nobody is left to be told; the next start of lunation in
        // that place finds what there is to recover.
        leader::replace(&program.argv, &env);
    }
}

fn hung_up(pipe: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pipe, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&timespec(Duration::from_millis(500)))), Ok(n) if n > 0)
}
