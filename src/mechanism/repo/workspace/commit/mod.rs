//! Commits a result on the user's branch: what changed since a checkpoint, and nothing else.
//!
//! Owns the separation of the result from what the user had changed before. Guarantees: all or nothing; the user's
//! own changes are in no commit, staged or not; index entries are only touched where the user had nothing staged;
//! no hook runs and nothing is signed; no branch moves that somebody else moved meanwhile. The filters that the user
//! configured do run, because without them the content would not be what `git add` makes of it.

mod plan;
mod separate;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::checkpoint::Checkpoint;
use super::super::error::RepoError;
use super::super::git::GitCommand;
use super::super::path::TreePath;
use super::super::store::private_folder;
use super::Workspace;
use super::changes::LeftAlone;
use plan::Plan;

/// Who a commit is by when git's configuration does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Name.
    pub name: String,
    /// Address.
    pub email: String,
}

/// What was committed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommitReport {
    /// The commit; `None` when there was nothing to commit.
    pub commit: Option<String>,
    /// The paths in it.
    pub paths: Vec<TreePath>,
    /// Paths where the user had uncommitted changes, from which the result was separated by a three-way merge.
    pub separated: Vec<TreePath>,
    /// Paths that changed and are not in it, and why.
    pub skipped: Vec<LeftAlone>,
    /// Paths in it whose index entry was left, because the user had staged something else.
    pub staged_kept: Vec<TreePath>,
    /// True when the given identity was used, because git's configuration has none.
    pub default_identity: bool,
}

/// Mode and id of a path in a tree or an index.
type Blob = (String, String);

impl Workspace {
    /// Commits what changed since `start` on top of HEAD, and moves the branch that HEAD is on.
    ///
    /// Takes the first checkpoint of the run, the message, and who the commit is by when git does not know. Call it
    /// after the guard: it runs git commands. The git folder is another one afterwards, so a run that goes on takes
    /// a new checkpoint first.
    ///
    /// # Errors
    /// [`RepoError::CommitRefused`] when a change can't be separated from the user's own, a merge or rebase is under
    /// way, or the configuration comes from files that were changed; errors of git.
    pub fn commit_result(
        &mut self,
        start: &Checkpoint,
        message: &str,
        identity: &Identity,
    ) -> Result<CommitReport, RepoError> {
        self.refuse_in_the_middle()?;
        self.repository.read_settings()?;
        self.refuse_foreign_settings(start)?;
        let head = self.head()?;
        let before = self.tree_entries(head.as_deref())?;
        let plan = self.plan_commit(start, &before)?;
        let mut report = CommitReport { skipped: plan.skipped.clone(), ..CommitReport::default() };
        report.separated = plan.merged.iter().map(|merged| TreePath::new(&*merged.path)).collect();
        let tree = self.write_tree(head.as_deref(), &plan)?;
        let after = self.tree_entries(Some(&tree))?;
        let changed = changed_paths(&before, &after);
        if changed.is_empty() {
            return Ok(report);
        }
        report.paths = changed.keys().map(|path| TreePath::new(&**path)).collect();
        report.default_identity = !self.has_identity()?;
        let staged = self.staged()?;
        let commit = self.write_commit(&tree, head.as_deref(), message, report.default_identity.then_some(identity))?;
        self.move_head(&commit, head.as_deref(), message)?;
        report.staged_kept = self.update_index(&before, &changed, &staged)?;
        report.commit = Some(commit);
        Ok(report)
    }

    /// Runs one git command on this repository.
    fn run<T>(&self, use_it: impl FnOnce(GitCommand<'_>) -> Result<T, RepoError>) -> Result<T, RepoError> {
        let program = self.repository.git_program();
        use_it(self.repository.git(&program))
    }

    fn refuse_in_the_middle(&self) -> Result<(), RepoError> {
        for name in ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"] {
            if self.repository.git_dir().join(name).exists() {
                let why = format!(
                    "a merge, rebase or pick is under way ({name} is in the git folder); finish or abort it, then commit the result yourself"
                );
                return Err(RepoError::CommitRefused { why, paths: Vec::new() });
            }
        }
        Ok(())
    }

    /// Settings may be included from files of the working tree, and those may be the agent's: such settings could
    /// make git run anything.
    fn refuse_foreign_settings(&mut self, start: &Checkpoint) -> Result<(), RepoError> {
        let base = self.captured(&start.id)?;
        let listed = self.run(|git| git.args(["config", "--list", "--show-origin", "--name-only", "-z"]).output())?;
        let root = self.repository.root().to_path_buf();
        let mut changed = Vec::new();
        for origin in listed.split(|byte| *byte == 0).step_by(2) {
            let Some(path) = origin.strip_prefix(b"file:") else { continue };
            let path = root.join(super::super::path::os(path));
            let path = std::fs::canonicalize(&path).unwrap_or(path);
            let inside = path.starts_with(&root) && !path.starts_with(self.repository.common_dir());
            let Ok(name) = path.strip_prefix(&root) else { continue };
            if !inside {
                continue;
            }
            let name = TreePath::from(name);
            let now = std::fs::read(&path).map_err(RepoError::io(&path, "reading"))?;
            let now = super::super::object::id_of(super::super::object::Kind::Blob, &now);
            if !plan::holds(&base.work.root, name.as_bytes(), now) && !changed.contains(&name) {
                changed.push(name);
            }
        }
        if changed.is_empty() {
            return Ok(());
        }
        let why = "git's configuration includes files of the working tree that were changed in this run; look at them, then commit the result yourself";
        Err(RepoError::CommitRefused { why: why.into(), paths: changed })
    }

    /// The commit that HEAD is at; `None` on a branch with no commit.
    fn head(&self) -> Result<Option<String>, RepoError> {
        let answer = self.run(|git| git.args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).run())?;
        if !answer.status.success() {
            return Ok(None);
        }
        Ok(Some(String::from_utf8_lossy(&answer.output).trim().to_string()))
    }

    /// All files of a tree.
    fn tree_entries(&self, tree: Option<&str>) -> Result<BTreeMap<Vec<u8>, Blob>, RepoError> {
        let Some(tree) = tree else { return Ok(BTreeMap::new()) };
        let output = self.run(|git| git.args(["ls-tree", "-r", "-z", "--full-tree", tree]).output())?;
        Ok(output
            .split(|byte| *byte == 0)
            .filter_map(|line| {
                let tab = line.iter().position(|byte| *byte == b'\t')?;
                let mut words = std::str::from_utf8(&line[..tab]).ok()?.split(' ');
                let (mode, _, id) = (words.next()?, words.next()?, words.next()?);
                Some((line[tab + 1..].to_vec(), (mode.to_string(), id.to_string())))
            })
            .collect())
    }

    /// The entries of the user's index that are no part of a conflict.
    fn staged(&self) -> Result<BTreeMap<Vec<u8>, Blob>, RepoError> {
        let output = self.run(|git| git.args(["ls-files", "--stage", "-z", "--full-name"]).output())?;
        let mut staged = BTreeMap::new();
        for line in output.split(|byte| *byte == 0) {
            let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { continue };
            let words = String::from_utf8_lossy(&line[..tab]).into_owned();
            if let [mode, id, stage] = words.split(' ').collect::<Vec<_>>()[..] {
                // an entry in conflict equals nothing, so it is left
                let id = if stage == "0" { id.to_string() } else { format!("{id}:{stage}") };
                staged.insert(line[tab + 1..].to_vec(), (mode.to_string(), id));
            }
        }
        Ok(staged)
    }

    /// The tree of the result, made in an index of our own.
    fn write_tree(&mut self, head: Option<&str>, plan: &Plan) -> Result<String, RepoError> {
        let index = self.scratch("index")?;
        let result = (|| {
            match head {
                Some(head) => self.run(|git| on_index(git, &index).args(["read-tree", head]).output())?,
                None => self.run(|git| on_index(git, &index).args(["read-tree", "--empty"]).output())?,
            };
            let names = plan.as_they_are.iter().flat_map(|path| [&**path, b"\0"].concat()).collect::<Vec<_>>();
            let args = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
            self.run(|git| on_index(git, &index).args(args).input(names).output())?;
            let mut lines = Vec::new();
            for merged in &plan.merged {
                let args = ["hash-object", "-w", "--stdin", "--no-filters"];
                let id = self.run(|git| git.args(args).input(merged.content.clone()).line())?;
                lines.extend_from_slice(format!("{} {id}\t", merged.mode).as_bytes());
                lines.extend_from_slice(&merged.path);
                lines.push(0);
            }
            self.run(|git| on_index(git, &index).args(["update-index", "-z", "--index-info"]).input(lines).output())?;
            self.run(|git| on_index(git, &index).args(["write-tree"]).line())
        })();
        match std::fs::remove_file(&index) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(RepoError::io(&index, "removing an index of our own")(error))
            }
            _ => result,
        }
    }

    /// A name for a file that only this commit needs.
    fn scratch(&mut self, word: &str) -> Result<PathBuf, RepoError> {
        let folder = self.state.join("commit");
        private_folder(&folder)?;
        Ok(folder.join(format!("{word}-{}-{:x}", std::process::id(), rand::random::<u32>())))
    }

    fn has_identity(&self) -> Result<bool, RepoError> {
        for key in ["user.name", "user.email"] {
            let answer = self.run(|git| git.args(["config", "--get", key]).run())?;
            if !answer.status.success() || answer.output.trim_ascii().is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn write_commit(
        &self,
        tree: &str,
        head: Option<&str>,
        message: &str,
        identity: Option<&Identity>,
    ) -> Result<String, RepoError> {
        let mut args = vec!["commit-tree", tree, "-F", "-"];
        args.extend(head.iter().flat_map(|head| ["-p", head]));
        let mut text = message.trim_end().to_string();
        text.push('\n');
        self.run(|mut git| {
            if let Some(identity) = identity {
                for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
                    git = git.env(name, &identity.name);
                }
                for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
                    git = git.env(name, &identity.email);
                }
            }
            git.args(&args).input(text.into_bytes()).line()
        })
    }

    /// Moves HEAD, if it is still where it was.
    fn move_head(&self, commit: &str, head: Option<&str>, message: &str) -> Result<(), RepoError> {
        let none = "0".repeat(commit.len());
        let why = format!("lunation: {}", message.lines().next().unwrap_or_default());
        self.run(|git| git.args(["update-ref", "-m", &why, "HEAD", commit, head.unwrap_or(&none)]).output()).map(drop)
    }

    /// Index entries of committed paths follow, where the user had nothing staged. Answers the others.
    fn update_index(
        &self,
        before: &BTreeMap<Vec<u8>, Blob>,
        changed: &BTreeMap<Vec<u8>, Option<Blob>>,
        staged: &BTreeMap<Vec<u8>, Blob>,
    ) -> Result<Vec<TreePath>, RepoError> {
        let mut kept = Vec::new();
        let mut lines = Vec::new();
        // removals first: a file may have become a folder
        for removals in [true, false] {
            for (path, blob) in changed.iter().filter(|(_, blob)| blob.is_none() == removals) {
                if staged.get(path) != before.get(path) {
                    kept.push(TreePath::new(&**path));
                    continue;
                }
                match blob {
                    Some((mode, id)) => lines.extend_from_slice(format!("{mode} {id}\t").as_bytes()),
                    None => {
                        let length = before.get(path).map_or(40, |(_, id)| id.len());
                        lines.extend_from_slice(format!("0 {}\t", "0".repeat(length)).as_bytes());
                    }
                }
                lines.extend_from_slice(path);
                lines.push(0);
            }
        }
        if !lines.is_empty() {
            self.run(|git| git.args(["update-index", "-z", "--index-info"]).input(lines).output())?;
        }
        kept.sort();
        Ok(kept)
    }
}

/// A command on an index of our own, which holds all of a tree.
fn on_index<'a>(git: GitCommand<'a>, index: &Path) -> GitCommand<'a> {
    git.settings(["core.sparseCheckout=false", "index.sparse=false", "core.splitIndex=false"])
        .env("GIT_INDEX_FILE", index)
}

/// Paths that two trees differ in, with what the second has.
fn changed_paths(before: &BTreeMap<Vec<u8>, Blob>, after: &BTreeMap<Vec<u8>, Blob>) -> BTreeMap<Vec<u8>, Option<Blob>> {
    let gone = before.keys().filter(|path| !after.contains_key(*path)).map(|path| (path.clone(), None));
    let other = after
        .iter()
        .filter(|(path, blob)| before.get(*path) != Some(blob))
        .map(|(path, blob)| (path.clone(), Some(blob.clone())));
    gone.chain(other).collect()
}
