//! Room on the disk that is kept for the last records of a run, should the disk run full.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::error::JournalError;

/// Its size in bytes: an end with a list of a thousand paths fits.
const SIZE: usize = 64 << 10;
const FILE: &str = "reserve";

/// Takes the room.
pub(super) fn keep(run_dir: &Path) -> Result<(), JournalError> {
    let path = run_dir.join(FILE);
    let wrap = |error| JournalError::from_io("create", &path, error);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    let mut file = options.open(&path).map_err(wrap)?;
    // Not zeros: a file system that packs or leaves holes would keep no room for them.
    let bytes: Vec<u8> = (0..SIZE).map(|at| (at * 31 % 251) as u8).collect();
    file.write_all(&bytes).map_err(wrap)
}

/// Gives the room back; false when there was none.
pub(super) fn free(run_dir: &Path) -> bool {
    std::fs::remove_file(run_dir.join(FILE)).is_ok()
}
