//! How a checkout is watched.

use std::time::Duration;

/// How a checkout is watched.
#[derive(Debug, Clone)]
pub struct WorkspaceOptions {
    /// Files above this many bytes are recorded by size and time, and left alone; default 256 MiB.
    pub size_cap: u64,
    /// True: paths that git ignores are watched like all others; default false.
    pub watch_ignored: bool,
    /// Most bytes of a diff's text; default 1 MiB.
    pub diff_cap: usize,
    /// How long a live lock of git is waited for; default 10 s.
    pub lock_wait: Duration,
    /// How old a lock without a holder must be to count as stale; default 1 s.
    pub stale_lock_age: Duration,
    /// The first checkpoint of the run, when a run is taken up again: its ignore rules stay in force. Default: the
    /// first checkpoint that is taken.
    pub start: Option<String>,
    /// Bytes that must be free on the disk of the state folder for a checkpoint to be taken; default 64 MiB.
    pub free_bytes: u64,
}

impl Default for WorkspaceOptions {
    fn default() -> WorkspaceOptions {
        WorkspaceOptions {
            size_cap: 256 << 20,
            watch_ignored: false,
            diff_cap: 1 << 20,
            lock_wait: Duration::from_secs(10),
            stale_lock_age: Duration::from_secs(1),
            start: None,
            free_bytes: 64 << 20,
        }
    }
}
