//! Finding a program as a shell would, but from values that are passed in. Starts nothing.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

use super::ProcessError;

/// Finds `name`: a path when it contains a `/` (relative to `cwd`), else the first executable file of that name in the
/// folders of `path` (colon-separated, as in `PATH`; an empty one means `cwd`).
///
/// # Errors
/// [`ProcessError::NotFound`] when no such file is there, [`ProcessError::NotExecutable`] when there is one that can't
/// be run.
pub fn find_program(name: &OsStr, path: &OsStr, cwd: &Path) -> Result<PathBuf, ProcessError> {
    let not_found = |searched| ProcessError::NotFound { program: name.into(), searched };
    if name.is_empty() {
        return Err(not_found(Vec::new()));
    }
    if name.as_bytes().contains(&b'/') {
        let file = cwd.join(name);
        return match fitness(&file) {
            Fitness::Runs => Ok(file),
            Fitness::Missing => Err(not_found(Vec::new())),
            Fitness::Unfit(why) => Err(ProcessError::NotExecutable { program: file, why }),
        };
    }
    let mut unfit = None;
    let mut searched = Vec::new();
    for folder in path.as_bytes().split(|&b| b == b':') {
        let folder = cwd.join(OsStr::from_bytes(folder));
        let file = folder.join(name);
        match fitness(&file) {
            Fitness::Runs => return Ok(file),
            Fitness::Missing => {}
            Fitness::Unfit(why) => {
                unfit.get_or_insert(ProcessError::NotExecutable { program: file, why });
            }
        }
        searched.push(folder);
    }
    Err(unfit.unwrap_or_else(|| not_found(searched)))
}

enum Fitness {
    Runs,
    Missing,
    Unfit(String),
}

fn fitness(file: &Path) -> Fitness {
    match std::fs::metadata(file) {
        Ok(meta) if meta.is_dir() => Fitness::Unfit("it is a folder".into()),
        Ok(meta) if !meta.is_file() => Fitness::Unfit("it is not a regular file".into()),
        Ok(_) if access(file, Access::EXEC_OK).is_err() => {
            Fitness::Unfit("it is not executable; run chmod +x on it".into())
        }
        Ok(_) => Fitness::Runs,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Fitness::Unfit("its folder can't be searched (permission denied)".into())
        }
        Err(_) => Fitness::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    fn put(path: &Path, mode: u32) {
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_name_is_looked_up_in_the_path_that_is_given() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        fs::create_dir_all(&a).unwrap();
        fs::create_dir_all(b.join("tool")).unwrap();
        put(&a.join("tool"), 0o755);
        let path = format!("{}:{}", b.display(), a.display());
        let found = find_program("tool".as_ref(), path.as_ref(), Path::new("/")).unwrap();
        assert_eq!(found, a.join("tool"));
    }

    #[test]
    fn a_missing_program_names_the_folders_that_were_searched() {
        let error = find_program("no-such-tool".as_ref(), "/usr/bin:/bin".as_ref(), Path::new("/")).unwrap_err();
        assert_eq!(error.to_string(), "program \"no-such-tool\" was not found (searched: /usr/bin, /bin)");
    }

    #[test]
    fn a_file_without_the_x_bit_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        put(&dir.path().join("tool"), 0o644);
        for (name, path) in [("./tool", ""), ("tool", dir.path().to_str().unwrap())] {
            let error = find_program(name.as_ref(), path.as_ref(), dir.path()).unwrap_err();
            assert!(error.to_string().contains("chmod +x"), "{error}");
        }
    }

    #[test]
    fn a_path_is_relative_to_the_working_folder() {
        let dir = tempfile::tempdir().unwrap();
        put(&dir.path().join("tool"), 0o755);
        let found = find_program("./tool".as_ref(), "".as_ref(), dir.path()).unwrap();
        assert!(found.ends_with("tool") && found.is_absolute());
        assert!(matches!(
            find_program("./other".as_ref(), "/bin".as_ref(), dir.path()),
            Err(ProcessError::NotFound { .. })
        ));
        assert!(matches!(find_program("".as_ref(), "/bin".as_ref(), dir.path()), Err(ProcessError::NotFound { .. })));
    }
}
