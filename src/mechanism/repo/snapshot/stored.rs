//! Captured folders in the shadow store: git's tree with a record beside it, and back.

use std::sync::Arc;

use super::super::error::RepoError;
use super::super::object::{Kind, ObjectId, TreeId, TreeLine, decode_tree, encode_tree, tree_mode};
use super::super::path::join;
use super::super::stamp::{self, Stamp};
use super::super::store::Store;
use super::record::{Extras, kept_record, read_record, tree_record};
use super::{Census, Entry, File, Folder, Node, Rules};

/// A folder and the id that it has in the store.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) root: Arc<Folder>,
    pub(crate) id: TreeId,
}

/// Keeps a captured folder. `times`: name of files whose mtime is kept too.
pub(crate) fn store_tree(store: &mut Store, root: &Arc<Folder>, times: Option<&[u8]>) -> Result<Stored, RepoError> {
    let record = store.put(Kind::Blob, tree_record(root, times).as_bytes())?;
    let mut lines = [
        TreeLine { name: b"files", mode: tree_mode::FOLDER, id: root.tree },
        TreeLine { name: b"record", mode: tree_mode::FILE, id: record },
    ];
    let id = store.put(Kind::Tree, &encode_tree(&mut lines))?;
    Ok(Stored { root: root.clone(), id: TreeId::new(id) })
}

/// Keeps what was ignored in a captured folder.
pub(crate) fn store_kept(store: &mut Store, root: &Folder) -> Result<ObjectId, RepoError> {
    let (text, mut contents) = kept_record(root);
    contents.sort_unstable();
    contents.dedup();
    let names: Vec<_> = contents.iter().map(|id| (id.to_string(), *id)).collect();
    let mut lines: Vec<_> =
        names.iter().map(|(name, id)| TreeLine { name: name.as_bytes(), mode: tree_mode::FILE, id: *id }).collect();
    let contents = store.put(Kind::Tree, &encode_tree(&mut lines))?;
    let record = store.put(Kind::Blob, text.as_bytes())?;
    let mut lines = [
        TreeLine { name: b"contents", mode: tree_mode::FOLDER, id: contents },
        TreeLine { name: b"record", mode: tree_mode::FILE, id: record },
    ];
    store.put(Kind::Tree, &encode_tree(&mut lines))
}

/// Reads a captured folder back. Its stamps are empty, so they prove nothing.
pub(crate) fn load_folder(
    store: &mut Store,
    id: TreeId,
    kept: Option<ObjectId>,
    fold_case: bool,
) -> Result<Stored, RepoError> {
    let mut extras = Extras::default();
    let (files, record) = parts(store, id.object(), b"files")?;
    let root_mode = read(store, record, &mut extras)?.unwrap_or(stamp::FOLDER | 0o755);
    if let Some(kept) = kept {
        let (_, record) = parts(store, kept, b"contents")?;
        read(store, record, &mut extras)?;
    }
    let root = load(store, files, root_mode, &[], &mut extras, fold_case)?;
    Ok(Stored { root: Arc::new(root), id })
}

fn damaged(store: &Store, what: String) -> RepoError {
    RepoError::Store { store: store.dir().to_path_buf(), what }
}

/// The two parts of a stored folder: a tree under `name`, and the record.
fn parts(store: &mut Store, id: ObjectId, name: &[u8]) -> Result<(ObjectId, ObjectId), RepoError> {
    let bytes = store.read(id)?;
    let lines = decode_tree(&bytes).unwrap_or_default();
    let find = |name: &[u8]| lines.iter().find(|line| line.name == name).map(|line| line.id);
    match (find(name), find(b"record")) {
        (Some(tree), Some(record)) => Ok((tree, record)),
        _ => Err(damaged(store, format!("{id} is no captured tree"))),
    }
}

fn read(store: &mut Store, record: ObjectId, extras: &mut Extras) -> Result<Option<u32>, RepoError> {
    let bytes = store.read(record)?;
    let text = String::from_utf8(bytes).map_err(|_| damaged(store, format!("record {record} is not text")))?;
    read_record(&text, extras).map_err(|what| damaged(store, format!("record {record}: {what}")))
}

fn load(
    store: &mut Store,
    tree: ObjectId,
    mode: u32,
    path: &[u8],
    extras: &mut Extras,
    fold_case: bool,
) -> Result<Folder, RepoError> {
    let bytes = store.read(tree)?;
    let lines = decode_tree(&bytes).ok_or_else(|| damaged(store, format!("{tree} is no tree")))?;
    let mut entries = extras.entries.remove(path).unwrap_or_default();
    fill_kept(&mut entries, path, extras);
    let mut rules = None;
    for line in lines {
        let inner = join(path, line.name);
        let mode = extras.mode(&inner, line.mode);
        let node = if line.mode == tree_mode::FOLDER {
            Node::Folder(Arc::new(load(store, line.id, mode, &inner, extras, fold_case)?))
        } else {
            let stamp = Stamp { mode, mtime: extras.mtime(&inner), ..Stamp::default() };
            if line.name == b".gitignore" && stamp.kind() == stamp::FILE {
                rules = Some(line.id);
            }
            Node::File(File { stamp, id: line.id, racy: true, kept: false })
        };
        entries.push(Entry { name: line.name.into(), verdict: None, node });
    }
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let rules = match rules {
        Some(id) => Some(Arc::new(Rules::parse(&store.read(id)?, fold_case))),
        None => None,
    };
    Ok(stored_folder(mode, entries, rules, tree))
}

fn stored_folder(mode: u32, entries: Vec<Entry>, rules: Option<Arc<Rules>>, tree: ObjectId) -> Folder {
    let census = Census::of(&entries);
    let ruled_by = ObjectId::default();
    Folder { mode, ino: 0, times: (0, 0), entries, rules, ruled_by, forced: false, census, tree }
}

/// An ignored folder that was kept; all that is in it stands in the record.
fn load_kept(mode: u32, path: &[u8], extras: &mut Extras) -> Folder {
    let mut entries = extras.entries.remove(path).unwrap_or_default();
    fill_kept(&mut entries, path, extras);
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    stored_folder(mode, entries, None, ObjectId::default())
}

fn fill_kept(entries: &mut [Entry], path: &[u8], extras: &mut Extras) {
    for entry in entries {
        if let Node::Kept(empty) = &entry.node {
            let mode = empty.mode;
            entry.node = Node::Kept(Arc::new(load_kept(mode, &join(path, &entry.name), extras)));
        }
    }
}

/// An ignored folder of which only the mode is known yet.
pub(super) fn kept_with_mode(mode: u32) -> Node {
    Node::Kept(Arc::new(stored_folder(mode, Vec::new(), None, ObjectId::default())))
}

/// Git's tree of what is watched in a folder.
pub(super) fn tree_of(folder: &Folder) -> Vec<u8> {
    let mut lines: Vec<_> = folder
        .entries
        .iter()
        .filter_map(|entry| {
            let (mode, id) = match &entry.node {
                Node::File(file) if file.kept => return None,
                Node::File(file) if file.stamp.kind() == stamp::LINK => (tree_mode::LINK, file.id),
                Node::File(file) if file.stamp.mode & 0o100 != 0 => (tree_mode::PROGRAM, file.id),
                Node::File(file) => (tree_mode::FILE, file.id),
                Node::Folder(folder) => (tree_mode::FOLDER, folder.tree),
                _ => return None,
            };
            Some(TreeLine { name: &entry.name, mode, id })
        })
        .collect();
    encode_tree(&mut lines)
}
