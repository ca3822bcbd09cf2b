//! Finding loop.lua the way git finds its folder: upwards from where one is.

use std::path::{Path, PathBuf};

use super::error::{ErrorKind, ScriptError};

/// Name of the script that is looked for.
pub const SCRIPT_NAME: &str = "loop.lua";

/// Looks for `loop.lua` in `from` and its parents. It stops below the root of the repository (a folder that holds
/// `.git`) and at the root of the file system.
///
/// # Errors
/// `NotFound`, naming the folders that were looked into and what to type.
pub fn find(from: &Path) -> Result<PathBuf, ScriptError> {
    let mut looked = Vec::new();
    for folder in from.ancestors() {
        let candidate = folder.join(SCRIPT_NAME);
        if candidate.is_file() {
            return Ok(candidate);
        }
        looked.push(folder.display().to_string());
        if folder.join(".git").exists() {
            break;
        }
    }
    let most = 4;
    let more = if looked.len() > most { ", …" } else { "" };
    looked.truncate(most);
    Err(ScriptError::new(
        ErrorKind::NotFound,
        format!(
            "there is no {SCRIPT_NAME} in {}{more}: `lunation init` writes one, `-f FILE` names another",
            looked.join(", ")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_nearest_script_upwards_is_found() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir(root.path().join(".git")).unwrap();
        fs::write(root.path().join(SCRIPT_NAME), "return 1").unwrap();
        assert_eq!(find(&deep).unwrap(), root.path().join(SCRIPT_NAME));
        fs::write(root.path().join("a").join(SCRIPT_NAME), "return 2").unwrap();
        assert_eq!(find(&deep).unwrap(), root.path().join("a").join(SCRIPT_NAME));
    }

    #[test]
    fn the_root_of_the_repository_ends_the_search() {
        let root = tempfile::tempdir().unwrap();
        let repository = root.path().join("repository");
        fs::create_dir_all(repository.join(".git")).unwrap();
        fs::create_dir(repository.join("src")).unwrap();
        fs::write(root.path().join(SCRIPT_NAME), "return 1").unwrap();
        let error = find(&repository.join("src")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert!(error.message.contains("lunation init"), "{error}");
    }
}
