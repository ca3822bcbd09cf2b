//! What git's trees can't say about a captured folder, as a text: exact modes, special files, what was left alone,
//! nested git folders; and, apart from it, what was ignored.
//!
//! One line an entry, the path last and escaped; sorted as the walk is, so that equal folders have equal records.
//! The first line carries the version: a reader takes its own version and refuses others.

use std::collections::HashMap;

use super::super::object::ObjectId;
use super::super::path::{escape, unescape};
use super::super::stamp::{self, Stamp};
use super::stored::kept_with_mode;
use super::{Census, Entry, File, Folder, Left, Node};

const TREE_HEAD: &str = "lunation-tree 1";
const KEPT_HEAD: &str = "lunation-kept 2";
/// Without ignored folders; still read.
const KEPT_HEAD_1: &str = "lunation-kept 1";

/// The modes that most entries of a class have, so that only the others need a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CommonModes {
    file: u32,
    program: u32,
    folder: u32,
}

/// What a record adds to git's tree.
#[derive(Debug, Default)]
pub(super) struct Extras {
    modes: HashMap<Vec<u8>, u32>,
    common: Option<CommonModes>,
    times: HashMap<Vec<u8>, i64>,
    /// by the path of the folder that they are in
    pub(super) entries: HashMap<Vec<u8>, Vec<Entry>>,
}

impl Extras {
    pub(super) fn mode(&self, path: &[u8], git_mode: u32) -> u32 {
        use super::super::object::tree_mode::{FOLDER, LINK, PROGRAM};
        if git_mode == LINK {
            return stamp::LINK | 0o777;
        }
        if let Some(mode) = self.modes.get(path) {
            return *mode;
        }
        match (git_mode, self.common) {
            (FOLDER, Some(common)) => common.folder,
            (PROGRAM, Some(common)) => common.program,
            (_, Some(common)) => common.file,
            (mode, None) => mode,
        }
    }

    pub(super) fn mtime(&self, path: &[u8]) -> i64 {
        self.times.get(path).copied().unwrap_or(0)
    }

    fn add(&mut self, path: &[u8], node: Node) {
        let (folder, name) = super::super::path::split(path);
        let entry = Entry { name: name.into(), verdict: None, node };
        self.entries.entry(folder.to_vec()).or_default().push(entry);
    }
}

/// The most common of some modes; of two that are as common the smaller one, so that equal trees have equal records.
fn most_common(census: &Census, of: impl Fn(u32) -> bool, fallback: u32) -> u32 {
    let modes = census.modes.iter().filter(|(mode, _)| of(*mode));
    modes.max_by_key(|(mode, count)| (*count, std::cmp::Reverse(*mode))).map_or(fallback, |(mode, _)| *mode)
}

fn common_modes(root: &Folder) -> CommonModes {
    let is_folder = |mode: u32| mode & stamp::TYPE_MASK == stamp::FOLDER;
    let census = &root.census;
    CommonModes {
        file: most_common(census, |mode| !is_folder(mode) && mode & 0o100 == 0, 0o100_644),
        program: most_common(census, |mode| !is_folder(mode) && mode & 0o100 != 0, 0o100_755),
        folder: most_common(census, is_folder, 0o040_755),
    }
}

impl CommonModes {
    /// Has everything below the folder the mode that most have?
    fn hold_in(&self, folder: &Folder) -> bool {
        let modes = &folder.census.modes;
        modes.iter().all(|(mode, _)| [self.file, self.program, self.folder].contains(mode))
    }
}

/// The record of what is watched. `times`: keep the mtime of files with this name as well.
pub(super) fn tree_record(root: &Folder, times: Option<&[u8]>) -> String {
    let common = common_modes(root);
    let mut text = format!("{TREE_HEAD}\ncommon {:o} {:o} {:o}\n", common.file, common.program, common.folder);
    text.push_str(&format!("root {:o}\n", root.mode));
    let into = |folder: &Folder| times.is_some() || folder.census.odd > 0 || !common.hold_in(folder);
    root.visit_some(&mut Vec::new(), &into, &mut |path, entry| {
        let mut line = |words: String| text.push_str(&format!("{words} {}\n", escape(path)));
        match &entry.node {
            Node::File(file) if file.kept => {}
            Node::File(file) => {
                let usual = match file.stamp.mode {
                    mode if mode & stamp::TYPE_MASK == stamp::LINK => mode,
                    mode if mode & 0o100 != 0 => common.program,
                    _ => common.file,
                };
                if file.stamp.mode != usual {
                    line(format!("mode {:o}", file.stamp.mode));
                }
                if times == Some(&*entry.name) {
                    line(format!("mtime {}", file.stamp.mtime));
                }
            }
            Node::Folder(folder) if folder.mode != common.folder => line(format!("mode {:o}", folder.mode)),
            Node::Folder(_) | Node::Kept(_) | Node::Ignored { .. } => {}
            Node::Special { stamp, device } => line(format!("special {:o} {device}", stamp.mode)),
            Node::Left { stamp, why } => {
                line(format!("left {} {:o} {} {}", word(*why), stamp.mode, stamp.size, stamp.mtime));
            }
            Node::NestedGit { stamp, id } => {
                let id = id.map_or("-".into(), |id| id.to_string());
                line(format!("git {:o} {id}", stamp.mode));
            }
        }
    });
    text
}

/// The record of what was ignored, and the contents that it names.
pub(super) fn kept_record(root: &Folder) -> (String, Vec<ObjectId>) {
    let mut text = format!("{KEPT_HEAD}\n");
    let mut contents = Vec::new();
    let into = |folder: &Folder| folder.census.unwatched > 0;
    root.visit_some(&mut Vec::new(), &into, &mut |path, entry| match &entry.node {
        Node::Kept(folder) => text.push_str(&format!("kept-folder {:o} {}\n", folder.mode, escape(path))),
        Node::File(File { stamp, id, kept: true, .. }) => {
            text.push_str(&format!("kept {:o} {id} {}\n", stamp.mode, escape(path)));
            contents.push(*id);
        }
        Node::Ignored { ino, folder } => {
            text.push_str(&format!("ignored {ino} {} {}\n", u8::from(*folder), escape(path)));
        }
        _ => {}
    });
    (text, contents)
}

fn word(why: Left) -> &'static str {
    match why {
        Left::OverCap => "over-cap",
        Left::Unreadable => "unreadable",
        Left::UnreadableFolder => "unreadable-folder",
        Left::TooDeep => "too-deep",
    }
}

fn left(word: &str) -> Option<Left> {
    [Left::OverCap, Left::Unreadable, Left::UnreadableFolder, Left::TooDeep]
        .into_iter()
        .find(|why| self::word(*why) == word)
}

/// Reads a record of either kind into `extras`; returns the mode of the root where the record has one.
pub(super) fn read_record(text: &str, extras: &mut Extras) -> Result<Option<u32>, String> {
    let mut lines = text.lines();
    match lines.next() {
        Some(TREE_HEAD | KEPT_HEAD | KEPT_HEAD_1) => {}
        head => return Err(format!("a record of a version that this program does not know: {head:?}")),
    }
    let mut root = None;
    for line in lines {
        if let Some(mode) = line.strip_prefix("root ") {
            root = Some(u32::from_str_radix(mode, 8).map_err(|_| format!("a damaged line: {line:?}"))?);
        } else {
            read_line(line, extras).ok_or_else(|| format!("a damaged line: {line:?}"))?;
        }
    }
    Ok(root)
}

fn read_line(line: &str, extras: &mut Extras) -> Option<()> {
    let octal = |word: &str| u32::from_str_radix(word, 8).ok();
    let fields = |count: usize| line.splitn(count, ' ').collect::<Vec<_>>();
    match line.split(' ').next()? {
        "common" => {
            let [_, file, program, folder] = fields(4).try_into().ok()?;
            extras.common = Some(CommonModes { file: octal(file)?, program: octal(program)?, folder: octal(folder)? });
        }
        "mode" => {
            let [_, mode, path] = fields(3).try_into().ok()?;
            extras.modes.insert(unescape(path), octal(mode)?);
        }
        "mtime" => {
            let [_, time, path] = fields(3).try_into().ok()?;
            extras.times.insert(unescape(path), time.parse().ok()?);
        }
        "special" => {
            let [_, mode, device, path] = fields(4).try_into().ok()?;
            let stamp = Stamp { mode: octal(mode)?, ..Stamp::default() };
            extras.add(&unescape(path), Node::Special { stamp, device: device.parse().ok()? });
        }
        "left" => {
            let [_, why, mode, size, mtime, path] = fields(6).try_into().ok()?;
            let stamp =
                Stamp { mode: octal(mode)?, size: size.parse().ok()?, mtime: mtime.parse().ok()?, ..Stamp::default() };
            extras.add(&unescape(path), Node::Left { stamp, why: left(why)? });
        }
        "git" => {
            let [_, mode, id, path] = fields(4).try_into().ok()?;
            let id = if id == "-" { None } else { Some(id.parse().ok()?) };
            let stamp = Stamp { mode: octal(mode)?, ..Stamp::default() };
            extras.add(&unescape(path), Node::NestedGit { stamp, id });
        }
        "kept" => {
            let [_, mode, id, path] = fields(4).try_into().ok()?;
            let stamp = Stamp { mode: octal(mode)?, ..Stamp::default() };
            let file = File { stamp, id: id.parse().ok()?, racy: true, kept: true };
            extras.add(&unescape(path), Node::File(file));
        }
        "kept-folder" => {
            let [_, mode, path] = fields(3).try_into().ok()?;
            extras.add(&unescape(path), kept_with_mode(octal(mode)?));
        }
        "ignored" => {
            let [_, ino, folder, path] = fields(4).try_into().ok()?;
            extras.add(&unescape(path), Node::Ignored { ino: ino.parse().ok()?, folder: folder == "1" });
        }
        _ => return None,
    }
    Some(())
}
