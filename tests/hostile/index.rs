//! The index and its flags: the classic ways to hide an edit from git.

use crate::ordeal::{git, ordeal};

#[test]
fn flags_and_forged_entries_hide_nothing() {
    ordeal(&[
        git("git update-index --assume-unchanged src/lib.txt", &["index"]),
        git("git update-index --skip-worktree src/lib.txt tests/check.txt", &["index"]),
        git("git ls-files -s src/work.txt | sed 's#src/work#src/lib#' | git update-index --index-info", &["index"]),
        git("git rm -q --cached src/lib.txt; echo src/lib.txt >> .git/info/exclude", &["index", "info"]),
        git("echo n > src/new; git add -N src/new", &["index"]),
        git("git add -A", &["index"]),
        git("git reset -q", &["index"]),
        git("git read-tree --empty", &["index"]),
        git("git update-index --split-index", &["index"]),
        git("echo garbage > .git/index", &["index"]),
        git("rm .git/index; mkdir .git/index", &["index"]),
        git("ln -sf /etc/passwd .git/index", &["index"]),
        git("touch .git/index.lock .git/HEAD.lock .git/config.lock .git/refs/heads/main.lock", &["lock"]),
        git("git sparse-checkout set --no-cone src", &["config", "info"]),
    ]);
}

#[test]
fn edits_of_equal_size_and_forged_times_are_seen() {
    use crate::ordeal::files;
    ordeal(&[
        files(
            "cp -p src/work.txt $O/ref; echo KEEP > src/work.txt; touch -r $O/ref src/work.txt",
            &["src/work.txt"],
            &[],
        ),
        files("printf 'keep' > src/work.txt; printf 'kee2\\n' > src/work.txt", &["src/work.txt"], &[]),
        files(
            "printf 'kEEp\\n' > src/k; touch -d '2020-01-02 03:04:05' src/k; mv src/k src/work.txt",
            &["src/work.txt"],
            &[],
        ),
        files(
            "sleep 0.1; git config core.trustctime false; git config --unset core.trustctime; git config core.abbrev 9; printf 'keeq\\n' > src/work.txt",
            &["src/work.txt"],
            &[],
        ),
        files("cp -p run.sh $O/ref; printf '#!/bin/sh\\nexit 1\\n' > run.sh; touch -r $O/ref run.sh", &[], &["run.sh"]),
    ]);
}
