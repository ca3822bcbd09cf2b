//! The repository in the live world: checkpoints, guard, fence, comparison, restore, questions.

use std::sync::Arc;

use super::LiveWorld;
use crate::journal::Event;
use crate::mechanism::repo::{Checkpoint, Head, Identity, RepoError, TreeId, Workspace};
use crate::policy::scope::Scope;
use crate::policy::{ChangeSummary, MOST_PATHS};
use crate::world::{Committed, GitQuestion, Point, Restored, WorldError};

impl LiveWorld {
    /// Work on the workspace, one piece at a time.
    async fn on_workspace<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Workspace) -> Result<T, RepoError> + Send + 'static,
    ) -> Result<T, WorldError> {
        let workspace = Arc::clone(&self.workspace);
        self.blocking(move || {
            let mut workspace = workspace.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            work(&mut workspace).map_err(|error| repo_error(doing, error))
        })
        .await
    }

    pub(super) async fn take_checkpoint(&self, iteration: u32) -> Result<Point, WorldError> {
        let run = self.run.clone();
        let checkpoint = self
            .on_workspace("captured", move |workspace| {
                let checkpoint = workspace.checkpoint()?;
                workspace.begin_intent(&run, &format!("iteration {iteration}"), &checkpoint)?;
                Ok(checkpoint)
            })
            .await?;
        for cleared in &checkpoint.cleared {
            self.note(format!("before iteration {iteration}: {cleared}"))?;
        }
        let point = Point { id: checkpoint.id, tree: checkpoint.tree.to_string() };
        self.start.get_or_init(|| point.tree.clone());
        Ok(point)
    }

    /// A remark for the record.
    fn note(&self, text: String) -> Result<(), WorldError> {
        let event = Event::Noted { level: "warn".into(), text };
        self.journal.append("", &event).map_err(super::journal_error)
    }

    /// Everything that changed since the run began, as a patch.
    pub(super) async fn whole_change(&self) -> Result<String, WorldError> {
        let start = self.start.get().cloned();
        self.on_workspace("compared", move |workspace| {
            let now = workspace.tree()?;
            match start.and_then(|start| start.parse::<TreeId>().ok()) {
                Some(start) => Ok(workspace.diff(&start, &now)?.text),
                None => Ok(String::new()),
            }
        })
        .await
    }

    pub(super) async fn put_git_folder_back(&self, since: &Point) -> Result<Vec<String>, WorldError> {
        let id = since.id.clone();
        let (report, store) = self
            .on_workspace("guarded", move |workspace| {
                let checkpoint = workspace.load(&id)?;
                Ok((workspace.guard(&checkpoint)?, workspace.state().join("store")))
            })
            .await?;
        let undone = report.undone.iter().map(ToString::to_string).collect();
        // The record lives in the git folder: what an agent removed of it comes back with the rest.
        let journal = self.journal.clone();
        self.blocking(move || journal.repair().map_err(super::journal_error)).await?;
        if let Some(displaced) = report.displaced {
            self.note(format!(
                "the git folder as it was found is kept: git --git-dir={} show {displaced}:files",
                store.display()
            ))?;
        }
        Ok(undone)
    }

    pub(super) async fn revert_out_of_scope(&self, since: &Point, scope: &Scope) -> Result<Vec<String>, WorldError> {
        let (id, scope) = (since.id.clone(), scope.clone());
        self.on_workspace("fenced", move |workspace| {
            let checkpoint = workspace.load(&id)?;
            let report = workspace.fence(&checkpoint, &scope)?;
            if let Some(conflict) = report.conflicts.first() {
                // A tree that could not be fenced is no tree to sense.
                return Err(RepoError::Record {
                    path: conflict.path.to_string().into(),
                    what: format!("this path is out of scope and could not be reverted: {}", conflict.why),
                });
            }
            Ok(report.fenced.iter().map(|fenced| format!("{} ({})", fenced.path, fenced.how)).collect())
        })
        .await
    }

    pub(super) async fn tree_now(&self) -> Result<String, WorldError> {
        self.on_workspace("captured", |workspace| Ok(workspace.tree()?.to_string())).await
    }

    pub(super) async fn compare_with(&self, since: &Point) -> Result<ChangeSummary, WorldError> {
        let id = since.id.clone();
        let (mut summary, text) = self
            .on_workspace("compared", move |workspace| {
                let checkpoint = workspace.load(&id)?;
                let changes = workspace.changes_after_fence(&checkpoint)?;
                let mut summary = ChangeSummary {
                    empty: changes.is_empty(),
                    file_count: changes.paths.len() as u64,
                    files: changes.paths.iter().take(MOST_PATHS).map(|change| change.path.to_string()).collect(),
                    left_alone: changes
                        .left_alone
                        .iter()
                        .take(MOST_PATHS)
                        .map(|left| format!("{} ({})", left.path, left.why))
                        .collect(),
                    tree: changes.tree.to_string(),
                    ..ChangeSummary::default()
                };
                if summary.empty {
                    return Ok((summary, None));
                }
                let diff = workspace.diff(&checkpoint.tree, &changes.tree)?;
                summary.lines = diff.lines;
                Ok((summary, Some(diff.text)))
            })
            .await?;
        if let Some(text) = text {
            let journal = self.journal.clone();
            summary.diff =
                Some(self.blocking(move || journal.blob(text.as_bytes()).map_err(super::journal_error)).await?);
        }
        Ok(summary)
    }

    pub(super) async fn undo_to(&self, tree: &str) -> Result<Vec<String>, WorldError> {
        let tree: TreeId =
            tree.parse().map_err(|_| WorldError::Other(anyhow::anyhow!("`{tree}` is no id of a tree")))?;
        self.on_workspace("put back", move |workspace| {
            let now = workspace.tree()?;
            if now == tree {
                return Ok(Vec::new());
            }
            let dirtied = workspace.diff(&tree, &now)?.files;
            workspace.restore_tree(&tree)?;
            Ok(dirtied.iter().map(|file| file.path.to_string()).collect())
        })
        .await
    }

    pub(super) async fn clear_pending(&self) -> Result<(), WorldError> {
        self.on_workspace("settled", |workspace| workspace.finish_intent()).await
    }

    pub(super) async fn put_back(&self, to: &Point) -> Result<Restored, WorldError> {
        let id = to.id.clone();
        self.on_workspace("restored", move |workspace| {
            let checkpoint: Checkpoint = workspace.load(&id)?;
            let report = workspace.restore(&checkpoint)?;
            workspace.finish_intent()?;
            Ok(Restored {
                restored: report.written + report.removed + report.modes,
                conflicts: report
                    .conflicts
                    .iter()
                    .take(MOST_PATHS)
                    .map(|conflict| format!("{} ({})", conflict.path, conflict.why))
                    .collect(),
            })
        })
        .await
    }

    pub(super) async fn commit_since(&self, start: &Point, message: &str) -> Result<Committed, WorldError> {
        // Used only where git's configuration names nobody; never written into it.
        let identity = Identity { name: "lunation".into(), email: "lunation@localhost".into() };
        let (id, message) = (start.id.clone(), message.to_owned());
        self.on_workspace("committed", move |workspace| {
            let checkpoint = workspace.load(&id)?;
            let report = workspace.commit_result(&checkpoint, &message, &identity)?;
            Ok(Committed {
                commit: report.commit,
                paths: report.paths.iter().map(ToString::to_string).collect(),
                left_out: report.skipped.iter().map(|left| format!("{} ({})", left.path, left.why)).collect(),
            })
        })
        .await
    }

    pub(super) async fn answer(&self, question: &GitQuestion) -> Result<serde_json::Value, WorldError> {
        let question = question.clone();
        self.on_workspace("read", move |workspace| {
            let repository = workspace.repository();
            Ok(match question {
                GitQuestion::Branch => serde_json::json!(repository.head()?.branch),
                GitQuestion::Head => serde_json::json!(repository.head()?.commit),
                GitQuestion::Status => serde_json::json!(repository.status()?),
                GitQuestion::Diff => serde_json::json!(repository.diff_to_head()?),
                GitQuestion::Log(most) => serde_json::json!(repository.log(most)?),
            })
        })
        .await
    }

    pub(super) async fn glob_beneath(&self, pattern: &str) -> Result<Vec<String>, WorldError> {
        let pattern = pattern.to_owned();
        self.on_workspace("read", move |workspace| workspace.repository().glob(&pattern)).await
    }

    pub(super) async fn peek_beneath(&self, path: &str, most: usize) -> Result<Option<String>, WorldError> {
        let path = path.to_owned();
        self.on_workspace("read", move |workspace| {
            let bytes = workspace.repository().peek(&path, most)?;
            Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        })
        .await
    }

    pub(super) async fn write_beneath(&self, path: &str, text: &str) -> Result<(), WorldError> {
        let (path, text) = (path.to_owned(), text.to_owned());
        self.on_workspace("written", move |workspace| workspace.repository().write_own_file(&path, text.as_bytes()))
            .await
    }

    /// Where HEAD stands and whether the tree differs from it, for the first record.
    pub async fn start_record(&self) -> Result<(Head, bool), WorldError> {
        self.on_workspace("read", |workspace| {
            let repository = workspace.repository();
            Ok((repository.head()?, !repository.status()?.is_empty()))
        })
        .await
    }
}

fn repo_error(doing: &'static str, error: RepoError) -> WorldError {
    if error.is_disk_full() {
        WorldError::DiskFull(error.to_string())
    } else {
        WorldError::Repository { doing, source: error.into() }
    }
}
