//! The sweep: kill children, reap, look again, until `waitpid` says that there is nobody. Owns that loop and its proof.
//!
//! Only unreaped direct children and the group of an unreaped leader are ever signalled. Between the list of children
//! and the signals nothing is reaped, so no number in the list can belong to a stranger.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};

use super::{
    super::{
        LeaderStatus, LeftBehind,
        protocol::{GoneReport, MOST_NAMES},
        sys::{self, Found},
    },
    children::{OwnChildren, describe},
};

/// How many children are reaped before the loop looks at anything else.
pub(super) const MOST_REAPED_AT_ONCE: usize = 512;
/// A child that was killed and is still there is killed again after this (it may have been a zombie's thread group, or
/// stopped by a tracer).
const AGAIN: Duration = Duration::from_millis(200);
/// When a sweep takes longer than this, somebody is forking against it.
const STORM: Duration = Duration::from_millis(500);

/// The state of a sweep.
pub(super) struct Sweep {
    children: OwnChildren,
    leader: Option<i32>,
    began: Instant,
    killed: HashMap<i32, Killed>,
    swept: u64,
    left_behind: Vec<LeftBehind>,
    leader_status: Option<LeaderStatus>,
    pause: Duration,
}

struct Killed {
    last: Instant,
    name: Option<LeftBehind>,
}

/// How a round ended.
pub(super) enum Round {
    /// There is no child: proven.
    Nobody,
    /// Somebody is left; look again after at most this long or when a child ends.
    Again(Duration),
}

impl Sweep {
    /// `leader` is the unreaped leader, if there is one.
    pub(super) fn new(children: OwnChildren, leader: Option<i32>) -> Sweep {
        Sweep {
            children,
            leader,
            began: Instant::now(),
            killed: HashMap::new(),
            swept: 0,
            left_behind: Vec::new(),
            leader_status: None,
            pause: Duration::from_millis(1),
        }
    }

    /// How the leader ended, if the sweep reaped it.
    pub(super) fn leader_status(&self) -> Option<LeaderStatus> {
        self.leader_status
    }

    /// Kills and reaps once. The first round also kills the leader's whole group at one stroke.
    pub(super) fn round(&mut self) -> Round {
        let fresh = self.kill_children();
        if let Some(leader) = self.leader {
            // Unreaped, so the group can't be anybody else's. It fails only when the group is empty.
            let _ = killpg(Pid::from_raw(leader), Signal::SIGKILL);
        }
        if self.reap() {
            return Round::Nobody;
        }
        self.pause = if fresh { Duration::from_millis(1) } else { (self.pause * 2).min(Duration::from_millis(32)) };
        Round::Again(self.pause)
    }

    fn kill_children(&mut self) -> bool {
        // A list that can't be read (no descriptor left in the system, say) is tried again in the next round; the group
        // is killed in any case, and without the proof the end is not confirmed.
        let Ok(children) = self.children.list() else { return false };
        let now = Instant::now();
        let storm = now.duration_since(self.began) > STORM;
        let mut fresh = false;
        for pid in children {
            if self.killed.get(&pid).is_some_and(|k| now.duration_since(k.last) < AGAIN) {
                continue;
            }
            if storm {
                sys::demote(pid);
            }
            let known = self.killed.remove(&pid).and_then(|k| k.name);
            let wanted = self.left_behind.len() + self.killed.len() < 4 * MOST_NAMES && Some(pid) != self.leader;
            let name = known.or_else(|| wanted.then(|| describe(pid)));
            // May fail for a process of another user (a set-user-id program); then the bound passes and it is named.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            self.killed.insert(pid, Killed { last: now, name });
            fresh = true;
        }
        fresh
    }

    /// Reaps what has ended, within the budget; true when there is no child at all.
    fn reap(&mut self) -> bool {
        for _ in 0..MOST_REAPED_AT_ONCE {
            match sys::reap_any() {
                Ok(Found::Ended(ended)) => self.note(ended),
                Ok(Found::NoneEnded) => return false,
                Ok(Found::NoChild) => return true,
                Err(_) => return false,
            }
        }
        false
    }

    fn note(&mut self, ended: sys::Ended) {
        let killed = self.killed.remove(&ended.pid);
        if Some(ended.pid) == self.leader {
            self.leader = None;
            self.leader_status = Some(ended.status);
            return;
        }
        // One that ended by itself before the signal arrived was not swept.
        if ended.status != LeaderStatus::Signaled(libc::SIGKILL) {
            return;
        }
        self.swept += 1;
        if let Some(name) = killed.and_then(|k| k.name)
            && self.left_behind.len() < MOST_NAMES
        {
            self.left_behind.push(name);
        }
    }

    /// The report so far.
    pub(super) fn report(&mut self, confirmed: bool) -> GoneReport {
        let still_there = if confirmed {
            Vec::new()
        } else {
            self.children.list().unwrap_or_default().into_iter().take(MOST_NAMES).map(describe).collect()
        };
        GoneReport { confirmed, swept: self.swept, left_behind: self.left_behind.clone(), still_there }
    }
}
