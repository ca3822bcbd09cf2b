//! The temporary folder of one command: made before it, removed after it, whatever the command did with it.
//!
//! Owns the removal, which follows no link, needs no more than two descriptors and no recursion however deep the folder
//! is, and mends modes on the way. It only ever touches what is beneath the folder that it made.

use std::{
    ffi::{CStr, CString, OsString},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fchmod, mkdirat, openat, renameat, statat, unlinkat},
    io::Errno,
};

/// The folder, held open so that its contents are found whatever became of its name.
#[derive(Debug)]
pub(super) struct PrivateTmp {
    path: PathBuf,
    folder: OwnedFd,
}

const OPEN: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl PrivateTmp {
    /// Makes it, owner only. Its parents are made as needed; it must not be there itself.
    pub(super) fn make(path: &Path) -> io::Result<PrivateTmp> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        mkdirat(CWD, path, Mode::RWXU)?;
        let folder = openat(CWD, path, OPEN, Mode::empty())?;
        // The umask may have taken bits away.
        fchmod(&folder, Mode::RWXU)?;
        Ok(PrivateTmp { path: path.into(), folder })
    }

    /// The variables that name it.
    pub(super) fn variables(&self) -> [(OsString, OsString); 3] {
        ["TMPDIR", "TMP", "TEMP"].map(|name| (name.into(), self.path.clone().into_os_string()))
    }

    /// Removes it with all that is in it.
    ///
    /// # Errors
    /// The first thing that could not be removed (a mount point, an immutable file); the rest is gone all the same.
    pub(super) fn remove(self) -> io::Result<()> {
        let emptied = empty(&self.folder);
        // The command may have put something else in its place: another folder, a link, a file.
        match remove_at_name(&self.path) {
            Ok(()) | Err(Errno::NOENT) => emptied,
            Err(error) => emptied.and(Err(named(&self.path, error))),
        }
    }
}

fn remove_at_name(path: &Path) -> Result<(), Errno> {
    match unlinkat(CWD, path, AtFlags::REMOVEDIR) {
        Err(Errno::NOTDIR) => unlinkat(CWD, path, AtFlags::empty()),
        Err(Errno::NOTEMPTY | Errno::EXIST) => {
            let other = openat(CWD, path, OPEN, Mode::empty())?;
            empty(&other).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOTEMPTY))?;
            unlinkat(CWD, path, AtFlags::REMOVEDIR)
        }
        other => other,
    }
}

/// Empties `top`. A folder inside it is emptied of its files, its own folders are moved up into `top`, and then it is
/// removed; so nothing is ever deeper than one level below.
fn empty(top: &OwnedFd) -> io::Result<()> {
    let mut moved = 0u64;
    loop {
        // Nothing is running any more that could put the modes back.
        ignore_missing(fchmod(top, Mode::RWXU))?;
        let mut failed = None;
        let moved_before = moved;
        let mut progress = false;
        for name in names(top)? {
            match remove_entry(top, &name, top, &mut moved) {
                Ok(()) => progress = true,
                Err(error) => {
                    failed.get_or_insert(named(Path::new(std::ffi::OsStr::from_bytes(name.to_bytes())), error));
                }
            }
        }
        progress |= moved != moved_before;
        match failed {
            None if !progress => return Ok(()),
            Some(error) if !progress => return Err(error),
            _ => {}
        }
    }
}

fn remove_entry(folder: &OwnedFd, name: &CStr, top: &OwnedFd, moved: &mut u64) -> Result<(), Errno> {
    let is_folder = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .map(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)?;
    if !is_folder {
        return unlinkat(folder, name, AtFlags::empty());
    }
    if unlinkat(folder, name, AtFlags::REMOVEDIR).is_ok() {
        return Ok(());
    }
    let inner = open_whatever_its_mode(folder, name)?;
    loop {
        let entries = names(&inner)?;
        if entries.is_empty() {
            return unlinkat(folder, name, AtFlags::REMOVEDIR);
        }
        let mut failed = None;
        for entry in entries {
            if let Err(error) = remove_or_move_up(&inner, &entry, top, moved) {
                failed.get_or_insert(error);
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
    }
}

fn remove_or_move_up(inner: &OwnedFd, name: &CStr, top: &OwnedFd, moved: &mut u64) -> Result<(), Errno> {
    match unlinkat(inner, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        other => return other,
    }
    if unlinkat(inner, name, AtFlags::REMOVEDIR).is_ok() {
        return Ok(());
    }
    // Moving a folder writes its "..", so it must be writable itself.
    drop(open_whatever_its_mode(inner, name)?);
    loop {
        *moved += 1;
        let target = format!(".lunation-removing-{moved}");
        match statat(top, &target, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return renameat(inner, name, top, target),
            Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Opens a folder after giving its owner all rights to it. Nothing races with this: everybody is gone.
fn open_whatever_its_mode(folder: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(Errno::NOTDIR);
    }
    if stat.st_mode & 0o700 != 0o700 {
        rustix::fs::chmodat(folder, name, Mode::RWXU, AtFlags::empty())?;
    }
    openat(folder, name, OPEN, Mode::empty())
}

/// The most names that are held in memory at a time; the callers come back for more.
const MOST_NAMES_AT_ONCE: usize = 10_000;

fn names(folder: &impl AsFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
        if names.len() == MOST_NAMES_AT_ONCE {
            break;
        }
    }
    Ok(names)
}

fn ignore_missing(result: Result<(), Errno>) -> io::Result<()> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        other => other.map_err(Into::into),
    }
}

fn named(path: &Path, error: Errno) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    fn make(dir: &tempfile::TempDir) -> PrivateTmp {
        PrivateTmp::make(&dir.path().join("a/tmp")).unwrap()
    }

    #[test]
    fn it_is_owner_only_and_must_be_new() {
        let dir = tempfile::tempdir().unwrap();
        let tmp = make(&dir);
        assert_eq!(fs::metadata(&tmp.path).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(PrivateTmp::make(&tmp.path).is_err());
        tmp.remove().unwrap();
        assert!(!dir.path().join("a/tmp").exists());
    }

    #[test]
    fn no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let mine = dir.path().join("mine");
        fs::create_dir(&mine).unwrap();
        fs::write(mine.join("file"), "precious").unwrap();
        let tmp = make(&dir);
        std::os::unix::fs::symlink(&mine, tmp.path.join("link")).unwrap();
        fs::create_dir(tmp.path.join("deep")).unwrap();
        std::os::unix::fs::symlink(&mine, tmp.path.join("deep/link")).unwrap();
        tmp.remove().unwrap();
        assert_eq!(fs::read_to_string(mine.join("file")).unwrap(), "precious");
    }

    #[test]
    fn a_link_in_the_place_of_the_folder_is_removed_and_its_target_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (mine, away) = (dir.path().join("mine"), dir.path().join("away"));
        fs::create_dir(&mine).unwrap();
        fs::write(mine.join("file"), "precious").unwrap();
        let tmp = make(&dir);
        fs::write(tmp.path.join("rubbish"), "x").unwrap();
        fs::rename(&tmp.path, &away).unwrap();
        std::os::unix::fs::symlink(&mine, &tmp.path).unwrap();
        let path = tmp.path.clone();
        tmp.remove().unwrap();
        assert!(fs::symlink_metadata(&path).is_err());
        assert!(mine.join("file").exists());
        assert_eq!(fs::read_dir(&away).unwrap().count(), 0, "what was moved away is empty");
    }

    #[test]
    fn modes_do_not_protect_rubbish() {
        let dir = tempfile::tempdir().unwrap();
        let tmp = make(&dir);
        let deep = tmp.path.join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "x").unwrap();
        for folder in ["a/b/c", "a/b", "a"] {
            fs::set_permissions(tmp.path.join(folder), fs::Permissions::from_mode(0o000)).unwrap();
        }
        fs::set_permissions(&tmp.path, fs::Permissions::from_mode(0o000)).unwrap();
        let path = tmp.path.clone();
        tmp.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_deeper_than_any_stack_or_descriptor_limit_goes_too() {
        let dir = tempfile::tempdir().unwrap();
        let tmp = make(&dir);
        let mut at = tmp.folder.try_clone().unwrap();
        for _ in 0..3000 {
            mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = openat(&at, "d", OPEN, Mode::empty()).unwrap();
        }
        drop(at);
        let path = tmp.path.clone();
        tmp.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn names_that_look_like_ours_and_odd_files_are_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let tmp = make(&dir);
        fs::create_dir_all(tmp.path.join(".lunation-removing-1/x/.lunation-removing-2/y")).unwrap();
        fs::write(tmp.path.join(".lunation-removing-2"), "x").unwrap();
        nix::unistd::mkfifo(&tmp.path.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(tmp.path.join("socket")).unwrap();
        let path = tmp.path.clone();
        tmp.remove().unwrap();
        assert!(!path.exists());
    }
}
