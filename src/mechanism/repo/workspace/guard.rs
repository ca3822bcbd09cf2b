//! The guard: puts the git folder back as a checkpoint had it, and says what it undid.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::checkpoint::{self, Captured, Checkpoint};
use super::super::discover::DotGit;
use super::super::error::RepoError;
use super::super::gitfolder::{self, Undone, UndoneInput, name_undone, read_refs};
use super::super::index;
use super::super::object::ObjectId;
use super::super::path::os;
use super::super::revert::Revert;
use super::super::snapshot::{Delta, Folder, Node, difference, store_tree};
use super::super::store::{AreaState, relink};
use super::Workspace;

/// How often the git folder is looked at and put back before giving up: something writes into it all the time.
const MOST_ROUNDS: usize = 4;

/// What the guard undid.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GuardReport {
    /// What was put back, by name. Empty when the git folder was as the checkpoint had it.
    pub undone: Vec<Undone>,
    /// Where the git folder as it was found is kept: a ref in the shadow store. Set when refs were moved, because
    /// commits that a person made meanwhile may hang on them.
    pub displaced: Option<String>,
    /// How many files of objects were put back.
    pub objects_back: u64,
}

impl Workspace {
    /// Puts the git folder back byte for byte as it was at a checkpoint: HEAD, branches, tags, stash, index,
    /// configuration, hooks, and all else but objects, of which lost ones come back. The working tree is not touched,
    /// so content that the agent committed stays as content.
    ///
    /// # Errors
    /// A git folder that could not be put back; then no git command may run in it.
    pub fn guard(&mut self, since: &Checkpoint) -> Result<GuardReport, RepoError> {
        let base = self.captured(&since.id)?;
        let mut report = GuardReport::default();
        self.mend_root(&mut report)?;
        self.mend_dot_git(&base, &mut report)?;
        for (path, stored) in &base.folders {
            self.mend_folder_itself(path, &mut report)?;
            self.guard_folder(path, &stored.root, &mut report)?;
        }
        Ok(report)
    }

    fn mend_root(&mut self, report: &mut GuardReport) -> Result<(), RepoError> {
        let root = self.repository.root();
        if fs::symlink_metadata(root).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            fs::create_dir(root).map_err(RepoError::io(root, "making the root of the repository again"))?;
            report.undone.push(Undone::new("git folder", "the root of the repository was removed"));
        }
        Ok(())
    }

    /// `.git` in the root is again the folder, file or link that it was.
    fn mend_dot_git(&mut self, base: &Captured, report: &mut GuardReport) -> Result<(), RepoError> {
        let dot = self.repository.root().join(".git");
        let meta = match fs::symlink_metadata(&dot) {
            Ok(meta) => Some(meta),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(RepoError::io(&dot, "looking at")(error)),
        };
        let as_it_was = meta.as_ref().is_some_and(|meta| match &base.places.dot_git {
            DotGit::Folder => meta.is_dir(),
            DotGit::File(content) => meta.is_file() && fs::read(&dot).is_ok_and(|now| now == *content),
            DotGit::Link(target) => {
                meta.is_symlink() && fs::read_link(&dot).is_ok_and(|now| now.as_os_str().as_bytes() == target)
            }
        });
        if as_it_was {
            return Ok(());
        }
        let how = if meta.is_some() { "was replaced by something else" } else { "was removed" };
        if meta.is_some() {
            self.put_aside(&dot)?;
        }
        match &base.places.dot_git {
            DotGit::Folder => fs::create_dir(&dot),
            DotGit::File(content) => fs::write(&dot, content),
            DotGit::Link(target) => symlink(os(target), &dot),
        }
        .map_err(RepoError::io(&dot, "putting back"))?;
        report.undone.push(Undone::new("git folder", format!(".git {how}")));
        Ok(())
    }

    fn mend_folder_itself(&mut self, path: &Path, report: &mut GuardReport) -> Result<(), RepoError> {
        match fs::symlink_metadata(path) {
            Ok(meta) if meta.is_dir() => return Ok(()),
            Ok(_) => self.put_aside(path)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(RepoError::io(path, "looking at")(error)),
        }
        fs::create_dir_all(path).map_err(RepoError::io(path, "making the git folder again"))?;
        report.undone.push(Undone::new("git folder", format!("{} was removed", path.display())));
        Ok(())
    }

    /// Moves something out of the way without losing it.
    fn put_aside(&mut self, path: &Path) -> Result<(), RepoError> {
        let target = self.store.displaced();
        match fs::rename(path, &target) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::CrossesDevices => {
                let mut aside = path.as_os_str().to_owned();
                aside.push(format!(".displaced-{:x}", rand::random::<u32>()));
                fs::rename(path, &aside).map_err(RepoError::io(path, "moving aside"))
            }
            Err(error) => Err(RepoError::io(path, "moving aside")(error)),
        }
    }

    fn guard_folder(&mut self, path: &Path, base: &Arc<Folder>, report: &mut GuardReport) -> Result<(), RepoError> {
        let mut conflicts = Vec::new();
        // what hangs on moved refs is linked on the way, and must not pass for what was there before
        let mut held = None;
        for round in 0..MOST_ROUNDS {
            let (now, cleared) = self.look_at_git(path)?;
            report.undone.extend(cleared);
            let deltas = difference(base, &now);
            if deltas.is_empty() {
                return self.put_objects_back(path, base, held, report);
            }
            if round == 0 {
                held = Some(self.areas.clone());
                let ours = path.join("lunation");
                open_up(&ours, 0).map_err(RepoError::io(&ours, "making our own folder writable again"))?;
                self.name(path, base, &now, &deltas, report)?;
            }
            let folder = gitfolder::open(path)?;
            let reverted = Revert::new(folder.as_fd(), path, &mut self.store).with_times().run(&deltas)?;
            conflicts = reverted.conflicts;
        }
        let (now, _) = self.look_at_git(path)?;
        let left = difference(base, &now);
        if left.is_empty() {
            return self.put_objects_back(path, base, held, report);
        }
        let told = conflicts.iter().map(|conflict| format!("{}: {}", conflict.path, conflict.why));
        let others = left.iter().map(|delta| format!("{} differs again", super::super::path::escape(&delta.path)));
        Err(RepoError::Guard { conflicts: told.chain(others).collect() })
    }

    /// Only when the folders that the objects lie in are real folders again.
    fn put_objects_back(
        &mut self,
        path: &Path,
        base: &Folder,
        held: Option<HashMap<PathBuf, AreaState>>,
        report: &mut GuardReport,
    ) -> Result<(), RepoError> {
        if let Some(held) = held {
            self.areas = held;
        }
        for area in gitfolder::areas(base) {
            let objects = path.join(os(&area));
            let done = relink(&mut self.store, &objects, self.areas.get_mut(&objects))?;
            report.objects_back += done.back + done.mended;
            for (number, what) in [
                (done.back, "were removed"),
                (done.mended, "were written into"),
                (done.modes, "had their mode changed"),
                (done.damaged, "were written into and could not be put back: `git fsck` tells which"),
            ] {
                if number > 0 {
                    report.undone.push(Undone::new("objects", format!("{number} files of objects {what}")));
                }
            }
        }
        Ok(())
    }

    /// Names what was found changed, and keeps it when refs were moved.
    fn name(
        &mut self,
        path: &Path,
        base: &Arc<Folder>,
        now: &Arc<Folder>,
        deltas: &[Delta],
        report: &mut GuardReport,
    ) -> Result<(), RepoError> {
        let before = read_refs(&mut self.store, base)?;
        let after = read_refs(&mut self.store, now)?;
        let own = self.repository.git_dir().strip_prefix(path).ok();
        let head = own.map(|own| own.join("HEAD").to_string_lossy().into_owned()).unwrap_or_default();
        let index_differs = self.index_differs(deltas)?;
        let input = UndoneInput { deltas, before: &before, after: &after, head: &head, index_differs };
        report.undone.extend(name_undone(&input));
        if before != after {
            // what hangs on the moved refs must stay readable; what the agent made unreadable is its own loss
            if let Err(error) = self.link_objects(path, now) {
                report.undone.push(Undone::new("objects", format!("new ones could not be kept: {error}")));
            }
            let stored = store_tree(&mut self.store, now, None)?;
            let id = checkpoint::commit(&mut self.store, stored.id.object(), "refs/displaced")?;
            self.store.sync()?;
            report.displaced = Some(format!("refs/displaced/{id}"));
        }
        Ok(())
    }

    /// Does an index say something else than before? One that can't be read does.
    fn index_differs(&mut self, deltas: &[Delta]) -> Result<bool, RepoError> {
        for delta in deltas.iter().filter(|delta| delta.path == b"index" || delta.path.ends_with(b"/index")) {
            let (Some(Node::File(old)), Some(Node::File(new))) = (&delta.old, &delta.new) else { return Ok(true) };
            let (old, new) = (self.index_entries(old.id)?, self.index_entries(new.id)?);
            if old.is_none() || old != new {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn index_entries(&mut self, id: ObjectId) -> Result<Option<Vec<index::IndexEntry>>, RepoError> {
        let content = self.store.read(id)?;
        let file = self.store.temporary();
        fs::write(&file, content).map_err(RepoError::io(&file, "writing"))?;
        let entries = index::read_entries(&file);
        fs::remove_file(&file).map_err(RepoError::io(&file, "removing"))?;
        Ok(entries)
    }
}

/// How deep our own folder in a git folder goes.
const OUR_LEVELS: usize = 4;

/// Our own records in the git folder can be written again, whatever modes an agent gave to all of it. Links are left.
fn open_up(path: &Path, level: usize) -> std::io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let needed = if meta.is_dir() { 0o700 } else { 0o600 };
    if !meta.is_symlink() && meta.mode() & needed != needed {
        fs::set_permissions(path, fs::Permissions::from_mode(meta.mode() & 0o7777 | needed))?;
    }
    if meta.is_dir() && level < OUR_LEVELS {
        for entry in fs::read_dir(path)? {
            open_up(&entry?.path(), level + 1)?;
        }
    }
    Ok(())
}
