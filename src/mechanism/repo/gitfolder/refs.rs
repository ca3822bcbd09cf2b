//! What the refs of a captured git folder are, loose and packed together.

use std::collections::BTreeMap;

use super::super::error::RepoError;
use super::super::snapshot::{Folder, Node};
use super::super::store::Store;

/// Names and values of refs, `HEAD` of each working tree among them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Refs(pub(crate) BTreeMap<String, String>);

/// Reads the refs that are kept in files. (A reftable is put back byte for byte like any file, and not read.)
pub(crate) fn read_refs(store: &mut Store, folder: &Folder) -> Result<Refs, RepoError> {
    let mut refs = BTreeMap::new();
    if let Some(Node::File(file)) = folder.at(b"packed-refs") {
        let packed = store.read(file.id)?;
        for line in String::from_utf8_lossy(&packed).lines() {
            if let Some((id, name)) = line.split_once(' ')
                && !line.starts_with('#')
            {
                refs.insert(name.to_string(), id.to_string());
            }
        }
    }
    let mut loose = Vec::new();
    folder.visit(&mut Vec::new(), &mut |path, entry| {
        let is_ref = path.starts_with(b"refs/") || path == b"HEAD" || path.ends_with(b"/HEAD");
        let elsewhere = path.starts_with(b"logs/") || path.starts_with(b"modules/") || path.ends_with(b".lock");
        if let (true, false, Node::File(file)) = (is_ref, elsewhere, &entry.node) {
            loose.push((String::from_utf8_lossy(path).into_owned(), file.id));
        }
    });
    for (name, id) in loose {
        let value = store.read(id)?;
        let value = String::from_utf8_lossy(&value).trim().chars().take(1_000).collect();
        refs.insert(name, value);
    }
    Ok(Refs(refs))
}
