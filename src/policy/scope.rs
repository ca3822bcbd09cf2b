//! The write scope of a loop: which paths below the root its agent may add, edit, delete or change the mode of.
//!
//! Owns the globs and their meaning. Must not know files: a path is only a string of bytes here.
//! Guarantees that the same scope gives the same answer for the same path everywhere, and that `.git` (at any depth)
//! and `.lunation` (at the root) are never inside it.
//!
//! Globs are read as in a `.gitignore` file: `*` and `?` stop at `/`, `**` crosses it, a glob with no `/` in front
//! of its last character matches at any depth, a leading `/` ties it to the root, a glob that names a folder covers
//! all that is in it (with or without a trailing `/`: whether a path is a folder is not known here), `!` in front takes paths out again, and of several globs of a list that match, the last one counts.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::FenceSpec;

/// A resolved write scope. Build it with [`Scope::new`]; it can be written and read with serde.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "WrittenScope", into = "WrittenScope")]
pub struct Scope {
    written: WrittenScope,
    allow: GlobList,
    deny: GlobList,
    protected: GlobList,
}

/// A scope as it goes to disk: nothing but its globs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct WrittenScope {
    fence: FenceSpec,
    protected: Vec<String>,
    fold_case: bool,
}

/// A glob that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("glob {glob:?} can't be used: {why}")]
pub struct ScopeError {
    /// The glob as written.
    pub glob: String,
    /// What is wrong with it.
    pub why: String,
}

impl Scope {
    /// Resolves a fence.
    ///
    /// Takes the globs of the fence (an empty `allow`, or one with nothing but `!` globs, stands for everything) and
    /// the paths or globs that are denied whatever the fence says (`protected`: scripts, prompt files, named test
    /// files). Protected paths are always tied to the root.
    ///
    /// # Errors
    /// The first glob that is blank, malformed, leads out of the root, or is a `!` glob among the protected ones.
    pub fn new(fence: FenceSpec, protected: Vec<String>) -> Result<Scope, ScopeError> {
        Scope::build(WrittenScope { fence, protected, fold_case: false })
    }

    /// A scope that allows every path but the protected ones that always hold.
    #[must_use]
    pub fn everything() -> Scope {
        Scope {
            written: WrittenScope::default(),
            allow: GlobList::default(),
            deny: GlobList::default(),
            protected: GlobList::default(),
        }
    }

    /// The same scope for a file system that takes `Tests/T` and `tests/t` for one path.
    ///
    /// # Errors
    /// As [`Scope::new`].
    pub fn folding_case(self) -> Result<Scope, ScopeError> {
        Scope::build(WrittenScope { fold_case: true, ..self.written })
    }

    /// The fence that the scope was made from.
    #[must_use]
    pub fn fence(&self) -> &FenceSpec {
        &self.written.fence
    }

    /// The protected globs that the scope was made from.
    #[must_use]
    pub fn protected(&self) -> &[String] {
        &self.written.protected
    }

    /// True when paths that git ignores are fenced as well.
    #[must_use]
    pub fn watches_ignored(&self) -> bool {
        self.written.fence.watch_ignored
    }

    /// True when every path but the always protected ones is allowed.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.allow.rules.is_empty() && self.deny.rules.is_empty() && self.protected.rules.is_empty()
    }

    /// May the agent write this path? Takes the path relative to the root, as bytes, with no leading `/`.
    #[must_use]
    pub fn allows(&self, path: &[u8]) -> bool {
        if is_ours(path) || self.protected.verdict(path) == Some(true) || self.deny.verdict(path) == Some(true) {
            return false;
        }
        self.allow.verdict(path).unwrap_or(self.allow.only_exclusions())
    }

    /// May the agent add, delete or change the folder at this path? It may when the scope holds the folder itself or
    /// anything directly in it, because a file can't be added without its folder.
    #[must_use]
    pub fn allows_folder(&self, path: &[u8]) -> bool {
        if self.allows(path) {
            return true;
        }
        let mut inside = path.to_vec();
        inside.extend_from_slice(b"/x");
        !is_ours(path) && self.allows(&inside)
    }

    fn build(written: WrittenScope) -> Result<Scope, ScopeError> {
        let fold = written.fold_case;
        let list = |globs: &[String], anchored| GlobList::new(globs, anchored, fold);
        let scope = Scope {
            allow: list(&written.fence.allow, false)?,
            deny: list(&written.fence.deny, false)?,
            protected: list(&written.protected, true)?,
            written,
        };
        match scope.written.protected.iter().find(|glob| glob.starts_with('!')) {
            Some(glob) => Err(wrong(glob, "a protected path can't be taken out again with `!`")),
            None => Ok(scope),
        }
    }
}

impl PartialEq for Scope {
    fn eq(&self, other: &Scope) -> bool {
        self.written == other.written
    }
}

impl Eq for Scope {}

impl TryFrom<WrittenScope> for Scope {
    type Error = ScopeError;
    fn try_from(written: WrittenScope) -> Result<Scope, ScopeError> {
        Scope::build(written)
    }
}

impl From<Scope> for WrittenScope {
    fn from(scope: Scope) -> WrittenScope {
        scope.written
    }
}

/// Globs in the order in which they were written; a glob may have become two.
#[derive(Debug, Clone, Default)]
struct GlobList {
    set: GlobSet,
    /// for each glob of the set: does it take in (true) or out (false)
    rules: Vec<bool>,
}

impl GlobList {
    fn new(globs: &[String], anchored: bool, fold_case: bool) -> Result<GlobList, ScopeError> {
        let mut set = GlobSetBuilder::new();
        let mut rules = Vec::new();
        for written in globs {
            let (takes_in, forms) = translate(written, anchored)?;
            for form in forms {
                let glob = GlobBuilder::new(&form)
                    .literal_separator(true)
                    .backslash_escape(true)
                    .case_insensitive(fold_case)
                    .build()
                    .map_err(|error| wrong(written, &error.kind().to_string()))?;
                set.add(glob);
                rules.push(takes_in);
            }
        }
        let set = set.build().map_err(|error| wrong(&globs.join(", "), &error.kind().to_string()))?;
        Ok(GlobList { set, rules })
    }

    /// What the last matching glob says.
    fn verdict(&self, path: &[u8]) -> Option<bool> {
        if self.rules.is_empty() {
            return None;
        }
        let path = Path::new(OsStr::from_bytes(path));
        self.set.matches(path).into_iter().max().map(|last| self.rules[last])
    }

    fn only_exclusions(&self) -> bool {
        !self.rules.contains(&true)
    }
}

fn wrong(glob: &str, why: &str) -> ScopeError {
    ScopeError { glob: glob.into(), why: why.into() }
}

/// One glob as written to the globs that it stands for: the path itself, and all that is below it.
fn translate(written: &str, anchored: bool) -> Result<(bool, Vec<String>), ScopeError> {
    let (takes_in, glob) = match written.strip_prefix('!') {
        Some(rest) => (false, rest),
        None => (true, written),
    };
    let mut glob = glob;
    while let Some(rest) = glob.strip_prefix("./") {
        glob = rest;
    }
    if glob.trim().is_empty() || glob.trim_matches('/').is_empty() {
        return Err(wrong(written, "it is blank"));
    }
    if glob.contains('\0') {
        return Err(wrong(written, "it holds a NUL"));
    }
    if glob.split('/').any(|part| part == "..") {
        return Err(wrong(written, "`..` leads out of the root; globs are relative to the root of the repository"));
    }
    let body = glob.trim_end_matches('/');
    let tied = anchored || body.starts_with('/') || body.contains('/');
    let body = body.trim_start_matches('/');
    let body = if tied { body.to_string() } else { format!("**/{body}") };
    let mut forms = Vec::new();
    if body.ends_with("/**") || body == "**" {
        forms.push(body);
    } else {
        forms.push(format!("{body}/**"));
        forms.push(body);
    }
    Ok((takes_in, forms))
}

/// `.git` at any depth, and the state folder at the root, in any case of letters.
fn is_ours(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'/');
    let first_is_ours = path.split(|byte| *byte == b'/').next().is_some_and(|p| p.eq_ignore_ascii_case(b".lunation"));
    first_is_ours || parts.any(|part| part.eq_ignore_ascii_case(b".git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(allow: &[&str], deny: &[&str], protected: &[&str]) -> Scope {
        let list = |globs: &[&str]| globs.iter().map(|g| (*g).to_string()).collect::<Vec<_>>();
        let fence = FenceSpec { allow: list(allow), deny: list(deny), watch_ignored: false };
        Scope::new(fence, list(protected)).expect("a good scope")
    }

    fn why(allow: &str) -> String {
        let fence = FenceSpec { allow: vec![allow.into()], ..FenceSpec::default() };
        Scope::new(fence, Vec::new()).expect_err("a bad glob").to_string()
    }

    #[test]
    fn an_empty_scope_allows_everything_but_git_and_our_state() {
        let scope = scope(&[], &[], &[]);
        assert!(scope.allows(b"a"));
        assert!(scope.allows(b"a/b/c"));
        assert!(!scope.allows(b".git/config"));
        assert!(!scope.allows(b"sub/.git"));
        assert!(!scope.allows(b"sub/.GIT/hooks/x"));
        assert!(!scope.allows(b".lunation/STOP"));
        assert!(scope.allows(b"docs/.lunation/x"));
        assert!(scope.is_everything());
    }

    #[test]
    fn a_star_stops_at_a_slash_and_two_stars_cross_it() {
        let scope = scope(&["src/*.rs", "docs/**"], &[], &[]);
        assert!(scope.allows(b"src/a.rs"));
        assert!(!scope.allows(b"src/deep/a.rs"));
        assert!(scope.allows(b"docs/a/b"));
        assert!(!scope.allows(b"docs"));
        assert!(scope.allows_folder(b"docs"));
        assert!(!scope.allows_folder(b"tests"));
    }

    #[test]
    fn exclusions_take_paths_out_and_the_last_match_counts() {
        let scope = scope(&["src/**", "!src/vendor/**", "src/vendor/ours.rs"], &[], &[]);
        assert!(scope.allows(b"src/a.rs"));
        assert!(!scope.allows(b"src/vendor/b.rs"));
        assert!(scope.allows(b"src/vendor/ours.rs"));
    }

    #[test]
    fn exclusions_alone_leave_the_rest_allowed() {
        let scope = scope(&["!tests/**"], &[], &[]);
        assert!(scope.allows(b"src/a"));
        assert!(!scope.allows(b"tests/t"));
    }

    #[test]
    fn deny_and_protected_are_stronger_than_allow() {
        let scope = scope(&["**"], &["skills/vendor/**", "*.lock"], &["loop.lua", "prompts/main.md"]);
        assert!(!scope.allows(b"skills/vendor/x"));
        assert!(!scope.allows(b"a/Cargo.lock"));
        assert!(!scope.allows(b"loop.lua"));
        assert!(scope.allows(b"sub/loop.lua"));
        assert!(!scope.allows(b"prompts/main.md"));
    }

    #[test]
    fn a_name_without_a_slash_floats_and_a_folder_covers_its_contents() {
        let scope = scope(&["docs", "/only", "*.md"], &[], &[]);
        assert!(scope.allows(b"docs/a"));
        assert!(scope.allows(b"x/docs/a"));
        assert!(scope.allows(b"only/a"));
        assert!(!scope.allows(b"x/only/a"));
        assert!(scope.allows(b"x/y/README.md"));
    }

    #[test]
    fn names_that_are_not_utf8_and_names_with_odd_bytes_match() {
        let scope = scope(&["src/**"], &[], &[]);
        assert!(scope.allows(b"src/\xff\xfe"));
        assert!(scope.allows(b"src/a\nb"));
        assert!(!scope.allows(b"\xffsrc/a"));
    }

    #[test]
    fn bad_globs_are_refused_with_the_reason() {
        assert!(why("").contains("blank"));
        assert!(why("  ").contains("blank"));
        assert!(why("!").contains("blank"));
        assert!(why("../x/**").contains("leads out"));
        assert!(why("src/[a").contains("src/[a"));
        let protected = Scope::new(FenceSpec::default(), vec!["!x".into()]).expect_err("refused");
        assert!(protected.why.contains("can't be taken out"));
    }

    #[test]
    fn a_scope_that_folds_case_denies_every_spelling() {
        let scope = scope(&[], &["tests/**"], &["loop.lua"]).folding_case().expect("a good scope");
        assert!(!scope.allows(b"Tests/T"));
        assert!(!scope.allows(b"LOOP.LUA"));
    }

    #[test]
    fn a_scope_survives_being_written_and_read() {
        let scope = scope(&["src/**", "!src/x"], &["y"], &["z"]);
        let text = serde_json::to_string(&scope).expect("written");
        let again: Scope = serde_json::from_str(&text).expect("read");
        assert_eq!(scope, again);
        assert!(!again.allows(b"src/x"));
        let bad = text.replace("src/**", "src/[");
        assert!(serde_json::from_str::<Scope>(&bad).is_err());
    }
}
