//! Takes the user's own changes of a file out of a result, by a three-way merge.
//!
//! The content at the start is the common ancestor, HEAD's is one side, and the result is the other: what both sides
//! hold that HEAD did not is the user's, and stays out. All three are compared as git would store them.

use git2::{FileMode, MergeFileInput, MergeFileOptions};

use super::super::super::error::RepoError;
use super::super::super::object::ObjectId;
use super::super::super::snapshot::{Delta, File, Node};
use super::super::super::stamp;
use super::super::super::store::private_folder;
use super::super::Workspace;
use super::Blob;
use super::plan::{Merged, path_option};

impl Workspace {
    /// The content to commit; `None` when the two can't be told apart.
    pub(super) fn separate(&mut self, delta: &Delta, head: Option<&Blob>) -> Result<Option<Merged>, RepoError> {
        let (Some(Node::File(old)), Some(Node::File(new)), Some((mode, id))) = (&delta.old, &delta.new, head) else {
            return Ok(None);
        };
        let plain = |file: &File| file.stamp.kind() == stamp::FILE;
        if !plain(old) || !plain(new) || !matches!(&**mode, "100644" | "100755") {
            return Ok(None);
        }
        let (old_bits, new_bits) = (old.stamp.mode & 0o100, new.stamp.mode & 0o100);
        let ancestor = self.as_git_stores(old.id, &delta.path)?;
        let theirs = self.as_git_stores(new.id, &delta.path)?;
        let ours = self.run(|git| git.args(["cat-file", "blob", id]).output())?;
        let Some(content) = merge(&ancestor, &ours, &theirs)? else { return Ok(None) };
        let mode = match (old_bits == new_bits, new_bits) {
            (true, _) => mode.clone(),
            (false, 0) => "100644".into(),
            (false, _) => "100755".into(),
        };
        Ok(Some(Merged { path: delta.path.clone(), mode, content }))
    }

    /// A content after the filters of its path. What git has to write for that goes to a folder of ours.
    fn as_git_stores(&mut self, id: ObjectId, path: &[u8]) -> Result<Vec<u8>, RepoError> {
        let content = self.store.read(id)?;
        let objects = self.state.join("commit/objects");
        private_folder(&objects)?;
        let theirs = self.repository.common_dir().join("objects");
        let args = ["hash-object", "-w", "--stdin"];
        let stored = self.run(|git| {
            git.env("GIT_OBJECT_DIRECTORY", &objects)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &theirs)
                .args(args)
                .args([path_option(path)])
                .input(content)
                .line()
        })?;
        let bytes = self.run(|git| {
            git.env("GIT_OBJECT_DIRECTORY", &objects)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &theirs)
                .args(["cat-file", "blob", &stored])
                .output()
        })?;
        std::fs::remove_dir_all(&objects).map_err(RepoError::io(&objects, "removing"))?;
        Ok(bytes)
    }
}

/// Merges three texts; `None` on a conflict, or when one of them is no text.
fn merge(ancestor: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Option<Vec<u8>>, RepoError> {
    if [ancestor, ours, theirs].iter().any(|bytes| bytes.contains(&0)) {
        return Ok(None);
    }
    let input = |content| {
        let mut input = MergeFileInput::new();
        input.content(content).mode(Some(FileMode::Blob));
        input
    };
    let mut options = MergeFileOptions::new();
    let merged = git2::merge_file(&input(ancestor), &input(ours), &input(theirs), Some(&mut options))
        .map_err(RepoError::git2("separating the result from your own changes"))?;
    Ok(merged.is_automergeable().then(|| merged.content().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(ancestor: &str, ours: &str, theirs: &str) -> Option<String> {
        let bytes = merge(ancestor.as_bytes(), ours.as_bytes(), theirs.as_bytes()).expect("merged");
        bytes.map(|bytes| String::from_utf8(bytes).expect("text"))
    }

    #[test]
    fn changes_apart_from_each_other_are_separated() {
        let head = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let start = head.replace('1', "user");
        let result = start.replace('9', "agent");
        assert_eq!(merged(&start, head, &result), Some(head.replace('9', "agent")));
    }

    #[test]
    fn changes_of_one_line_are_not() {
        assert_eq!(merged("user\n", "head\n", "agent\n"), None);
        assert_eq!(merged("a\0", "b", "c"), None);
    }
}
