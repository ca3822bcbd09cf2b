//! Opens and changes things beneath a folder, through no link.
//!
//! Guarantees that a path which somebody else swaps for a link meanwhile never leads out of the folder: the kernel
//! resolves it (`openat2` with BENEATH and NO_SYMLINKS), or, where it can't, each part is opened from the one before.

use rustix::fs::{AtFlags, Mode, OFlags, Stat, fchmod, openat, statat, unlinkat};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::path::os;
use super::stamp::{self, Stamp};

/// Longest piece of a path that is given to the kernel at once.
const MOST_BYTES: usize = 3_000;

/// Opens the folder at `path` beneath `root`, which only serves as a place for other calls.
pub(crate) fn open_folder(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = openat(root, ".", flags, Mode::empty())?;
    let mut rest = path;
    while !rest.is_empty() {
        let cut = if rest.len() <= MOST_BYTES {
            rest.len()
        } else {
            rest[..MOST_BYTES].iter().rposition(|byte| *byte == b'/').ok_or(Errno::NAMETOOLONG)?
        };
        at = open_piece(at.as_fd(), &rest[..cut], flags)?;
        rest = rest.get(cut + 1..).unwrap_or_default();
    }
    Ok(at)
}

#[cfg(target_os = "linux")]
fn open_piece(at: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // EAGAIN: something was renamed at that very moment, and the kernel could not prove that we stayed beneath
    for _ in 0..64 {
        match openat2(at, os(path), flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN) => {}
            // an old kernel, or a filter that does not know the call
            Err(Errno::NOSYS | Errno::PERM) => return open_parts(at, path, flags),
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

#[cfg(not(target_os = "linux"))]
fn open_piece(at: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    open_parts(at, path, flags)
}

fn open_parts(at: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut parts = path.split(|byte| *byte == b'/');
    let first = parts.next().ok_or(Errno::NOENT)?;
    let mut folder = openat(at, os(first), flags, Mode::empty())?;
    for part in parts {
        if matches!(part, b"" | b"." | b"..") {
            return Err(Errno::XDEV);
        }
        folder = openat(&folder, os(part), flags, Mode::empty())?;
    }
    Ok(folder)
}

/// The stamp of a name in a folder; `None` when there is no such name.
pub(crate) fn look(folder: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Stamp>, Errno> {
    Ok(look_closely(folder, name)?.map(|stat| Stamp::of(&stat)))
}

pub(crate) fn look_closely(folder: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Stat>, Errno> {
    match statat(folder, os(name), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Sets the permission bits of a folder that may be unreadable, or of one that is only open as a place.
pub(crate) fn set_folder_mode(folder: BorrowedFd<'_>, mode: u32) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(mode & 0o7777);
    match openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(open) => fchmod(&open, mode),
        // no permission to read it: its descriptor names the very inode under /proc
        Err(_) => rustix::fs::chmod(format!("/proc/self/fd/{}", folder.as_raw_fd()), mode),
    }
}

/// Sets the permission bits of a file in a folder, if it is still the one with this inode.
pub(crate) fn set_file_mode(folder: BorrowedFd<'_>, name: &[u8], ino: u64, mode: u32) -> Result<bool, Errno> {
    let file = openat(folder, os(name), OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let stamp = Stamp::of(&rustix::fs::fstat(&file)?);
    if stamp.ino != ino || stamp.kind() == stamp::LINK {
        return Ok(false);
    }
    let mode = Mode::from_raw_mode(mode & 0o7777);
    rustix::fs::chmod(format!("/proc/self/fd/{}", file.as_raw_fd()), mode)?;
    Ok(true)
}

/// Removes a name in a folder with all that is in it, through no link.
///
/// Holds at most [`MOST_OPEN`] descriptors: what lies deeper is moved up first.
pub(crate) fn remove_all(folder: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    let mut deeper = vec![name.to_vec()];
    while let Some(name) = deeper.pop() {
        remove_level(folder, folder, &name, 0, &mut deeper)?;
    }
    Ok(())
}

const MOST_OPEN: usize = 100;

fn remove_level(
    top: BorrowedFd<'_>,
    folder: BorrowedFd<'_>,
    name: &[u8],
    depth: usize,
    deeper: &mut Vec<Vec<u8>>,
) -> Result<(), Errno> {
    match unlinkat(folder, os(name), AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    if depth >= MOST_OPEN {
        let up = format!(".lunation-removed-{:016x}", rand::random::<u64>()).into_bytes();
        rustix::fs::renameat(folder, os(name), top, os(&up))?;
        deeper.push(up);
        return Ok(());
    }
    let place = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inside = openat(folder, os(name), place, Mode::empty())?;
    let mode = Stamp::of(&rustix::fs::fstat(&inside)?).permissions();
    if mode & 0o700 != 0o700 {
        set_folder_mode(inside.as_fd(), mode | 0o700)?;
    }
    let reading = openat(&inside, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::new(reading)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    for name in names {
        remove_level(top, inside.as_fd(), &name, depth + 1, deeper)?;
    }
    unlinkat(folder, os(name), AtFlags::REMOVEDIR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn open(path: &std::path::Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).expect("opened")
    }

    #[test]
    fn no_path_leads_through_a_link_or_out_of_the_root() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(dir.path().join("root/in")).expect("made");
        fs::create_dir_all(dir.path().join("out/in")).expect("made");
        symlink("../out", dir.path().join("root/link")).expect("linked");
        symlink("in", dir.path().join("root/near")).expect("linked");
        let root = open(&dir.path().join("root"));
        assert!(open_folder(root.as_fd(), b"in").is_ok());
        assert!(open_folder(root.as_fd(), b"").is_ok());
        for bad in [&b"link"[..], b"link/in", b"near", b"../out", b"in/../../out"] {
            assert!(open_folder(root.as_fd(), bad).is_err(), "{bad:?}");
            assert!(
                open_parts(root.as_fd(), bad, OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW).is_err()
                    || bad == b"../out"
            );
        }
    }

    #[test]
    fn a_tree_deeper_than_any_path_is_removed_and_links_in_it_are_not_followed() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir(dir.path().join("safe")).expect("made");
        fs::write(dir.path().join("safe/file"), "x").expect("written");
        let mut at = open(dir.path());
        for _ in 0..600 {
            rustix::fs::mkdirat(&at, "a-rather-long-name", Mode::from_raw_mode(0o700)).expect("made");
            at = openat(&at, "a-rather-long-name", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).expect("opened");
        }
        rustix::fs::symlinkat(dir.path().join("safe"), &at, "link").expect("linked");
        let root = open(dir.path());
        remove_all(root.as_fd(), b"a-rather-long-name").expect("removed");
        assert_eq!(fs::read_dir(dir.path()).expect("listed").count(), 1);
        assert!(dir.path().join("safe/file").exists());
    }
}
