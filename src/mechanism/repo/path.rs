//! Paths below the root of a repository, which are bytes and need not be text.
//!
//! Owns how such a path is shown and written. Guarantees that every path survives being written to a text file and
//! read again, and that showing one never sends a control character to a terminal.

use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path relative to the root, with `/` between its parts and none in front.
///
/// It is shown and written as text: bytes that are not UTF-8, control characters and `%` become `%` and two
/// hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct TreePath(Vec<u8>);

impl TreePath {
    /// Takes the bytes of a path relative to the root.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> TreePath {
        TreePath(bytes.into())
    }

    /// The bytes as the file system knows them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The same as a path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }
}

impl From<&Path> for TreePath {
    fn from(path: &Path) -> TreePath {
        TreePath(path.as_os_str().as_bytes().to_vec())
    }
}

impl From<String> for TreePath {
    fn from(text: String) -> TreePath {
        TreePath(unescape(&text))
    }
}

impl From<TreePath> for String {
    fn from(path: TreePath) -> String {
        path.to_string()
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&escape(&self.0))
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Bytes as text that [`unescape`] turns into the same bytes.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let hex = |text: &mut String, bytes: &[u8]| bytes.iter().for_each(|b| text.push_str(&format!("%{b:02x}")));
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() || letter == '%' {
                hex(&mut text, letter.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(letter);
            }
        }
        hex(&mut text, chunk.invalid());
    }
    text
}

/// The bytes of an escaped text; a `%` with no two digits after it stands for itself.
pub(crate) fn unescape(text: &str) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|b| (*b as char).to_digit(16)).map(|n| n as u8);
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push(high << 4 | low);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

/// The folder of a path and the last part of it.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// A path one level deeper.
pub(crate) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(folder.len() + 1 + name.len());
    path.extend_from_slice(folder);
    if !folder.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Is `path` below `folder`? The root (an empty path) has everything else below it.
pub(crate) fn is_below(path: &[u8], folder: &[u8]) -> bool {
    if folder.is_empty() {
        return !path.is_empty();
    }
    path.len() > folder.len() && path.starts_with(folder) && path[folder.len()] == b'/'
}

/// A name or path for the calls of the operating system.
pub(crate) fn os(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn odd_names_are_shown_without_control_characters() {
        assert_eq!(TreePath::new(*b"a\nb\xff%\x1b[2J").to_string(), "a%0ab%ff%25%1b[2J");
        assert_eq!(TreePath::new("grüße/ä b".as_bytes()).to_string(), "grüße/ä b");
    }

    #[test]
    fn below_is_about_whole_parts() {
        assert!(is_below(b"a/b", b"a"));
        assert!(!is_below(b"ab", b"a"));
        assert!(!is_below(b"a", b"a"));
        assert!(is_below(b"a", b""));
        assert!(!is_below(b"", b""));
    }

    proptest! {
        #[test]
        fn every_path_survives_being_written_and_read(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let path = TreePath::new(bytes);
            let text = serde_json::to_string(&path).expect("written");
            prop_assert_eq!(serde_json::from_str::<TreePath>(&text).expect("read"), path);
        }
    }
}
