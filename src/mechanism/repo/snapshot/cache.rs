//! The last look at a tree, kept on disk between runs so that the next run need not read every file again.
//!
//! It holds nothing that can't be made again by looking: a file that is damaged, of another version or of another
//! store is as good as none.

use std::path::Path;
use std::sync::Arc;

use super::super::error::RepoError;
use super::super::object::ObjectId;
use super::super::stamp::Stamp;
use super::super::store::write_whole;
use super::{Census, Entry, File, Folder, Left, Node};
use sha2::{Digest, Sha256};

const HEAD: &[u8] = b"lunation-look 2\n";
/// Deeper than any walk goes.
const MOST_LEVELS: usize = 300;

/// Writes the look to a file. `mark`: that of the store which holds the contents.
pub(crate) fn save_cache(path: &Path, mark: &str, root: &Folder) -> Result<(), RepoError> {
    let mut bytes = HEAD.to_vec();
    bytes.extend_from_slice(mark.as_bytes());
    bytes.push(0);
    put_folder(&mut bytes, root);
    let sum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&sum);
    write_whole(path, &bytes, false)
}

/// Reads the look of an earlier run; `None` when there is none that can be used.
pub(crate) fn load_cache(path: &Path, mark: &str) -> Option<Arc<Folder>> {
    let bytes = std::fs::read(path).ok()?;
    let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
    if Sha256::digest(body).as_slice() != sum {
        return None;
    }
    let rest = body.strip_prefix(HEAD)?.strip_prefix(mark.as_bytes())?.strip_prefix(b"\0")?;
    let mut input = Input(rest);
    let root = input.folder(0)?;
    input.0.is_empty().then(|| Arc::new(root))
}

fn put_stamp(out: &mut Vec<u8>, stamp: &Stamp) {
    out.extend_from_slice(&stamp.mtime.to_le_bytes());
    out.extend_from_slice(&stamp.ctime.to_le_bytes());
    out.extend_from_slice(&stamp.size.to_le_bytes());
    out.extend_from_slice(&stamp.ino.to_le_bytes());
    out.extend_from_slice(&stamp.mode.to_le_bytes());
}

fn put_folder(out: &mut Vec<u8>, folder: &Folder) {
    out.extend_from_slice(&folder.mode.to_le_bytes());
    out.extend_from_slice(&folder.ino.to_le_bytes());
    out.extend_from_slice(folder.tree.as_bytes());
    out.extend_from_slice(&(folder.entries.len() as u32).to_le_bytes());
    for entry in &folder.entries {
        out.extend_from_slice(&(entry.name.len() as u32).to_le_bytes());
        out.extend_from_slice(&entry.name);
        match &entry.node {
            Node::File(file) => {
                out.push(b'f');
                put_stamp(out, &file.stamp);
                out.extend_from_slice(file.id.as_bytes());
                out.push(u8::from(file.racy) | u8::from(file.kept) << 1);
            }
            Node::Folder(folder) => {
                out.push(b'd');
                put_folder(out, folder);
            }
            Node::Kept(folder) => {
                out.push(b'k');
                put_folder(out, folder);
            }
            Node::Special { stamp, device } => {
                out.push(b's');
                put_stamp(out, stamp);
                out.extend_from_slice(&device.to_le_bytes());
            }
            Node::Left { stamp, why } => {
                out.push(b'l');
                put_stamp(out, stamp);
                out.push(*why as u8);
            }
            Node::Ignored { ino, folder } => {
                out.push(b'i');
                out.extend_from_slice(&ino.to_le_bytes());
                out.push(u8::from(*folder));
            }
            Node::NestedGit { stamp, id } => {
                out.push(b'g');
                put_stamp(out, stamp);
                out.extend_from_slice(id.unwrap_or_default().as_bytes());
                out.push(u8::from(id.is_some()));
            }
        }
    }
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn stamp(&mut self) -> Option<Stamp> {
        Some(Stamp {
            mtime: i64::from_le_bytes(self.take()?),
            ctime: i64::from_le_bytes(self.take()?),
            size: u64::from_le_bytes(self.take()?),
            ino: u64::from_le_bytes(self.take()?),
            mode: u32::from_le_bytes(self.take()?),
        })
    }

    fn folder(&mut self, depth: usize) -> Option<Folder> {
        if depth > MOST_LEVELS {
            return None;
        }
        let mode = u32::from_le_bytes(self.take()?);
        let ino = u64::from_le_bytes(self.take()?);
        let tree = ObjectId::from_bytes(self.take()?);
        let count = u32::from_le_bytes(self.take()?);
        let mut entries = Vec::new();
        for _ in 0..count {
            let length = u32::from_le_bytes(self.take()?) as usize;
            let (name, rest) = self.0.split_at_checked(length)?;
            self.0 = rest;
            let node = self.node(depth)?;
            entries.push(Entry { name: name.into(), verdict: None, node });
        }
        // rules and the verdicts under them are made again
        let (census, ruled_by) = (Census::of(&entries), ObjectId::default());
        Some(Folder { mode, ino, times: (0, 0), entries, rules: None, ruled_by, forced: false, census, tree })
    }

    fn node(&mut self, depth: usize) -> Option<Node> {
        Some(match self.byte()? {
            b'f' => {
                let stamp = self.stamp()?;
                let id = ObjectId::from_bytes(self.take()?);
                let flags = self.byte()?;
                Node::File(File { stamp, id, racy: flags & 1 != 0, kept: flags & 2 != 0 })
            }
            b'd' => Node::Folder(Arc::new(self.folder(depth + 1)?)),
            b'k' => Node::Kept(Arc::new(self.folder(depth + 1)?)),
            b's' => Node::Special { stamp: self.stamp()?, device: u64::from_le_bytes(self.take()?) },
            b'l' => {
                let stamp = self.stamp()?;
                let kinds = [Left::OverCap, Left::Unreadable, Left::UnreadableFolder, Left::TooDeep];
                let why = self.byte()?;
                Node::Left { stamp, why: kinds.into_iter().find(|kind| *kind as u8 == why)? }
            }
            b'i' => Node::Ignored { ino: u64::from_le_bytes(self.take()?), folder: self.byte()? != 0 },
            b'g' => {
                let stamp = self.stamp()?;
                let id = ObjectId::from_bytes(self.take()?);
                let there = self.byte()? != 0;
                Node::NestedGit { stamp, id: there.then_some(id) }
            }
            _ => return None,
        })
    }
}
