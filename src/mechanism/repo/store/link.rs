//! Hard links of the user's objects, so that neither `gc --prune=now` nor `rm -rf .git` takes them away.
//!
//! An *area* is one `objects` folder of the user (of the repository, or of a submodule's git folder). Its files are
//! immutable and named by their content, so a second link of each is a second copy for the price of a name. Where
//! links can't cross, blocks are shared or the file is copied. Small files are copied in any case: who writes into an
//! object writes into all of its links. Large ones that were written into are told, and can't be put back.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::error::RepoError;
use super::super::stamp::{self, Stamp};
use super::{Store, private_folder, short_name, write_whole};

/// What was seen of an area at the last look: the stamp of each folder in it, and the files that it held.
#[derive(Debug, Default, Clone)]
pub(crate) struct AreaState {
    folders: BTreeMap<OsString, Held>,
}

/// A folder of objects.
#[derive(Debug, Clone)]
struct Held {
    stamp: Stamp,
    files: Vec<(OsString, Stamp)>,
}

/// Files up to this size are copied and not linked, so that writing into the original does not reach the copy.
const COPIED_SIZE: u64 = 16 << 20;
/// Loose objects beyond this many in one folder are linked; a look at each after every turn would cost too much.
const COPIED_FILES: usize = 64;
/// Files of an area that are looked at after each turn; packs always are.
const MOST_CHECKED: usize = 5_000;

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

fn stamp_of(path: &Path) -> Option<Stamp> {
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
            let Some(before) = stamp_of(&folder).filter(|stamp| stamp.kind() == stamp::FOLDER) else { continue };
            if let Some(old) = seen.folders.remove(&name).filter(|old| old.stamp == before) {
                now.insert(name, old);
                continue;
            }
            let names: Vec<_> =
                list(&folder)?.into_iter().filter(|file| is_object(name.as_bytes(), file.as_bytes())).collect();
            private_folder(&target.join(&name))?;
            let mut files = Vec::with_capacity(names.len());
            for (at, file) in names.into_iter().enumerate() {
                let (from, to) = (folder.join(&file), target.join(&name).join(&file));
                let Some(stamp) = stamp_of(&from) else { continue };
                let copy = stamp.size <= COPIED_SIZE && (at < COPIED_FILES || name == "pack");
                linked += u64::from(self.link(&from, &to, copy)?);
                files.push((file, stamp));
            }
            now.insert(name, Held { stamp: before, files });
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

    /// A second name for a file, or a copy; true when it is new.
    fn link(&mut self, from: &Path, to: &Path, copy: bool) -> Result<bool, RepoError> {
        use std::io::ErrorKind::{AlreadyExists, CrossesDevices, NotFound, PermissionDenied, TooManyLinks};
        if self.reflinks != Some(false) && !to.exists() {
            let shared = share_blocks(from, to, &self.temporary());
            self.reflinks = Some(shared);
            if shared {
                return Ok(true);
            }
        }
        if copy && to.exists() {
            return Ok(false);
        }
        let linked = if copy { Err(CrossesDevices.into()) } else { fs::hard_link(from, to) };
        match linked {
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

/// What was done to the objects of an area.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Relinked {
    /// files that were gone and are back
    pub(crate) back: u64,
    /// files and folders whose mode is as it was again
    pub(crate) modes: u64,
    /// files that had been written into, and have their content again
    pub(crate) mended: u64,
    /// files that had been written into, and whose content nobody has
    pub(crate) damaged: u64,
}

/// Puts objects back that the area had at the last look and has no more, as they were. With no such look (after a
/// crash), all that the store has are put back. The area itself must be a folder again.
pub(crate) fn relink(
    store: &mut Store,
    objects: &Path,
    mut seen: Option<&mut AreaState>,
) -> Result<Relinked, RepoError> {
    let mut done = Relinked::default();
    let kept = [true, false].map(|readable| area_folder(&store.dir, objects, readable));
    let Some(kept) = kept.into_iter().find(|folder| folder.exists()) else { return Ok(done) };
    let few = seen
        .as_ref()
        .is_some_and(|seen| seen.folders.values().map(|held| held.files.len()).sum::<usize>() <= MOST_CHECKED);
    for name in list(&kept)? {
        let folder = objects.join(&name);
        let any_seen = seen.is_some();
        let mut held = seen.as_mut().and_then(|seen| seen.folders.get_mut(&name));
        if any_seen && held.is_none() {
            continue;
        }
        let now = stamp_of(&folder);
        if let Some(now) = now {
            if now.kind() != stamp::FOLDER {
                let aside = store.displaced();
                fs::rename(&folder, &aside).map_err(RepoError::io(&folder, "moving aside"))?;
            } else if let Some(wrong) = held.as_ref().map(|held| held.stamp.mode).filter(|mode| *mode != now.mode) {
                set_mode(&folder, wrong)?;
                done.modes += 1;
            } else if held.is_none() && now.permissions() & 0o700 != 0o700 {
                set_mode(&folder, now.mode | 0o700)?;
            }
        }
        let names_are_there = held.as_ref().is_some_and(|held| now.is_some_and(|now| same_names(&held.stamp, &now)));
        if names_are_there && !few && name != "pack" {
            continue;
        }
        match &mut held {
            Some(held) => {
                for (file, was) in &mut held.files {
                    mend(&kept.join(&name).join(&*file), &folder, file, Some(was), &mut done)?;
                }
            }
            None => {
                for file in list(&kept.join(&name))? {
                    mend(&kept.join(&name).join(&file), &folder, &file, None, &mut done)?;
                }
            }
        }
    }
    for name in ["pack", "info"] {
        let folder = objects.join(name);
        fs::create_dir_all(&folder).map_err(RepoError::io(&folder, "making the folder"))?;
    }
    Ok(done)
}

fn same_names(a: &Stamp, b: &Stamp) -> bool {
    (a.ino, a.mtime) == (b.ino, b.mtime)
}

/// One object as it was.
fn mend(
    source: &Path,
    folder: &Path,
    file: &std::ffi::OsStr,
    was: Option<&mut Stamp>,
    done: &mut Relinked,
) -> Result<(), RepoError> {
    let target = folder.join(file);
    let Some(there) = stamp_of(&target) else {
        let Some(kept) = stamp_of(source) else { return Ok(()) };
        fs::create_dir_all(folder).map_err(RepoError::io(folder, "making the folder"))?;
        done.back += 1;
        if kept.size > COPIED_SIZE && fs::hard_link(source, &target).is_ok() {
            return Ok(());
        }
        return copy_back(source, &target, was);
    };
    let Some(was) = was else { return Ok(()) };
    let copy = stamp_of(source).filter(|kept| kept.ino != there.ino && kept.size == was.size);
    let moved = (there.mtime, there.ctime) != (was.mtime, was.ctime);
    if there.kind() != was.kind() || there.size != was.size {
        if copy.is_none() {
            done.damaged += 1;
            return Ok(());
        }
        fs::remove_file(&target).map_err(RepoError::io(&target, "removing what is no object any more"))?;
        done.mended += 1;
        return copy_back(source, &target, Some(was));
    }
    if there.mode != was.mode {
        set_mode(&target, was.mode | 0o400)?;
        done.modes += 1;
    }
    // git itself sets the times of objects that it meets again, so they alone prove nothing
    if moved && copy.is_some() && !same_bytes(source, &target)? {
        fs::remove_file(&target).map_err(RepoError::io(&target, "removing what is no object any more"))?;
        done.mended += 1;
        return copy_back(source, &target, Some(was));
    }
    *was = stamp_of(&target).unwrap_or(*was);
    Ok(())
}

fn copy_back(source: &Path, target: &Path, was: Option<&mut Stamp>) -> Result<(), RepoError> {
    fs::copy(source, target).map_err(RepoError::io(target, "putting an object back"))?;
    if let Some(was) = was {
        set_mode(target, was.mode)?;
        *was = stamp_of(target).unwrap_or(*was);
    }
    Ok(())
}

fn same_bytes(a: &Path, b: &Path) -> Result<bool, RepoError> {
    let read = |path: &Path| fs::read(path).map_err(RepoError::io(path, "reading"));
    Ok(read(a)? == read(b)?)
}

/// Of a file or folder that was just seen to be no link.
fn set_mode(path: &Path, mode: u32) -> Result<(), RepoError> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o7777))
        .map_err(RepoError::io(path, "changing the mode"))
}
