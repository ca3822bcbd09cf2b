//! Running other people's programs, and ending them for certain.
//!
//! This module owns every process that lunation starts for an agent, a sensor or a command: how it is started, what it
//! reads, how much of its output is kept, how long it may take, and that **nothing of it is left** afterwards. It must
//! not know what an agent, a sensor or a loop is.
//!
//! # Theory of operation
//!
//! ```text
//!  host process                                       one warden per command
//! ┌──────────────────────────────┐                   ┌─────────────────────────────────────┐
//! │ Processes (table)            │  control socket   │ the same executable, entered again  │
//! │   run ── supervise task ─────┼── JSON lines ─────┤ subreaper, signals ignored,         │
//! │     budgets, capture, log    │  Start Stop Sweep │ one thread, a few hundred kilobytes │
//! │                              │  Started Ended    │                                     │
//! │                              │  Sweeping Gone    │   fork ─▶ leader (own session)      │
//! │                              │                   │             │                       │
//! │   stdout, stderr  ◀──────────┼── pipes ──────────┼─────────────┴▶ children, daemons…   │
//! └──────────────────────────────┘                   └─────────────────────────────────────┘
//! ```
//!
//! * **The host only spawns.** It starts the warden with a plain spawn (no work between fork and exec, so a host with a
//!   large heap does not pay for it), hands it the descriptors over the control socket and then the order: program,
//!   arguments, environment. Nothing of that is ever in an argument vector of ours.
//! * **The warden is a subreaper.** Whatever the command leaves behind, by double fork, `setsid` or a dying parent,
//!   becomes a child of the warden. So `waitpid` answering "no children" is a *proof* that nobody is left, and that
//!   proof is the only thing that *gone* means here.
//! * **Tiers.** That is the third tier, and the base of the second, which adds a gate on fork (`warden/gate`): closing it
//!   ends a storm of forks at one stroke. The first puts the command into a PID namespace (`warden/namespace`): there the
//!   kernel ends everything when PID 1 ends, and `waitpid` for PID 1 is the proof. The warden's main loop knows none of
//!   this; it talks to a `Tree`. Which tier is in force is found out at the start by doing it once ([`TierReport`]); the
//!   gate is only taken when it is asked for, see [`Tier::ForkGate`].
//! * **Only unreaped children are signalled.** A process id that was already waited for may belong to somebody else by
//!   now. The warden kills its direct children and the group of a leader that it has not reaped, nothing else, ever;
//!   grandchildren come to it as their parents die.
//! * **The ladder** is: TERM to the leader's group, grace, KILL to the group, sweep (kill children, reap, look again),
//!   confirm. After an exit by itself the leader's leftovers get a short time for late output and then the sweep. The
//!   sweep is bounded; when the bound passes (a process in uninterruptible sleep, or one of another user), the result
//!   says that it is *not* confirmed and names who is still there.
//! * **The end of the socket is the end of the host.** When the host dies, by whatever signal, the warden reads end of
//!   file, sweeps, and then starts the program that was configured for that moment, once for all wardens of a host.
//!   The lock descriptor that the host gave away (`hold`) stays open until then; no command ever gets it.
//! * **Work runs on the runtime that was given**, not on the caller's. Dropping the future of [`Processes::run`] ends
//!   the tree; a caller that never polls again can't keep it alive.
//!
//! # Bounds
//!
//! Memory per command: head and tail of each stream ([`Command::keep_output`]), one read buffer per stream, 32 names of
//! what was left behind. Log: [`Command::log`]'s cap. Time: the wall budget, then grace, 10 s of sweep, the linger cap.
//!
//! # What it can't do
//!
//! Work handed to a daemon that was running before (a tmux or docker server, `at`) is not a descendant and lives on. At
//! the subreaper tier, and behind the gate on a kernel without the Landlock signal scope, a command of the same user can
//! kill its own warden; that is found and reported as [`Ending::WardenLost`], and never as a confirmed end.

mod capture;
mod clock;
mod command;
pub mod environment;
mod error;
mod finished;
mod link;
mod log;
mod observer;
mod private_tmp;
mod program;
mod protocol;
mod reader;
mod spawn;
mod start;
mod stdin;
mod supervise;
mod sys;
mod table;
mod tier;
mod times;
mod verdict;
mod warden;

/// In the program that is started after the host's death ([`ProcessesConfig::after_host_death`]): the descriptor that
/// the host gave away with [`ProcessesConfig::hold`]. To be asked once; `None` in every other program.
pub fn inherited_hold() -> Option<std::fs::File> {
    let number = std::env::var_os(warden::HOLD_VARIABLE)?.to_str()?.parse().ok()?;
    sys::handed_down(number)
}

pub use capture::Captured;
pub use clock::{Elapsed, Stamp};
pub use command::{Command, LogFilters, Stdin};
pub use error::ProcessError;
pub use finished::{Ending, Finished, LeaderStatus, LeftBehind, LogReport, TimeoutKind};
pub use observer::{LogFilter, Observer, Stream, Wish};
pub use program::find_program;
pub use spawn::WardenProgram;
pub use table::{Processes, ProcessesConfig};
pub use tier::{Tier, TierReport};
pub use warden::enter_warden_if_asked;
