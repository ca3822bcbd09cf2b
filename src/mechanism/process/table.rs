//! The table of everything that runs, and the handle to it. Owns the configuration, the probe's result and the way to
//! end all at once; what happens to one command is `supervise`'s.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::File,
    io::{self, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::{
    net::{SendFlags, send},
    process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid},
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{
    Command, Finished, Observer, ProcessError, Tier, TierReport, WardenProgram,
    protocol::{AfterHostDeath, ToWarden, line},
    spawn::WardenImage,
    supervise, tier,
};

/// What [`Processes`] is made from.
#[derive(Debug, Clone)]
pub struct ProcessesConfig {
    /// The program that wardens are made from.
    pub warden: WardenProgram,
    /// Take this tier and no other; `None` takes the best that works.
    pub force_tier: Option<Tier>,
    /// An open file (a lock) that is kept open after the host's death until everything is swept and the program below
    /// is over. No command ever gets it.
    pub hold: Option<Arc<File>>,
    /// Executed once, by one warden, when the host died while commands were running and all of them are swept: the
    /// absolute path of a program and its arguments. It finds the number of the descriptor that `hold` became in
    /// `LUNATION_HOLD_FD`. When no command was running, nobody is there to start it.
    pub after_host_death: Option<Vec<OsString>>,
    /// The complete environment of that program.
    pub after_host_death_env: Vec<(OsString, OsString)>,
}

impl ProcessesConfig {
    /// The best tier, nothing held, nothing done after the host's death.
    pub fn new(warden: WardenProgram) -> ProcessesConfig {
        ProcessesConfig {
            warden,
            force_tier: None,
            hold: None,
            after_host_death: None,
            after_host_death_env: Vec::new(),
        }
    }
}

/// The handle to everything that runs. Cheap to clone; all clones share one table.
#[derive(Debug, Clone)]
pub struct Processes {
    shared: Arc<Shared>,
}

impl Processes {
    /// Opens the warden's program, probes this machine and chooses the tier. Takes a few milliseconds and blocks.
    ///
    /// Commands will be watched on `handle`, whatever thread calls [`run`](Processes::run); its runtime needs the I/O
    /// and time drivers.
    ///
    /// # Errors
    /// [`ProcessError::Warden`] when the program is no warden, [`ProcessError::TierUnavailable`] when the forced tier
    /// does not work here, [`ProcessError::SpawnFailed`] and [`ProcessError::System`] when the system refuses.
    pub fn start(config: ProcessesConfig, handle: tokio::runtime::Handle) -> Result<Processes, ProcessError> {
        let image = WardenImage::open(&config.warden)?;
        let tier = tier::choose(&image.probe()?, config.force_tier)?;
        let muster = match config.after_host_death {
            None => None,
            Some(argv) => Some(Muster::new(argv, &config.after_host_death_env)?),
        };
        let shared = Shared { image, tier, hold: config.hold, muster, handle, table: Mutex::default() };
        Ok(Processes { shared: Arc::new(shared) })
    }

    /// The tier that is in force for every command, as the probe found it.
    pub fn tier(&self) -> &TierReport {
        &self.shared.tier
    }

    /// Runs a command until everything of it is gone.
    ///
    /// `cancel` ends it by the ladder (TERM, grace, KILL, sweep); so does dropping the future, which then goes on in the
    /// background. `observer` sees the output as it comes.
    ///
    /// # Errors
    /// When it could not be started at all. Once started, every end is a [`Finished`]; cancelled before the start is
    /// one too.
    pub async fn run(
        &self,
        command: Command,
        cancel: CancellationToken,
        observer: Option<Box<dyn Observer>>,
    ) -> Result<Finished, ProcessError> {
        let token = cancel.child_token();
        let guard = token.clone().drop_guard();
        let (answer, result) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        self.shared.handle.spawn(async move {
            // Nobody may be waiting any more; the work is done all the same.
            let _ = answer.send(supervise::run(shared, command, token, observer).await);
        });
        let result = result.await;
        guard.disarm();
        result.unwrap_or(Err(ProcessError::TaskLost))
    }

    /// Kills everything now, without TERM, and waits until it is gone or the deadline passes; for leaving at once. No
    /// command can be started on this table any more. Does not need the runtime.
    ///
    /// Returns how many commands could not be confirmed gone.
    pub fn kill_all_blocking(&self, deadline: Duration) -> usize {
        let entries: Vec<Arc<Entry>> = {
            let mut table = self.shared.table();
            table.closed = true;
            table.entries.values().cloned().collect()
        };
        entries.iter().for_each(|entry| entry.kill());
        let until = Instant::now() + deadline;
        loop {
            let left = entries.iter().filter(|entry| !entry.is_gone()).count();
            if left == 0 || Instant::now() >= until {
                return left;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// How many commands are running or being swept.
    pub fn running(&self) -> usize {
        self.shared.table().entries.len()
    }
}

/// What all clones and tasks share.
#[derive(Debug)]
pub(super) struct Shared {
    pub image: WardenImage,
    pub tier: TierReport,
    hold: Option<Arc<File>>,
    muster: Option<Muster>,
    handle: tokio::runtime::Handle,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Everything was killed for leaving; nothing starts any more.
    closed: bool,
    next: u64,
    entries: HashMap<u64, Arc<Entry>>,
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        // No code that can panic runs while it is locked.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn after_host_death(&self) -> Option<AfterHostDeath> {
        self.muster.as_ref().map(|muster| muster.program.clone())
    }

    pub(super) fn holds(&self) -> bool {
        self.hold.is_some()
    }

    /// The descriptors that follow those of the command itself.
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let hold = self.hold.iter().map(|file| file.as_fd());
        let muster = self.muster.iter().flat_map(|m| [m.all_done.as_fd(), m.not_done.as_fd(), m.token.as_fd()]);
        hold.chain(muster).collect()
    }

    /// Puts a warden into the table; `None` when everything was killed for leaving.
    pub(super) fn register(self: &Arc<Self>, socket: UnixStream, warden: u32) -> Option<Registration> {
        let pid = i32::try_from(warden).ok().and_then(Pid::from_raw);
        let pidfd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let entry = Arc::new(Entry { socket, pidfd, killed: AtomicBool::new(false), verdict: AtomicU8::new(RUNNING) });
        let mut table = self.table();
        if table.closed {
            return None;
        }
        let id = table.next;
        table.next += 1;
        table.entries.insert(id, Arc::clone(&entry));
        Some(Registration { shared: Arc::clone(self), id, entry })
    }
}

/// The host's side of the election after its death, see `warden/muster`.
#[derive(Debug)]
struct Muster {
    program: AfterHostDeath,
    all_done: OwnedFd,
    not_done: OwnedFd,
    token: OwnedFd,
}

impl Muster {
    fn new(argv: Vec<OsString>, env: &[(OsString, OsString)]) -> Result<Muster, ProcessError> {
        let make = || -> io::Result<Muster> {
            let (all_done, not_done) = io::pipe()?;
            let (token, mut writer) = io::pipe()?;
            writer.write_all(b"t")?;
            let env = env
                .iter()
                .map(|(name, value)| {
                    let mut line = name.clone();
                    line.push("=");
                    line.push(value);
                    line
                })
                .collect();
            let program = AfterHostDeath { argv, env };
            Ok(Muster { program, all_done: all_done.into(), not_done: not_done.into(), token: token.into() })
        };
        make().map_err(ProcessError::system("pipes for the time after the host's death"))
    }
}

const RUNNING: u8 = 0;
const GONE: u8 = 1;
const UNCONFIRMED: u8 = 2;

/// One running command in the table: enough to end it without the runtime.
#[derive(Debug)]
struct Entry {
    /// The same socket as the task's.
    socket: UnixStream,
    pidfd: Option<OwnedFd>,
    killed: AtomicBool,
    verdict: AtomicU8,
}

impl Entry {
    fn kill(&self) {
        self.killed.store(true, Ordering::Release);
        let order = line(&ToWarden::Sweep { farewell: true });
        // Refused only when the warden is gone already, or does not read; both show in is_gone.
        let _ = send(&self.socket, &order, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        self.wake();
    }

    /// Somebody may have stopped the warden.
    fn wake(&self) {
        if let Some(pidfd) = &self.pidfd {
            let _ = pidfd_send_signal(pidfd, Signal::CONT);
        }
    }

    fn is_gone(&self) -> bool {
        match self.verdict.load(Ordering::Acquire) {
            GONE => true,
            UNCONFIRMED => false,
            _ => {
                self.wake();
                self.warden_exited_well()
            }
        }
    }

    /// Looks at the warden itself, in case the runtime does not run. It exits with 0 only after the proof.
    fn warden_exited_well(&self) -> bool {
        let Some(pidfd) = &self.pidfd else { return false };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::PidFd(pidfd.as_fd()), options), Ok(Some(status)) if status.exit_status() == Some(0))
    }
}

/// A place in the table, given up when dropped.
#[derive(Debug)]
pub(super) struct Registration {
    shared: Arc<Shared>,
    id: u64,
    entry: Arc<Entry>,
}

impl Registration {
    /// Everything of the command is over; whether that is proven.
    pub(super) fn over(&self, confirmed: bool) {
        self.entry.verdict.store(if confirmed { GONE } else { UNCONFIRMED }, Ordering::Release);
    }

    /// Whether everything was killed for leaving.
    pub(super) fn was_killed(&self) -> bool {
        self.entry.killed.load(Ordering::Acquire)
    }

    /// Wakes the warden, should somebody have stopped it.
    pub(super) fn wake(&self) {
        self.entry.wake();
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.shared.table().entries.remove(&self.id);
    }
}
