//! Git itself as the judge: over random ignore files and random edits the list of changes is the one that git has,
//! where the two should agree, and rolling back is the identity.
//!
//! They should agree on paths of files and links, as long as nobody edits ignore files, attributes or the index. Where
//! somebody does, ours holds at least what git's does. Ours alone has modes beyond the executable bit, empty folders,
//! and what was watched at the checkpoint and is ignored now.

#[path = "../repository/world.rs"]
#[allow(dead_code, reason = "another test uses the rest of it")]
mod world;

mod edits;
mod ignore_files;

use ignore_files::Judged;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use world::World;

/// Random repositories for the ignore rules; the benchmark judges 700.
const REPOSITORIES: u64 = 60;
/// Random sequences of edits.
const SEQUENCES: u64 = 40;

fn first_seed() -> u64 {
    std::env::var("LUNATION_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7)
}

#[test]
fn ignore_rules_are_those_of_git() {
    for seed in first_seed()..first_seed() + REPOSITORIES {
        let Judged { ours, gits, rules } = ignore_files::judge(seed);
        let missing: Vec<_> = gits.difference(&ours).collect();
        let extra: Vec<_> = ours.difference(&gits).collect();
        assert!(missing.is_empty() && extra.is_empty(), "seed {seed}: without {missing:?}, with {extra:?}\n{rules}");
    }
}

/// The paths of git's list of changes.
fn status(world: &World) -> BTreeSet<Vec<u8>> {
    let output = std::process::Command::new("git")
        .args(["status", "--porcelain", "-z", "-uall", "--no-renames"])
        .current_dir(&world.root)
        .env_clear()
        .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_OPTIONAL_LOCKS", "0")])
        .env("HOME", world.home())
        .output()
        .expect("git runs");
    assert!(output.status.success());
    output.stdout.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..)).map(<[u8]>::to_vec).collect()
}

#[test]
fn random_edits_are_listed_as_git_lists_them_and_taken_back_whole() {
    for seed in first_seed()..first_seed() + SEQUENCES {
        let mut dice = StdRng::seed_from_u64(seed);
        let world = World::empty();
        edits::plant(&mut dice, &world.root);
        std::fs::write(world.root.join(".gitignore"), "*.log\nbuild/\n").expect("written");
        world.sh("git add -A; git commit -qm start --allow-empty");
        let mut workspace = world.workspace();
        for round in 0..3 {
            let name = format!("seed {seed}, round {round}");
            let checkpoint = workspace.checkpoint().unwrap_or_else(|error| panic!("{name}: {error}"));
            let before = world.contents();
            for _ in 0..dice.random_range(1..30) {
                edits::edit(&mut dice, &world.root);
            }
            let hides = dice.random_range(0..3) == 0;
            if hides {
                edits::hide(&mut dice, &world.root);
            }
            let (gits, times) = (status(&world), world.tree());
            let changes = workspace.changes(&checkpoint).unwrap_or_else(|error| panic!("{name}: {error}"));
            let is_folder = |side: Option<&lunation::mechanism::repo::Side>| {
                side.is_none_or(|side| side.mode & 0o170_000 == 0o040_000)
            };
            let seen_by_git = |change: &&lunation::mechanism::repo::Change| {
                let (old, new) = (change.old.as_ref(), change.new.as_ref());
                let only_mode = old.zip(new).is_some_and(|(old, new)| {
                    old.content == new.content && old.mode & 0o170_100 == new.mode & 0o170_100
                });
                !(only_mode || is_folder(old) && is_folder(new))
            };
            let ours: BTreeSet<Vec<u8>> =
                changes.paths.iter().filter(seen_by_git).map(|change| change.path.as_bytes().to_vec()).collect();
            let show =
                |paths: Vec<&Vec<u8>>| paths.iter().map(|path| path.escape_ascii().to_string()).collect::<Vec<_>>();
            let missing = show(gits.difference(&ours).collect());
            let extra = show(ours.difference(&gits).collect());
            // what was ignored at the checkpoint stays nobody's business, though git lists it once the rule is gone
            let missing: Vec<_> = missing.into_iter().filter(|path| !(hides && edits::was_ignored(path))).collect();
            assert!(missing.is_empty(), "{name}: not seen: {missing:?}");
            assert!(hides || extra.is_empty(), "{name}: git does not know of {extra:?}");

            // the guard's work, which is judged elsewhere
            world.sh("echo > .git/info/exclude");
            let restored = workspace.restore(&checkpoint).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(restored.exact, "{name}: {restored:?}");
            let keep = |manifest: world::Manifest| -> world::Manifest {
                let is_build = |path: &str, words: &str| words.starts_with('4') && path.ends_with("build");
                let kept = |path: &str, words: &str| !edits::was_ignored(path) && !is_build(path, words);
                manifest.into_iter().filter(|(path, words)| kept(path, words)).collect()
            };
            world::assert_same(&keep(world.contents()), &keep(before), &name);
            assert_eq!(show(status(&world).iter().collect()), [""; 0], "{name}");
            let changed: BTreeSet<String> =
                changes.paths.iter().map(|change| change.path.as_bytes().escape_ascii().to_string()).collect();
            for (path, words) in keep(world.tree()) {
                let untouched = !changed.contains(&path) && !words.starts_with('4');
                assert!(!untouched || times.get(&path) == Some(&words), "{name}: {path} was touched");
            }
        }
    }
}
