//! The walk: looks at every name below a folder, through descriptors of folders and through no link, and reads what
//! its stamp does not prove to be unchanged.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use super::super::error::RepoError;
use super::super::object::ObjectId;
use super::super::path::os;
use super::super::stamp::{self, Instant, Stamp};
use super::super::store::Store;
use super::ignore_rules::mix;
use super::read::{Read, Reader};
use super::stored::put_tree;
use super::{Chain, Entry, File, Folder, Left, Node, Rules, Tracked, Verdict};

/// Folders deeper than this are told, and not looked into: each level holds a descriptor.
const MOST_LEVELS: usize = 256;
/// Ignored files that are kept so that they can be put back: largest size, bytes in all, files in all.
const KEPT_SIZE: u64 = 256 << 10;
const KEPT_BYTES: u64 = 32 << 20;
const KEPT_FILES: u64 = 5_000;
/// How often a file that changes kind under the walk is looked at again.
const MOST_TRIES: usize = 5;

/// What kind of tree is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// A working tree: ignore rules hold, git folders are left out.
    WorkTree,
    /// A git folder: all of it, but the objects and what is ours.
    GitFolder,
}

/// How to get at the paths of the index, which is only done when an ignored path is met.
pub(crate) type TrackedSource<'a> = &'a mut dyn FnMut() -> Result<Arc<Tracked>, RepoError>;

pub(crate) struct Walk<'a> {
    reader: Reader<'a>,
    root: &'a Path,
    profile: Profile,
    /// rules of now outside the tree (`core.excludesFile`, `info/exclude`), and those of the run's start
    pub(crate) now: Chain,
    pub(crate) then: Option<Chain>,
    /// treat ignored paths like all others
    pub(crate) watch_ignored: bool,
    pub(crate) fold_case: bool,
    tracked_source: TrackedSource<'a>,
    tracked: Option<Arc<Tracked>>,
    kept_files: u64,
    kept_bytes: u64,
}

/// The folder at hand as other looks saw it, and the rules that hold in it.
struct Place<'b> {
    /// the last look, whose stamps prove what is unchanged
    prev: Option<&'b Arc<Folder>>,
    /// the checkpoint that this look is compared with
    base: Option<&'b Folder>,
    /// the run's first checkpoint, whose rules still hold
    start: Option<&'b Folder>,
    now: Chain,
    then: Option<Chain>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        store: &'a mut Store,
        root: &'a Path,
        profile: Profile,
        size_cap: u64,
        tracked_source: TrackedSource<'a>,
    ) -> Walk<'a> {
        let reader = Reader { store, look: Instant::now(), size_cap, content: Vec::new() };
        Walk {
            reader,
            root,
            profile,
            now: Chain::default(),
            then: None,
            watch_ignored: false,
            fold_case: false,
            tracked_source,
            tracked: None,
            kept_files: 0,
            kept_bytes: 0,
        }
    }

    /// Walks below an open folder. `prev`: the last look. `base`: the checkpoint to compare with; what it has watched
    /// is watched, what it passed over as ignored is passed over. `start`: the first checkpoint of the run.
    pub(crate) fn run(
        mut self,
        folder: OwnedFd,
        prev: Option<&Arc<Folder>>,
        base: Option<&Folder>,
        start: Option<&Folder>,
    ) -> Result<Arc<Folder>, RepoError> {
        let place = Place { prev, base, start, now: self.now.clone(), then: self.then.clone() };
        self.folder(folder, &mut Vec::new(), 0, &place)
    }

    fn failed(&self, path: &[u8], errno: Errno) -> RepoError {
        RepoError::Capture { path: self.root.join(os(path)), source: errno.into() }
    }

    fn folder(
        &mut self,
        fd: OwnedFd,
        path: &mut Vec<u8>,
        depth: usize,
        place: &Place<'_>,
    ) -> Result<Arc<Folder>, RepoError> {
        let mut dir = Dir::new(fd).map_err(|errno| self.failed(path, errno))?;
        let mut names: Vec<(Box<[u8]>, FileType, u64)> = Vec::new();
        while let Some(entry) = dir.read() {
            let entry = entry.map_err(|errno| self.failed(path, errno))?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push((name.into(), entry.file_type(), entry.ino()));
            }
        }
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let fd = dir.fd().map_err(|errno| self.failed(path, errno))?;
        let stamp = fstat(fd).map(|stat| Stamp::of(&stat)).map_err(|errno| self.failed(path, errno))?;

        let mut own_rules = None;
        let mut ignore_file = None;
        if self.profile == Profile::WorkTree && names.binary_search_by(|n| (*n.0).cmp(b".gitignore")).is_ok() {
            ignore_file = self.look_at_file(fd, path, b".gitignore", place, false)?;
            own_rules = self.rules_of(ignore_file.as_ref(), place)?;
        }
        let inner = self.inner_place(place, own_rules.as_ref(), path);
        let ruled_by = match &inner.then {
            Some(then) => mix(&[inner.now.print().as_bytes(), then.print().as_bytes()]),
            None => inner.now.print(),
        };
        let reusable = place.prev.filter(|prev| prev.ruled_by == ruled_by && !self.watch_ignored);
        let is_git_folder = self.profile == Profile::GitFolder
            && (depth == 0 || names.iter().any(|n| &*n.0 == b"HEAD" && n.1 != FileType::Directory));

        let mut entries = Vec::with_capacity(names.len());
        for (name, kind, ino) in names {
            if self.passes_over(&name, path, depth, is_git_folder) {
                continue;
            }
            let length = path.len();
            if length > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(&name);
            let known = if &*name == b".gitignore" { ignore_file.take() } else { None };
            let old = reusable.and_then(|prev| prev.get(&name));
            let found = self.entry(fd, path, name, (kind, ino), depth, &inner, old, known);
            path.truncate(length);
            entries.extend(found?);
        }
        let mut folder =
            Folder { mode: stamp.mode, ino: stamp.ino, entries, rules: own_rules, ruled_by, tree: ObjectId::default() };
        if let Some(prev) = place.prev.filter(|prev| prev.same_as(&folder)) {
            return Ok(prev.clone());
        }
        folder.tree = put_tree(self.reader.store, &folder)?;
        Ok(Arc::new(folder))
    }

    /// The rules of the folder's own `.gitignore`.
    fn rules_of(&mut self, node: Option<&Node>, place: &Place<'_>) -> Result<Option<Arc<Rules>>, RepoError> {
        let Some(Node::File(file)) = node else { return Ok(None) };
        if file.stamp.kind() != stamp::FILE {
            // git follows no link here, and neither do we
            return Ok(None);
        }
        if let Some(prev) = place.prev
            && let Some(Entry { node: Node::File(old), .. }) = prev.get(b".gitignore")
            && old.id == file.id
            && let Some(rules) = &prev.rules
        {
            return Ok(Some(rules.clone()));
        }
        let content = self.reader.store.read(file.id)?;
        Ok(Some(Arc::new(Rules::parse(&content, self.fold_case))))
    }

    fn inner_place<'b>(&self, place: &Place<'b>, own: Option<&Arc<Rules>>, path: &[u8]) -> Place<'b> {
        let add = |chain: &Chain, rules: Option<&Arc<Rules>>| rules.map_or(chain.clone(), |r| chain.push(r, path));
        let then = place.then.as_ref().map(|then| add(then, place.start.and_then(|start| start.rules.as_ref())));
        Place { prev: place.prev, base: place.base, start: place.start, now: add(&place.now, own), then }
    }

    /// Names that are no part of the tree.
    fn passes_over(&self, name: &[u8], folder: &[u8], depth: usize, is_git_folder: bool) -> bool {
        match self.profile {
            Profile::WorkTree => depth == 0 && name == b".git",
            Profile::GitFolder if folder == b"objects" || folder.ends_with(b"/objects") => name != b"info",
            Profile::GitFolder if folder == b"objects/info" || folder.ends_with(b"/objects/info") => {
                !matches!(name, b"alternates" | b"http-alternates")
            }
            Profile::GitFolder if is_git_folder => {
                (depth == 0 && name == b"lunation")
                    || name == b"lfs"
                    || name == b"annex"
                    || name.starts_with(b"fsmonitor--daemon")
            }
            Profile::GitFolder => false,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one name, all that is known of it, and where it stands")]
    fn entry(
        &mut self,
        fd: BorrowedFd<'_>,
        path: &mut Vec<u8>,
        name: Box<[u8]>,
        (mut kind, ino): (FileType, u64),
        depth: usize,
        place: &Place<'_>,
        old: Option<&Entry>,
        known: Option<Node>,
    ) -> Result<Option<Entry>, RepoError> {
        if self.profile == Profile::WorkTree && &*name == b".git" {
            let node = self.nested_git(fd, path, &name)?;
            return Ok(node.map(|node| Entry { name, verdict: None, node }));
        }
        for _ in 0..MOST_TRIES {
            if kind == FileType::Unknown {
                match statat(fd, os(&name), AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => kind = FileType::from_raw_mode(stat.st_mode),
                    Err(Errno::NOENT) => return Ok(None),
                    Err(errno) => return Err(self.failed(path, errno)),
                }
            }
            let is_folder = kind == FileType::Directory;
            let in_base = place.base.and_then(|base| base.get(&name)).map(|entry| &entry.node);
            if let Some(Node::Ignored { .. }) = in_base {
                let node = Node::Ignored { ino, folder: is_folder };
                return Ok(Some(Entry { name, verdict: None, node }));
            }
            let verdict = self.verdict(path, is_folder, place, old);
            let ignored = verdict.ignored_now && (place.then.is_none() || verdict.ignored_at_start);
            let watched = in_base.is_some_and(Node::is_watched);
            let mut kept = false;
            if ignored && !watched && !self.is_tracked(path, is_folder)? {
                if is_folder || place.now.ignores_all() {
                    let node = Node::Ignored { ino, folder: is_folder };
                    return Ok(Some(Entry { name, verdict: Some(verdict), node }));
                }
                kept = true;
            }
            let node = if is_folder {
                self.sub_folder(fd, path, &name, depth, place, verdict)?
            } else if let (Some(node), false) = (&known, kept) {
                Found::Node(node.clone())
            } else {
                match self.look_at_file(fd, path, &name, place, kept)? {
                    Some(node) if node.is_folder() => Found::Changed,
                    Some(node) => Found::Node(node),
                    None => Found::Gone,
                }
            };
            match node {
                Found::Node(node) => return Ok(Some(Entry { name, verdict: Some(verdict), node })),
                Found::Gone => return Ok(None),
                Found::Changed => kind = FileType::Unknown,
            }
        }
        Err(self.failed(path, Errno::AGAIN))
    }

    fn verdict(&self, path: &[u8], is_folder: bool, place: &Place<'_>, old: Option<&Entry>) -> Verdict {
        if self.watch_ignored || self.profile == Profile::GitFolder {
            return Verdict::default();
        }
        if let Some(Entry { verdict: Some(verdict), node, .. }) = old {
            let was_folder = match node {
                Node::Ignored { folder, .. } => *folder,
                other => other.is_folder(),
            };
            if was_folder == is_folder {
                return *verdict;
            }
        }
        Verdict {
            ignored_now: place.now.ignores(path, is_folder),
            ignored_at_start: place.then.as_ref().is_some_and(|then| then.ignores(path, is_folder)),
        }
    }

    fn is_tracked(&mut self, path: &[u8], is_folder: bool) -> Result<bool, RepoError> {
        let tracked = match &self.tracked {
            Some(tracked) => tracked,
            None => {
                let tracked = (self.tracked_source)()?;
                self.tracked.insert(tracked)
            }
        };
        Ok(if is_folder { tracked.any_below(path) } else { tracked.contains(path) })
    }

    fn sub_folder(
        &mut self,
        fd: BorrowedFd<'_>,
        path: &mut Vec<u8>,
        name: &[u8],
        depth: usize,
        place: &Place<'_>,
        verdict: Verdict,
    ) -> Result<Found, RepoError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened =
            if depth + 1 >= MOST_LEVELS { Ok(None) } else { openat(fd, os(name), flags, Mode::empty()).map(Some) };
        let why = match opened {
            Ok(Some(sub)) => {
                let below = |folder: Option<&'_ Node>| match folder {
                    Some(Node::Folder(folder)) => Some(folder.clone()),
                    _ => None,
                };
                let find = |folder: Option<&Folder>| below(folder.and_then(|f| f.get(name)).map(|entry| &entry.node));
                let prev = below(place.prev.and_then(|prev| prev.get(name)).map(|entry| &entry.node));
                let (base, start) = (find(place.base), find(place.start));
                let inside = |chain: &Chain, ignored: bool| {
                    if ignored && !chain.ignores_all() { chain.inside_ignored() } else { chain.clone() }
                };
                let inner = Place {
                    prev: prev.as_ref(),
                    base: base.as_deref(),
                    start: start.as_deref(),
                    now: inside(&place.now, verdict.ignored_now),
                    then: place.then.as_ref().map(|then| inside(then, verdict.ignored_at_start)),
                };
                return Ok(Found::Node(Node::Folder(self.folder(sub, path, depth + 1, &inner)?)));
            }
            Ok(None) => Left::TooDeep,
            Err(Errno::ACCESS | Errno::PERM) => Left::UnreadableFolder,
            Err(Errno::NOENT) => return Ok(Found::Gone),
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(Found::Changed),
            Err(errno) => return Err(self.failed(path, errno)),
        };
        match statat(fd, os(name), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Found::Node(Node::Left { stamp: Stamp::of(&stat), why })),
            Err(Errno::NOENT) => Ok(Found::Gone),
            Err(errno) => Err(self.failed(path, errno)),
        }
    }

    /// The node of a name that is no folder; one that turned out to be a folder is told by its mode.
    fn look_at_file(
        &mut self,
        fd: BorrowedFd<'_>,
        path: &[u8],
        name: &[u8],
        place: &Place<'_>,
        kept: bool,
    ) -> Result<Option<Node>, RepoError> {
        for _ in 0..MOST_TRIES {
            let stat = match statat(fd, os(name), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(self.failed(path, errno)),
            };
            let stamp = Stamp::of(&stat);
            let is_content = matches!(stamp.kind(), stamp::FILE | stamp::LINK);
            if kept && !(is_content && self.may_keep(stamp.size)) {
                return Ok(Some(Node::Ignored { ino: stamp.ino, folder: stamp.kind() == stamp::FOLDER }));
            }
            match place.prev.and_then(|prev| prev.get(name)).map(|entry| &entry.node) {
                Some(Node::File(old)) if old.stamp == stamp && !old.racy => {
                    return Ok(Some(Node::File(File { kept, ..*old })));
                }
                Some(old @ Node::Left { stamp: before, why: Left::Unreadable }) if *before == stamp => {
                    return Ok(Some(old.clone()));
                }
                _ => {}
            }
            if stamp.kind() == stamp::FOLDER {
                return Ok(Some(Node::Left { stamp, why: Left::UnreadableFolder }));
            }
            if !is_content {
                return Ok(Some(Node::Special { stamp, device: stat.st_rdev }));
            }
            match self.reader.read(fd, name, stamp, kept)? {
                Ok(Read::Node(node)) => return Ok(Some(node)),
                Ok(Read::Changed) => {}
                Err(errno) => return Err(self.failed(path, errno)),
            }
        }
        Err(self.failed(path, Errno::AGAIN))
    }

    fn may_keep(&mut self, size: u64) -> bool {
        let fits = size <= KEPT_SIZE && self.kept_files < KEPT_FILES && self.kept_bytes + size <= KEPT_BYTES;
        if fits {
            self.kept_files += 1;
            self.kept_bytes += size;
        }
        fits
    }

    fn nested_git(&mut self, fd: BorrowedFd<'_>, path: &[u8], name: &[u8]) -> Result<Option<Node>, RepoError> {
        let stamp = match statat(fd, os(name), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Stamp::of(&stat),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(self.failed(path, errno)),
        };
        if !matches!(stamp.kind(), stamp::FILE | stamp::LINK) || stamp.size > KEPT_SIZE {
            return Ok(Some(Node::NestedGit { stamp, id: None }));
        }
        match self.reader.read(fd, name, stamp, false)? {
            Ok(Read::Node(Node::File(file))) => Ok(Some(Node::NestedGit { stamp: file.stamp, id: Some(file.id) })),
            Ok(_) => Ok(Some(Node::NestedGit { stamp, id: None })),
            Err(errno) => Err(self.failed(path, errno)),
        }
    }
}

enum Found {
    Node(Node),
    Gone,
    Changed,
}
