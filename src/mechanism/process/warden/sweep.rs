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
    unistd::{Pid, setpgid, setsid},
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
const STORM: Duration = Duration::from_millis(100);
/// The pauses between rounds in which nothing was left to kill.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(32);

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
    ahead: bool,
    /// A child that is not of the command.
    own: Option<i32>,
}

struct Killed {
    /// When it was last signalled.
    last: Option<Instant>,
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
            pause: SHORTEST,
            ahead: false,
            own: None,
        }
    }

    /// How the leader ended, if the sweep reaped it.
    pub(super) fn leader_status(&self) -> Option<LeaderStatus> {
        self.leader_status
    }

    /// Reaps and kills once. The first round also kills the leader's whole group at one stroke.
    pub(super) fn round(&mut self) -> Round {
        if let Some(leader) = self.leader {
            self.name_the_living();
            // Unreaped, so the group can't be anybody else's. It fails only when the group is empty.
            let _ = killpg(Pid::from_raw(leader), Signal::SIGKILL);
        }
        // Reaped first, so that the list below is short and holds those who live.
        if self.reap() {
            return Round::Nobody;
        }
        let fresh = self.kill_children();
        self.pause = if fresh { Duration::ZERO } else { (self.pause * 2).clamp(SHORTEST, LONGEST) };
        if fresh && self.began.elapsed() > STORM {
            self.push_ahead();
        }
        Round::Again(self.pause)
    }

    /// Before the group is killed: those of it that are our children are named now, for its other members may be
    /// reaped in the same round.
    fn name_the_living(&mut self) {
        for pid in self.children.list().unwrap_or_default().into_iter().take(MOST_NAMES + 1) {
            if Some(pid) != self.leader {
                self.killed.entry(pid).or_insert(Killed { last: None, name: Some(describe(pid)) });
            }
        }
    }

    /// Kills those in the list that were not just killed; says whether one of them was new.
    fn kill_children(&mut self) -> bool {
        // A list that can't be read (no descriptor left in the system, say) is tried again in the next round; the group
        // is killed in any case, and without the proof the end is not confirmed.
        let Ok(children) = self.children.list() else { return false };
        let now = Instant::now();
        let (mut fresh, mut any_new) = (Vec::new(), false);
        // The youngest first: in a storm the older ones have forked already and are about to end by themselves.
        for pid in children.into_iter().rev() {
            let entry = self.killed.entry(pid).or_insert(Killed { last: None, name: None });
            if entry.last.is_some_and(|last| now.duration_since(last) < AGAIN) {
                continue;
            }
            any_new |= entry.last.is_none();
            // May fail for a process of another user (a set-user-id program); then the bound passes and it is named.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            entry.last = Some(now);
            fresh.push(pid);
        }
        let wanted = (2 * MOST_NAMES).saturating_sub(self.killed.values().filter(|k| k.name.is_some()).count());
        // Not reaped yet, so the names are still theirs.
        for pid in fresh.into_iter().take(if self.left_behind.len() < MOST_NAMES { wanted } else { 0 }) {
            if let Some(entry) = self.killed.get_mut(&pid)
                && entry.name.is_none()
                && Some(pid) != self.leader
            {
                entry.name = Some(describe(pid));
            }
        }
        any_new
    }

    /// Somebody forks as fast as we kill: get in front of them. Tried once; each way may be refused, and then the sweep
    /// goes on as it was.
    fn push_ahead(&mut self) {
        if !std::mem::replace(&mut self.ahead, true) && !sys::go_first() {
            self.own = leave_the_crowd();
        }
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
        if ended.status != LeaderStatus::Signaled(libc::SIGKILL) || Some(ended.pid) == self.own {
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

/// Moves this process into a session of its own. The kernel shares the processor between sessions, and a storm whose
/// members each have one would leave next to nothing to a process in the crowded session of the host. Gives the child
/// that this takes.
fn leave_the_crowd() -> Option<i32> {
    // The leader of a process group can't; so join the group of a short-lived child first, which empties our own.
    let child = sys::fork(|| {
        let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
        nix::unistd::pause();
    })
    .ok()?;
    let group = Pid::from_raw(child);
    // Both sides set it, so that it is set whoever comes first.
    let _ = setpgid(group, group);
    if setpgid(Pid::from_raw(0), group).is_ok() {
        let _ = setsid();
    }
    // Reaped by the sweep like everybody else.
    let _ = kill(group, Signal::SIGKILL);
    Some(child)
}
