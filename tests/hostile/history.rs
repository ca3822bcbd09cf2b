//! Commits, branches, tags, stashes and everything else that moves or loses history.

use crate::ordeal::{git, ordeal};

#[test]
fn commits_and_branches_are_as_they_were() {
    ordeal(&[
        git("git commit -qam mine", &["commit"]),
        git("git commit -q --amend -am other", &["commit"]),
        git("git reset -q --hard HEAD~2", &["commit"]),
        git("git reset -q --soft HEAD~1", &["commit"]),
        git("git checkout -q -f dev", &["HEAD"]),
        git("git checkout -q -f --detach HEAD~1", &["HEAD"]),
        git("git switch -q -f -c new", &["HEAD", "branch"]),
        git("git branch -q -D keep; git branch -f dev HEAD", &["branch"]),
        git("git tag t2; git tag -d v1 v2", &["tag"]),
        git("git stash -q -u", &["stash"]),
        git("git stash drop -q", &["stash"]),
        git("git stash clear; git reflog expire --expire=now --all; git gc -q --prune=now", &["stash"]),
    ]);
}

#[test]
fn refs_that_are_written_by_hand_are_as_they_were() {
    ordeal(&[
        git("git for-each-ref --format='delete %(refname)' | git update-ref --stdin", &["commit", "branch", "tag"]),
        git("git update-ref -d refs/heads/main; git gc -q --prune=now", &["commit"]),
        git("git symbolic-ref HEAD refs/heads/dev", &["HEAD"]),
        git("echo 'ref: refs/heads/../../../../tmp/x' > .git/HEAD", &["HEAD"]),
        git(": > .git/HEAD", &["HEAD"]),
        git("printf x > .git/refs/heads/main", &["commit"]),
        git("git pack-refs --all; sed -i '/keep/d;/v1/d' .git/packed-refs", &["branch"]),
        git("rm -rf .git/refs; mkdir .git/refs", &["commit"]),
        git("rm -rf .git/refs .git/logs; ln -s /tmp .git/refs; ln -s /nowhere .git/logs", &["commit"]),
        git("mkdir -p .git/refs/heads/main.d; rm .git/refs/heads/main; mkdir .git/refs/heads/main", &["commit"]),
        git("git update-ref refs/replace/$(git rev-parse HEAD) $(git rev-parse HEAD~1)", &["ref"]),
        git("git notes add -m noted", &["ref"]),
    ]);
}

#[test]
fn operations_that_are_left_half_done_are_undone() {
    ordeal(&[
        git("git commit -qam x; git rebase dev || true; test -d .git/rebase-merge", &["operation", "HEAD"]),
        git("git commit -qam x; git merge dev || true; test -f .git/MERGE_HEAD", &["operation", "index"]),
        git("git stash -q; git cherry-pick dev || true; test -f .git/CHERRY_PICK_HEAD", &["operation", "index"]),
        git("git stash -q; git revert --no-edit HEAD~1 || true", &["operation", "index"]),
        git("git bisect start -q; git bisect bad; git bisect good HEAD~2", &["operation", "HEAD"]),
        git("git worktree add -q -f $O/wt dev; git worktree lock $O/wt; rm -rf $O/wt", &["worktree"]),
        git("mv $O/linked $O/away; git worktree prune; mv $O/away $O/linked", &["worktree"]),
        git("git -c protocol.file.allow=always submodule --quiet add ./. src/sub", &["submodule", "index"]),
        git(
            "git checkout -q --orphan o; git commit -qm o; git branch -D main; git gc -q --prune=now",
            &["HEAD", "commit"],
        ),
        git("git prune --expire=now; git repack -qad; git prune-packed", &["objects"]),
    ]);
}

#[test]
fn work_that_git_throws_away_comes_back() {
    ordeal(&[
        git("git clean -qfdx", &[]),
        git("git checkout -q -f .; git clean -qfd", &[]),
        git("git reset -q --hard; git clean -qfdx", &["index"]),
        git("git rm -rqf .", &["index"]),
    ]);
}
