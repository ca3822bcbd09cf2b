//! Every block of README.md is true: scripts load, commands print what is shown, tables are whole. Its Rust is a
//! documentation test.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use regex::Regex;

const README: &str = include_str!("../../README.md");

/// A block of code: its language and its text.
fn blocks() -> Vec<(String, String)> {
    let fence = Regex::new(r"(?ms)^```(\S+)\n(.*?)^```$").unwrap();
    fence.captures_iter(README).map(|block| (block[1].to_owned(), block[2].to_owned())).collect()
}

fn blocks_in(language: &str) -> Vec<String> {
    blocks().into_iter().filter(|(found, _)| found == language).map(|(_, text)| text).collect()
}

/// The project of the page: a test that fails, and the presets' agents on the PATH.
struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new() -> Project {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        for made in ["bin", "home", "calc/src"] {
            fs::create_dir_all(folder.path().join(made)).unwrap();
        }
        let path = std::env::var_os("PATH").unwrap();
        let mut git = std::env::split_paths(&path).map(|dir| dir.join("git"));
        symlink(git.find(|git| git.is_file()).expect("git is installed"), bin.join("git")).unwrap();
        symlink(env!("CARGO_BIN_EXE_lunation"), bin.join("lunation")).unwrap();
        fs::write(bin.join("claude"), include_str!("claude.sh")).unwrap();
        fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
        let project = Project { folder };
        fs::write(project.root().join("src/calc.sh"), "add() { echo $(($1 - $2)); }\n").unwrap();
        let test = ". ./src/calc.sh\n[ \"$(add 2 3)\" = 5 ] || { echo \"add 2 3 is wrong\"; exit 1; }\n";
        fs::write(project.root().join("test.sh"), test).unwrap();
        for line in [
            "git init --quiet --initial-branch=main",
            "git config user.name You",
            "git config user.email you@localhost",
            "git add --all",
            "git commit --quiet --message start",
        ] {
            assert!(project.sh(line).status.success(), "{line}");
        }
        project
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("calc")
    }

    fn sh(&self, line: &str) -> Output {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).current_dir(self.root()).env_clear().stdin(Stdio::null());
        command.env("PATH", format!("{}:/usr/bin:/bin", self.folder.path().join("bin").display()));
        command.env("HOME", self.folder.path().join("home")).env("LANG", "C.UTF-8").output().unwrap()
    }
}

/// What differs from run to run, made equal.
fn normal(text: &str, root: &str) -> String {
    let mut text = text.replace(root, "/home/you/calc");
    for (pattern, with) in [
        (r"(?m)\s+◀.*$", ""),
        (r"\d{8}-\d{6}-[0-9a-z]{10}", "<run>"),
        (r"--run [0-9a-z]{10}", "--run <run>"),
        (r"\b[0-9a-f]{64}\b", "<digest>"),
        (r"from [0-9a-f]{12} to [0-9a-f]{12}", "from <id> to <id>"),
        (r"\b(\d+m)?\d+(\.\d+)?(ms|s)\b", "<time>"),
        // Columns are as wide as their times.
        (r" {2,}", "  "),
        (r"containment: \w+", "containment: <tier>"),
        (r"(?m) +$", ""),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text
}

#[test]
fn every_script_loads() {
    let scripts = blocks_in("lua");
    assert!(scripts.len() >= 3, "the page has lost its scripts");
    for script in scripts {
        let project = Project::new();
        fs::write(project.root().join("loop.lua"), &script).unwrap();
        fs::write(project.root().join("PROMPT.md"), "Make the test pass.\n").unwrap();
        let checked = project.sh("lunation check");
        let told = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(checked.status.success(), "{told}\n{script}");
        assert!(!String::from_utf8_lossy(&checked.stdout).contains("warning"), "{script}");
    }
}

#[test]
fn the_loop_of_ten_lines_has_ten_lines() {
    assert!(blocks_in("lua")[0].lines().count() <= 10);
}

#[test]
fn every_command_prints_what_is_shown() {
    let project = Project::new();
    let root = project.root().display().to_string();
    let shown = blocks_in("console").concat();
    let mut commands = Vec::new();
    for line in shown.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push((command, String::new())),
            None => {
                let (_, output) = commands.last_mut().expect("a console block begins with a command");
                output.push_str(line);
                output.push('\n');
            }
        }
    }
    assert!(commands.len() >= 8, "the page has lost its run");
    for (command, expected) in commands {
        let answer = project.sh(command);
        let printed = String::from_utf8(answer.stdout).unwrap();
        let errors = String::from_utf8_lossy(&answer.stderr).into_owned();
        assert!(answer.status.success(), "{command}: {errors}\n{printed}");
        assert_eq!(normal(&printed, &root).trim_end(), normal(&expected, &root).trim_end(), "$ {command}\n{errors}");
    }
}

#[test]
fn the_two_commands_are_the_two_commands() {
    // Both are run for real by .ci/run; the demonstration is run by tests/program too.
    assert_eq!(blocks_in("sh"), ["cargo run --release -- demo\ncargo test\n"]);
}

#[test]
fn the_table_has_every_command_and_no_other() {
    let help = Project::new().sh("lunation --help").stdout;
    let help = String::from_utf8(help).unwrap();
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let mut there: Vec<&str> =
        Regex::new(r"(?m)^  ([a-z]+)").unwrap().captures_iter(commands).map(|c| c.extract::<1>().1[0]).collect();
    let row = Regex::new(r"(?m)^\| `lunation ([a-z]+)` \|").unwrap();
    let mut told: Vec<&str> = row.captures_iter(README).map(|c| c.extract::<1>().1[0]).collect();
    there.sort_unstable();
    told.sort_unstable();
    assert_eq!(told, there);
}

#[test]
fn every_block_has_a_test() {
    for (language, text) in blocks() {
        assert!(["lua", "console", "sh", "rust,no_run"].contains(&language.as_str()), "nobody runs this: {text}");
    }
}
