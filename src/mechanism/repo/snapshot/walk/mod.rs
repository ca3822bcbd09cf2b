//! The walk: looks at every name below a folder, through descriptors of folders and through no link, and reads what
//! its stamp does not prove to be unchanged.
//!
//! # How it works
//! A folder is one job, and jobs are taken from one stack by a few threads ([`crew`]). A folder whose own stamp is that
//! of the last look has the names that it had then: each is looked at, and nothing is listed ([`quick`]). Any other is
//! listed, and its names are told apart by the ignore rules ([`listed`], [`classify`]). A folder is finished when all
//! folders in it are ([`building`]); one in which nothing changed is the very value of the last look, so that later
//! comparisons pass over it. Nothing here calls itself once a level, so that no depth of folders ends the stack.
//!
//! # Bounds
//! Folders nested deeper than [`MOST_LEVELS`] are told, and not looked into. Threads: at most [`MOST_THREADS`]. Of
//! ignored paths only as much is kept as [`kept`] says.

mod building;
mod classify;
mod crew;
mod kept;
mod listed;
mod quick;

use rustix::fs::Stat;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::super::error::RepoError;
use super::super::object::ObjectId;
use super::super::path::os;
use super::super::stamp::{Instant, Stamp};
use super::super::store::{Shelf, Store};
use super::ignore_rules::mix;
use super::{Chain, Folder, Rules, Tracked, Verdict};
use building::Building;
use crew::{Crew, Worker};
use kept::Budget;

/// Folders deeper than this are told, and not looked into.
pub(super) const MOST_LEVELS: usize = 256;
/// Below this depth only one thread works, since each level may hold a descriptor open.
const SHARED_LEVELS: usize = 64;
/// More threads than this only wait for each other in the kernel.
const MOST_THREADS: usize = 8;
/// Trees with fewer entries than this are walked by one thread.
const WORTH_THREADS: u64 = 1_500;
/// How often a name that changes kind under the walk is looked at again.
const MOST_TRIES: usize = 5;

/// What kind of tree is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// A working tree: ignore rules hold, git folders are left out.
    WorkTree,
    /// A git folder: all of it, but the objects and what is ours.
    GitFolder,
}

/// How to get at the paths of the index, which is only done when an ignored path is met.
pub(crate) type TrackedSource<'a> = &'a mut (dyn FnMut() -> Result<Arc<Tracked>, RepoError> + Send);

/// A walk that is about to begin.
pub(crate) struct Walk<'a> {
    store: &'a mut Store,
    root: &'a Path,
    profile: Profile,
    size_cap: u64,
    /// rules of now outside the tree (`core.excludesFile`, `info/exclude`), and those of the run's start
    pub(crate) now: Chain,
    pub(crate) then: Option<Chain>,
    /// treat ignored paths like all others
    pub(crate) watch_ignored: bool,
    pub(crate) fold_case: bool,
    /// the index names the paths that it named at the last look
    pub(crate) same_index: bool,
    tracked: TrackedSource<'a>,
}

/// What all threads of a walk share.
pub(super) struct Shared<'a> {
    shelf: Shelf<'a>,
    root: &'a Path,
    profile: Profile,
    size_cap: u64,
    look: Instant,
    watch_ignored: bool,
    fold_case: bool,
    same_index: bool,
    tracked: Mutex<(Option<Arc<Tracked>>, TrackedSource<'a>)>,
    budget: Budget,
    crew: Crew,
}

/// A folder as other looks saw it, and the rules that hold for what is in it.
pub(super) struct Place {
    /// the last look, whose stamps prove what is unchanged
    prev: Option<Arc<Folder>>,
    /// the checkpoint that this look is compared with
    base: Option<Arc<Folder>>,
    /// the run's first checkpoint, whose rules still hold
    start: Option<Arc<Folder>>,
    now: Chain,
    then: Option<Chain>,
    /// names both chains
    ruled_by: ObjectId,
}

/// One folder to be looked at.
pub(super) struct Job {
    /// the place of the folder that it is in
    outer: Arc<Place>,
    /// the folder that it is in; `None`: open it by its path
    from: Option<Arc<OwnedFd>>,
    path: Vec<u8>,
    /// where its name begins in the path
    name_at: usize,
    depth: usize,
    verdict: Verdict,
    /// what waits for it, and where its entry goes
    parent: Arc<Building>,
    slot: usize,
}

impl Job {
    fn name(&self) -> &[u8] {
        &self.path[self.name_at..]
    }
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        store: &'a mut Store,
        root: &'a Path,
        profile: Profile,
        size_cap: u64,
        tracked: TrackedSource<'a>,
    ) -> Walk<'a> {
        Walk {
            store,
            root,
            profile,
            size_cap,
            now: Chain::default(),
            then: None,
            watch_ignored: false,
            fold_case: false,
            same_index: false,
            tracked,
        }
    }

    /// Walks below an open folder. `prev`: the last look. `base`: the checkpoint to compare with; what it has watched
    /// is watched, what it passed over as ignored is passed over. `start`: the first checkpoint of the run.
    pub(crate) fn run(
        self,
        folder: OwnedFd,
        prev: Option<&Arc<Folder>>,
        base: Option<&Arc<Folder>>,
        start: Option<&Arc<Folder>>,
    ) -> Result<Arc<Folder>, RepoError> {
        let worth_it = match prev {
            Some(prev) => prev.census.entries() >= WORTH_THREADS,
            None => self.profile == Profile::WorkTree,
        };
        let threads = if worth_it { std::thread::available_parallelism().map_or(1, usize::from) } else { 1 };
        let shared = Shared {
            shelf: Shelf::new(self.store),
            root: self.root,
            profile: self.profile,
            size_cap: self.size_cap,
            look: Instant::now(),
            watch_ignored: self.watch_ignored,
            fold_case: self.fold_case,
            same_index: self.same_index,
            tracked: Mutex::new((None, self.tracked)),
            budget: Budget::default(),
            crew: Crew::default(),
        };
        let place = Place {
            prev: prev.cloned(),
            base: base.cloned(),
            start: start.cloned(),
            ruled_by: ruled_by(&self.now, self.then.as_ref()),
            now: self.now,
            then: self.then,
        };
        crew::walk(&shared, folder, place, threads.min(MOST_THREADS))
    }
}

/// One name of two chains of rules.
fn ruled_by(now: &Chain, then: Option<&Chain>) -> ObjectId {
    match then {
        Some(then) => mix(&[now.print().as_bytes(), then.print().as_bytes()]),
        None => now.print(),
    }
}

impl Shared<'_> {
    fn failed(&self, path: &[u8], errno: Errno) -> RepoError {
        RepoError::Capture { path: self.root.join(os(path)), source: errno.into() }
    }

    /// Is an ignored path in the index, or anything below it?
    fn is_tracked(&self, path: &[u8], is_folder: bool) -> Result<bool, RepoError> {
        let mut guard = self.tracked.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let tracked = match &guard.0 {
            Some(tracked) => tracked.clone(),
            None => {
                let tracked = (guard.1)()?;
                guard.0.insert(tracked).clone()
            }
        };
        drop(guard);
        Ok(if is_folder { tracked.any_below(path) } else { tracked.contains(path) })
    }

    /// The times by which a folder is known again; none that could still move with no trace.
    fn times(&self, stat: &Stat) -> (i64, i64) {
        let stamp = Stamp::of(stat);
        if self.look.makes_racy(&stamp) { (0, 0) } else { (stamp.mtime, stamp.ctime) }
    }
}

impl Place {
    /// The place inside a folder of this place.
    fn inside(&self, name: &[u8], verdict: Verdict) -> Place {
        let find = |folder: &Option<Arc<Folder>>| folder.as_ref().and_then(|folder| folder.folder(name)).cloned();
        let same = |a: &Option<Arc<Folder>>, b: &Option<Arc<Folder>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        let prev = find(&self.prev);
        let base = if same(&self.base, &self.prev) { prev.clone() } else { find(&self.base) };
        let start = match (&self.then, same(&self.start, &self.prev)) {
            (None, _) => None,
            (Some(_), true) => prev.clone(),
            (Some(_), false) => find(&self.start),
        };
        let mut place =
            Place { prev, base, start, now: self.now.clone(), then: self.then.clone(), ruled_by: self.ruled_by };
        let enter = |chain: &Chain, ignored: bool| ignored && !chain.ignores_all();
        let (into_now, into_then) = (
            enter(&place.now, verdict.ignored_now),
            place.then.as_ref().is_some_and(|then| enter(then, verdict.ignored_at_start)),
        );
        if into_now || into_then {
            if into_now {
                place.now = place.now.inside_ignored();
            }
            if into_then {
                place.then = place.then.map(|then| then.inside_ignored());
            }
            place.ruled_by = ruled_by(&place.now, place.then.as_ref());
        }
        place
    }

    /// Adds the rules of the folder's own file, as it is now and as it was at the start.
    fn add_rules(&mut self, own: Option<&Arc<Rules>>, path: &[u8]) {
        let at_start = self.start.as_ref().and_then(|start| start.rules.clone()).filter(|_| self.then.is_some());
        if own.is_none() && at_start.is_none() {
            return;
        }
        if let Some(own) = own {
            self.now = self.now.push(own, path);
        }
        if let (Some(then), Some(rules)) = (&self.then, &at_start) {
            self.then = Some(then.push(rules, path));
        }
        self.ruled_by = ruled_by(&self.now, self.then.as_ref());
    }

    /// May what the last look found in this folder be believed, where the folder itself did not change?
    fn classification_holds(&self, prev: &Arc<Folder>, shared: &Shared<'_>) -> bool {
        prev.ruled_by == self.ruled_by
            && match &self.base {
                // the look that is compared with made the same distinctions
                Some(base) => Arc::ptr_eq(base, prev),
                None => !prev.forced && (shared.same_index || prev.census.unwatched == 0),
            }
    }
}

/// The thread's own part of a walk.
pub(super) struct Hands<'w, 'a> {
    pub(super) shared: &'w Shared<'a>,
    worker: Worker,
}
