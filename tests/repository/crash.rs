//! A host that dies: what it had begun is taken back, from the state folder alone.

use crate::world::{World, assert_same};
use lunation::mechanism::repo::{LockHolder, RepoError, RepoLock, pending, recover};

fn lock(state: &std::path::Path) -> RepoLock {
    let who = LockHolder { pid: 1, run: "r".into(), host: "h".into(), started: "now".into() };
    RepoLock::acquire(state, &who).expect("taken")
}

#[test]
fn a_run_that_died_is_rolled_back_and_a_second_recovery_has_nothing_to_do() {
    let world = World::new();
    world.write(".gitignore", "build/\n");
    world.sh("git add .gitignore; git commit -qm i; mkdir build; echo data > build/n; echo staged > a.txt; git add a.txt; echo more >> a.txt; echo u > u");
    let state = world.state();
    let (tree, git) = (world.contents(), world.git_folder());
    {
        let mut workspace = world.workspace();
        let checkpoint = workspace.checkpoint().expect("a checkpoint");
        workspace.begin_intent("run-7", "turn", &checkpoint).expect("written");
        // the host dies here, with nothing dropped in order
        std::mem::forget(workspace);
    }
    for script in [
        "git add -A; git commit -qm all; rm u; echo x > a.txt; : > .gitignore; git checkout -qb other",
        "rm -rf .git src a.txt; ln -s /tmp src",
        "rm -rf ../repo/* ../repo/.git ../repo/.gitignore; mkdir build; echo data > build/n",
    ] {
        world.sh(script);
        let lock = lock(&state);
        assert_eq!(pending(&state).expect("read").expect("there").run, "run-7");
        let recovered = recover(&state, &lock, &world.options()).expect("recovered").expect("something");
        assert!(recovered.restore.exact, "{script}: {:?}", recovered.restore);
        assert_eq!(recovered.intent.phase, "turn");
        assert_same(&world.contents(), &tree, script);
        assert_same(&world.git_folder(), &git, script);
        world.git(&["fsck"]);
        assert_eq!(recover(&state, &lock, &world.options()).expect("recovered"), None);
        // again, as if it had died in the next turn too
        let mut workspace = world.workspace();
        let checkpoint = workspace.checkpoint().expect("a checkpoint");
        workspace.begin_intent("run-7", "turn", &checkpoint).expect("written");
    }
}

#[test]
fn a_recovery_that_is_interrupted_is_finished_by_the_next() {
    let world = World::new();
    let state = world.state();
    let tree = world.contents();
    let mut workspace = world.workspace();
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    workspace.begin_intent("r", "turn", &checkpoint).expect("written");
    // what a revert leaves that was killed between unlink and create, and in the middle of a write
    world.sh("rm a.txt; printf 'fn m' > src/main.rs; chmod 600 src/main.rs; rm .git/refs/heads/main; : > .git/index");
    drop(workspace);
    let lock = lock(&state);
    recover(&state, &lock, &world.options()).expect("recovered").expect("something");
    assert_same(&world.contents(), &tree, "finished");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_finished_intent_is_no_reason_to_recover_and_a_foreign_lock_is_no_permission() {
    let world = World::new();
    let state = world.state();
    let mut workspace = world.workspace();
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    workspace.begin_intent("r", "turn", &checkpoint).expect("written");
    let who = LockHolder { pid: 1, run: "r".into(), host: "h".into(), started: "now".into() };
    let foreign = RepoLock::acquire(&world.top().join("elsewhere"), &who).expect("taken");
    assert!(matches!(recover(&state, &foreign, &world.options()), Err(RepoError::Record { .. })));
    workspace.finish_intent().expect("taken back");
    workspace.finish_intent().expect("nothing to do");
    world.sh("echo kept >> a.txt");
    let lock = lock(&state);
    assert_eq!(recover(&state, &lock, &world.options()).expect("recovered"), None);
    assert_eq!(world.read("a.txt"), "a\nkept\n");
}

#[test]
fn a_checkpoint_of_an_earlier_process_is_as_good_as_one_of_this() {
    let world = World::new();
    world.write(".gitignore", "*.log\nout/\n");
    world.sh("mkdir -p out void; echo o > out/o; echo l > x.log; chmod 600 a.txt; mkfifo pipe; head -c 20000000 /dev/zero > large");
    let tree = world.contents();
    let checkpoint = world.workspace().checkpoint().expect("a checkpoint");
    let text = serde_json::to_string(&checkpoint).expect("written");
    world.sh("rm .gitignore x.log pipe large; rmdir void; chmod 644 a.txt; echo n > n");
    let mut workspace = world.workspace();
    let checkpoint = serde_json::from_str(&text).expect("read");
    workspace.guard(&checkpoint).expect("guarded");
    let changes = workspace.changes(&checkpoint).expect("changes");
    let paths: Vec<_> = changes.paths.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(paths, [".gitignore", "a.txt", "large", "n", "pipe", "void"]);
    let report = workspace.restore(&checkpoint).expect("restored");
    assert!(report.exact, "{report:?}");
    assert_same(&world.contents(), &tree, "an earlier process");
    assert!(workspace.load("0123").is_err());
    assert!(workspace.load(&"0".repeat(40)).is_err());
}

#[test]
fn a_look_that_was_kept_on_disk_is_used_and_a_damaged_one_is_not() {
    let world = World::new();
    let first = world.workspace().checkpoint().expect("a checkpoint");
    let look = std::fs::read_dir(world.state())
        .expect("listed")
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("look-")))
        .expect("a look");
    let again = world.workspace().checkpoint().expect("a checkpoint");
    assert_eq!(again.id, first.id, "equal states have equal ids");
    let mut bytes = std::fs::read(&look).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&look, bytes).expect("written");
    assert_eq!(world.workspace().checkpoint().expect("a checkpoint").id, first.id);
}
