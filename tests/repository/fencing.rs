//! The fence: what lies outside the scope is as it was before the turn.

use crate::world::{World, assert_same, watch};
use lunation::mechanism::repo::{ChangeKind, FenceReport, WorkspaceOptions};
use lunation::policy::{FenceSpec, Scope};

fn scope(allow: &[&str]) -> Scope {
    let fence = FenceSpec { allow: allow.iter().map(ToString::to_string).collect(), ..FenceSpec::default() };
    Scope::new(fence, vec!["loop.lua".into()]).expect("a scope")
}

fn world() -> World {
    let world = World::new();
    world.sh("mkdir tests; echo t > tests/t; printf '#!/bin/sh\\n' > run-tests.sh; chmod 755 run-tests.sh; echo l > loop.lua");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "tests"]);
    world
}

fn fence(world: &World, allow: &[&str], script: &str) -> FenceReport {
    let mut workspace = world.workspace();
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    world.sh(script);
    workspace.guard(&checkpoint).expect("guarded");
    let report = workspace.fence(&checkpoint, &scope(allow)).expect("fenced");
    let second = workspace.fence(&checkpoint, &scope(allow)).expect("fenced again");
    assert_eq!(second, FenceReport::default(), "{script}");
    report
}

fn paths(report: &FenceReport) -> Vec<String> {
    report.fenced.iter().map(|fenced| fenced.path.to_string()).collect()
}

#[test]
fn fence_01_no_way_of_making_tests_green_from_outside_the_scope() {
    for (script, expected) in [
        (": > tests/t", vec!["tests/t"]),
        ("rm tests/t", vec!["tests/t"]),
        ("rm -r tests", vec!["tests/t"]),
        ("git rm -q tests/t; git commit -qm gone", vec!["tests/t"]),
        ("echo exit 0 > run-tests.sh", vec!["run-tests.sh"]),
        ("echo skip > conftest.py", vec!["conftest.py"]),
        ("chmod 644 run-tests.sh", vec!["run-tests.sh"]),
        ("rm -r tests; mkdir src/t; echo ok > src/t/t; ln -s src/t tests", vec!["tests", "tests/t"]),
        ("mkfifo pipe; mkdir void; chmod 700 tests", vec!["pipe", "tests", "void"]),
        ("git init -q nested; echo x > nested/x", vec!["nested/.git", "nested/x"]),
        ("chmod 000 tests", vec!["tests"]),
        (
            "echo cheat > loop.lua; echo conftest.py > .gitignore; echo s > conftest.py",
            vec![".gitignore", "conftest.py", "loop.lua"],
        ),
    ] {
        let world = world();
        let outside = |world: &World| {
            let mut contents = world.contents();
            contents.retain(|path, _| !path.starts_with("src/t"));
            contents
        };
        let before = outside(&world);
        let report = fence(&world, &["src/**"], script);
        assert_eq!(report.conflicts, [], "{script}");
        assert_eq!(paths(&report), expected, "{script}");
        assert_same(&outside(&world), &before, script);
    }
}

#[test]
fn what_is_inside_the_scope_stays() {
    let world = world();
    let report = fence(
        &world,
        &["src/**"],
        "echo x >> src/main.rs; mkdir -p src/a/b; echo n > src/a/b/n; rm src/deep/x.c; chmod 755 src/main.rs",
    );
    assert_eq!(report, FenceReport::default());
    assert_eq!(world.read("src/a/b/n"), "n\n");
    assert!(!world.has("src/deep/x.c"));
}

#[test]
fn a_new_folder_stays_when_something_in_it_is_allowed() {
    let world = world();
    let report = fence(
        &world,
        &["pkg/lib/*.js"],
        "mkdir -p pkg/lib; echo a > pkg/lib/a.js; echo b > pkg/lib/b.txt; echo c > pkg/c",
    );
    assert_eq!(paths(&report), ["pkg/c", "pkg/lib/b.txt"]);
    assert!(world.has("pkg/lib/a.js"));
}

#[test]
fn renames_count_on_both_sides() {
    let world = world();
    let out = fence(&world, &["src/**"], "mv src/main.rs tests/main.rs");
    assert_eq!(paths(&out), ["src/main.rs", "tests/main.rs"]);
    assert_eq!(world.read("src/main.rs"), "fn main() {}\n");
    let within = fence(&world, &["src/**"], "mv tests/t src/t");
    assert_eq!(paths(&within), ["tests/t"]);
    assert_eq!(world.read("tests/t"), "t\n");
}

#[test]
fn a_file_in_the_place_of_a_folder_gives_way_to_what_is_protected_in_it() {
    let world = world();
    let report = fence(&world, &["src/**", "src", "!src/deep/**"], "rm -r src; echo file > src");
    assert!(world.has("src/deep/x.c"));
    assert!(!world.has("src/main.rs"), "a deletion inside the scope stays");
    assert!(paths(&report).contains(&"src/deep/x.c".to_string()));
    let world = self::world();
    let report = fence(&world, &["a.txt/in/**"], "rm a.txt; mkdir -p a.txt/in; echo n > a.txt/in/n");
    assert_eq!(world.read("a.txt"), "a\n");
    assert!(report.fenced.iter().any(|f| f.path.to_string() == "a.txt" && f.how == ChangeKind::TypeChanged));
}

#[test]
fn ignored_paths_are_outside_the_fence_unless_they_are_watched() {
    let world = world();
    world.sh("echo 'cache/' > .gitignore; git add .gitignore; git commit -qm ignore; mkdir cache; echo c > cache/c");
    let script = "echo x >> cache/c; echo n > cache/n";
    assert_eq!(fence(&world, &["src/**"], script), FenceReport::default());
    assert!(world.has("cache/n"));

    let options = WorkspaceOptions { watch_ignored: true, ..watch() };
    let mut workspace = world.workspace_with(options);
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    world.sh("echo y >> cache/c; echo m > cache/m");
    let spec = FenceSpec { allow: vec!["src/**".into()], watch_ignored: true, ..FenceSpec::default() };
    let report = workspace.fence(&checkpoint, &Scope::new(spec, Vec::new()).expect("a scope")).expect("fenced");
    assert_eq!(paths(&report), ["cache/c", "cache/m"]);
    assert!(!world.has("cache/m"));
    assert_eq!(world.read("cache/c"), "c\nx\n");
}

#[test]
fn what_was_over_the_cap_and_is_edited_outside_the_scope_is_a_conflict_and_not_hidden() {
    let world = world();
    world.sh("head -c 3000000 /dev/zero > big");
    let mut workspace = world.workspace_with(WorkspaceOptions { size_cap: 1 << 20, ..watch() });
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    world.sh("echo x >> big; head -c 3000000 /dev/zero > new-big");
    let report = workspace.fence(&checkpoint, &scope(&["src/**"])).expect("fenced");
    assert_eq!(paths(&report), ["new-big"]);
    assert_eq!(report.conflicts.len(), 1);
    assert_eq!(report.conflicts[0].path.to_string(), "big");
    assert!(!world.has("new-big"));
}
