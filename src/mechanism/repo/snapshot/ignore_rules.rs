//! Which paths git ignores, by the rules in force at one instant.
//!
//! Owns one file of rules ([`Rules`]) and the rules that hold in a folder ([`Chain`]). Patterns are those of the
//! `ignore` crate, which agreed with git in every random repository that it was compared in.

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::path::Path;
use std::sync::Arc;

use super::super::object::{Kind, ObjectId, id_of};
use super::super::path::os;

/// The rules of one file.
#[derive(Debug)]
pub(crate) struct Rules {
    id: ObjectId,
    matcher: Gitignore,
}

impl Rules {
    /// Reads the rules of a file; lines that are no valid pattern are passed over, as git does.
    pub(crate) fn parse(content: &[u8], fold_case: bool) -> Rules {
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        let mut builder = GitignoreBuilder::new("");
        // the method can't fail; the crate keeps its result for later
        let _ = builder.case_insensitive(fold_case);
        for line in String::from_utf8_lossy(content).lines() {
            let _ = builder.add_line(None, line);
        }
        let matcher = builder.build().unwrap_or_else(|_| Gitignore::empty());
        Rules { id: id_of(Kind::Blob, content), matcher }
    }

    pub(crate) fn id(&self) -> ObjectId {
        self.id
    }
}

/// The rules that hold in a folder, the nearest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chain {
    nearest: Option<Arc<Link>>,
    /// the folder itself is ignored: nothing in it can be taken out again
    all: bool,
    print: ObjectId,
}

#[derive(Debug)]
struct Link {
    rules: Arc<Rules>,
    /// length of the path of the folder that the rules stand in, with its slash
    depth: usize,
    next: Option<Arc<Link>>,
}

impl Chain {
    /// The same with the rules of one more file, which stands in the folder at `path`.
    pub(crate) fn push(&self, rules: &Arc<Rules>, path: &[u8]) -> Chain {
        let depth = if path.is_empty() { 0 } else { path.len() + 1 };
        let print = mix(&[self.print.as_bytes(), rules.id.as_bytes(), &(depth as u64).to_be_bytes()]);
        let link = Link { rules: rules.clone(), depth, next: self.nearest.clone() };
        Chain { nearest: Some(Arc::new(link)), all: self.all, print }
    }

    /// The chain inside a folder that is ignored itself.
    pub(crate) fn inside_ignored(&self) -> Chain {
        Chain { all: true, print: mix(&[self.print.as_bytes(), b"all"]), ..self.clone() }
    }

    pub(crate) fn ignores_all(&self) -> bool {
        self.all
    }

    /// Equal prints, equal verdicts.
    pub(crate) fn print(&self) -> ObjectId {
        self.print
    }

    /// Takes a path relative to the root.
    pub(crate) fn ignores(&self, path: &[u8], is_folder: bool) -> bool {
        if self.all {
            return true;
        }
        let mut link = self.nearest.as_deref();
        while let Some(Link { rules, depth, next }) = link {
            let matched = rules.matcher.matched(Path::new(os(&path[*depth..])), is_folder);
            if matched.is_ignore() {
                return true;
            }
            if matched.is_whitelist() {
                return false;
            }
            link = next.as_deref();
        }
        false
    }
}

/// One id of several texts.
pub(super) fn mix(parts: &[&[u8]]) -> ObjectId {
    id_of(Kind::Blob, &parts.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Arc<Rules> {
        Arc::new(Rules::parse(text.as_bytes(), false))
    }

    #[test]
    fn the_nearest_rules_decide_and_may_take_a_path_out_again() {
        let root = Chain::default().push(&rules("*.log\n/build/\n"), b"");
        let sub = root.push(&rules("!keep.log\n/x\n"), b"sub");
        assert!(root.ignores(b"a.log", false));
        assert!(root.ignores(b"build", true));
        assert!(!root.ignores(b"build", false));
        assert!(!root.ignores(b"sub/build", true));
        assert!(!sub.ignores(b"sub/keep.log", false));
        assert!(sub.ignores(b"sub/other.log", false));
        assert!(sub.ignores(b"sub/x", false));
        assert!(!sub.ignores(b"sub/deep/x", false));
    }

    #[test]
    fn nothing_in_an_ignored_folder_can_be_taken_out_again() {
        let chain = Chain::default().push(&rules("build/\n!build/keep\n"), b"").inside_ignored();
        assert!(chain.ignores(b"build/keep", false));
    }

    #[test]
    fn prints_tell_chains_apart() {
        let one = Chain::default().push(&rules("a\n"), b"");
        assert_eq!(one.print(), Chain::default().push(&rules("a\n"), b"").print());
        assert_ne!(one.print(), Chain::default().push(&rules("a\n"), b"sub").print());
        assert_ne!(one.print(), one.inside_ignored().print());
    }

    #[test]
    fn a_byte_order_mark_and_carriage_returns_are_no_part_of_a_pattern() {
        let chain = Chain::default().push(&rules("\u{feff}a.txt\r\nb\r\n"), b"");
        assert!(chain.ignores(b"a.txt", false));
        assert!(chain.ignores(b"b", false));
    }
}
