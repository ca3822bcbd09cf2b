//! A checkpoint: the whole state that a turn starts from, as one commit in the shadow store.
//!
//! Owns the form of that commit. Its tree holds `work` (the working tree), `kept` (what git ignores), `git-0` and on
//! (each git folder), `exclude-0` and on (ignore rules outside the tree) and `meta` (where all that belongs). Equal
//! states have equal ids. A reader takes its own version and refuses others.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

use super::discover::DotGit;
use super::error::RepoError;
use super::gitfolder::Undone;
use super::object::{Kind, ObjectId, TreeId, TreeLine, decode_tree, encode_tree, tree_mode};
use super::path::TreePath;
use super::snapshot::{Stored, load_folder};
use super::store::Store;

const VERSION: u32 = 1;

/// A checkpoint by name. The state itself is in the shadow store, and survives the death of the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Hexadecimal id of a commit in the shadow store.
    pub id: String,
    /// The working tree.
    pub tree: TreeId,
    /// What had to be cleared away before it could be taken: stale locks of git.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleared: Vec<Undone>,
}

/// The state behind a checkpoint.
#[derive(Debug, Clone)]
pub(crate) struct Captured {
    pub(crate) work: Stored,
    pub(crate) kept: ObjectId,
    pub(crate) folders: Vec<(PathBuf, Stored)>,
    pub(crate) excludes: Vec<ObjectId>,
    pub(crate) places: Places,
}

/// Where a checkpoint was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) root: PathBuf,
    pub(crate) git_dir: PathBuf,
    pub(crate) common_dir: PathBuf,
    pub(crate) dot_git: DotGit,
    pub(crate) fold_case: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Meta {
    version: u32,
    root: TreePath,
    git_dir: TreePath,
    common_dir: TreePath,
    dot_git: String,
    dot_git_content: TreePath,
    fold_case: bool,
    folders: Vec<TreePath>,
}

impl Meta {
    fn new(captured: &Captured) -> Meta {
        let places = &captured.places;
        let (dot_git, content) = match &places.dot_git {
            DotGit::Folder => ("folder", Vec::new()),
            DotGit::File(content) => ("file", content.clone()),
            DotGit::Link(target) => ("link", target.clone()),
        };
        Meta {
            version: VERSION,
            root: TreePath::from(&*places.root),
            git_dir: TreePath::from(&*places.git_dir),
            common_dir: TreePath::from(&*places.common_dir),
            dot_git: dot_git.into(),
            dot_git_content: TreePath::new(content),
            fold_case: places.fold_case,
            folders: captured.folders.iter().map(|(path, _)| TreePath::from(&**path)).collect(),
        }
    }

    fn places(&self) -> Option<Places> {
        let content = self.dot_git_content.as_bytes().to_vec();
        let dot_git = match &*self.dot_git {
            "folder" => DotGit::Folder,
            "file" => DotGit::File(content),
            "link" => DotGit::Link(content),
            _ => return None,
        };
        let path = |path: &TreePath| path.as_path().to_path_buf();
        Some(Places {
            root: path(&self.root),
            git_dir: path(&self.git_dir),
            common_dir: path(&self.common_dir),
            dot_git,
            fold_case: self.fold_case,
        })
    }
}

/// Keeps a state as a commit and names it; returns its id.
pub(crate) fn save(store: &mut Store, captured: &Captured) -> Result<ObjectId, RepoError> {
    let meta = serde_json::to_vec(&Meta::new(captured))
        .map_err(|error| RepoError::Store { store: store.dir().to_path_buf(), what: error.to_string() })?;
    let meta = store.put(Kind::Blob, &meta)?;
    let mut named: Vec<(String, u32, ObjectId)> = vec![
        ("work".into(), tree_mode::FOLDER, captured.work.id.object()),
        ("kept".into(), tree_mode::FOLDER, captured.kept),
        ("meta".into(), tree_mode::FILE, meta),
    ];
    for (at, (_, stored)) in captured.folders.iter().enumerate() {
        named.push((format!("git-{at}"), tree_mode::FOLDER, stored.id.object()));
    }
    for (at, id) in captured.excludes.iter().enumerate() {
        named.push((format!("exclude-{at}"), tree_mode::FILE, *id));
    }
    let mut lines: Vec<_> =
        named.iter().map(|(name, mode, id)| TreeLine { name: name.as_bytes(), mode: *mode, id: *id }).collect();
    let tree = store.put(Kind::Tree, &encode_tree(&mut lines))?;
    commit(store, tree, "refs/checkpoints")
}

/// A commit with no parent and no time, so that equal trees make equal commits.
/// `under`: the folder of refs that its name stands in.
pub(crate) fn commit(store: &mut Store, tree: ObjectId, under: &str) -> Result<ObjectId, RepoError> {
    let who = "lunation <lunation@localhost> 0 +0000";
    let text = format!("tree {tree}\nauthor {who}\ncommitter {who}\n\n{under}\n");
    let id = store.put(Kind::Commit, text.as_bytes())?;
    store.set_ref(&format!("{under}/{id}"), id)?;
    Ok(id)
}

/// Reads a state back.
pub(crate) fn load(store: &mut Store, id: &str) -> Result<Captured, RepoError> {
    let missing = |why: String| RepoError::NoCheckpoint { id: id.chars().take(64).collect(), why };
    let commit: ObjectId = id.parse().map_err(|error: super::object::BadObjectId| missing(error.to_string()))?;
    let text = store.read(commit).map_err(|error| missing(error.to_string()))?;
    let tree = text
        .strip_prefix(b"tree ")
        .and_then(|rest| std::str::from_utf8(rest.get(..40)?).ok()?.parse::<ObjectId>().ok())
        .ok_or_else(|| missing("it is no commit".into()))?;
    let bytes = store.read(tree)?;
    let lines = decode_tree(&bytes).ok_or_else(|| missing("its tree is damaged".into()))?;
    let find = |name: &str| lines.iter().find(|line| line.name == name.as_bytes()).map(|line| line.id);
    let (Some(work), Some(kept), Some(meta)) = (find("work"), find("kept"), find("meta")) else {
        return Err(missing("it is no checkpoint of this program".into()));
    };
    let meta: Meta =
        serde_json::from_slice(&store.read(meta)?).map_err(|error| missing(format!("its meta record: {error}")))?;
    if meta.version != VERSION {
        return Err(missing(format!("it has version {}, and this program knows {VERSION}", meta.version)));
    }
    let places = meta.places().ok_or_else(|| missing("its meta record is damaged".into()))?;
    let fold = places.fold_case;
    let work = load_folder(store, TreeId::new(work), Some(kept), fold)?;
    let mut folders = Vec::new();
    for (at, path) in meta.folders.iter().enumerate() {
        let id = find(&format!("git-{at}")).ok_or_else(|| missing("a git folder is missing in it".into()))?;
        folders.push((path.as_path().to_path_buf(), load_folder(store, TreeId::new(id), None, false)?));
    }
    let excludes = (0..).map_while(|at| find(&format!("exclude-{at}"))).collect();
    Ok(Captured { work, kept, folders, excludes, places })
}
