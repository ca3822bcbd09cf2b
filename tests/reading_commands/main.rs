//! The commands that read records, through the program itself, on runs that were recorded through the library.

mod contents;
mod finding;
mod output;
#[path = "../recorded_run/mod.rs"]
mod recorded_run;
mod standing;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use lunation::journal::RunsFolder;
use lunation::policy::Reason;
use recorded_run::{Step, Story, TestClock, run_id};

const START: &str = "2026-11-30T20:10:26Z";

/// A repository with a home of its own.
struct Project {
    folder: tempfile::TempDir,
}

/// What the program answered.
struct Answer {
    code: i32,
    out: String,
    err: String,
}

impl Project {
    fn new() -> Project {
        let folder = tempfile::tempdir().unwrap();
        git2::Repository::init(folder.path().join("project")).unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        Project { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn runs(&self) -> RunsFolder {
        RunsFolder::new(&self.root().join(".git"))
    }

    fn story(&self, start: &str, tail: u8) -> Story {
        let id = run_id(start, tail);
        Story::begin(&self.runs().run_dir(&id), TestClock::at(start), id)
    }

    /// A run that rolled back, was fenced, stalled, climbed and passed.
    fn with_a_run() -> Project {
        let project = Project::new();
        let mut story = project.story(START, 1);
        story.iterate(Step::rollback(4, "broke test_3"));
        story.iterate(Step { fenced: &["tests/a.rs"], guarded: &["HEAD"], ..Step::keep(1) });
        story.iterate(Step::stall()).climb(1, 2).iterate(Step { rung: 2, ..Step::keep(0) });
        story.end(Reason::Completed, true);
        project
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lunation"));
        command.args(args).current_dir(self.root()).env_clear().env("HOME", self.folder.path().join("home"));
        command.env("LUNATION_HOME", self.folder.path().join("home/state")).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Answer {
        answer(self.command(args).output().unwrap())
    }

    /// Standard output of a command that must succeed in silence.
    fn read(&self, args: &[&str]) -> String {
        let answer = self.run(args);
        assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{args:?}: {}", answer.out);
        answer.out
    }

    fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.read(args)).unwrap()
    }

    fn journal_file(&self) -> PathBuf {
        self.runs().latest().unwrap().dir.join("journal.jsonl")
    }
}

fn answer(output: Output) -> Answer {
    Answer {
        code: output.status.code().expect("an exit code, not a signal"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
