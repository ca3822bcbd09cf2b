//! Finding the repository, the reasons to refuse, the lock, and odd starts.

use crate::world::{World, assert_same, watch};
use lunation::mechanism::repo::{LockHolder, RepoError, RepoLock, Repository, RepositoryOptions, state_folder};

fn refuse(world: &World, start: &str) -> RepoError {
    Repository::discover(&world.top().join(start), &world.options()).expect_err("refused")
}

#[test]
fn a_folder_without_a_repository_is_refused_and_those_below_are_listed() {
    let world = World::new();
    world.sh("mkdir ../empty; git init -q ../empty/one; git init -q ../empty/two; mkdir ../empty/three");
    match refuse(&world, "empty") {
        RepoError::NoRepository { below, .. } => {
            let names: Vec<_> = below.iter().filter_map(|path| path.file_name()).collect();
            assert_eq!(names, ["one", "two"]);
        }
        other => panic!("{other}"),
    }
    assert!(refuse(&world, "empty/three").to_string().contains("git init"));
}

#[test]
fn bare_repositories_git_folders_and_redirected_trees_are_refused() {
    let world = World::new();
    world.sh("git clone -q --bare . ../bare");
    assert!(matches!(refuse(&world, "bare"), RepoError::Bare(_)));
    assert!(matches!(refuse(&world, "repo/.git"), RepoError::InsideGitFolder(_)));
    assert!(matches!(refuse(&world, "repo/.git/hooks"), RepoError::InsideGitFolder(_)));
    world.git(&["config", "core.worktree", "/tmp"]);
    assert!(matches!(refuse(&world, "repo"), RepoError::Unsupported { .. }));
}

#[test]
fn the_home_folder_as_root_is_refused() {
    let world = World::new();
    world.sh("git init -q ../home");
    assert!(matches!(refuse(&world, "home"), RepoError::TooWide(_)));
}

#[test]
fn git_03_a_repository_of_somebody_else_is_refused_with_the_fix() {
    if !rustix::process::geteuid().is_root() {
        // only root can give a folder away
        return;
    }
    let world = World::new();
    world.sh("chown -R 12345:12345 .");
    let error = refuse(&world, "repo");
    assert!(matches!(error, RepoError::DubiousOwnership { owner: 12345, .. }), "{error}");
    assert!(error.to_string().contains("git config --global --add safe.directory"), "{error}");
    let told = RepositoryOptions { sudo_uid: Some(12345), ..world.options() };
    Repository::discover(&world.root, &told).expect("sudo may");
    std::fs::write(world.home().join(".gitconfig"), format!("[safe]\n\tdirectory = {}\n", world.root.display()))
        .expect("written");
    let repository = Repository::discover(&world.root, &world.options()).expect("declared safe");
    // and what is put back is theirs again
    let mut workspace =
        lunation::mechanism::repo::Workspace::open(repository, &world.top().join("s"), watch()).expect("open");
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    world.sh("rm a.txt; rm -r src");
    workspace.restore(&checkpoint).expect("restored");
    for path in ["a.txt", "src", "src/deep/x.c"] {
        let meta = std::fs::metadata(world.root.join(path)).expect("there");
        assert_eq!(std::os::unix::fs::MetadataExt::uid(&meta), 12345, "{path}");
    }
}

#[test]
fn a_start_below_the_root_and_through_a_link_finds_the_same_repository_and_state() {
    let world = World::new();
    world.sh("ln -s repo ../alias; git worktree add -q ../linked -b linked");
    let home = world.top().join("state");
    let find = |start: &str| {
        let repository = Repository::discover(&world.top().join(start), &world.options()).expect("found");
        (repository.id(), state_folder(&home, &repository).expect("a folder"))
    };
    let here = find("repo");
    for start in ["repo/src/deep", "alias", "alias/src", "linked"] {
        assert_eq!(find(start), here, "{start}");
    }
    world.sh("rm -rf .git; git init -q");
    assert_eq!(find("repo"), here, "a git folder made again in its place");
    world.sh("mv ../repo ../moved");
    assert_eq!(find("moved").1, here.1, "a repository that was moved");
}

#[test]
fn state_03_the_lock_is_one_for_all_ways_to_the_repository() {
    let world = World::new();
    world.sh("ln -s repo ../alias; git worktree add -q ../linked -b linked");
    let home = world.top().join("state");
    let lock = |start: &str, run: &str| {
        let repository = Repository::discover(&world.top().join(start), &world.options()).expect("found");
        let state = state_folder(&home, &repository).expect("a folder");
        // the record of the holder names a live process that has nothing to do with it, and a time long ago
        let who = LockHolder { pid: 1, run: run.into(), host: "h".into(), started: "1999-01-01".into() };
        RepoLock::acquire(&state, &who)
    };
    let first = lock("repo", "first").expect("taken");
    for start in ["alias", "linked", "repo/src"] {
        match lock(start, "second") {
            Err(RepoError::Held { holder: Some(holder) }) => assert_eq!(holder.run, "first"),
            other => panic!("{other:?}"),
        }
    }
    drop(first);
    lock("linked", "third").expect("reclaimed with no step by hand");
}

#[test]
fn git_09_the_global_ignore_file_counts_and_our_state_is_nowhere_in_the_tree() {
    let world = World::new();
    world.sh("mkdir -p ../home/.config/git; echo .idea/ > ../home/.config/git/ignore; mkdir .idea; echo x > .idea/w");
    world.sh("git config core.autocrlf true; printf 'a\\r\\nb\\r\\n' > crlf.txt; ln -s nowhere dangling; git add -A; git commit -qm crlf");
    let status = world.git(&["status", "--porcelain"]);
    assert_eq!(status, "");
    let refs_and_objects = |world: &World| (world.git(&["for-each-ref"]), world.git(&["count-objects", "-v"]));
    let before = refs_and_objects(&world);
    let mut workspace = world.workspace();
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    world.sh("echo y >> .idea/w");
    let changes = workspace.changes(&checkpoint).expect("changes");
    assert!(changes.is_empty() && changes.paths.is_empty(), "{changes:?}");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    // dirty only by its line ends: it is a change for both
    world.sh("printf 'a\\nb\\n' > crlf.txt");
    let changes = workspace.changes(&checkpoint).expect("changes");
    assert_eq!(changes.paths.len(), 1);
    let again = workspace.checkpoint().expect("a checkpoint");
    assert_eq!(again.tree, changes.tree);
    for name in ["refs/lunation", "lunation"] {
        assert!(!world.root.join(".git").join(name).exists());
    }
    assert_eq!(refs_and_objects(&world), before);
}

#[test]
fn an_unborn_head_can_be_watched() {
    let world = World::empty();
    world.write("u", "u\n");
    let mut workspace = world.workspace();
    let checkpoint = workspace.checkpoint().expect("a checkpoint");
    let (tree, git) = (world.contents(), world.git_folder());
    world.sh("git add u; git commit -qm born; git checkout -qb other; echo x > u");
    workspace.guard(&checkpoint).expect("guarded");
    workspace.restore(&checkpoint).expect("restored");
    assert_same(&world.contents(), &tree, "tree");
    assert_same(&world.git_folder(), &git, "git folder");
}
