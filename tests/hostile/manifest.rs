//! An independent look at a folder: kinds, modes, contents, links, and times where they are asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// Path to what is there, in words.
pub(crate) type Manifest = BTreeMap<String, String>;

/// Everything below a folder, but objects and the records of lunation in a git folder.
pub(crate) fn of(root: &Path) -> Manifest {
    let mut found = Manifest::new();
    add(root, root, &mut found);
    found
}

fn is_passed_over(path: &[u8]) -> bool {
    path == b".git/objects" || path == b".git/lunation"
}

fn add(root: &Path, folder: &Path, found: &mut Manifest) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(root).expect("below the root").as_os_str().as_bytes();
        if is_passed_over(name) {
            continue;
        }
        let meta = fs::symlink_metadata(&path).expect("looked at");
        let kind = meta.file_type();
        let mut words = format!("{:o}", meta.mode());
        if kind.is_symlink() {
            words.push_str(&format!(" -> {:?}", fs::read_link(&path).expect("a link")));
        } else if kind.is_file() {
            let content = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            words.push_str(&format!(" {:x?}", &Sha256::digest(&content)[..8]));
        } else if kind.is_fifo() || kind.is_socket() {
            words.push_str(" special");
        }
        found.insert(name.escape_ascii().to_string(), words);
        if kind.is_dir() {
            add(root, &path, found);
        }
    }
}

/// What differs, a line each; empty when nothing does.
pub(crate) fn differences(before: &Manifest, now: &Manifest) -> String {
    let paths: BTreeSet<_> = now.keys().chain(before.keys()).collect();
    let differs = paths.into_iter().filter(|path| now.get(*path) != before.get(*path));
    differs.map(|path| format!("  {path}: was {:?}, is {:?}\n", before.get(path), now.get(path))).collect()
}
