//! The host is killed, and nobody comes after it: everything is put back all the same, at whatever moment it was.

mod scene;

use scene::{Scene, alive, eventually, finish, unique_seconds};

fn script(decide: &str, sensor: &str) -> String {
    format!(
        "local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"worker\" }}, prompt = \"Work.\", \
         sensors = {{ ln.sensor {{ \"{sensor}\", id = \"s\" }} }}, budget = {{ iterations = 3 }}, {decide} }}\n"
    )
}

/// What a user has and must keep.
fn with_work_of_the_user(lua: &str) -> Scene {
    let scene = Scene::new()
        .file("tracked", "committed\n")
        .file(".gitignore", "*.log\n")
        .script(lua)
        .commit("more")
        .file("tracked", "edited by the user\n")
        .file("untracked", "the user's\n")
        .file("keep.log", "ignored\n");
    scene.git(&["stash", "push", "-q", "--include-untracked", "--", "untracked"]);
    scene.write("untracked", "the user's\n");
    scene.git(&["add", "tracked"]);
    scene
}

/// What a file holds; it may be gone for a moment.
fn content(scene: &Scene, path: &str) -> String {
    std::fs::read_to_string(scene.path(path)).unwrap_or_else(|error| error.to_string())
}

/// What git says, or that it cannot say: it may be asked in the middle of the putting back.
fn git(scene: &Scene, args: &[&str]) -> String {
    let mut command = scene.command("git");
    command.args(args);
    let ran = finish(command);
    if ran.code == 0 { ran.stdout } else { ran.stderr }
}

fn state(scene: &Scene) -> String {
    let parts = [
        git(scene, &["rev-parse", "HEAD"]),
        git(scene, &["for-each-ref"]),
        git(scene, &["stash", "list"]),
        git(scene, &["diff", "--cached"]),
        git(scene, &["config", "--local", "-l"]),
        git(scene, &["status", "--porcelain"]),
        content(scene, "tracked"),
        content(scene, "untracked"),
        content(scene, "keep.log"),
    ];
    parts.join("--\n")
}

fn is_put_back(scene: &Scene, before: &str, marker: &str) {
    eventually("no process is left", || alive(marker).is_empty());
    let held = || {
        let busy = scene.run(&["status"]);
        busy.code == 0 && state(scene) == before
    };
    eventually("everything is as it was, with nobody's help", held);
}

const HAVOC: &str = "echo havoc > tracked; rm untracked; echo new > new; git commit -qam havoc; git branch other; \
                     git stash drop -q; git config core.hooksPath /tmp";

#[test]
fn in_the_middle_of_a_turn() {
    let seconds = unique_seconds();
    let scene = with_work_of_the_user(&script("", "false"))
        .agent(&format!("{HAVOC}; setsid sleep {seconds} & touch here.log; wait"));
    let before = state(&scene);
    let running = scene.start(&["run", "--trust"]);
    eventually("the agent is at work", || scene.exists("here.log"));
    running.signal("KILL");
    running.wait();
    std::fs::remove_file(scene.path("here.log")).expect("an ignored file stays");
    is_put_back(&scene, &before, &format!("sleep {seconds}"));
}

#[test]
fn while_a_policy_thinks_and_no_command_runs() {
    let think = "decide = function(o) local n = 0; for i = 1, 60000000 do n = n + i end; return \"keep\" end";
    let scene = with_work_of_the_user(&script(think, "false")).agent(&format!("{HAVOC}; echo done"));
    let before = state(&scene);
    let running = scene.start(&["run", "--trust"]);
    eventually("the sensors are read", || !scene.events("sensed").is_empty());
    running.signal("KILL");
    running.wait();
    is_put_back(&scene, &before, "no such process");
}
