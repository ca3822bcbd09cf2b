//! The threads of a walk, and the stack of folders that they take from.
//!
//! Guarantees that the walk ends when no folder is left and nobody works on one, that the first error ends it for all,
//! and that descriptors stay few: folders are taken newest first, and below [`SHARED_LEVELS`] by one thread alone.

use rustix::fs::{Mode, OFlags, openat};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::super::super::error::RepoError;
use super::super::super::path::os;
use super::super::{Folder, Left, Node};
use super::building::Building;
use super::{Hands, Job, MOST_LEVELS, Place, SHARED_LEVELS, Shared};
use crate::mechanism::repo::beneath::open_folder;

/// Room for one batch of names.
const BATCH: usize = 32 << 10;

#[derive(Default)]
pub(super) struct Crew {
    stack: Mutex<Stack>,
    wake: Condvar,
}

#[derive(Default)]
struct Stack {
    jobs: Vec<Job>,
    /// folders so deep that one thread does them in the end
    deep: Vec<Job>,
    busy: usize,
    failure: Option<RepoError>,
}

/// Room that a thread uses again and again.
pub(super) struct Worker {
    pub(super) content: Vec<u8>,
    pub(super) batch: Vec<u8>,
    /// folders that were found and are not on the stack yet
    pub(super) found: Vec<Job>,
}

impl Default for Worker {
    fn default() -> Worker {
        Worker { content: Vec::new(), batch: Vec::with_capacity(BATCH), found: Vec::new() }
    }
}

impl Crew {
    fn lock(&self) -> MutexGuard<'_, Stack> {
        self.stack.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The next folder; `None` when the shared part of the walk is over.
    fn next(&self) -> Option<Job> {
        let mut stack = self.lock();
        loop {
            if stack.failure.is_some() {
                return None;
            }
            if let Some(job) = stack.jobs.pop() {
                stack.busy += 1;
                return Some(job);
            }
            if stack.busy == 0 {
                self.wake.notify_all();
                return None;
            }
            stack = self.wake.wait(stack).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// A folder is done as far as one thread can; these were found in it.
    fn done(&self, found: &mut Vec<Job>, result: Result<(), RepoError>) {
        let mut stack = self.lock();
        stack.busy -= 1;
        let many = found.len();
        for job in found.drain(..) {
            if job.depth > SHARED_LEVELS { stack.deep.push(job) } else { stack.jobs.push(job) }
        }
        if let Err(error) = result {
            stack.failure.get_or_insert(error);
        }
        let over = stack.busy == 0 && stack.jobs.is_empty();
        if stack.failure.is_some() || over || many > 1 {
            self.wake.notify_all();
        } else if many == 1 {
            self.wake.notify_one();
        }
    }
}

/// Walks with a number of threads, this one among them.
pub(super) fn walk(
    shared: &Shared<'_>,
    folder: OwnedFd,
    place: Place,
    threads: usize,
) -> Result<Arc<Folder>, RepoError> {
    let root = folder.try_clone().map_err(RepoError::io(shared.root, "holding the folder open"))?;
    let result = Arc::new(Building::top());
    shared.crew.lock().busy = 1;
    let mut hands = Hands { shared, worker: Worker::default() };
    let done = hands.look_into(folder, b"", 0, place, (&result, 0));
    shared.crew.done(&mut hands.worker.found, done);
    if threads > 1 {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| Hands { shared, worker: Worker::default() }.work(root.as_fd()));
            }
            hands.work(root.as_fd());
        });
    } else {
        hands.work(root.as_fd());
    }
    hands.go_deep(root.as_fd());
    let mut stack = shared.crew.lock();
    if let Some(error) = stack.failure.take() {
        return Err(error);
    }
    drop(stack);
    match result.take_top() {
        Some(Node::Folder(folder)) => Ok(folder),
        _ => Err(shared.failed(b"", rustix::io::Errno::NOENT)),
    }
}

impl Hands<'_, '_> {
    fn work(&mut self, root: BorrowedFd<'_>) {
        while let Some(job) = self.shared.crew.next() {
            let done = self.one(root, job);
            self.shared.crew.done(&mut self.worker.found, done);
        }
    }

    /// The deepest folders, by this thread alone and newest first.
    fn go_deep(&mut self, root: BorrowedFd<'_>) {
        loop {
            let mut stack = self.shared.crew.lock();
            if stack.failure.is_some() {
                return;
            }
            let Some(job) = stack.deep.pop() else { return };
            drop(stack);
            let done = self.one(root, job);
            let mut stack = self.shared.crew.lock();
            stack.deep.append(&mut self.worker.found);
            if let Err(error) = done {
                stack.failure.get_or_insert(error);
            }
        }
    }

    fn one(&mut self, root: BorrowedFd<'_>, job: Job) -> Result<(), RepoError> {
        let outer;
        let folder = match &job.from {
            Some(from) => from.as_fd(),
            None => {
                let path = &job.path[..job.name_at.saturating_sub(1)];
                outer = open_folder(root, path).map_err(|errno| self.shared.failed(&job.path, errno))?;
                outer.as_fd()
            }
        };
        if job.depth >= MOST_LEVELS {
            return self.tell(folder, &job, Left::TooDeep);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(folder, os(job.name()), flags, Mode::empty()) {
            Ok(opened) => {
                let place = job.outer.inside(job.name(), job.verdict);
                let Job { path, depth, parent, slot, from, .. } = job;
                // each level holds a descriptor only as long as folders in it wait
                drop(from);
                self.look_into(opened, &path, depth, place, (&parent, slot))
            }
            Err(errno) => self.not_opened(folder, &job, errno),
        }
    }
}
