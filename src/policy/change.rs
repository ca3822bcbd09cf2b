//! What an iteration changed, as a policy sees it.

use serde::{Deserialize, Serialize};

/// The change of one iteration: its checkpoint against the tree after guard and fence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChangeSummary {
    /// True when the trees are equal.
    pub empty: bool,
    /// Changed paths, at most 1,000.
    pub files: Vec<String>,
    /// How many paths changed in all.
    pub file_count: u64,
    /// Added plus removed lines of text files.
    pub lines: u64,
    /// Paths that the fence reverted, at most 1,000.
    pub fenced: Vec<String>,
    /// What the guard undid in the git folder, at most 1,000.
    pub guarded: Vec<String>,
    /// Paths that cannot be covered (over the size cap, unreadable, special), at most 1,000.
    pub left_alone: Vec<String>,
    /// Tree after the change.
    pub tree: String,
    /// Blob with the diff in git's form, where there is a change.
    pub diff: Option<String>,
}

/// How many paths a summary keeps by name.
pub const MOST_PATHS: usize = 1_000;
