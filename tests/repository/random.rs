//! Random agents: whatever they do, the change list is right and the way back is exact.

use crate::world::{World, assert_same};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Rounds of one run; each has a seed of its own, which a failure names.
const ROUNDS: u64 = 25;

struct Agent {
    dice: StdRng,
    root: PathBuf,
}

impl Agent {
    fn paths(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(&self.root, &self.root, &mut found);
        found.sort();
        found
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.dice.random_range(0..from.len())].clone()
    }

    fn name(&mut self) -> PathBuf {
        let names: [&[u8]; 12] = [
            b"a",
            b"b.rs",
            b"c c",
            b"d\n",
            b"\xff\xfe",
            b"e.log",
            b"build",
            b"*",
            b"-x",
            b"%2f",
            "ü".as_bytes(),
            b".h",
        ];
        let parts: Vec<_> = (0..self.dice.random_range(1..4)).map(|_| self.pick(&names)).collect();
        PathBuf::from(std::ffi::OsStr::from_bytes(&parts.join(&b"/"[..])))
    }

    fn below(&mut self) -> PathBuf {
        let name = self.name();
        self.root.join(name)
    }

    fn content(&mut self) -> Vec<u8> {
        let sizes = [0, 1, 5, 100, 5_000];
        let size = self.pick(&sizes);
        (0..size).map(|_| self.dice.random_range(b'a'..b'f')).collect()
    }

    /// Makes a file or folder or link somewhere; what is in the way stays in the way.
    fn make(&mut self) {
        let path = self.below();
        if path.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok()) {
            let content = self.content();
            let made = match self.dice.random_range(0..6) {
                0 => fs::create_dir(&path),
                1 => symlink(self.name(), &path),
                2 => rustix::fs::mknodat(
                    rustix::fs::CWD,
                    &path,
                    rustix::fs::FileType::Fifo,
                    rustix::fs::Mode::from_raw_mode(0o600),
                    0,
                )
                .map_err(Into::into),
                _ if path.is_symlink() => Ok(()),
                _ if fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_file()) => Ok(()),
                _ => fs::write(&path, content),
            };
            // what could not be made because of what is there was not made
            let _ = made;
        }
    }

    fn act(&mut self) {
        let paths = self.paths();
        if paths.is_empty() {
            return self.make();
        }
        let path = self.pick(&paths);
        let path = self.root.join(path);
        let Ok(meta) = fs::symlink_metadata(&path) else { return };
        let done = match self.dice.random_range(0..9) {
            0 if meta.is_dir() => fs::remove_dir_all(&path),
            0 | 1 if !meta.is_dir() => fs::remove_file(&path),
            2 if !meta.is_symlink() => {
                let mode = self.pick(&[0o644, 0o755, 0o600, 0o700, 0o444, 0o4755]);
                let mode = if meta.is_dir() { mode | 0o700 } else { mode };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode))
            }
            3 => {
                let to = self.below();
                fs::rename(&path, to)
            }
            4 | 5 if meta.is_file() => {
                // the same size, and the time put back
                let mut content = fs::read(&path).unwrap_or_default();
                if let Some(first) = content.first_mut() {
                    *first = first.wrapping_add(1);
                }
                fs::write(&path, content).and_then(|()| {
                    let file = fs::OpenOptions::new().write(true).open(&path)?;
                    file.set_modified(meta.modified()?)
                })
            }
            _ => {
                self.make();
                Ok(())
            }
        };
        // a rename into itself, or a file without rights: it was not done then
        let _ = done;
    }
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        // the rules stay: what a change of them means has tests of its own
        if path.file_name().is_some_and(|name| name == ".git" || name == ".gitignore") {
            continue;
        }
        found.push(path.strip_prefix(root).expect("below").to_path_buf());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(root, &path, found);
        }
    }
}

/// What git would ignore by the rules of the checkpoint, and all that is below it.
fn ignored(path: &str) -> bool {
    path.split('/').any(|part| part == "build" || part.ends_with(".log"))
}

#[test]
fn whatever_a_random_agent_does_is_seen_and_taken_back() {
    let seed = std::env::var("LUNATION_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_260_101_u64);
    let world = World::new();
    world.write(".gitignore", "build\n*.log\n");
    world.sh("git add -A; git commit -qm ignore");
    let mut workspace = world.workspace();
    for round in 0..ROUNDS {
        let name = format!("seed {seed} round {round}");
        let mut agent = Agent { dice: StdRng::seed_from_u64(seed + round), root: world.root.clone() };
        for _ in 0..agent.dice.random_range(0..12) {
            agent.act();
        }
        let checkpoint = workspace.checkpoint().unwrap_or_else(|error| panic!("{name}: {error}"));
        let (before, git) = (world.contents(), world.git_folder());
        for _ in 0..agent.dice.random_range(1..25) {
            agent.act();
        }
        let sabotage = [
            "true",
            "true",
            "git add -A; git commit -qm x",
            "git stash -q",
            "git checkout -qb b; git branch -D main",
            "git gc -q --prune=now",
            "rm -rf .git",
            "git rm -rq --cached .",
            "git reset -q --hard",
        ];
        let sabotage = agent.pick(&sabotage);
        world.try_sh(&world.root, sabotage);
        let (after, times) = (world.contents(), world.tree());
        workspace.guard(&checkpoint).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_same(&world.git_folder(), &git, &name);

        let changes = workspace.changes(&checkpoint).unwrap_or_else(|error| panic!("{name}: {error}"));
        let told: BTreeSet<String> =
            changes.paths.iter().map(|change| change.path.as_bytes().escape_ascii().to_string()).collect();
        let folder = |words: Option<&String>| words.is_some_and(|words| words.starts_with('4'));
        let real: BTreeSet<String> = before
            .keys()
            .chain(after.keys())
            .filter(|path| before.get(*path) != after.get(*path) && !ignored(path))
            // a folder that came or went is told by what is in it
            .filter(|path| {
                let below = format!("{path}/");
                let full = |manifest: &crate::world::Manifest| {
                    manifest.keys().any(|other| other.starts_with(&below) && !ignored(other))
                };
                let gone = folder(before.get(*path)) && !after.contains_key(*path) && full(&before);
                let came = folder(after.get(*path)) && !before.contains_key(*path) && full(&after);
                !gone && !came
            })
            .cloned()
            .collect();
        assert_eq!(told, real, "{name} ({sabotage})");

        let report = workspace.restore(&checkpoint).unwrap_or_else(|error| panic!("{name}: {error}"));
        let keep = |manifest: crate::world::Manifest| -> crate::world::Manifest {
            manifest.into_iter().filter(|(path, _)| !ignored(path)).collect()
        };
        assert_same(&keep(world.contents()), &keep(before.clone()), &format!("{name} ({sabotage})"));
        assert!(report.exact, "{name}: {report:?}");
        for (path, words) in keep(world.tree()) {
            assert!(
                told.contains(&path) || folder(Some(&words)) || times.get(&path) == Some(&words),
                "{name} ({sabotage}): {path} had {:?} and has {words}",
                times.get(&path)
            );
        }
        let again = workspace.restore(&checkpoint).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(again.written + again.removed + again.modes, 0, "{name}");
        world.git(&["fsck"]);
    }
}
