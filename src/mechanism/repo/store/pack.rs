//! Writes objects as a git pack with its index (version 2 of both), with no deltas.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::super::error::RepoError;
use super::super::object::{Hasher, Kind, ObjectId};

/// An object as it stands in a pack.
pub(super) struct Packed {
    id: ObjectId,
    crc: u32,
    bytes: Vec<u8>,
}

impl Packed {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Encodes an object: kind and size in steps of 4 and then 7 bits, then the compressed content.
pub(super) fn encode(kind: Kind, id: ObjectId, content: &[u8]) -> std::io::Result<Packed> {
    let mut head = Vec::with_capacity(content.len() / 2 + 32);
    let mut left = content.len() as u64;
    let mut byte = (kind as u8) << 4 | (left & 15) as u8;
    left >>= 4;
    while left > 0 {
        head.push(byte | 0x80);
        byte = (left & 0x7f) as u8;
        left >>= 7;
    }
    head.push(byte);
    let mut encoder = ZlibEncoder::new(head, Compression::fast());
    encoder.write_all(content)?;
    let bytes = encoder.finish()?;
    let mut crc = flate2::Crc::new();
    crc.update(&bytes);
    Ok(Packed { id, crc: crc.sum(), bytes })
}

/// Writes the pack, then its index, each whole. Returns the two files.
pub(super) fn write(mut objects: Vec<Packed>, temporary: &Path, folder: &Path) -> Result<[PathBuf; 2], RepoError> {
    objects.sort_unstable_by_key(|object| object.id);
    objects.dedup_by_key(|object| object.id);
    let mut pack = Vec::with_capacity(objects.iter().map(Packed::len).sum::<usize>() + 64);
    pack.extend_from_slice(b"PACK\0\0\0\x02");
    pack.extend_from_slice(&(objects.len() as u32).to_be_bytes());
    let mut offsets = Vec::with_capacity(objects.len());
    for object in &objects {
        offsets.push(pack.len() as u64);
        pack.extend_from_slice(&object.bytes);
    }
    let pack_hash = trailer(&mut pack);
    let index = encode_index(&objects, &offsets, pack_hash);
    let mut files = [PathBuf::new(), PathBuf::new()];
    for (at, (extension, bytes)) in [("pack", &pack), ("idx", &index)].into_iter().enumerate() {
        let temporary = temporary.with_extension(extension);
        let target = folder.join(format!("pack-{pack_hash}.{extension}"));
        let written = write_new(&temporary, bytes)
            .and_then(|()| fs::rename(&temporary, &target).map_err(RepoError::io(&target, "renaming into place")));
        if let Err(error) = written {
            // best effort: what stays is removed as a leftover at a later start
            let _ = fs::remove_file(&temporary);
            return Err(error);
        }
        files[at] = target;
    }
    Ok(files)
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<(), RepoError> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o444)
        .open(path)
        .map_err(RepoError::io(path, "making the file"))?;
    file.write_all(bytes).map_err(RepoError::io(path, "writing"))
}

fn trailer(bytes: &mut Vec<u8>) -> ObjectId {
    let mut hasher = Hasher::bare();
    hasher.update(bytes);
    let hash = hasher.finish();
    bytes.extend_from_slice(hash.as_bytes());
    hash
}

fn encode_index(objects: &[Packed], offsets: &[u64], pack_hash: ObjectId) -> Vec<u8> {
    let mut index = Vec::with_capacity(1072 + objects.len() * 28);
    index.extend_from_slice(b"\xfftOc\0\0\0\x02");
    let mut counts = [0_u32; 256];
    objects.iter().for_each(|object| counts[object.id.as_bytes()[0] as usize] += 1);
    let mut sum = 0;
    for count in counts {
        sum += count;
        index.extend_from_slice(&sum.to_be_bytes());
    }
    objects.iter().for_each(|object| index.extend_from_slice(object.id.as_bytes()));
    objects.iter().for_each(|object| index.extend_from_slice(&object.crc.to_be_bytes()));
    // an offset beyond 31 bits stands in a second table
    let mut far = Vec::new();
    for offset in offsets {
        let word = match u32::try_from(*offset) {
            Ok(near) if near < 1 << 31 => near,
            _ => {
                far.push(*offset);
                0x8000_0000 | (far.len() - 1) as u32
            }
        };
        index.extend_from_slice(&word.to_be_bytes());
    }
    far.iter().for_each(|offset| index.extend_from_slice(&offset.to_be_bytes()));
    index.extend_from_slice(pack_hash.as_bytes());
    trailer(&mut index);
    index
}
