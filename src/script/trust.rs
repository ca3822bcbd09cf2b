//! Which scripts the user has agreed to run, pinned by content.
//!
//! Owns one file in the state folder: per workspace, the SHA-256 of the script and of each module. Must not know how the
//! user is asked. Guarantees that the file is replaced whole, readable by its owner alone, and that a file that cannot be
//! understood is an error, never "trusted".

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::manifest::Manifest;

/// Version of the file's format; a newer one is refused.
const FORMAT: u32 = 1;

/// The answer to "may this run?".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trusted {
    /// Every file is as it was when the user agreed.
    Trusted,
    /// The user was never asked about this script.
    Unknown,
    /// These files changed, appeared or vanished since; by shown name.
    Changed {
        /// The names, sorted.
        files: Vec<String>,
    },
}

/// A trust store that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It cannot be read or written.
    #[error("the trust store {path} cannot be used: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is damaged.
    #[error("the trust store {path} cannot be understood ({problem}): remove it and run `lunation trust` again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A newer lunation wrote it.
    #[error("the trust store {path} has format {found}, this lunation knows up to {FORMAT}: use the newer lunation")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
}

/// The store as it is on disk.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    format: u32,
    /// By real path of the script: its files' digests by real path.
    scripts: BTreeMap<String, BTreeMap<String, String>>,
}

/// The trust store.
#[derive(Debug, Clone)]
pub struct Trust {
    path: PathBuf,
}

impl Trust {
    /// The store in this file, which need not exist yet; its folder must be the user's own.
    pub fn new(path: impl Into<PathBuf>) -> Trust {
        Trust { path: path.into() }
    }

    /// Compares a script's files with what was agreed to.
    ///
    /// # Errors
    /// When the store cannot be read or understood.
    pub fn check(&self, manifest: &Manifest) -> Result<Trusted, TrustError> {
        let stored = self.read()?;
        let Some(agreed) = key(manifest).and_then(|key| stored.scripts.get(&key)) else {
            return Ok(Trusted::Unknown);
        };
        let mut files: Vec<String> = manifest
            .code()
            .filter(|entry| agreed.get(&*entry.path.to_string_lossy()) != Some(&entry.sha256))
            .map(|entry| entry.name.clone())
            .collect();
        files.extend(
            agreed
                .keys()
                .filter(|path| !manifest.code().any(|entry| entry.path.to_string_lossy() == path.as_str()))
                .cloned(),
        );
        files.sort();
        Ok(if files.is_empty() { Trusted::Trusted } else { Trusted::Changed { files } })
    }

    /// Records that the user agreed to these files.
    ///
    /// # Errors
    /// When the store cannot be read, understood or written.
    pub fn grant(&self, manifest: &Manifest) -> Result<(), TrustError> {
        let Some(key) = key(manifest) else { return Ok(()) };
        let mut stored = self.read()?;
        stored.format = FORMAT;
        let files = manifest.code().map(|entry| (entry.path.to_string_lossy().into_owned(), entry.sha256.clone()));
        stored.scripts.insert(key, files.collect());
        self.write(&stored)
    }

    fn read(&self) -> Result<Stored, TrustError> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Stored { format: FORMAT, ..Stored::default() });
            }
            Err(source) => return Err(self.io(source)),
        };
        let stored: Stored = serde_json::from_slice(&bytes)
            .map_err(|error| TrustError::Damaged { path: self.path.clone(), problem: error.to_string() })?;
        if stored.format > FORMAT {
            return Err(TrustError::Newer { path: self.path.clone(), found: stored.format });
        }
        Ok(stored)
    }

    fn write(&self, stored: &Stored) -> Result<(), TrustError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(|e| self.io(e))?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|e| self.io(e))?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o600)).map_err(|e| self.io(e))?;
        serde_json::to_writer_pretty(&mut file, stored).map_err(|e| self.io(e.into()))?;
        file.write_all(b"\n").map_err(|e| self.io(e))?;
        file.as_file().sync_all().map_err(|e| self.io(e))?;
        file.persist(&self.path).map_err(|e| self.io(e.error))?;
        Ok(())
    }

    fn io(&self, source: std::io::Error) -> TrustError {
        TrustError::Io { path: self.path.clone(), source }
    }
}

/// A script is known by its own path.
fn key(manifest: &Manifest) -> Option<String> {
    manifest.code().next().map(|script| script.path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::manifest::FileRole;

    fn manifest(files: &[(&str, &str)]) -> Manifest {
        let mut manifest = Manifest::default();
        for (at, (name, text)) in files.iter().enumerate() {
            let role = if at == 0 { FileRole::Script } else { FileRole::Module };
            manifest.add(role, &Path::new("/project").join(name), name, text.as_bytes());
        }
        manifest
    }

    #[test]
    fn a_script_is_unknown_then_trusted_then_changed() {
        let folder = tempfile::tempdir().unwrap();
        let trust = Trust::new(folder.path().join("state/trust.json"));
        let first = manifest(&[("loop.lua", "return 1"), ("m.lua", "return {}")]);
        assert_eq!(trust.check(&first).unwrap(), Trusted::Unknown);
        trust.grant(&first).unwrap();
        assert_eq!(trust.check(&first).unwrap(), Trusted::Trusted);
        let edited = manifest(&[("loop.lua", "return 1"), ("m.lua", "return { evil = 1 }")]);
        assert_eq!(trust.check(&edited).unwrap(), Trusted::Changed { files: vec!["m.lua".into()] });
        let dropped = manifest(&[("loop.lua", "return 1")]);
        assert_eq!(trust.check(&dropped).unwrap(), Trusted::Changed { files: vec!["/project/m.lua".into()] });
        let more = manifest(&[("loop.lua", "return 1"), ("m.lua", "return {}"), ("n.lua", "")]);
        assert_eq!(trust.check(&more).unwrap(), Trusted::Changed { files: vec!["n.lua".into()] });
    }

    #[test]
    fn the_store_is_the_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trust.json");
        Trust::new(&path).grant(&manifest(&[("loop.lua", "return 1")])).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_or_newer_store_is_never_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trust.json");
        let script = manifest(&[("loop.lua", "return 1")]);
        fs::write(&path, "{ half").unwrap();
        assert!(matches!(Trust::new(&path).check(&script), Err(TrustError::Damaged { .. })));
        fs::write(&path, r#"{ "format": 2, "scripts": {} }"#).unwrap();
        assert!(matches!(Trust::new(&path).check(&script), Err(TrustError::Newer { found: 2, .. })));
    }

    #[test]
    fn a_prompt_file_is_no_matter_of_trust() {
        let folder = tempfile::tempdir().unwrap();
        let trust = Trust::new(folder.path().join("trust.json"));
        let mut script = manifest(&[("loop.lua", "return 1")]);
        trust.grant(&script).unwrap();
        script.add(FileRole::Prompt, Path::new("/project/PROMPT.md"), "PROMPT.md", b"do it");
        assert_eq!(trust.check(&script).unwrap(), Trusted::Trusted);
    }
}
