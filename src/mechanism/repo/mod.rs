//! A git repository under watch: checkpoints of everything that an agent could change, the guard of the git folder,
//! the fence, change detection by trees, byte-exact rollback, diffs, the commit of a result, the lock, and recovery
//! after a crash.
//!
//! Owns the look at the disk and the shadow store in the state folder. Must not know agents, loops or decisions.
//! Everything here blocks and is synchronous: call it from a thread that may wait.
//!
//! Guarantees:
//! - No status engine is believed, and none is asked: the walk opens each folder beneath the root through no link and
//!   reads what its stamp does not prove unchanged. Flags of the index, `info/exclude`, `core.*` settings, a commit,
//!   an edited `.gitignore` hide nothing from it.
//! - Nothing that an agent planted is run: between the end of a turn and the guard no git command runs at all, and
//!   later ones run hardened (one function calls git, with everything off that runs code).
//! - Nothing of ours is written into the user's repository but by [`Workspace::commit_result`].
//! - Only paths that differ are ever written or removed; there is no blanket clean.
//!
//! Limits, each of them told and never guessed: owners, access lists and extended attributes are not captured; hard
//! links come back as separate files; files over the size cap, unreadable files and the git folders of nested
//! repositories are left alone; of what git ignores only small files beside watched ones are kept; folders nested
//! deeper than 256 are not looked into.

mod beneath;
mod checkpoint;
mod discover;
mod error;
mod git;
mod gitfolder;
mod index;
mod intent;
mod lock;
mod object;
mod path;
mod questions;
mod revert;
mod settings;
mod snapshot;
mod stamp;
mod state;
mod store;
mod workspace;

pub use checkpoint::Checkpoint;
pub use discover::{Repository, RepositoryOptions};
pub use error::RepoError;
pub use gitfolder::Undone;
pub use intent::{Intent, Recovered, pending, recover};
pub use lock::{LockHolder, RepoLock};
pub use object::{BadObjectId, ObjectId, TreeId};
pub use path::TreePath;
pub use questions::{Head, LogEntry, StatusEntry};
pub use revert::Conflict;
pub use state::state_folder;
pub use workspace::{
    Change, ChangeKind, Changes, CommitReport, Diff, FenceReport, Fenced, FileDiff, GuardReport, Identity, LeftAlone,
    RestoreReport, Side, Workspace, WorkspaceOptions,
};
