//! The way back: byte for byte, and nothing else touched.

use crate::world::{World, assert_same, watch};
use lunation::mechanism::repo::{ChangeKind, WorkspaceOptions};
use std::os::unix::fs::MetadataExt;

/// Takes a checkpoint, lets the agent loose, guards and rolls back; everything must be as before.
fn survives(world: &World, script: &str) {
    let mut workspace = world.workspace();
    let (tree, git) = (world.contents(), world.git_folder());
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    world.sh(script);
    workspace.guard(&checkpoint).expect("guarded");
    let report = workspace.restore(&checkpoint).expect("restored");
    assert_eq!(report.conflicts, [], "{script}");
    assert!(report.exact, "{script}");
    assert_same(&world.contents(), &tree, script);
    assert_same(&world.git_folder(), &git, script);
    let times = world.tree();
    let again = workspace.restore(&checkpoint).expect("restored");
    assert_eq!((again.written, again.removed, again.modes), (0, 0, 0), "{script}");
    assert_same(&world.tree(), &times, script);
    world.git(&["fsck"]);
}

#[test]
fn edits_additions_deletions_and_renames_are_taken_back() {
    let world = World::new();
    survives(&world, "echo x >> a.txt; echo n > new; mkdir -p q/w/e; echo z > q/w/e/z; rm src/main.rs");
    survives(&world, "mv src lib; rm link");
    survives(&world, "rm -rf ./* ");
}

#[test]
fn a_path_that_changes_its_type_comes_back_as_what_it_was() {
    let world = World::new();
    survives(&world, "rm a.txt; mkdir a.txt; echo i > a.txt/inner; rm -r src; echo f > src");
    survives(&world, "rm a.txt; ln -s /etc/passwd a.txt; rm link; echo f > link");
    survives(&world, "rm -r src; ln -s /tmp src");
    survives(&world, "rm a.txt; mkfifo a.txt; mkfifo src/pipe");
}

#[test]
fn modes_and_empty_folders_come_back() {
    let world = World::new();
    world.sh("echo s > secret; chmod 600 secret; mkdir -p e1/e2 e3; chmod 750 e1; chmod 4755 run.sh");
    survives(&world, "chmod 777 secret run.sh; chmod 700 e1 src; rmdir e3; mkdir e4; rm -r e1");
    survives(&world, "chmod 000 src; chmod 000 a.txt");
    world.sh("chmod 555 src/deep");
    survives(&world, "chmod 755 src/deep; echo n > src/deep/n; rm src/deep/x.c; chmod 555 src/deep");
}

#[test]
fn odd_names_survive() {
    let world = World::new();
    world.sh(r#"echo 1 > $'new\nline'; echo 2 > $'bad\xff\xfe'; echo 3 > ' lead'; echo 4 > '*'; echo 5 > ./-- ; echo 6 > 'a\b'; echo 7 > '%41'"#);
    survives(
        &world,
        r#"rm $'new\nline' '*' ./--; echo x >> $'bad\xff\xfe'; echo 9 > $'evil\n\xff'; rm '%41'; echo y >> ' lead'"#,
    );
    survives(&world, "mkdir sub2; echo x > sub2/.gitmodules; mkdir 'git~1'; echo x > 'git~1/x'");
}

#[test]
fn links_are_never_followed() {
    let world = World::new();
    let outside = world.top().join("outside");
    world.sh_at(&world.top(), "mkdir outside; echo keep > outside/keep; echo keep > outside/deep");
    let script = format!(
        "rm -r src; ln -s {} src; echo z > src/new; rm a.txt; ln {}/keep a.txt",
        outside.display(),
        outside.display()
    );
    survives(&world, &script);
    assert_eq!(std::fs::read_to_string(outside.join("keep")).expect("read"), "keep\n");
    assert!(outside.join("new").exists());
}

#[test]
fn git_06_untracked_and_ignored_files_of_the_user_survive_with_their_times() {
    let world = World::new();
    world.write(".gitignore", ".env\nnode_modules/\n");
    world.sh("git add .gitignore; git commit -qm ignore");
    world.sh("echo out/ >> .gitignore; mkdir -p node_modules/m out; echo m > node_modules/m/i.js; echo x > out/x");
    world.sh("echo data > data.bin; echo S=1 > .env");
    let before = world.tree();
    let mut workspace = world.workspace();
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    world.sh("echo junk > junk; echo edited >> a.txt; sed -i /out/d .gitignore; git add -A; git reset -q");
    workspace.guard(&checkpoint).expect("guarded");
    let changes = workspace.changes(&checkpoint).expect("changes");
    let paths: Vec<_> = changes.paths.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(paths, [".gitignore", "a.txt", "junk"]);
    let report = workspace.restore(&checkpoint).expect("restored");
    assert!(report.exact, "{report:?}");
    let mut after = world.tree();
    // what was reverted has a new time, and nothing else has
    for path in [".gitignore", "a.txt"] {
        let strip = |words: &String| words.rsplit_once(' ').map(|(words, _)| words.to_string());
        assert_eq!(strip(&after[path]), strip(&before[path]));
        after.insert(path.to_string(), before[path].clone());
    }
    assert_same(&after, &before, "times");
}

#[test]
fn emptying_the_ignore_file_does_not_make_ignored_data_the_agents() {
    let world = World::new();
    world.write(".gitignore", "build/\n*.log\n");
    world.sh("mkdir build; echo artefact > build/n; echo log > user.log");
    for script in ["rm .gitignore", ": > .gitignore", "echo '!build/' >> .gitignore; mv build other"] {
        let mut workspace = world.workspace();
        let before = world.contents();
        let checkpoint = workspace.checkpoint().expect("a checkpoint");
        world.sh(script);
        workspace.guard(&checkpoint).expect("guarded");
        let report = workspace.restore(&checkpoint).expect("restored");
        assert_eq!(report.conflicts, [], "{script}");
        assert_same(&world.contents(), &before, script);
    }
}

#[test]
fn a_small_ignored_file_that_the_agent_cleans_away_comes_back() {
    let world = World::new();
    world.write(".gitignore", ".env\n");
    world.write(".env", "KEY=1\n");
    survives(&world, "git clean -fdxq; git reset -q --hard");
}

#[test]
fn an_ignored_folder_in_a_folder_of_the_agent_goes_with_it() {
    let world = World::new();
    world.write(".gitignore", "node_modules/\n*.o\n");
    survives(&world, "mkdir -p pkg/node_modules/m; echo x > pkg/node_modules/m/x; echo o > pkg/a.o; echo i > pkg/i.js");
}

#[test]
fn git_15_content_modes_and_links_come_back_and_untouched_files_keep_their_times() {
    let world = World::new();
    world.sh("git config filter.stub.clean 'tr a-z A-Z'; git config filter.stub.smudge 'tr A-Z a-z'");
    world.write(".gitattributes", "*.crlf text=auto\n*.big filter=stub\n");
    world.sh("printf 'one\\r\\ntwo\\r\\n' > t.crlf; echo pointer > f.big; : > empty; echo s > s600; chmod 600 s600");
    world.sh("ln -s a.txt l1; ln -s /etc/hostname l2; ln -s nowhere l3; mkdir void; git add -A; git commit -qm more");
    let status = world.git(&["status", "--porcelain"]);
    let before = world.tree();
    let mut workspace = world.workspace();
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    world.sh("for f in run.sh t.crlf f.big empty s600; do echo x >> $f; chmod 666 $f; done; rm l1 l2 l3; ln -s x l1; rmdir void");
    workspace.guard(&checkpoint).expect("guarded");
    workspace.restore(&checkpoint).expect("restored");
    let after = world.tree();
    for path in ["a.txt", "src/main.rs", "src/deep/x.c", "link", ".gitattributes"] {
        assert_eq!(after[path], before[path], "{path}");
    }
    assert_eq!(world.git(&["status", "--porcelain"]), status);
    let second = workspace.restore(&checkpoint).expect("restored");
    assert_eq!(second.written + second.removed + second.modes, 0);
    assert_same(&world.tree(), &after, "the same");
    let without = |manifest: crate::world::Manifest| -> Vec<_> {
        manifest
            .into_iter()
            .map(|(path, words)| (path, words.split(' ').take(2).map(str::to_string).collect::<Vec<_>>()))
            .collect()
    };
    assert_eq!(without(after), without(before));
}

#[test]
fn git_08_a_sparse_giant_is_recorded_and_left_alone() {
    let world = World::new();
    world.sh(
        "mkdir big; for n in $(seq 500); do echo $n > big/$n; done; truncate -s 5G big/sparse; truncate -s 5G mine",
    );
    let options = WorkspaceOptions { size_cap: 1 << 20, ..watch() };
    let mut workspace = world.workspace_with(options);
    for turn in 0..3 {
        let checkpoint = workspace.checkpoint().expect("a checkpoint");
        world.sh(&format!("echo {turn} > a.txt; truncate -s 6G new; echo x >> big/7"));
        let changes = workspace.changes(&checkpoint).expect("changes");
        let left: Vec<_> = changes.left_alone.iter().map(|left| left.path.to_string()).collect();
        assert_eq!(left, ["big/sparse", "mine", "new"]);
        let report = workspace.restore(&checkpoint).expect("restored");
        assert!(report.exact, "{report:?}");
        assert!(!world.has("new"));
        assert_eq!(std::fs::metadata(world.root.join("mine")).expect("there").len(), 5 << 30);
    }
    let temporary = world.state().join("store/tmp");
    assert_eq!(std::fs::read_dir(temporary).expect("listed").count(), 0);
    let store: u64 = world
        .git_at(&world.top(), &["--git-dir", world.state().join("store").to_str().expect("text"), "count-objects"])
        .split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .expect("a number");
    assert_eq!(store, 0, "no loose objects of ours");
}

#[test]
fn a_large_file_and_its_holes_come_back() {
    let world = World::new();
    world.sh("truncate -s 64M sparse; echo end >> sparse; head -c 20000000 /dev/urandom > random");
    survives(&world, "rm sparse; echo x >> random");
    let meta = std::fs::metadata(world.root.join("sparse")).expect("there");
    assert!(meta.blocks() * 512 < 1 << 20);
}

#[test]
fn loop_01_a_commit_is_a_change_like_any_other() {
    let world = World::new();
    let mut workspace = world.workspace();
    let head = world.git(&["rev-parse", "HEAD"]);
    for turn in 0..4 {
        let checkpoint = workspace.checkpoint().expect("a checkpoint");
        world.sh(&format!("echo {turn} >> f; git add f; git commit -qm x"));
        let report = workspace.guard(&checkpoint).expect("guarded");
        assert!(report.undone.iter().any(|undone| undone.what == "commit"), "{report:?}");
        let changes = workspace.changes(&checkpoint).expect("changes");
        assert!(!changes.is_empty());
        assert_eq!(changes.paths.len(), 1);
        assert_eq!(world.git(&["rev-parse", "HEAD"]), head);
    }
    assert_eq!(world.read("f"), "0\n1\n2\n3\n");
}

#[test]
fn nothing_hides_an_edit_from_the_walk() {
    let hiding = [
        "git update-index --assume-unchanged a.txt; echo x >> a.txt",
        "git update-index --skip-worktree a.txt; echo x >> a.txt",
        "git rm -q --cached a.txt; echo a.txt >> .git/info/exclude; echo x >> a.txt",
        "git config core.fileMode false; chmod 700 a.txt",
        "git config core.trustctime false; touch -r a.txt t; printf 'b\\n' > a.txt; touch -r t a.txt; rm t",
        "echo x >> a.txt; git commit -qam hide",
        "git config core.worktree /tmp; echo x >> a.txt",
        "echo a.txt > g; git config core.excludesFile $PWD/g; git rm -q --cached a.txt; echo x >> a.txt; rm g",
    ];
    for script in hiding {
        let world = World::new();
        let mut workspace = world.workspace();
        let checkpoint = workspace.checkpoint().expect("a checkpoint");
        world.sh(script);
        workspace.guard(&checkpoint).expect("guarded");
        let changes = workspace.changes(&checkpoint).expect("changes");
        let paths: Vec<_> = changes.paths.iter().map(|change| change.path.to_string()).collect();
        assert_eq!(paths, ["a.txt"], "{script}");
    }
}

#[test]
fn a_new_file_cannot_be_hidden_by_new_rules() {
    for script in ["echo evil > evil; echo evil > .gitignore", "echo evil > evil; echo evil >> .git/info/exclude"] {
        let world = World::new();
        let mut workspace = world.workspace();
        let checkpoint = workspace.checkpoint().expect("a checkpoint");
        world.sh(script);
        let changes = workspace.changes(&checkpoint).expect("changes");
        assert!(changes.paths.iter().any(|c| c.path.to_string() == "evil" && c.kind == ChangeKind::Added), "{script}");
    }
}

#[test]
fn nested_repositories_are_captured_file_by_file_and_their_git_folders_are_left() {
    let world = World::new();
    world.sh("git init -q n; echo f > n/f; cd n; git add f; git commit -qm n");
    let inner = crate::world::git_folder(&world.root.join("n/.git"));
    let mut workspace = world.workspace();
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    let before = world.contents();
    world.sh("echo x >> n/f; echo g > n/g; git init -q other; echo o > other/o");
    let changes = workspace.changes(&checkpoint).expect("changes");
    let paths: Vec<_> = changes.paths.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(paths, ["n/f", "n/g", "other/.git", "other/o"]);
    assert!(changes.left_alone.iter().any(|left| left.path.to_string() == "n/.git"));
    let report = workspace.restore(&checkpoint).expect("restored");
    assert_eq!(report.conflicts, []);
    assert_same(&world.contents(), &before, "the same");
    assert_same(&crate::world::git_folder(&world.root.join("n/.git")), &inner, "the same");
}
