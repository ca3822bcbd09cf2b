//! The host's end of the control socket. Owns sending and receiving; knows no order of messages.

use std::{io, os::unix::net::UnixStream};

use rustix::net::{SendFlags, send};
use tokio::io::Interest;

use super::protocol::{FromWarden, Inbox, ToWarden, line};

/// The socket. When it is dropped, the warden is told that this is on purpose and no death of the host.
pub(super) struct Link {
    socket: tokio::net::UnixStream,
    inbox: Inbox,
}

impl Link {
    /// Must be called inside the runtime.
    pub(super) fn new(socket: UnixStream) -> io::Result<Link> {
        socket.set_nonblocking(true)?;
        Ok(Link { socket: tokio::net::UnixStream::from_std(socket)?, inbox: Inbox::default() })
    }

    /// Sends bytes. Only to be given up when the warden is given up too: half a message can't be taken back.
    pub(super) async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.socket.writable().await?;
            match self.try_send(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Never raises a signal, in a host that does not ignore SIGPIPE either.
    fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.try_io(Interest::WRITABLE, || Ok(send(&self.socket, bytes, SendFlags::NOSIGNAL)?))
    }

    /// The next message. `None` when the warden closed the socket, `Err` when it can't be understood. Nothing is lost
    /// when the future is dropped.
    pub(super) async fn next(&mut self) -> Option<Result<FromWarden, String>> {
        let mut buffer = [0u8; 8192];
        loop {
            match self.inbox.next() {
                Ok(Some(message)) => return Some(Ok(message)),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
            self.socket.readable().await.ok()?;
            match self.socket.try_read(&mut buffer) {
                Ok(0) => return None,
                Ok(n) => self.inbox.push(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The warden may be gone already. If it is there and has something to sweep, it does.
        let _ =
            send(&self.socket, &line(&ToWarden::Sweep { farewell: true }), SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }
}
