//! Races that an agent could win against a careless rollback or a careless stat cache.

use crate::world::World;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn no_write_escapes_while_a_folder_and_a_link_are_swapped() {
    let world = World::new();
    let outside = world.top().join("outside");
    fs::create_dir(&outside).expect("made");
    fs::create_dir(outside.join("deep")).expect("made");
    fs::write(outside.join("main.rs"), "outside\n").expect("written");
    let mut workspace = world.workspace();
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    let stop = AtomicBool::new(false);
    let (src, aside, link) = (world.root.join("src"), world.top().join("aside"), world.top().join("link"));
    symlink(&outside, &link).expect("linked");
    let mut written = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // some of these fail when the rollback was faster, which is what the race is about
                let _ = fs::rename(&src, &aside).and_then(|()| fs::rename(&link, &src));
                let _ = fs::rename(&src, &link).and_then(|()| fs::rename(&aside, &src));
            }
        });
        for round in 0..150 {
            let _ = fs::write(src.join("main.rs"), format!("inside or not {round}\n"));
            let _ = fs::remove_file(src.join("deep/x.c"));
            fs::write(outside.join("main.rs"), "outside\n").expect("written");
            // a capture may fail under such an agent, and a path may be left; nothing may be written elsewhere
            written += workspace.restore(&checkpoint).map_or(0, |report| report.written);
            assert_eq!(fs::read_to_string(outside.join("main.rs")).expect("read"), "outside\n", "round {round}");
            assert_eq!(fs::read_dir(outside.join("deep")).expect("listed").count(), 0, "round {round}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(written > 0, "no rollback ever got as far as writing");
}

#[test]
fn an_edit_of_the_same_size_right_after_a_look_is_seen() {
    let world = World::new();
    let mut workspace = world.workspace();
    for round in 0..200 {
        world.write("a.txt", &format!("{:03}\n", round * 2));
        let checkpoint = workspace.checkpoint().expect("a checkpoint");
        world.write("a.txt", &format!("{:03}\n", round * 2 + 1));
        let changes = workspace.changes(&checkpoint).expect("changes");
        assert_eq!(changes.paths.len(), 1, "round {round}");
    }
}
