//! Which run is meant, and where it is found.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use lunation::journal::{Clock, Journal, JournalOptions, RunId};
use lunation::mechanism::repo::{Repository, RepositoryOptions, state_folder};
use lunation::policy::Reason;

use crate::recorded_run::{Step, Story, TestClock, run_id};
use crate::{Project, START, answer};

#[test]
fn a_run_of_a_newer_lunation_is_refused_alone_and_told_among_others() {
    let project = Project::with_a_run();
    let newer = project.story("2026-12-01T10:00:00Z", 4);
    drop(newer);
    let file = project.journal_file();
    let mut text = fs::OpenOptions::new().append(true).open(&file).unwrap();
    text.write_all(b"{\"v\":9}\n").unwrap();
    let told = project.run(&["why"]);
    assert_eq!((told.code, told.out.as_str()), (5, ""));
    assert!(told.err.contains("has format version 9, this lunation reads versions up to 1"), "{}", told.err);
    let all = project.run(&["report", "--all"]);
    assert_eq!(all.code, 0);
    assert!(all.out.contains("1 run: 1 passed (100 %)"), "{}", all.out);
    assert!(all.err.contains("is not counted: "), "{}", all.err);
}

#[test]
fn a_run_is_found_by_the_beginning_of_its_name_and_a_typo_gets_a_hint() {
    let project = Project::with_a_run();
    let id = run_id(START, 1);
    assert!(project.read(&["status", "--run", &id.as_str()[..10]]).contains(id.as_str()));
    assert!(project.read(&["status", "--run", id.short()]).contains(id.as_str()));
    let typo = id.as_str().replace("-201026-", "-201036-");
    let told = project.run(&["status", "--run", &typo]);
    assert_eq!(told.code, 4);
    assert!(told.err.starts_with(&format!("error: there is no run `{typo}`: did you mean {id}?\n")), "{}", told.err);
    for nobody in ["", " "] {
        assert_eq!(project.run(&["status", "--run", nobody]).code, 4, "an empty name names nobody");
    }
}

#[test]
fn without_a_repository_there_is_one_clear_error() {
    let project = Project::new();
    let told = answer(project.command(&["status"]).current_dir(project.folder.path()).output().unwrap());
    assert_eq!((told.code, told.out.as_str()), (4, ""));
    assert!(told.err.starts_with("error: "), "{}", told.err);
    assert!(told.err.contains("no git repository"), "{}", told.err);
    let json = answer(project.command(&["status", "--json"]).current_dir(project.folder.path()).output().unwrap());
    let parsed: serde_json::Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!((json.code, parsed["exit_code"].as_u64()), (4, Some(4)));
    let gone = project.run(&["-C", "nowhere", "status"]);
    assert_eq!(gone.code, 4);
    assert_eq!(gone.err, "error: nowhere is no folder\nhint: name another one with -C\n");
}

#[test]
fn a_run_whose_record_left_the_git_folder_is_read_from_the_state_folder() {
    let project = Project::new();
    let options = RepositoryOptions::default();
    let repository = Repository::discover(&project.root(), &options).unwrap();
    let state = state_folder(&project.folder.path().join("home/state"), &repository).unwrap();
    let id = run_id(START, 1);
    let runs = project.runs().with_second_place(&state);
    let clock = TestClock::at(START);
    let options = JournalOptions {
        second_link: runs.second_dir(&id),
        ..JournalOptions::new(runs.run_dir(&id), id.clone(), clock.clone())
    };
    let mut story = Story::begin_with(options, clock);
    story.iterate(Step::keep(2));
    fs::remove_dir_all(project.root().join(".git/lunation")).unwrap();
    story.iterate(Step::keep(0)).end(Reason::Completed, true);
    assert!(project.read(&["status"]).contains("completed, verified, after 2 iterations"));
    assert_eq!(project.read(&["prompt", "1"]), "Fix the tests. (iteration 1)\n");
    assert_eq!(project.read(&["prompt", "2"]), "Fix the tests. (iteration 2)\n");
}

#[test]
fn runs_are_found_from_a_folder_below_and_from_a_linked_worktree() {
    let project = Project::with_a_run();
    let below = project.root().join("src/deep");
    fs::create_dir_all(&below).unwrap();
    let id = run_id(START, 1);
    let from = |folder: &Path| answer(project.command(&["status"]).current_dir(folder).output().unwrap()).out;
    assert!(from(&below).contains(id.as_str()));
    assert!(project.read(&["-C", "src/deep", "status"]).contains(id.as_str()));
    let repo = git2::Repository::open(project.root()).unwrap();
    let author = git2::Signature::new("A", "a@example.org", &git2::Time::new(0, 0)).unwrap();
    let tree = repo.find_tree(repo.treebuilder(None).unwrap().write().unwrap()).unwrap();
    repo.commit(Some("HEAD"), &author, &author, "first", &tree, &[]).unwrap();
    let linked = project.folder.path().join("linked");
    repo.worktree("linked", &linked, None).unwrap();
    assert!(from(&linked).contains(id.as_str()));
}

#[test]
fn tried_01_two_runs_of_one_second_in_two_clones_have_different_names_and_can_be_copied_together() {
    let (one, other) = (Project::new(), Project::new());
    let clock: Arc<dyn Clock> = TestClock::at(START);
    let start = |project: &Project| -> RunId {
        let id = RunId::fresh(clock.as_ref()).unwrap();
        Journal::create(JournalOptions::new(project.runs().run_dir(&id), id.clone(), clock.clone())).unwrap();
        id
    };
    let (first, second) = (start(&one), start(&other));
    assert_ne!(first, second);
    fs::rename(other.runs().run_dir(&second), one.runs().run_dir(&second)).unwrap();
    assert_eq!(one.runs().list().unwrap().len(), 2);
    let all = one.read(&["report", "--all"]);
    assert!(all.contains("2 runs: 0 passed (0 %), 0 running, 2 unfinished"), "{all}");
}
