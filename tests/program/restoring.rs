//! `lunation restore`: any iteration's start, and back again.

use crate::project::Project;

/// Writes the number of its turn into a file.
const COUNTS: &str = r#"
n=$(($(cat "$here/turns" 2> /dev/null || echo 0) + 1))
echo "$n" > "$here/turns"
echo "$n" > src/turn.txt
echo "turn $n"
"#;

fn project() -> Project {
    let project = Project::with_a_failing_test()
        .with_a_loop(COUNTS, "budget = { iterations = 3 }, decide = function() return \"keep\" end,");
    project.lunation(&["run", "--trust"]).exits_with(2);
    assert_eq!(project.read("src/turn.txt"), "3\n");
    project
}

#[test]
fn the_tree_before_an_iteration_comes_back_and_the_undo_undoes_it() {
    let project = project();
    project.write("notes.txt", "written after the run\n");
    let before = project.everything();
    let restore = project.lunation(&["restore", "3"]);
    restore.exits_with(0).says("src/turn.txt").says("notes.txt");
    assert_eq!(project.read("src/turn.txt"), "2\n");
    assert!(!project.root().join("notes.txt").exists());

    let undo = restore.out.lines().find_map(|line| line.strip_prefix("undo this: lunation ")).unwrap();
    let words: Vec<&str> = undo.split_whitespace().collect();
    project.lunation(&words).exits_with(0);
    assert_eq!(project.everything(), before);
}

#[test]
fn zero_is_the_tree_as_the_run_found_it() {
    let project = project();
    project.lunation(&["restore", "0"]).exits_with(0).says("put back 1 path");
    assert_eq!(project.status(), "");
    project.lunation(&["restore", "0"]).exits_with(0).says("nothing changed");
}

#[test]
fn commits_made_since_stay() {
    let project = project();
    project.commit_all("kept");
    let head = project.git(&["rev-parse", "HEAD"]);
    project.lunation(&["restore", "0"]).exits_with(0);
    assert_eq!(project.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(project.status(), " D src/turn.txt\n");
}

#[test]
fn what_is_not_there_is_told() {
    let project = project();
    project.lunation(&["restore", "7"]).exits_with(4).complains("no iteration 7");
    project.lunation(&["restore", "--to", "1234"]).exits_with(4).complains("no checkpoint 1234");
    project.lunation(&["restore"]).exits_with(4).complains("required");
    assert_eq!(project.read("src/turn.txt"), "3\n");
}
