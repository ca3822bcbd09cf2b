//! The shadow store: where checkpoints and all contents that they need are kept, outside the user's repository.
//!
//! Owns a bare git repository in the state folder (`objects/` with one pack per checkpoint), the hard links of the
//! user's own objects (`users/`), so that they outlive `rm -rf .git`, and files too large for a pack (`large/`).
//! Must not know what a checkpoint means. Guarantees that an object is either there whole under its id or not at all:
//! every file is written under a temporary name, and renamed when it is complete.

mod large;
mod link;
mod pack;
mod shelf;

pub(crate) use link::{AreaState, relink};
pub(crate) use shelf::Shelf;

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::error::RepoError;
use super::object::{Kind, ObjectId, id_of};
use pack::Packed;

/// Packed bytes that are held in memory before they go to disk.
const MOST_PENDING: usize = 24 << 20;
/// Age after which a temporary file is the leftover of a crash.
const STALE_TEMPORARY: Duration = Duration::from_secs(3600);

pub(crate) struct Store {
    dir: PathBuf,
    odb: git2::Odb<'static>,
    /// objects that are surely there
    known: HashSet<ObjectId>,
    pending: Vec<Packed>,
    pending_bytes: usize,
    /// files that were written and are not yet forced to disk
    unsynced: Vec<PathBuf>,
    /// counts temporary names
    serial: u64,
    /// can this file system share blocks between files? `None`: not tried yet
    reflinks: Option<bool>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Store({})", self.dir.display())
    }
}

/// Makes a folder that only its owner can enter, with its parents.
pub(crate) fn private_folder(path: &Path) -> Result<(), RepoError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(RepoError::io(path, "making the folder"))
}

/// Writes a small file whole or not at all, and forces it to disk when `durable`.
pub(crate) fn write_whole(path: &Path, bytes: &[u8], durable: bool) -> Result<(), RepoError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".tmp-{}", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(RepoError::io(&temporary, "making the file"))?;
    file.write_all(bytes).map_err(RepoError::io(&temporary, "writing"))?;
    if durable {
        file.sync_all().map_err(RepoError::io(&temporary, "forcing to disk"))?;
    }
    drop(file);
    fs::rename(&temporary, path).map_err(RepoError::io(path, "renaming into place"))?;
    if durable {
        sync_folder(folder)?;
    }
    Ok(())
}

pub(crate) fn sync_folder(folder: &Path) -> Result<(), RepoError> {
    let file = fs::File::open(folder).map_err(RepoError::io(folder, "opening"))?;
    file.sync_all().map_err(RepoError::io(folder, "forcing to disk"))
}

impl Store {
    /// Opens the store in `dir`, and makes it where there is none.
    pub(crate) fn open(dir: &Path) -> Result<Store, RepoError> {
        for part in ["objects/pack", "objects/info", "users", "large", "refs/checkpoints", "tmp", "displaced"] {
            private_folder(&dir.join(part))?;
        }
        // the two files that make it a bare repository for anybody's git
        for (name, text) in [
            ("HEAD", "ref: refs/heads/none\n"),
            ("config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n"),
        ] {
            let path = dir.join(name);
            if !path.exists() {
                write_whole(&path, text.as_bytes(), false)?;
            }
        }
        let mark = dir.join("mark");
        if !mark.exists() {
            let text = format!("{:032x}\n", rand::random::<u128>());
            write_whole(&mark, text.as_bytes(), true)?;
        }
        let odb = git2::Odb::new().map_err(RepoError::git2("opening the shadow store"))?;
        let mut store = Store {
            dir: dir.to_path_buf(),
            odb,
            known: HashSet::new(),
            pending: Vec::new(),
            pending_bytes: 0,
            unsynced: Vec::new(),
            serial: 0,
            reflinks: None,
        };
        store.add_alternate(&dir.join("objects"))?;
        for area in link::areas(dir)? {
            store.add_alternate(&area)?;
        }
        store.remove_leftovers()?;
        Ok(store)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A text that no other store has; caches that rely on the contents of this store carry it.
    pub(crate) fn mark(&self) -> Result<String, RepoError> {
        let path = self.dir.join("mark");
        fs::read_to_string(&path).map_err(RepoError::io(&path, "reading"))
    }

    /// Is this object there?
    pub(crate) fn has(&mut self, id: ObjectId) -> bool {
        if self.known.contains(&id) {
            return true;
        }
        let there = id.to_git2().is_ok_and(|id| self.odb.exists_ext(id, git2::OdbLookupFlags::NO_REFRESH));
        if there {
            self.known.insert(id);
        }
        there
    }

    /// Keeps an object and returns its id.
    pub(crate) fn put(&mut self, kind: Kind, bytes: &[u8]) -> Result<ObjectId, RepoError> {
        let id = id_of(kind, bytes);
        if !self.has(id) {
            let packed = pack::encode(kind, id, bytes).map_err(RepoError::io(&self.dir, "compressing"))?;
            self.add(id, packed)?;
        }
        Ok(id)
    }

    /// Takes an object that is not there yet.
    fn add(&mut self, id: ObjectId, packed: Packed) -> Result<(), RepoError> {
        // somebody else may have been faster
        if self.known.insert(id) {
            self.pending_bytes += packed.len();
            self.pending.push(packed);
            if self.pending_bytes > MOST_PENDING {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes what was put to disk, as one pack.
    pub(crate) fn flush(&mut self) -> Result<(), RepoError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let objects = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        let temporary = self.temporary();
        match pack::write(objects, &temporary, &self.dir.join("objects/pack")) {
            Ok(files) => {
                self.unsynced.extend(files);
                Ok(())
            }
            Err(error) => {
                // nothing of it is there: what was known may not be
                self.known.clear();
                Err(error)
            }
        }
    }

    /// Writes what was put to disk and waits until it is there for good.
    pub(crate) fn sync(&mut self) -> Result<(), RepoError> {
        self.flush()?;
        if self.unsynced.is_empty() {
            return Ok(());
        }
        let mut folders = HashSet::new();
        for path in self.unsynced.drain(..) {
            let file = fs::File::open(&path).map_err(RepoError::io(&path, "opening"))?;
            file.sync_all().map_err(RepoError::io(&path, "forcing to disk"))?;
            folders.extend(path.parent().map(Path::to_path_buf));
        }
        folders.iter().try_for_each(|folder| sync_folder(folder))
    }

    /// Reads an object whole.
    pub(crate) fn read(&mut self, id: ObjectId) -> Result<Vec<u8>, RepoError> {
        self.flush()?;
        let oid = id.to_git2().map_err(RepoError::git2("naming an object"))?;
        match self.odb.read(oid) {
            Ok(object) => Ok(object.data().to_vec()),
            Err(error) => match fs::read(self.large_path(id)) {
                Ok(bytes) if id_of(Kind::Blob, &bytes) == id => Ok(bytes),
                Ok(_) => Err(self.damaged(format!("large/{id} is not what its name says"))),
                Err(_) => Err(self.damaged(format!("object {id}: {}", error.message()))),
            },
        }
    }

    /// Gives a commit a name, so that it is found again and never collected.
    pub(crate) fn set_ref(&mut self, name: &str, id: ObjectId) -> Result<(), RepoError> {
        let path = self.dir.join(name);
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        let text = format!("{id}\n");
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return Ok(());
        }
        write_whole(&path, text.as_bytes(), false)?;
        self.unsynced.push(path);
        Ok(())
    }

    /// A name in the folder of temporary files that nobody else uses.
    pub(crate) fn temporary(&mut self) -> PathBuf {
        self.serial += 1;
        self.dir.join("tmp").join(format!("{}-{}-{:x}", std::process::id(), self.serial, rand::random::<u32>()))
    }

    /// A name in the folder of things that were moved out of the way.
    pub(crate) fn displaced(&mut self) -> PathBuf {
        self.serial += 1;
        self.dir.join("displaced").join(format!("{}-{}-{:x}", std::process::id(), self.serial, rand::random::<u32>()))
    }

    /// Makes objects visible that were put into the folders behind the store's back.
    pub(crate) fn refresh(&mut self) -> Result<(), RepoError> {
        self.odb.refresh().map_err(RepoError::git2("looking at the shadow store again"))
    }

    fn add_alternate(&mut self, objects: &Path) -> Result<(), RepoError> {
        let Some(text) = objects.to_str() else {
            let why = "the path of the state folder must be UTF-8; name another with LUNATION_HOME".into();
            return Err(RepoError::Unsupported { path: objects.to_path_buf(), why });
        };
        self.odb.add_disk_alternate(text).map_err(RepoError::git2("opening the shadow store"))
    }

    fn damaged(&self, what: String) -> RepoError {
        RepoError::Store { store: self.dir.clone(), what }
    }

    fn remove_leftovers(&self) -> Result<(), RepoError> {
        let folder = self.dir.join("tmp");
        let now = SystemTime::now();
        for entry in fs::read_dir(&folder).map_err(RepoError::io(&folder, "listing"))? {
            let entry = entry.map_err(RepoError::io(&folder, "listing"))?;
            let age = entry.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| now.duration_since(at).ok());
            if age.is_some_and(|age| age > STALE_TEMPORARY) {
                match fs::remove_file(entry.path()) {
                    Ok(()) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => return Err(RepoError::io(&entry.path(), "removing a leftover")(error)),
                }
            }
        }
        Ok(())
    }
}

/// A short name for a path, for folders that hold things of one path.
pub(crate) fn short_name(path: &Path) -> String {
    let id = id_of(Kind::Blob, path.as_os_str().as_bytes()).to_string();
    id[..16].to_string()
}

#[cfg(test)]
mod tests;
