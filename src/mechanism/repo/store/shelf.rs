//! The store as several threads use it at once: hashing and compressing is done outside of its lock.

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard};

use super::super::error::RepoError;
use super::super::object::{Kind, ObjectId, id_of};
use super::{Store, pack};

/// A store that is shared for the time of a walk.
pub(crate) struct Shelf<'a>(Mutex<&'a mut Store>);

impl<'a> Shelf<'a> {
    pub(crate) fn new(store: &'a mut Store) -> Shelf<'a> {
        Shelf(Mutex::new(store))
    }

    fn lock(&self) -> MutexGuard<'_, &'a mut Store> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Keeps an object and returns its id.
    pub(crate) fn put(&self, kind: Kind, bytes: &[u8]) -> Result<ObjectId, RepoError> {
        let id = id_of(kind, bytes);
        let mut store = self.lock();
        if store.has(id) {
            return Ok(id);
        }
        let dir = store.dir().to_path_buf();
        drop(store);
        let packed = pack::encode(kind, id, bytes).map_err(RepoError::io(&dir, "compressing"))?;
        self.lock().add(id, packed)?;
        Ok(id)
    }

    /// Reads an object whole.
    pub(crate) fn read(&self, id: ObjectId) -> Result<Vec<u8>, RepoError> {
        self.lock().read(id)
    }

    /// See [`Store::put_large`].
    pub(crate) fn put_large(&self, file: BorrowedFd<'_>, size: u64) -> Result<Option<ObjectId>, RepoError> {
        self.lock().put_large(file, size)
    }
}
