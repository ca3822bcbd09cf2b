//! What a script consists of: every file that was read to load it, by content.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// What a file is to the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileRole {
    /// The script itself.
    Script,
    /// A module that it requires.
    Module,
    /// A prompt file.
    Prompt,
}

impl FileRole {
    /// True where a change of the file changes what runs, so that trust hangs on it.
    pub fn is_code(self) -> bool {
        matches!(self, FileRole::Script | FileRole::Module)
    }
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestEntry {
    /// What it is.
    pub role: FileRole,
    /// Its real path.
    pub path: PathBuf,
    /// As it is shown: relative to the workspace where it is inside.
    pub name: String,
    /// SHA-256 of its bytes as read, in hexadecimal digits.
    pub sha256: String,
}

/// All files of a script, the script first, then in the order in which they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The files.
    pub entries: Vec<ManifestEntry>,
}

impl Manifest {
    /// Adds a file; a second reading of the same file changes nothing.
    pub(super) fn add(&mut self, role: FileRole, path: &Path, name: &str, bytes: &[u8]) {
        if self.entries.iter().any(|entry| entry.path == path && entry.role.is_code() == role.is_code()) {
            return;
        }
        self.entries.push(ManifestEntry { role, path: path.to_owned(), name: name.to_owned(), sha256: digest(bytes) });
    }

    /// The script and its modules: what trust is about.
    pub fn code(&self) -> impl Iterator<Item = &ManifestEntry> {
        self.entries.iter().filter(|entry| entry.role.is_code())
    }

    /// One digest over script and modules, names included: the script's identity in a journal.
    pub fn script_hash(&self) -> String {
        let mut hash = Sha256::new();
        for entry in self.code() {
            hash.update(entry.name.as_bytes());
            hash.update([0]);
            hash.update(entry.sha256.as_bytes());
            hash.update([0]);
        }
        hex(&hash.finalize())
    }
}

/// SHA-256 in hexadecimal digits.
pub(super) fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
