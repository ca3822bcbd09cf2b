//! What two captured trees differ in, as a patch for people and models.

use git2::{DiffLineType, DiffOptions, Patch};
use serde::{Deserialize, Serialize};

use super::super::error::RepoError;
use super::super::object::{ObjectId, TreeId};
use super::super::path::TreePath;
use super::super::snapshot::{Delta, DeltaKind, Node, difference};
use super::super::stamp;
use super::Workspace;

/// Contents above this are told as binary.
const MOST_TEXT: u64 = 16 << 20;

/// The difference of two trees.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Diff {
    /// Every file and link that differs, sorted by path.
    pub files: Vec<FileDiff>,
    /// Added plus removed lines of all text files.
    pub lines: u64,
    /// The patch, in git's form; bytes that are no UTF-8 are replaced. At most as long as the options say.
    pub text: String,
    /// True when the text was cut; its last line says so too.
    pub truncated: bool,
}

/// One file of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    /// The path relative to the root.
    pub path: TreePath,
    /// Lines that were added.
    pub added: u64,
    /// Lines that were removed.
    pub removed: u64,
    /// True when it is not text, or too large to be compared by lines.
    pub binary: bool,
}

impl Workspace {
    /// Compares two captured trees.
    ///
    /// # Errors
    /// A tree or a content that is not in the store.
    pub fn diff(&mut self, from: &TreeId, to: &TreeId) -> Result<Diff, RepoError> {
        let (old, new) = (self.folder_of(from)?, self.folder_of(to)?);
        let mut diff = Diff::default();
        let cap = self.options.diff_cap;
        for delta in difference(&old, &new) {
            let is_content = |node: &Option<Node>| matches!(node, Some(Node::File(file)) if !file.kept);
            if is_content(&delta.old) && is_content(&delta.new) && delta.kind() == DeltaKind::TypeChanged {
                // a file that became a link: git tells it as one gone and one new
                self.add_file(&Delta { new: None, ..delta.clone() }, &mut diff, cap)?;
                self.add_file(&Delta { old: None, ..delta }, &mut diff, cap)?;
            } else if is_content(&delta.old) || is_content(&delta.new) {
                self.add_file(&delta, &mut diff, cap)?;
            }
        }
        if diff.truncated {
            diff.text.push_str("[the diff is longer than its cap; the rest was cut]\n");
        }
        Ok(diff)
    }

    fn add_file(&mut self, delta: &Delta, diff: &mut Diff, cap: usize) -> Result<(), RepoError> {
        let old = self.text_of(delta.old.as_ref())?;
        let new = self.text_of(delta.new.as_ref())?;
        let path = TreePath::new(&*delta.path);
        let mut text = header(delta);
        let (mut added, mut removed, mut binary) = (0, 0, true);
        if let (Some(old), Some(new)) = (&old, &new) {
            let mut options = DiffOptions::new();
            options.context_lines(3);
            let failed = || RepoError::git2("comparing two files");
            let mut patch = Patch::from_buffers(old, None, new, None, Some(&mut options)).map_err(failed())?;
            let (_, more, less) = patch.line_stats().map_err(failed())?;
            binary = patch.delta().flags().is_binary();
            (added, removed) = (more as u64, less as u64);
            if !binary && (added > 0 || removed > 0) {
                text.push_str(&names(delta));
                let mut body = Vec::new();
                patch
                    .print(&mut |_, _, line| {
                        match line.origin_value() {
                            DiffLineType::FileHeader | DiffLineType::Binary => return true,
                            DiffLineType::Addition | DiffLineType::Deletion | DiffLineType::Context => {
                                body.push(line.origin() as u8);
                            }
                            _ => {}
                        }
                        body.extend_from_slice(line.content());
                        body.len() <= cap
                    })
                    .or_else(|error| if error.code() == git2::ErrorCode::User { Ok(()) } else { Err(error) })
                    .map_err(failed())?;
                text.push_str(&String::from_utf8_lossy(&body));
            }
        }
        if binary && delta.old.as_ref().and_then(content) != delta.new.as_ref().and_then(content) {
            text.push_str(&format!("Binary files {} and {} differ\n", side(delta, true), side(delta, false)));
        }
        diff.lines += added + removed;
        diff.files.push(FileDiff { path, added, removed, binary });
        append_capped(diff, &text, cap);
        Ok(())
    }

    /// The content of one side; `None` when it is too large to compare. What is not there is empty.
    fn text_of(&mut self, node: Option<&Node>) -> Result<Option<Vec<u8>>, RepoError> {
        match node {
            Some(Node::File(file)) if file.stamp.size > MOST_TEXT => Ok(None),
            Some(Node::File(file)) => {
                let bytes = self.store.read(file.id)?;
                Ok(if bytes.len() as u64 > MOST_TEXT { None } else { Some(bytes) })
            }
            _ => Ok(Some(Vec::new())),
        }
    }
}

fn content(node: &Node) -> Option<ObjectId> {
    match node {
        Node::File(file) => Some(file.id),
        _ => None,
    }
}

fn append_capped(diff: &mut Diff, text: &str, cap: usize) {
    if diff.truncated {
        return;
    }
    let room = cap.saturating_sub(diff.text.len());
    if text.len() <= room {
        diff.text.push_str(text);
        return;
    }
    diff.truncated = true;
    // whole lines only
    let end = text.floor_char_boundary(room);
    let end = text[..end].rfind('\n').map_or(0, |at| at + 1);
    diff.text.push_str(&text[..end]);
}

/// The mode that git would show.
fn git_mode(node: &Node) -> u32 {
    match node.mode() {
        mode if mode & stamp::TYPE_MASK == stamp::LINK => 0o120_000,
        mode if mode & 0o100 != 0 => 0o100_755,
        _ => 0o100_644,
    }
}

fn header(delta: &Delta) -> String {
    let file = |node: &Option<Node>| node.as_ref().filter(|node| matches!(node, Node::File(_))).cloned();
    let (old, new) = (file(&delta.old), file(&delta.new));
    let mut text = format!("diff --git {} {}\n", quoted(b"a/", &delta.path), quoted(b"b/", &delta.path));
    let modes = (old.as_ref().map(git_mode), new.as_ref().map(git_mode));
    match modes {
        (None, Some(mode)) => text.push_str(&format!("new file mode {mode:06o}\n")),
        (Some(mode), None) => text.push_str(&format!("deleted file mode {mode:06o}\n")),
        (Some(a), Some(b)) if a != b => text.push_str(&format!("old mode {a:06o}\nnew mode {b:06o}\n")),
        _ => {}
    }
    let ids = (old.as_ref().and_then(content), new.as_ref().and_then(content));
    if ids.0 != ids.1 {
        let short = |id: Option<ObjectId>| id.unwrap_or_default().to_string()[..12].to_string();
        let mode = match modes {
            (Some(a), Some(b)) if a == b => format!(" {a:06o}"),
            _ => String::new(),
        };
        text.push_str(&format!("index {}..{}{mode}\n", short(ids.0), short(ids.1)));
    }
    text
}

fn side(delta: &Delta, old: bool) -> String {
    let (node, prefix) = if old { (&delta.old, &b"a/"[..]) } else { (&delta.new, &b"b/"[..]) };
    match node {
        Some(Node::File(_)) => quoted(prefix, &delta.path),
        _ => "/dev/null".into(),
    }
}

fn names(delta: &Delta) -> String {
    format!("--- {}\n+++ {}\n", side(delta, true), side(delta, false))
}

/// A path as git shows it: in quotes with escapes where it has bytes that a reader could trip over.
fn quoted(prefix: &[u8], path: &[u8]) -> String {
    let path = [prefix, path].concat();
    let plain =
        std::str::from_utf8(&path).is_ok_and(|text| !text.chars().any(|c| c.is_control() || c == '"' || c == '\\'));
    if plain {
        return String::from_utf8_lossy(&path).into_owned();
    }
    let mut text = String::from("\"");
    for byte in path {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\r' => text.push_str("\\r"),
            0x20..=0x7e => text.push(byte as char),
            other => text.push_str(&format!("\\{other:03o}")),
        }
    }
    text.push('"');
    text
}
