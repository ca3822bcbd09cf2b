//! Repositories of other shapes: formats that libraries can't open, linked worktrees, separate git folders.

use crate::manifest;
use crate::ordeal::{LOOP, users};
use crate::scene::{Scene, finish};

/// How to make the repository, in an empty folder, and what keeps it from being opened by a library.
const SHAPES: [(&str, &str); 7] = [
    ("reftable", "git init -q -b main --ref-format=reftable"),
    ("sha256", "git init -q -b main --object-format=sha256"),
    (
        "partial clone",
        "git init -q -b main; git config extensions.partialClone origin; git config remote.origin.promisor true; git config remote.origin.url /nowhere; git config core.repositoryFormatVersion 1",
    ),
    ("split index", "git init -q -b main; git config core.splitIndex true"),
    (
        "sparse index",
        "git init -q -b main; LATER='git sparse-checkout init --cone --sparse-index; git sparse-checkout set src tests'",
    ),
    ("separate git folder", "git init -q -b main --separate-git-dir=../git"),
    ("plain", "git init -q -b main"),
];

#[test]
fn repositories_of_every_shape_are_guarded_fenced_and_rolled_back() {
    for (shape, init) in SHAPES {
        for user in users() {
            let scene = Scene::new();
            std::fs::remove_dir_all(scene.path(".git")).expect("removed");
            let scene = scene.program(
                "prepare",
                &format!(
                    "set -e; LATER=true; {init}; mkdir src tests far; echo a > src/a; echo t > tests/t; echo f > far/f
                     printf 'out/\\n' > .gitignore; git add -A; git commit -qm one; git branch other; eval \"$LATER\"
                     echo staged > src/s; git add src/s; echo dirty >> src/a; mkdir out; echo o > out/o; echo u > u"
                ),
            );
            let ran = finish(scene.command("prepare"));
            assert_eq!(ran.code, 0, "{shape}: {ran:?}");
            let scene = scene.script(&LOOP.replace("TURNS", "2")).agent(
                "case $N in
                 1) git commit -qam mine; git branch -D other; git update-index --assume-unchanged src/a;;
                 2) rm -rf \"$(git rev-parse --git-common-dir)\" .git;;
                 esac; echo \"hidden $N\" >> src/a; echo cheat >> tests/t; echo ok",
            );
            let scene = match user {
                Some(user) => scene.owned_by(user),
                None => scene,
            };
            // asking refreshes the index, so it comes first here and last below
            let (status, refs) = (scene.status(), scene.git(&["for-each-ref"]));
            let before = manifest::of(&scene.root());
            let ran = scene.run_loop(&[]);
            assert_eq!(ran.code, 2, "{shape}: {}", ran.all());
            let now = manifest::of(&scene.root());
            assert_eq!(manifest::differences(&before, &now), "", "{shape}");
            assert_eq!((scene.git(&["for-each-ref"]), scene.status()), (refs, status), "{shape}");
            if shape != "partial clone" {
                scene.git(&["fsck", "--full"]);
            }
            let files = |n: usize| format!("{}", record(&scene, shape, "changed")[n]["change"]["files"]);
            assert!(files(0).contains("src/a") && files(1).contains("src/a"), "{shape}: {}", files(0));
            assert!(record(&scene, shape, "fenced")[0]["paths"].to_string().contains("tests/t"), "{shape}");
            assert!(!record(&scene, shape, "guarded").is_empty(), "{shape}");
        }
    }
}

/// The records of a kind, of the newest run; the common git folder may lie elsewhere.
fn record(scene: &Scene, shape: &str, kind: &str) -> Vec<serde_json::Value> {
    if shape != "separate git folder" {
        return scene.events(kind);
    }
    let runs = std::fs::read_dir(scene.outside().join("git/lunation/runs")).expect("runs");
    let newest = runs.flatten().map(|entry| entry.path()).max().expect("a run");
    let text = std::fs::read_to_string(newest.join("journal.jsonl")).expect("a journal");
    let records = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    records.filter(|record| record["kind"] == kind).map(|record| record["data"].clone()).collect()
}

#[test]
fn a_run_in_a_linked_worktree_guards_the_whole_repository() {
    for user in users() {
        let scene = crate::ordeal::under_way().agent(
            "case $N in
             1) git commit -qam mine; git branch -q -D keep; git config a.b c;;
             2) git checkout -q --detach; git worktree prune; rm -rf \"$(git rev-parse --git-common-dir)\";;
             3) rm .git; git init -q; git add -A;;
             esac; echo \"hidden $N\" >> src/work.txt; echo cheat >> tests/check.txt; echo ok",
        );
        let linked = scene.outside().join("linked");
        std::fs::write(linked.join("loop.lua"), LOOP.replace("TURNS", "3")).expect("written");
        let scene = match user {
            Some(user) => scene.owned_by(user),
            None => scene,
        };
        let before = crate::ordeal::Before::of(&scene);
        let mut command = scene.lunation(&["run", "--trust"]);
        command.current_dir(&linked);
        finish(command).expect_code(2);
        before.still_holds(&scene, "from a linked worktree");
        assert_eq!(scene.events("guarded").len(), 3);
    }
}
