//! Hard links of the user's objects, so that neither `gc --prune=now` nor `rm -rf .git` takes them away.
//!
//! An *area* is one `objects` folder of the user (of the repository, or of a submodule's git folder). Its files are
//! immutable and named by their content, so a second link of each is a second copy for the price of a name. Where
//! links can't cross, blocks are shared or the file is copied.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::error::RepoError;
use super::super::stamp::Stamp;
use super::{Store, private_folder, short_name, write_whole};

/// What was seen of an area at the last look: the stamp of each folder in it, and the files that it held.
#[derive(Debug, Default, Clone)]
pub(crate) struct AreaState {
    folders: BTreeMap<OsString, (Stamp, Vec<OsString>)>,
}

/// Areas in a format that the store's reader does not know (SHA-256) are kept, but never read from.
const UNREADABLE: &str = "-kept";

/// The areas that a store has links of and can read from.
pub(super) fn areas(dir: &Path) -> Result<Vec<PathBuf>, RepoError> {
    let users = dir.join("users");
    let listed = fs::read_dir(&users).map_err(RepoError::io(&users, "listing"))?;
    let mut found = Vec::new();
    for entry in listed {
        let path = entry.map_err(RepoError::io(&users, "listing"))?.path();
        if !path.as_os_str().as_bytes().ends_with(UNREADABLE.as_bytes()) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn area_folder(store: &Path, objects: &Path, readable: bool) -> PathBuf {
    let name = short_name(objects);
    store.join("users").join(if readable { name } else { name + UNREADABLE })
}

fn stamp(path: &Path) -> Option<Stamp> {
    rustix::fs::lstat(path).ok().map(|stat| Stamp::of(&stat))
}

fn holds_objects(name: &[u8]) -> bool {
    name == b"pack" || (name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit))
}

fn is_object(folder: &[u8], name: &[u8]) -> bool {
    if folder == b"pack" {
        return name.starts_with(b"pack-") && !name.ends_with(b".lock");
    }
    name.iter().all(u8::is_ascii_hexdigit)
}

fn list(folder: &Path) -> Result<Vec<OsString>, RepoError> {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(RepoError::io(folder, "listing")(error)),
    };
    let mut names = Vec::new();
    for entry in listed {
        names.push(entry.map_err(RepoError::io(folder, "listing"))?.file_name());
    }
    Ok(names)
}

impl Store {
    /// Links what is new in an area. Folders whose stamp did not move are not looked into. `readable`: the objects
    /// have names that the store's reader knows.
    pub(crate) fn link_area(&mut self, objects: &Path, readable: bool, seen: &mut AreaState) -> Result<(), RepoError> {
        let target = area_folder(&self.dir, objects, readable);
        let fresh = !target.exists();
        private_folder(&target)?;
        let mut now = BTreeMap::new();
        let mut linked = 0_u64;
        for name in list(objects)? {
            if !holds_objects(name.as_bytes()) {
                continue;
            }
            let folder = objects.join(&name);
            // taken before the listing: a file that comes in between is seen at the next look
            let Some(before) = stamp(&folder) else { continue };
            if let Some(old) = seen.folders.remove(&name).filter(|old| old.0 == before) {
                now.insert(name, old);
                continue;
            }
            let names: Vec<_> =
                list(&folder)?.into_iter().filter(|file| is_object(name.as_bytes(), file.as_bytes())).collect();
            private_folder(&target.join(&name))?;
            for file in &names {
                linked += u64::from(self.link(&folder.join(file), &target.join(&name).join(file))?);
            }
            now.insert(name, (before, names));
        }
        seen.folders = now;
        if fresh && readable {
            self.add_alternate(&target)?;
            self.tell_git_of_areas()?;
        }
        if linked > 0 || fresh {
            self.refresh()?;
        }
        Ok(())
    }

    /// Anybody's git finds the user's objects by the list of alternates, relative so that the state can be moved.
    fn tell_git_of_areas(&self) -> Result<(), RepoError> {
        let mut text = Vec::new();
        for area in areas(&self.dir)? {
            text.extend_from_slice(b"../users/");
            text.extend_from_slice(area.file_name().unwrap_or_default().as_bytes());
            text.push(b'\n');
        }
        write_whole(&self.dir.join("objects/info/alternates"), &text, false)
    }

    /// A second name for a file; true when it is new.
    fn link(&mut self, from: &Path, to: &Path) -> Result<bool, RepoError> {
        use std::io::ErrorKind::{AlreadyExists, CrossesDevices, NotFound, PermissionDenied, TooManyLinks};
        if self.reflinks != Some(false) && !to.exists() {
            let shared = share_blocks(from, to, &self.temporary());
            self.reflinks = Some(shared);
            if shared {
                return Ok(true);
            }
        }
        match fs::hard_link(from, to) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == AlreadyExists => Ok(false),
            // gone since it was listed: git packs and prunes as it likes
            Err(error) if error.kind() == NotFound => Ok(false),
            Err(error) if matches!(error.kind(), CrossesDevices | PermissionDenied | TooManyLinks) => {
                let temporary = self.temporary();
                match fs::copy(from, &temporary).and_then(|_| fs::rename(&temporary, to)) {
                    Ok(()) => Ok(true),
                    Err(error) if error.kind() == NotFound => Ok(false),
                    Err(error) => Err(RepoError::io(to, "keeping a copy of an object")(error)),
                }
            }
            Err(error) => Err(RepoError::io(to, "keeping a link of an object")(error)),
        }
    }
}

/// Copies by sharing blocks; false where the file system can't.
fn share_blocks(from: &Path, to: &Path, temporary: &Path) -> bool {
    let cloned = (|| -> std::io::Result<()> {
        let source = fs::File::open(from)?;
        let copy = fs::OpenOptions::new().write(true).create_new(true).open(temporary)?;
        rustix::fs::ioctl_ficlone(&copy, &source)?;
        fs::rename(temporary, to)
    })();
    if cloned.is_err() {
        // it may not have been made at all
        let _ = fs::remove_file(temporary);
    }
    cloned.is_ok()
}

/// Puts objects back that the area had at the last look and has no more. With no such look (after a crash), all that
/// the store has links of are put back. Returns how many files came back.
pub(crate) fn relink(store: &Store, objects: &Path, seen: Option<&AreaState>) -> Result<u64, RepoError> {
    let kept = [true, false].map(|readable| area_folder(&store.dir, objects, readable));
    let Some(kept) = kept.into_iter().find(|folder| folder.exists()) else { return Ok(0) };
    let mut back = 0;
    for name in list(&kept)? {
        let folder = objects.join(&name);
        let known = seen.and_then(|seen| seen.folders.get(&name));
        if known.is_some_and(|known| stamp(&folder) == Some(known.0)) {
            continue;
        }
        let wanted = match (seen, known) {
            (Some(_), Some((_, names))) => names.clone(),
            (Some(_), None) => continue,
            (None, _) => list(&kept.join(&name))?,
        };
        let there: std::collections::HashSet<_> = list(&folder)?.into_iter().collect();
        for file in wanted.iter().filter(|file| !there.contains(*file)) {
            let source = kept.join(&name).join(file);
            if !source.exists() {
                continue;
            }
            fs::create_dir_all(&folder).map_err(RepoError::io(&folder, "making the folder"))?;
            let target = folder.join(file);
            fs::hard_link(&source, &target)
                .or_else(|_| fs::copy(&source, &target).map(drop))
                .map_err(RepoError::io(&target, "putting an object back"))?;
            back += 1;
        }
    }
    for name in ["pack", "info"] {
        let folder = objects.join(name);
        fs::create_dir_all(&folder).map_err(RepoError::io(&folder, "making the folder"))?;
    }
    Ok(back)
}
