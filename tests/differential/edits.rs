//! Random trees and random edits of them.

use rand::RngExt;
use rand::rngs::StdRng;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const NAMES: [&[u8]; 14] = [
    b"a",
    b"b.rs",
    b"c c",
    b"d\n",
    b"\xff\xfe",
    b"e.log",
    b"build",
    b"*",
    b"-x",
    b"q\"",
    "ü".as_bytes(),
    b".h",
    b"t\tt",
    b"\\",
];

fn pick<T: Copy>(dice: &mut StdRng, from: &[T]) -> T {
    from[dice.random_range(0..from.len())]
}

fn name(dice: &mut StdRng) -> PathBuf {
    let parts: Vec<_> = (0..dice.random_range(1..4)).map(|_| pick(dice, &NAMES)).collect();
    PathBuf::from(std::ffi::OsStr::from_bytes(&parts.join(&b"/"[..])))
}

fn content(dice: &mut StdRng) -> Vec<u8> {
    let size = pick(dice, &[0, 1, 5, 100, 5_000]);
    (0..size).map(|_| dice.random_range(b'a'..b'f')).collect()
}

/// Everything below, sorted, but git folders and ignore files.
fn paths(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if name != ".git" && name != ".gitignore" {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(path.clone());
                }
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Makes a random tree.
pub(crate) fn plant(dice: &mut StdRng, root: &Path) {
    for _ in 0..dice.random_range(3..40) {
        make(dice, root);
    }
}

fn make(dice: &mut StdRng, root: &Path) {
    let path = root.join(name(dice));
    // a file may stand where a folder is wanted; nothing is made then
    let parent = path.parent().map(fs::create_dir_all);
    if !matches!(parent, Some(Ok(()))) || path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
        return;
    }
    let made = if dice.random_range(0..8) == 0 && path.symlink_metadata().is_err() {
        symlink(name(dice), &path)
    } else {
        fs::write(&path, content(dice))
    };
    let _ = made;
}

/// One random edit; some can't be made and are none then.
pub(crate) fn edit(dice: &mut StdRng, root: &Path) {
    let all = paths(root);
    if all.is_empty() || dice.random_range(0..3) == 0 {
        return make(dice, root);
    }
    let path = &all[dice.random_range(0..all.len())];
    let Ok(meta) = path.symlink_metadata() else { return };
    let done = match dice.random_range(0..9) {
        0 | 1 if meta.is_dir() => fs::remove_dir_all(path),
        0..=2 if !meta.is_dir() => fs::remove_file(path),
        3 if !meta.is_symlink() => {
            let mode = pick(dice, &[0o644, 0o755, 0o600, 0o700, 0o444]) | if meta.is_dir() { 0o700 } else { 0 };
            fs::set_permissions(path, fs::Permissions::from_mode(mode))
        }
        4 => fs::rename(path, root.join(name(dice))),
        5 if meta.is_file() => fs::read(path).and_then(|mut bytes| {
            // the same size and the same time
            bytes.iter_mut().take(1).for_each(|byte| *byte = byte.wrapping_add(1));
            fs::write(path, bytes)?;
            fs::OpenOptions::new().write(true).open(path)?.set_modified(meta.modified()?)
        }),
        6 if !meta.is_dir() => fs::remove_file(path).and_then(|()| fs::create_dir(path)),
        7 if meta.is_dir() => fs::remove_dir_all(path).and_then(|()| fs::write(path, "a file now")),
        8 if meta.is_file() => fs::remove_file(path).and_then(|()| symlink("elsewhere", path)),
        _ => Ok(()),
    };
    let _ = done;
}

/// Something that changes what git looks at.
pub(crate) fn hide(dice: &mut StdRng, root: &Path) {
    let rules = pick(dice, &["", "*\n", "*.log\nbuild/\na\n*.rs\n", "build/\n!e.log\n"]);
    let file = pick(dice, &[".gitignore", ".git/info/exclude", "a/.gitignore"]);
    let path = root.join(file);
    if path.parent().is_some_and(Path::is_dir) {
        fs::write(path, rules).expect("written");
    }
}

/// By the rules of the checkpoint, `*.log` and `build/`; takes a path as it is shown.
pub(crate) fn was_ignored(path: &str) -> bool {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    folders.split('/').any(|part| part == "build") || path.split('/').any(|part| part.ends_with(".log"))
}
