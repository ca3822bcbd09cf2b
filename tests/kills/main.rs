//! A host that is killed at any instant of checkpoint, guard, fence and rollback: the next start finds a whole state,
//! finishes or undoes what was under way, and no byte of the person's is lost.
//!
//! The host is this very test program, started again: it works in circles on a small repository, with an agent that
//! does its worst in between, until it is killed.

#[path = "../repository/world.rs"]
#[allow(dead_code, reason = "another test uses the rest of it")]
mod world;

use lunation::mechanism::repo::{
    LockHolder, RepoLock, Repository, RepositoryOptions, Workspace, recover, state_folder,
};
use lunation::policy::{FenceSpec, Scope};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use world::{World, assert_same, watch};

/// Names the repository to the host.
const HOST: &str = "LUNATION_TEST_KILLED_HOST";
/// Kills in all, by two threads; fewer on a machine that is too slow for them.
const KILLS: u64 = 300;
const FEWEST: u64 = 60;
const PATIENCE: Duration = Duration::from_secs(75);

fn options(root: &Path) -> RepositoryOptions {
    let home = root.with_file_name("home");
    RepositoryOptions { home: Some(home), system_config: None, ..RepositoryOptions::default() }
}

fn places(root: &Path) -> (Repository, PathBuf) {
    let repository = Repository::discover(root, &options(root)).expect("a repository");
    let state = state_folder(&root.with_file_name("state"), &repository).expect("a state folder");
    (repository, state)
}

/// What the agent does; all of it by hand, so that it is fast.
fn misbehave(dice: &mut StdRng, root: &Path) {
    let git = root.join(".git");
    for _ in 0..dice.random_range(2..7) {
        // what was done before may stand in the way, and is left then
        let _ = match dice.random_range(0..14) {
            0 => fs::write(root.join("a.txt"), "overwritten\n"),
            1 => fs::remove_dir_all(root.join("src")),
            2 => fs::write(root.join("src/new.rs"), vec![b'x'; dice.random_range(0..200_000)]),
            3 => fs::remove_file(root.join("notes")).and_then(|()| symlink("/etc/passwd", root.join("notes"))),
            4 => fs::rename(root.join("src"), root.join("moved")),
            5 => fs::remove_dir_all(&git),
            6 => fs::write(git.join("HEAD"), "ref: refs/heads/other\n"),
            7 => fs::remove_dir_all(git.join("refs")),
            8 => fs::write(git.join("index"), "garbage"),
            9 => fs::write(git.join("hooks/pre-commit"), "#!/bin/sh\n"),
            10 => fs::remove_dir_all(git.join("objects")),
            11 => fs::write(git.join("config"), ""),
            12 => fs::remove_file(root.join(".env")),
            _ => fs::remove_file(root.join("a.txt")).and_then(|()| fs::create_dir_all(root.join("a.txt/b/c"))),
        };
    }
}

/// Not a test: the host that is killed, when the variable says so.
#[test]
fn the_host_that_is_killed() {
    let Some(root) = std::env::var_os(HOST) else { return };
    let root = PathBuf::from(root);
    let mut dice = StdRng::seed_from_u64(u64::from(std::process::id()));
    let (repository, state) = places(&root);
    let who = LockHolder { pid: std::process::id(), run: "r".into(), host: "h".into(), started: "now".into() };
    let _lock = RepoLock::acquire(&state, &who).expect("the lock");
    let mut workspace = Workspace::open(repository, &state, watch()).expect("a workspace");
    let scope =
        Scope::new(FenceSpec { allow: vec!["src/**".into()], ..FenceSpec::default() }, Vec::new()).expect("a scope");
    let mut out = std::io::stdout();
    writeln!(out, "\nat work").and_then(|()| out.flush()).expect("said");
    loop {
        let checkpoint = workspace.checkpoint().expect("a checkpoint");
        workspace.begin_intent("r", "turn", &checkpoint).expect("written");
        misbehave(&mut dice, &root);
        workspace.guard(&checkpoint).expect("guarded");
        workspace.fence(&checkpoint, &scope).expect("fenced");
        workspace.changes_after_fence(&checkpoint).expect("compared");
        assert!(workspace.restore(&checkpoint).expect("restored").exact);
        workspace.finish_intent().expect("finished");
    }
}

fn kill_again_and_again(seed: u64, kills: u64) -> u64 {
    let world = World::new();
    world.write(".gitignore", ".env\nbuild/\n");
    world.sh(
        "git add .gitignore; git commit -qm ignore; git branch other; git tag t; echo stashed >> a.txt; git stash -q
         echo SECRET > .env; mkdir build; echo out > build/out; echo notes > notes; mkdir empty; chmod 600 .env
         echo staged > staged; git add staged; echo more >> staged; git config alias.x status
         head -c 300000 /dev/zero > large; for n in $(seq 80); do echo $n > src/n$n; done",
    );
    let (tree, git) = (world.contents(), world.git_folder());
    let (_, state) = places(&world.root);
    let mut dice = StdRng::seed_from_u64(seed);
    let started = Instant::now();
    let mut done = 0;
    let mut recovered = 0;
    while done < kills && (done < FEWEST / 2 || started.elapsed() < PATIENCE) {
        let mut host = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "the_host_that_is_killed", "--nocapture"])
            .env(HOST, &world.root)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the host starts");
        let mut lines = BufReader::new(host.stdout.take().expect("piped")).lines();
        let at_work = lines.any(|line| line.is_ok_and(|line| line == "at work"));
        // the instant is what this test is about
        std::thread::sleep(Duration::from_micros(dice.random_range(0..60_000)));
        let ended_before = host.try_wait().expect("looked at").is_some();
        host.kill().expect("killed");
        let output = host.wait_with_output().expect("waited for");
        let name = format!("seed {seed}, kill {done}");
        assert!(at_work && !ended_before, "{name}: {}", String::from_utf8_lossy(&output.stderr));

        let who = LockHolder { pid: 1, run: "next".into(), host: "h".into(), started: "now".into() };
        let lock = RepoLock::acquire(&state, &who).expect("the lock is free");
        let found = recover(&state, &lock, &options(&world.root)).unwrap_or_else(|error| panic!("{name}: {error}"));
        if let Some(found) = &found {
            recovered += 1;
            assert!(found.restore.exact, "{name}: {:?}", found.restore);
        }
        assert_same(&world.contents(), &tree, &name);
        assert_same(&world.git_folder(), &git, &name);
        done += 1;
    }
    world.git(&["fsck", "--full"]);
    assert_eq!(world.git(&["stash", "list"]).lines().count(), 1);
    assert!(recovered * 5 > done, "kills must hit turns and rollbacks too: {recovered} of {done}");
    done
}

#[test]
fn a_host_killed_at_any_instant_leaves_a_state_that_the_next_one_makes_whole() {
    let kills = std::thread::scope(|scope| {
        let other = scope.spawn(|| kill_again_and_again(1, KILLS / 2));
        kill_again_and_again(2, KILLS / 2) + other.join().expect("no panic")
    });
    assert!(kills >= FEWEST, "only {kills}");
}
