//! Diffs: git itself must be able to apply them.

use crate::world::{World, assert_same, watch};
use lunation::mechanism::repo::WorkspaceOptions;

#[test]
fn a_diff_can_be_applied_by_git_and_counts_what_it_shows() {
    let world = World::new();
    world.sh(r#"printf 'no end' > noend; printf 'one\r\ntwo\r\n' > crlf; echo q > 'qu"ote'; echo m > mode; git add -A; git commit -qm more"#);
    let mut workspace = world.workspace();
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    world.sh(
        r#"seq 40 > n; printf 'no end at all' > noend; printf 'one\r\nzwei\r\n' > crlf; echo x >> 'qu"ote'; chmod 755 mode
           git mv run.sh moved.sh; rm link; ln -s elsewhere link; echo t > $'tab\tnew\nline'; : > void; sed -i s/main/start/ src/main.rs"#,
    );
    workspace.guard(&checkpoint).expect("guarded");
    let changes = workspace.changes(&checkpoint).expect("changes");
    let after = world.contents();
    let diff = workspace.diff(&changes.before, &changes.tree).expect("a diff");
    assert!(!diff.truncated);
    assert_eq!(diff.lines, diff.files.iter().map(|file| file.added + file.removed).sum::<u64>());
    assert_eq!(
        diff.files.iter().map(|file| file.path.clone()).collect::<Vec<_>>(),
        changes.paths.iter().map(|change| change.path.clone()).collect::<Vec<_>>()
    );
    let n = diff.files.iter().find(|file| file.path.to_string() == "n").expect("told");
    assert_eq!((n.added, n.removed, n.binary), (40, 0, false));
    workspace.restore(&checkpoint).expect("restored");
    let patch = world.top().join("patch");
    std::fs::write(&patch, &diff.text).expect("written");
    world.git(&["apply", "--whitespace=nowarn", patch.to_str().expect("text")]);
    assert_same(&world.contents(), &after, &diff.text);
}

#[test]
fn binary_files_are_told_and_long_diffs_are_cut_at_a_line_with_a_mark() {
    let world = World::new();
    let mut workspace = world.workspace_with(WorkspaceOptions { diff_cap: 1_000, ..watch() });
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    world.sh("printf 'a\\0b' > b.bin; seq 10000 > long; echo z > zz");
    let changes = workspace.changes(&checkpoint).expect("changes");
    let diff = workspace.diff(&changes.before, &changes.tree).expect("a diff");
    assert!(diff.text.contains("Binary files /dev/null and b/b.bin differ\n"), "{}", diff.text);
    assert!(diff.truncated);
    assert!(diff.text.ends_with("[the diff is longer than its cap; the rest was cut]\n"));
    assert!(diff.text.len() < 1_100);
    assert_eq!(diff.files.len(), 3);
    assert_eq!(diff.lines, 10_001);
    assert!(diff.files[0].binary);
}
