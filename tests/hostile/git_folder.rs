//! Configuration, hooks, info, alternates, and the git folder itself.

use crate::ordeal::{git, ordeal};

#[test]
fn settings_are_the_persons_own() {
    ordeal(&[
        git("git config core.hooksPath $O; git config core.fileMode false", &["config"]),
        git("git config core.worktree $O", &["config"]),
        git("git config core.bare true", &["config"]),
        git("git config filter.x.clean 'sed s/x/y/'; echo '* filter=x' > .git/info/attributes", &["config", "info"]),
        git("git config alias.st '!rm -rf /tmp/nothing'", &["config"]),
        git("git config include.path ../evil.conf", &["config"]),
        git("git config core.excludesFile $O/all; echo '*' > $O/all", &["config"]),
        git("echo '[broken' > .git/config", &["config"]),
        git("rm .git/config", &["config"]),
        git("chmod 000 .git/config; chmod 666 .git/HEAD", &["config"]),
        git("git config extensions.worktreeConfig true; git config --worktree core.abbrev 7", &["config"]),
        git(
            "printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/pre-commit; cp .git/hooks/pre-commit .git/hooks/post-index-change",
            &["hook"],
        ),
        git("rm -rf .git/hooks; ln -s $O .git/hooks", &["hook"]),
        git("echo '*' >> .git/info/exclude; echo new > src/new", &["info"]),
        git("echo $O > .git/objects/info/alternates", &["alternates"]),
    ]);
}

#[test]
fn the_git_folder_comes_back_whatever_became_of_it() {
    ordeal(&[
        git("rm -rf .git", &["git folder"]),
        git("mv .git $O/gone", &["git folder"]),
        git("rm -rf .git; echo 'gitdir: /tmp' > .git", &["git folder"]),
        git("rm -rf .git; ln -s $O .git", &["git folder"]),
        git("rm -rf .git; git init -q; git add -A; git commit -qm fresh", &["commit"]),
        git("rm -rf .git/objects; mkdir .git/objects", &["objects"]),
        git("find .git/objects -type f -delete", &["objects"]),
        git(
            "chmod -R u+w .git/objects; for f in $(find .git/objects -type f); do echo garbage > $f; done",
            &["objects"],
        ),
        git("rm -rf .git/objects; mkdir $O/elsewhere; ln -s $O/elsewhere .git/objects", &["objects"]),
        git("for d in .git/objects/??; do rm -rf $d; ln -s $O/elsewhere $d; done", &["objects"]),
        git("chmod -R a-w .git; chmod 000 .git/refs .git/objects", &["file"]),
        git("find . -mindepth 1 -delete", &["git folder"]),
        git("cd ..; rm -rf project; mkdir project; cd project", &["git folder"]),
        git("setsid sh -c 'sleep 100' & git reset -q --hard; git clean -qfdx; rm -rf .git", &["git folder"]),
    ]);
}
