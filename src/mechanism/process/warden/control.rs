//! The warden's end of the control socket. Never blocks for long, never grows without bound.

use std::{
    io::{self, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
};

use super::{
    super::protocol::{FromWarden, Inbox, ToWarden, line},
    watch::timespec,
};

/// The socket, and whether the host is still at its other end.
pub(super) struct Control {
    socket: UnixStream,
    inbox: Inbox,
    host_gone: bool,
}

/// The most descriptors that come with an order.
const MOST_DESCRIPTORS: usize = 8;
/// The most bytes that are read before the warden looks at its children again.
const MOST_AT_ONCE: usize = 256 * 1024;

impl Control {
    /// Moves the socket away from descriptor 0 to one that no program inherits, and puts the null device on 0.
    pub(super) fn from_standard_input() -> io::Result<Control> {
        let socket = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?);
        nix::unistd::dup2_stdin(std::fs::File::open("/dev/null")?)?;
        // Fails for anything that is not a connected socket, so a person who types the marker gets an end at once.
        socket.peer_addr()?;
        Ok(Control { socket, inbox: Inbox::default(), host_gone: false })
    }

    pub(super) fn host_gone(&self) -> bool {
        self.host_gone
    }

    /// Waits for the byte that carries the descriptors. `None` when the host is gone or sent something else.
    pub(super) fn take_descriptors(&mut self) -> Option<Vec<OwnedFd>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0u8];
        let got = loop {
            let mut parts = [io::IoSliceMut::new(&mut byte)];
            match recvmsg(&self.socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Err(rustix::io::Errno::INTR) => continue,
                other => break other.ok()?.bytes,
            }
        };
        let mut descriptors = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                descriptors.extend(fds);
            }
        }
        self.socket.set_nonblocking(true).ok()?;
        (got == 1).then_some(descriptors)
    }

    /// Waits for one message; `None` when the host is gone first.
    pub(super) fn first_message(&mut self) -> Result<Option<ToWarden>, String> {
        loop {
            if let Some(message) = self.inbox.next()? {
                return Ok(Some(message));
            }
            if self.host_gone {
                return Ok(None);
            }
            self.wait(PollFlags::IN, None);
            self.read();
        }
    }

    /// The messages that are there now; never waits.
    pub(super) fn messages(&mut self) -> Result<Vec<ToWarden>, String> {
        self.read();
        let mut messages = Vec::new();
        while let Some(message) = self.inbox.next()? {
            messages.push(message);
        }
        Ok(messages)
    }

    /// Says something to the host. A host that does not read (it is stopped) is waited for a second and then does not
    /// get the message; the few that are ever sent fit into the socket many times over.
    pub(super) fn say(&mut self, message: &FromWarden) {
        let line = line(message);
        let mut rest = &line[..];
        while !rest.is_empty() {
            match self.socket.write(rest) {
                Ok(n) => rest = &rest[n..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.wait(PollFlags::OUT, Some(Duration::from_secs(1))) {
                        return;
                    }
                }
                // The host is gone; its end of file is what the watch goes by.
                Err(_) => return,
            }
        }
    }

    fn read(&mut self) {
        let mut buffer = [0u8; 16 * 1024];
        let mut left = MOST_AT_ONCE;
        while left > 0 && !self.host_gone {
            match self.socket.read(&mut buffer) {
                Ok(0) => self.host_gone = true,
                Ok(n) => {
                    self.inbox.push(&buffer[..n]);
                    left = left.saturating_sub(n);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.host_gone = true,
            }
        }
    }

    fn wait(&self, flags: PollFlags, limit: Option<Duration>) -> bool {
        let mut fds = [PollFd::new(&self.socket, flags)];
        matches!(poll(&mut fds, limit.map(timespec).as_ref()), Ok(n) if n > 0)
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
