//! Which paths are in the user's index: a tracked file is watched whatever the ignore rules say.

use super::super::path::is_below;

/// Sorted paths of an index.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tracked {
    paths: Vec<Vec<u8>>,
}

impl Tracked {
    /// Takes paths in any order.
    pub(crate) fn new(mut paths: Vec<Vec<u8>>) -> Tracked {
        paths.sort_unstable();
        paths.dedup();
        Tracked { paths }
    }

    pub(crate) fn contains(&self, path: &[u8]) -> bool {
        self.paths.binary_search_by(|tracked| tracked.as_slice().cmp(path)).is_ok()
    }

    /// Is anything below this folder tracked?
    pub(crate) fn any_below(&self, folder: &[u8]) -> bool {
        let mut first = folder.to_vec();
        first.push(b'/');
        let at = self.paths.partition_point(|tracked| tracked.as_slice() < first.as_slice());
        self.paths.get(at).is_some_and(|tracked| is_below(tracked, folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_the_folders_above_them_are_found() {
        let tracked = Tracked::new(vec![b"b/c/d".to_vec(), b"a".to_vec(), b"b-x".to_vec()]);
        assert!(tracked.contains(b"a"));
        assert!(!tracked.contains(b"b"));
        assert!(tracked.any_below(b"b"));
        assert!(tracked.any_below(b"b/c"));
        assert!(!tracked.any_below(b"b-"));
        assert!(!tracked.any_below(b"c"));
    }
}
