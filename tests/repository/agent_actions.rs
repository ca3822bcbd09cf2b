//! What agents do with git, and that the guard undoes and names it.

use crate::world::{World, assert_same, git_folder, watch};
use lunation::mechanism::repo::{GuardReport, RepoError, WorkspaceOptions};
use std::time::Duration;

/// Lets the agent loose and guards: the git folder must be as before, byte for byte, and nothing lost from the tree.
fn guarded(world: &World, script: &str) -> GuardReport {
    let mut workspace = world.workspace();
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    let (before, tree) = (world.git_folder(), world.contents());
    world.sh(script);
    let report = workspace.guard(&checkpoint).unwrap_or_else(|error| panic!("{script}: {error}"));
    assert_same(&world.git_folder(), &before, script);
    let second = workspace.guard(&checkpoint).expect("guarded again");
    assert_eq!(second, GuardReport::default(), "{script}");
    let restored = workspace.restore(&checkpoint).expect("restored");
    assert!(restored.exact, "{script}: {restored:?}");
    assert_same(&world.contents(), &tree, script);
    world.git(&["fsck", "--full"]);
    report
}

fn whats(report: &GuardReport) -> Vec<&str> {
    report.undone.iter().map(|undone| &*undone.what).collect()
}

fn has(report: &GuardReport, what: &str) -> bool {
    whats(report).contains(&what)
}

#[test]
fn nothing_is_named_when_nothing_was_done() {
    let world = World::new();
    assert_eq!(guarded(&world, "git status; git diff; git log; echo x >> a.txt; git status"), GuardReport::default());
}

#[test]
fn each_action_is_undone_and_named() {
    let world = World::new();
    world.sh("git branch keep; git tag v1; git checkout -qb dev; echo d > d; git add d; git commit -qm d; git checkout -q main");
    for (script, what) in [
        ("echo x >> a.txt; git commit -qam x", "commit"),
        ("git commit -q --amend -m other", "commit"),
        ("git reset -q --hard dev; git reset -q --hard HEAD~1; git reset -q --hard dev", "commit"),
        ("git checkout -qb new", "HEAD"),
        ("git checkout -q --detach", "HEAD"),
        ("echo x >> a.txt; echo u > u; git stash -qu", "stash"),
        ("git branch -D keep", "branch"),
        ("git branch -f keep dev", "branch"),
        ("git tag t2", "tag"),
        ("git tag -d v1", "tag"),
        ("git pack-refs --all; git tag -d v1", "tag"),
        ("git update-ref refs/remotes/origin/main HEAD", "remote"),
        ("git update-index --assume-unchanged a.txt", "index"),
        ("git update-index --skip-worktree a.txt", "index"),
        ("git rm -q --cached a.txt", "index"),
        ("echo x >> a.txt; git add a.txt", "index"),
        ("echo garbage > .git/index", "index"),
        ("rm .git/index", "index"),
        ("git config user.name evil", "config"),
        ("git config core.fsmonitor /bin/false", "config"),
        ("printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit", "hook"),
        ("rm -rf .git/hooks; ln -s /tmp .git/hooks", "hook"),
        ("echo '*.rs' >> .git/info/exclude", "info"),
        ("echo /tmp > .git/objects/info/alternates", "alternates"),
        ("git worktree add -q ../wt dev; rm -rf ../wt", "worktree"),
        ("git merge -q --no-commit --no-ff dev", "operation"),
        ("touch .git/index.lock .git/HEAD.lock .git/refs/heads/main.lock", "lock"),
    ] {
        let report = guarded(&world, script);
        assert!(has(&report, what), "{script}: {:?}", report.undone);
    }
}

#[test]
fn a_moved_ref_is_kept_where_it_can_be_found() {
    let world = World::new();
    let mut workspace = world.workspace();
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    world.sh("echo person > p; git add p; git commit -qm 'by a person'");
    let theirs = world.git(&["rev-parse", "HEAD"]);
    let report = workspace.guard(&checkpoint).expect("guarded");
    let displaced = report.displaced.expect("kept");
    world.sh("git reflog expire --expire=now --all; git gc -q --prune=now");
    let store = world.state().join("store");
    let store = store.to_str().expect("text");
    let kept = world.git_at(&world.top(), &["--git-dir", store, "show", &format!("{displaced}:files/refs/heads/main")]);
    assert_eq!(kept, theirs);
    assert_eq!(
        world.git_at(&world.top(), &["--git-dir", store, "log", "-1", "--format=%s", theirs.trim()]),
        "by a person\n"
    );
}

#[test]
fn the_git_folder_survives_its_removal() {
    let world = World::new();
    world.sh("echo two > two; git add two; git commit -qm two; git gc -q; echo three > three; git add three; git commit -qm three");
    for script in [
        "rm -rf .git",
        "rm -rf .git; ln -s /tmp .git",
        "rm -rf .git; echo 'gitdir: /tmp' > .git",
        "rm -rf .git; git init -q; git add -A; git commit -qm fresh",
        "rm -rf .git/objects; mkdir .git/objects",
        "git checkout -q --orphan o; git branch -D main; git commit -qm o; git reflog expire --expire=now --all; git gc -q --prune=now",
        "mv .git ../gone",
    ] {
        let report = guarded(&world, script);
        assert!(!report.undone.is_empty(), "{script}");
        assert_eq!(world.git(&["log", "--format=%s"]), "three\ntwo\nfirst\n", "{script}");
        world.sh("rm -rf ../gone");
    }
}

#[test]
fn git_11_head_is_where_it_was_after_every_turn() {
    for detached in [false, true] {
        let world = World::new();
        world.sh("for n in 1 2 3; do echo $n > n; git add n; git commit -qm $n; done");
        if detached {
            world.git(&["checkout", "-q", "--detach", "HEAD~1"]);
        }
        world.sh("echo dirty >> a.txt; echo untracked > u");
        let head = std::fs::read(world.root.join(".git/HEAD")).expect("read");
        let refs = world.git(&["for-each-ref"]);
        let mut workspace = world.workspace();
        let first = workspace.checkpoint().expect("a checkpoint");
        let start = world.contents();
        for script in [
            "git stash -q; git checkout -q HEAD~1; git stash pop -q; echo 1 > t1",
            "git checkout -qb other; echo 2 > t2",
            "git reset -q --hard HEAD~1; echo 3 > t3",
            "git stash -qu; echo 4 > t4",
            "git commit -q --amend -am amended; echo 5 > t5",
        ] {
            let checkpoint = workspace.checkpoint().expect("a checkpoint");
            world.sh(script);
            workspace.guard(&checkpoint).expect("guarded");
            assert_eq!(std::fs::read(world.root.join(".git/HEAD")).expect("read"), head, "{script}");
            assert_eq!(world.git(&["for-each-ref"]), refs, "{script}");
        }
        let restored = workspace.restore(&first).expect("restored");
        assert!(restored.exact);
        assert_same(&world.contents(), &start, "the same");
    }
}

#[test]
fn linked_worktrees_are_guarded_with_the_common_folder() {
    let world = World::new();
    world.git(&["worktree", "add", "-q", "../linked", "-b", "linked"]);
    let linked = world.top().join("linked");
    let mut workspace = world.workspace_at(&linked.join("src"), watch());
    assert_eq!(workspace.repository().root(), linked);
    assert!(workspace.repository().is_linked_worktree());
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    let before = git_folder(&world.root.join(".git"));
    world.sh_at(&linked, "echo x >> a.txt; git commit -qam x; git config a.b c; git branch -D main || true; rm .git; echo 'gitdir: /tmp' > .git");
    let report = workspace.guard(&checkpoint).expect("guarded");
    assert_same(&git_folder(&world.root.join(".git")), &before, "the same");
    for what in ["commit", "config", "git folder"] {
        assert!(has(&report, what), "{:?}", report.undone);
    }
    workspace.restore(&checkpoint).expect("restored");
    assert_eq!(world.git_at(&linked, &["status", "--porcelain"]), "");
    world.sh_at(&linked, "rm -rf ../repo/.git");
    workspace.guard(&checkpoint).expect("guarded");
    assert_eq!(world.git_at(&linked, &["status", "--porcelain"]), "");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

#[test]
fn separate_git_folders_submodules_and_split_indexes_are_guarded() {
    let world = World::new();
    world.sh("cd ..; git init -q --separate-git-dir=$PWD/sep apart; cd apart; echo a > a; git add a; git commit -qm a; git update-index --split-index");
    let apart = world.top().join("apart");
    let mut workspace = world.workspace_at(&apart, watch());
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    let before = git_folder(&world.top().join("sep"));
    world.sh_at(
        &apart,
        "echo b > b; git add b; git commit -qm b; git update-index --no-split-index; rm -rf ../sep/hooks",
    );
    workspace.guard(&checkpoint).expect("guarded");
    assert_same(&git_folder(&world.top().join("sep")), &before, "the same");

    world.sh("git -c protocol.file.allow=always submodule --quiet add ../sep sm; git commit -qm sm");
    let report = guarded(&world, "cd sm; echo x > x; git add x; git commit -qm inside");
    assert!(has(&report, "submodule"), "{:?}", report.undone);
}

#[test]
fn repositories_that_the_library_cannot_open_are_watched_all_the_same() {
    for init in ["git init -q -b main --ref-format=reftable .", "git init -q -b main --object-format=sha256 ."] {
        let world = World::new();
        world.sh(&format!("rm -rf .git; {init}; echo a.txt > .gitignore; git add -f -A; git commit -qm x"));
        let report = guarded(&world, "echo x >> a.txt; git commit -qam y; git branch b; rm -rf .git/objects/??");
        assert!(!report.undone.is_empty(), "{init}");
        assert!(world.git(&["log", "--format=%s"]).starts_with('x'));
    }
}

#[test]
fn git_04_a_stale_lock_is_removed_and_told_and_a_live_one_is_waited_for() {
    let world = World::new();
    world.sh("touch -d '1 hour ago' .git/index.lock");
    let mut workspace = world.workspace();
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    assert_eq!(checkpoint.cleared.len(), 1);
    assert!(!world.root.join(".git/index.lock").exists());

    // a live holder: the file is open in another process, which lets go when it is told to
    let mut holder = std::process::Command::new("bash")
        .args(["-c", "exec 9> .git/index.lock; echo held; read; rm .git/index.lock"])
        .current_dir(&world.root)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("started");
    let mut line = [0; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().expect("a pipe"), &mut line).expect("held");
    let options = WorkspaceOptions { lock_wait: Duration::from_millis(300), ..watch() };
    let mut impatient = world.workspace_with(options);
    match impatient.checkpoint() {
        Err(RepoError::GitLocked { by, .. }) => assert!(by.contains(&holder.id().to_string()), "{by}"),
        other => panic!("{other:?}"),
    }
    assert!(world.root.join(".git/index.lock").exists());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| workspace.checkpoint());
        std::io::Write::write_all(holder.stdin.as_mut().expect("a pipe"), b"\n").expect("told");
        let checkpoint = waiting.join().expect("no panic").expect("a checkpoint");
        assert_eq!(checkpoint.cleared, []);
    });
    holder.wait().expect("ended");
}

#[test]
fn nothing_planted_runs_before_the_guard() {
    let world = World::new();
    let mut workspace = world.workspace();
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    world.sh("printf '#!/bin/sh\\ntouch ../ran\\n' > ../evil; chmod 755 ../evil; E=$PWD/../evil
         echo x >> a.txt; echo '* filter=e diff=e' > .gitattributes
         for h in post-index-change reference-transaction pre-commit post-checkout; do cp ../evil .git/hooks/$h; done
         git config filter.e.clean $E; git config filter.e.process $E; git config diff.e.textconv $E
         git config diff.external $E; git config core.fsmonitor $E; git config core.pager $E; rm -f ../ran");
    workspace.guard(&checkpoint).expect("guarded");
    workspace.fence(&checkpoint, &lunation::policy::Scope::everything()).expect("fenced");
    let changes = workspace.changes(&checkpoint).expect("changes");
    workspace.diff(&changes.before, &changes.tree).expect("a diff");
    workspace.restore(&checkpoint).expect("restored");
    assert!(!world.top().join("ran").exists());
}
