//! Starting a warden. Owns the executable that wardens are made from, the socket and the descriptors that go over it.
//!
//! Nothing runs between fork and exec, so that the start is one `posix_spawn` however large the host is.

use std::{
    io::{self, IoSlice, Read},
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd, BorrowedFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg},
};

use super::{
    ProcessError,
    error::is_transient,
    protocol::{Abilities, FromWarden, Inbox, MARKER, ToWarden, VERSION, line},
};

/// Which program is started as the warden: one whose `main` begins with
/// [`enter_warden_if_asked`](super::enter_warden_if_asked).
#[derive(Debug, Clone)]
pub struct WardenProgram(PathBuf);

const THIS: &str = "/proc/self/exe";

impl WardenProgram {
    /// The program that is running now. It stays the same one when its file is replaced or deleted meanwhile (by an
    /// agent that builds the very program that runs it, say).
    pub fn this_executable() -> WardenProgram {
        WardenProgram(THIS.into())
    }

    /// The program at this path, opened when [`Processes::start`](super::Processes::start) is called.
    pub fn at(path: impl Into<PathBuf>) -> WardenProgram {
        WardenProgram(path.into())
    }

    /// Its path; that of the running program is `/proc/self/exe`, which is right in its wardens too.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// The executable, held open.
#[derive(Debug)]
pub(super) struct WardenImage {
    path: PathBuf,
    file: OwnedFd,
}

/// How long the probe at the start may take on a machine that is busy.
const PROBE_BOUND: Duration = Duration::from_secs(30);

impl WardenImage {
    pub(super) fn open(program: &WardenProgram) -> Result<WardenImage, ProcessError> {
        let path = if program.0 == Path::new(THIS) {
            std::fs::read_link(THIS).unwrap_or_else(|_| THIS.into())
        } else {
            program.0.clone()
        };
        let file = openat(CWD, &program.0, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|error| {
            ProcessError::Warden { program: path.clone(), message: format!("its file can't be opened: {error}") }
        })?;
        Ok(WardenImage { path, file })
    }

    pub(super) fn failed(&self, message: impl Into<String>) -> ProcessError {
        ProcessError::Warden { program: self.path.clone(), message: message.into() }
    }

    /// The command that starts a warden with `socket` as its only descriptor of ours. Its environment is empty: the
    /// command's own one goes over the socket.
    pub(super) fn command(&self, socket: UnixStream) -> std::process::Command {
        let held = PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        let program = if held.exists() { &held } else { &self.path };
        let mut command = std::process::Command::new(program);
        command
            .arg0("lunation-warden")
            .arg(format!("{MARKER}{VERSION}"))
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(socket)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Not of the terminal's foreground group: Ctrl-C is the host's to hear.
            .process_group(0);
        command
    }

    pub(super) fn spawn_error(&self, error: &io::Error) -> ProcessError {
        match error.raw_os_error() {
            Some(errno) => ProcessError::SpawnFailed {
                program: self.path.clone(),
                stage: "warden",
                errno,
                transient: is_transient(errno),
            },
            None => self.failed(format!("it can't be started: {error}")),
        }
    }

    /// Starts a warden that only says what works on this machine.
    pub(super) fn probe(&self) -> Result<Abilities, ProcessError> {
        let (ours, theirs) = UnixStream::pair().map_err(ProcessError::system("a socket for the warden"))?;
        send_descriptors(&ours, &[]).map_err(ProcessError::system("the first byte for the warden"))?;
        let mut child = self.command(theirs).spawn().map_err(|error| self.spawn_error(&error))?;
        let answer = self.ask(&ours);
        drop(ours);
        let until = Instant::now() + if answer.is_ok() { PROBE_BOUND } else { Duration::from_millis(500) };
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        // It is our own child and runs no command; whatever program that really is, it ends here.
        let ended = child.kill().and_then(|()| child.wait());
        ended.map_err(ProcessError::system("the end of the probe"))?;
        answer
    }

    fn ask(&self, socket: &UnixStream) -> Result<Abilities, ProcessError> {
        let no_warden = |what: &str| {
            self.failed(format!(
                "{what}; its main must begin with lunation::enter_warden_if_asked(), or another program be named"
            ))
        };
        let until = Instant::now() + PROBE_BOUND;
        if send(socket, &line(&ToWarden::Probe), SendFlags::NOSIGNAL).is_err() {
            return Err(no_warden("it ended at once"));
        }
        let mut inbox = Inbox::default();
        let mut buffer = [0u8; 4096];
        loop {
            match inbox.next() {
                Ok(Some(FromWarden::Abilities(abilities))) => return Ok(abilities),
                Ok(Some(FromWarden::Failed { message })) => return Err(self.failed(message)),
                Ok(Some(_)) | Err(_) => return Err(no_warden("it does not answer like a warden")),
                Ok(None) => {}
            }
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let read = socket.set_read_timeout(Some(left)).and_then(|()| (&mut &*socket).read(&mut buffer));
            match read {
                Ok(0) => return Err(no_warden("it ended without an answer")),
                Ok(n) => inbox.push(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(no_warden("it did not answer in time")),
            }
        }
    }
}

/// Sends the byte that carries descriptors. It fits into an empty socket, so it can be sent before anybody listens.
pub(super) fn send_descriptors(socket: &UnixStream, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors"));
    }
    sendmsg(socket, &[IoSlice::new(b"d")], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}
