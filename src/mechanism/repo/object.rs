//! Names of contents: ids as git makes them, and the bytes that they are made of.
//!
//! Owns ids, hashing and the encoding of trees. Must not know where objects are kept.
//! Guarantees that equal bytes have equal ids, and that bytes made to collide under SHA-1 do not (the hash detects
//! the known attacks and then gives another id, as git's own does).

use serde::{Deserialize, Serialize};
use sha1_checked::{Digest, Sha1};
use std::fmt;
use std::str::FromStr;

/// The id of an object in the shadow store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectId([u8; 20]);

/// The id of a captured tree: contents, modes, links, empty folders, and what was left alone. Two trees with one id
/// are equal in all of that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TreeId(ObjectId);

/// A text that is no object id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an object id: 40 hexadecimal digits are")]
pub struct BadObjectId(String);

/// What an object is; the numbers are those of git's pack format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Commit = 1,
    Tree = 2,
    Blob = 3,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Commit => "commit",
            Kind::Tree => "tree",
            Kind::Blob => "blob",
        }
    }
}

impl ObjectId {
    pub(crate) const fn from_bytes(bytes: [u8; 20]) -> ObjectId {
        ObjectId(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    pub(crate) fn to_git2(self) -> Result<git2::Oid, git2::Error> {
        git2::Oid::from_bytes(&self.0)
    }
}

impl TreeId {
    pub(crate) const fn new(id: ObjectId) -> TreeId {
        TreeId(id)
    }

    pub(crate) fn object(&self) -> ObjectId {
        self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl fmt::Display for TreeId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

impl FromStr for ObjectId {
    type Err = BadObjectId;
    fn from_str(text: &str) -> Result<ObjectId, BadObjectId> {
        let bad = || BadObjectId(text.chars().take(64).collect());
        let digits = text.as_bytes();
        if digits.len() != 40 {
            return Err(bad());
        }
        let mut bytes = [0; 20];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let nibble = |digit: u8| (digit as char).to_digit(16).map(|n| n as u8).ok_or_else(bad);
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(ObjectId(bytes))
    }
}

impl FromStr for TreeId {
    type Err = BadObjectId;
    fn from_str(text: &str) -> Result<TreeId, BadObjectId> {
        text.parse().map(TreeId)
    }
}

impl TryFrom<String> for ObjectId {
    type Error = BadObjectId;
    fn try_from(text: String) -> Result<ObjectId, BadObjectId> {
        text.parse()
    }
}

impl From<ObjectId> for String {
    fn from(id: ObjectId) -> String {
        id.to_string()
    }
}

/// Hashes an object whose bytes come in pieces.
pub(crate) struct Hasher(Sha1);

impl Hasher {
    /// Starts an object of a kind and a size that must come true.
    pub(crate) fn new(kind: Kind, size: u64) -> Hasher {
        let mut hash = Sha1::new();
        hash.update(format!("{} {size}\0", kind.word()).as_bytes());
        Hasher(hash)
    }

    /// Hashes bytes with no header, as the trailers of packs want it.
    pub(crate) fn bare() -> Hasher {
        Hasher(Sha1::new())
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> ObjectId {
        ObjectId(self.0.finalize().into())
    }
}

/// The id of an object whose bytes are at hand.
pub(crate) fn id_of(kind: Kind, bytes: &[u8]) -> ObjectId {
    let mut hasher = Hasher::new(kind, bytes.len() as u64);
    hasher.update(bytes);
    hasher.finish()
}

/// Modes that git's trees know.
pub(crate) mod tree_mode {
    pub(crate) const FOLDER: u32 = 0o040_000;
    pub(crate) const FILE: u32 = 0o100_644;
    pub(crate) const PROGRAM: u32 = 0o100_755;
    pub(crate) const LINK: u32 = 0o120_000;
}

/// One line of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TreeLine<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) mode: u32,
    pub(crate) id: ObjectId,
}

/// Encodes a tree; the lines may come in any order.
pub(crate) fn encode_tree(lines: &mut [TreeLine<'_>]) -> Vec<u8> {
    // git sorts folders as if their names ended with a slash
    let key = |line: &TreeLine<'_>, at: usize| match line.name.get(at) {
        Some(byte) => *byte,
        None if line.mode == tree_mode::FOLDER => b'/',
        None => 0,
    };
    lines.sort_unstable_by(|a, b| {
        let shared = a.name.len().min(b.name.len());
        a.name[..shared].cmp(&b.name[..shared]).then_with(|| key(a, shared).cmp(&key(b, shared)))
    });
    let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.name.len() + 28).sum());
    for line in lines.iter() {
        bytes.extend_from_slice(format!("{:o} ", line.mode).as_bytes());
        bytes.extend_from_slice(line.name);
        bytes.push(0);
        bytes.extend_from_slice(line.id.as_bytes());
    }
    bytes
}

/// Reads the lines of a tree; `None` when the bytes are no tree.
pub(crate) fn decode_tree(mut bytes: &[u8]) -> Option<Vec<TreeLine<'_>>> {
    let mut lines = Vec::new();
    while !bytes.is_empty() {
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let mode = u32::from_str_radix(std::str::from_utf8(&bytes[..space]).ok()?, 8).ok()?;
        let rest = &bytes[space + 1..];
        let end = rest.iter().position(|byte| *byte == 0)?;
        let id = rest.get(end + 1..end + 21)?;
        lines.push(TreeLine { name: &rest[..end], mode, id: ObjectId(id.try_into().ok()?) });
        bytes = &rest[end + 21..];
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_git() {
        assert_eq!(id_of(Kind::Blob, b"hello\n").to_string(), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(id_of(Kind::Tree, b"").to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    }

    #[test]
    fn an_id_survives_being_written_and_read_and_bad_ones_are_refused() {
        let id = id_of(Kind::Blob, b"x");
        assert_eq!(id.to_string().parse::<ObjectId>(), Ok(id));
        assert!("xyz".parse::<ObjectId>().is_err());
        assert!("g".repeat(40).parse::<ObjectId>().is_err());
        assert!("é".repeat(20).parse::<ObjectId>().is_err());
    }

    #[test]
    fn trees_sort_folders_as_git_does_and_survive_being_read() {
        let id = ObjectId::default();
        let mut lines = [
            TreeLine { name: b"a", mode: tree_mode::FOLDER, id },
            TreeLine { name: b"a.txt", mode: tree_mode::FILE, id },
            TreeLine { name: b"a0", mode: tree_mode::FILE, id },
        ];
        let bytes = encode_tree(&mut lines);
        let names: Vec<_> = decode_tree(&bytes).expect("a tree").iter().map(|l| l.name.to_vec()).collect();
        assert_eq!(names, [b"a.txt".to_vec(), b"a".to_vec(), b"a0".to_vec()]);
        assert!(decode_tree(b"100644 a\0short").is_none());
    }
}
