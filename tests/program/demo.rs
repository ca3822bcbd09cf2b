//! `lunation demo`: everything that it promises, on a machine with nothing but git and sh.

use serde_json::Value;

use crate::project::Project;

#[test]
fn the_demo_shows_fence_reaper_guard_rollback_and_a_verified_finish() {
    let project = Project::without_a_repository();
    let demo = project.lunation(&["demo"]);
    demo.exits_with(0)
        .says("^ The fence")
        .says("^ The reaper")
        .says("^ The guard")
        .says("^ The rollback")
        .says("^ The finish")
        .says("completed and verified")
        .says("The project was removed");
    assert_eq!(demo.out.matches("  yes  ").count(), 5, "{}", demo.out);
    assert!(!project.outside("state").exists(), "the user's own state is not touched");
}

#[test]
fn a_demo_that_is_kept_can_be_looked_at() {
    let project = Project::without_a_repository();
    let demo = project.lunation(&["demo", "--keep", "--json"]);
    demo.exits_with(0);
    let told: Value = serde_json::from_str(&demo.out).unwrap();
    assert_eq!(told["ok"], true);
    let kept = std::path::PathBuf::from(told["kept"].as_str().unwrap());
    assert!(kept.join("loop.lua").is_file());
    std::fs::remove_dir_all(kept.parent().unwrap()).unwrap();
}
