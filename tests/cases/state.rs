//! STATE: journal, resume, locks.

use std::os::unix::fs::symlink;

use crate::scene::{PATIENCE, Scene, eventually, finish};

const LOOP: &str = "local ln = require \"lunation\"\nreturn ln.loop { agent = ln.agent { \"worker\" }, prompt = \"Work.\", \
                    sensors = { \"false\" }, budget = { iterations = 1 } }\n";

/// Works until somebody makes `go` beside the project.
const WAITS: &str = "touch ../at-work; until [ -e ../go ]; do sleep 0.05; done; echo x > x; echo ok";

#[test]
fn state_03_of_many_starts_at_one_instant_exactly_one_wins() {
    for _ in 0..4 {
        let scene = Scene::new().script(LOOP).commit("script").agent(WAITS);
        let running: Vec<_> = (0..12).map(|_| scene.start(&["run", "--trust"])).collect();
        eventually("one is at work", || scene.outside().join("at-work").exists());
        std::fs::write(scene.outside().join("go"), "").expect("written");
        let codes: Vec<i32> = running.into_iter().map(|run| run.wait().code).collect();
        let winners = scene.turns() as usize;
        // one that starts after the winner ended is a winner of its own, and none of them ever ran beside another
        assert!(winners >= 1);
        assert_eq!(codes.iter().filter(|code| **code == 2).count(), winners, "{codes:?}");
        assert!(codes.iter().all(|code| [2, 5].contains(code)), "{codes:?}");
    }
}

#[test]
fn state_03_a_stopped_holder_keeps_its_lock_and_a_killed_one_leaves_it() {
    let scene = Scene::new().script(LOOP).commit("script").agent(WAITS);
    let first = scene.start(&["run", "--trust"]);
    eventually("it is at work", || scene.outside().join("at-work").exists());
    let before = std::fs::read(scene.path(".git/index")).expect("read");
    first.signal("STOP");
    let pid = first.pid().to_string();

    // The same repository by another path, and from a linked worktree.
    let other = scene.outside().join("by-link");
    symlink(scene.root(), &other).expect("linked");
    scene.git(&["worktree", "add", "-q", "../worktree"]);
    for folder in [scene.root(), other, scene.outside().join("worktree")] {
        let mut command = scene.lunation(&["run", "--trust"]);
        command.current_dir(&folder);
        let ran = finish(command).expect_code(5);
        assert!(ran.all().contains(&pid), "it says who holds it: {}", ran.all());
    }
    assert_eq!(std::fs::read(scene.path(".git/index")).expect("read"), before);
    assert_eq!(scene.turns(), 1);

    // Killed: the next start needs no manual step.
    first.signal("CONT");
    first.signal("KILL");
    first.wait();
    std::fs::write(scene.outside().join("go"), "").expect("written");
    scene.run_loop(&[]).expect_code(2);
    assert_eq!(scene.turns(), 2);
}

#[test]
fn state_03_a_record_that_names_a_live_stranger_is_no_lock() {
    let scene = Scene::new().script(LOOP).commit("script").agent("echo x > x; echo ok");
    scene.run_loop(&[]).expect_code(2);
    let mut records = Vec::new();
    let mut folders = vec![scene.home().join("lunation")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("listed").flatten() {
            match entry.file_name().to_string_lossy().as_ref() {
                "holder.json" => records.push(entry.path()),
                _ if entry.path().is_dir() => folders.push(entry.path()),
                _ => {}
            }
        }
    }
    let host = finish(scene.command("uname")).stdout;
    for record in records {
        let text = format!(
            "{{\"pid\":{},\"run\":\"r\",\"host\":\"{}\",\"started\":\"now\"}}",
            std::process::id(),
            host.trim()
        );
        std::fs::write(record, text).expect("written");
    }
    let started = std::time::Instant::now();
    scene.run_loop(&[]).expect_code(2);
    assert!(started.elapsed() < PATIENCE / 2, "nobody was waited for");
}
