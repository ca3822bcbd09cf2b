//! What is in a folder and below, in numbers, so that nobody has to look through a tree to know that it holds nothing
//! of a kind.

use super::super::stamp;
use super::{Entry, Node};

/// Numbers of a folder, all levels together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// modes of watched files and folders, with how many have them; links have no mode of their own
    pub(super) modes: Vec<(u32, u64)>,
    /// special files, nested git folders, and what was left alone
    pub(super) odd: u64,
    /// ignored paths, kept or not
    pub(super) unwatched: u64,
    links: u64,
}

impl Census {
    pub(super) fn of(entries: &[Entry]) -> Census {
        let mut census = Census::default();
        for entry in entries {
            match &entry.node {
                Node::File(file) if file.kept => census.unwatched += 1,
                Node::File(file) if file.stamp.kind() == stamp::LINK => census.links += 1,
                Node::File(file) => census.count(file.stamp.mode, 1),
                Node::Folder(folder) => {
                    census.count(folder.mode, 1);
                    let inner = &folder.census;
                    inner.modes.iter().for_each(|(mode, number)| census.count(*mode, *number));
                    census.odd += inner.odd;
                    census.unwatched += inner.unwatched;
                    census.links += inner.links;
                }
                Node::Kept(folder) => census.unwatched += 1 + folder.census.unwatched,
                Node::Ignored { .. } => census.unwatched += 1,
                Node::Special { .. } | Node::Left { .. } | Node::NestedGit { .. } => census.odd += 1,
            }
        }
        census
    }

    fn count(&mut self, mode: u32, number: u64) {
        match self.modes.iter_mut().find(|known| known.0 == mode) {
            Some(known) => known.1 += number,
            None => self.modes.push((mode, number)),
        }
    }

    /// All that was counted.
    pub(super) fn entries(&self) -> u64 {
        self.modes.iter().map(|(_, number)| number).sum::<u64>() + self.odd + self.unwatched + self.links
    }
}
