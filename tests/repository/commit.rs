//! The commit of a result: what changed since the start, and nothing of the user's.

use crate::world::World;
use lunation::mechanism::repo::{CommitReport, Identity, RepoError, Workspace};

fn nobody() -> Identity {
    Identity { name: "lunation".into(), email: "lunation@localhost".into() }
}

fn commit(workspace: &mut Workspace, start: &lunation::mechanism::repo::Checkpoint) -> Result<CommitReport, RepoError> {
    workspace.commit_result(start, "the result\n\nmore", &nobody())
}

fn paths(report: &CommitReport) -> Vec<String> {
    report.paths.iter().map(ToString::to_string).collect()
}

#[test]
fn git_14_the_users_staging_and_earlier_changes_are_in_no_commit() {
    let world = World::new();
    world.write("b.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    world.sh("git add b.txt; git commit -qm b");
    world.sh("echo staged > a.txt; git add a.txt; sed -i 's/^1$/one/' b.txt; git add b.txt; sed -i 's/^9$/nine/' b.txt; echo c > c.txt");
    let staged = world.git(&["diff", "--cached"]);
    let unstaged = world.git(&["diff"]);
    let mut workspace = world.workspace();
    let start = workspace.checkpoint().expect("a checkpoint");
    world.sh("echo 'fn fixed() {}' > src/main.rs; mkdir new; echo n > new/n; rm src/deep/x.c; chmod -x run.sh");
    workspace.guard(&start).expect("guarded");
    let report = commit(&mut workspace, &start).expect("committed");
    assert_eq!(paths(&report), ["new/n", "run.sh", "src/deep/x.c", "src/main.rs"]);
    assert_eq!(world.git(&["log", "-1", "--format=%s|%b|%an|%G?"]).trim(), "the result|more\n|lunation|N");
    assert_eq!(world.git(&["diff", "--cached"]), staged);
    assert_eq!(world.git(&["diff"]), unstaged);
    assert_eq!(world.git(&["status", "--porcelain"]), "M  a.txt\nMM b.txt\n?? c.txt\n");
    world.git(&["fsck", "--strict"]);
}

#[test]
fn a_rollback_leaves_the_users_staging_as_it_was() {
    let world = World::new();
    world.sh("echo staged > a.txt; git add a.txt; echo more >> a.txt; echo c > c.txt");
    let (status, staged) = (world.git(&["status", "--porcelain"]), world.git(&["diff", "--cached"]));
    let mut workspace = world.workspace();
    let start = workspace.checkpoint().expect("a checkpoint");
    world.sh("git add -A; git commit -qm all; echo x > d.txt; git stash -qu");
    workspace.guard(&start).expect("guarded");
    workspace.restore(&start).expect("restored");
    assert_eq!(world.git(&["status", "--porcelain"]), status);
    assert_eq!(world.git(&["diff", "--cached"]), staged);
}

#[test]
fn a_file_that_both_changed_is_separated_where_that_can_be_done() {
    let world = World::new();
    world.write("b.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    world.sh("git add b.txt; git commit -qm b; sed -i 's/^1$/user/' b.txt");
    let mut workspace = world.workspace();
    let start = workspace.checkpoint().expect("a checkpoint");
    world.sh("sed -i 's/^9$/agent/' b.txt");
    let report = commit(&mut workspace, &start).expect("committed");
    assert_eq!(report.separated.len(), 1);
    assert_eq!(world.git(&["show", "HEAD:b.txt"]), "1\n2\n3\n4\n5\n6\n7\n8\nagent\n");
    assert_eq!(world.read("b.txt"), "user\n2\n3\n4\n5\n6\n7\n8\nagent\n");
    let diff = world.git(&["diff"]);
    assert!(diff.contains("+user") && !diff.contains("agent\n+"), "{diff}");
    assert_eq!(world.git(&["diff", "--cached"]), "");
}

#[test]
fn what_cannot_be_separated_is_refused_and_nothing_is_committed() {
    let world = World::new();
    world.sh("echo user > a.txt; echo mine > c.txt");
    let mut workspace = world.workspace();
    let start = workspace.checkpoint().expect("a checkpoint");
    world.sh("echo agent > a.txt; echo agent >> c.txt; echo n > n.txt");
    let head = world.git(&["rev-parse", "HEAD"]);
    let index = std::fs::read(world.root.join(".git/index")).expect("read");
    let error = commit(&mut workspace, &start).expect_err("refused");
    match error {
        RepoError::CommitRefused { paths, .. } => {
            assert_eq!(paths.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a.txt", "c.txt"]);
        }
        other => panic!("{other}"),
    }
    assert_eq!(world.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(std::fs::read(world.root.join(".git/index")).expect("read"), index);
}

#[test]
fn an_unborn_and_a_detached_head_can_be_committed_on() {
    let world = World::empty();
    let mut workspace = world.workspace();
    let start = workspace.checkpoint().expect("a checkpoint");
    world.write("first", "1\n");
    let report = commit(&mut workspace, &start).expect("committed");
    assert_eq!(paths(&report), ["first"]);
    assert_eq!(world.git(&["log", "--format=%s", "main"]), "the result\n");
    assert_eq!(world.git(&["status", "--porcelain"]), "");

    world.git(&["checkout", "-q", "--detach"]);
    let start = workspace.checkpoint().expect("a checkpoint");
    world.write("second", "2\n");
    commit(&mut workspace, &start).expect("committed");
    assert_eq!(world.git(&["log", "-1", "--format=%s", "main"]), "the result\n");
    assert_eq!(world.git(&["rev-list", "--count", "HEAD"]), "2\n");
    assert_eq!(world.git(&["rev-list", "--count", "main"]), "1\n");
}

#[test]
fn git_01_and_02_nothing_signs_asks_or_hooks() {
    let world = World::new();
    world.sh("mkdir ../hooks; printf '#!/bin/sh\\ntouch ../ran\\nexit 1\\n' > ../hooks/pre-commit; chmod 755 ../hooks/pre-commit");
    world.sh("cp ../hooks/pre-commit ../hooks/post-index-change; cp ../hooks/pre-commit ../hooks/reference-transaction; cp ../hooks/pre-commit ../sleeper");
    world.sh("git config core.hooksPath $PWD/../hooks; git config commit.gpgSign true; git config gpg.program $PWD/../sleeper");
    world.sh("git config core.editor $PWD/../sleeper; git config credential.helper $PWD/../sleeper; git config core.fsmonitor $PWD/../sleeper");
    world.sh("rm -f ../ran");
    let mut workspace = world.workspace();
    let start = workspace.checkpoint().expect("a checkpoint");
    world.write("n", "n\n");
    workspace.guard(&start).expect("guarded");
    let changes = workspace.changes(&start).expect("changes");
    assert_eq!(changes.paths.len(), 1);
    commit(&mut workspace, &start).expect("committed");
    workspace.restore(&start).expect("restored");
    assert!(!world.top().join("ran").exists(), "a hook or a program of the configuration ran");
}

#[test]
fn git_03_the_configured_identity_is_used_and_no_configuration_is_written() {
    let world = World::new();
    let config = world.read(".git/config");
    let mut workspace = world.workspace();
    let start = workspace.checkpoint().expect("a checkpoint");
    world.write("n", "n\n");
    let report = commit(&mut workspace, &start).expect("committed");
    assert!(report.default_identity);
    assert_eq!(world.read(".git/config"), config);
    assert_eq!(std::fs::read_dir(world.home()).expect("listed").count(), 0);

    std::fs::write(world.home().join(".gitconfig"), "[user]\n\tname = Grace\n\temail = grace@example.org\n")
        .expect("written");
    let start = workspace.checkpoint().expect("a checkpoint");
    world.write("m", "m\n");
    let report = commit(&mut workspace, &start).expect("committed");
    assert!(!report.default_identity);
    assert_eq!(world.git(&["log", "-1", "--format=%an <%ce>"]), "Grace <grace@example.org>\n");
}

#[test]
fn filters_of_the_user_make_the_content_what_git_add_would_make_it() {
    let world = World::new();
    world.sh("git config core.autocrlf true; git config filter.up.clean 'tr a-z A-Z'; echo '*.up filter=up' > .gitattributes");
    world.sh("echo one > f.up; printf 'x\\r\\n' > crlf.txt; git add -A; git commit -qm filters");
    let mut workspace = world.workspace();
    let start = workspace.checkpoint().expect("a checkpoint");
    world.sh("echo two >> f.up; printf 'y\\r\\n' >> crlf.txt");
    let report = commit(&mut workspace, &start).expect("committed");
    assert_eq!(paths(&report), ["crlf.txt", "f.up"]);
    assert_eq!(report.separated, []);
    assert_eq!(world.git(&["cat-file", "blob", "HEAD:f.up"]), "ONE\nTWO\n");
    assert_eq!(world.git(&["cat-file", "blob", "HEAD:crlf.txt"]), "x\ny\n");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

#[test]
fn settings_that_come_from_files_of_the_agent_are_refused() {
    let world = World::new();
    world.sh("echo '[alias]' > shared.cfg; git add -A; git commit -qm cfg; git config include.path ../shared.cfg");
    let mut workspace = world.workspace();
    let start = workspace.checkpoint().expect("a checkpoint");
    world.sh("printf '[filter \"x\"]\\n\\tclean = touch ../ran; cat\\n' > shared.cfg; echo '* filter=x' > .gitattributes; echo n > n");
    let error = commit(&mut workspace, &start).expect_err("refused");
    assert!(error.to_string().contains("configuration"), "{error}");
    assert!(!world.top().join("ran").exists());
}

#[test]
fn new_outputs_that_a_new_rule_ignores_are_not_committed() {
    let world = World::new();
    let mut workspace = world.workspace();
    let start = workspace.checkpoint().expect("a checkpoint");
    world.sh("echo target/ > .gitignore; mkdir target; echo o > target/o; echo n > n");
    let report = commit(&mut workspace, &start).expect("committed");
    assert_eq!(paths(&report), [".gitignore", "n"]);
    assert_eq!(report.skipped.len(), 1);
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

#[test]
fn in_the_middle_of_a_merge_nothing_is_committed() {
    let world = World::new();
    world.sh("git checkout -qb other; echo o > a.txt; git commit -qam o; git checkout -q main; echo m > a.txt; git commit -qam m");
    world.try_sh(&world.root, "git merge other");
    let mut workspace = world.workspace();
    let start = workspace.checkpoint().expect("a checkpoint");
    world.write("n", "n\n");
    let error = commit(&mut workspace, &start).expect_err("refused");
    assert!(error.to_string().contains("MERGE_HEAD"), "{error}");
}
