//! Every example runs and says what it promises.

use std::path::PathBuf;
use std::process::Command;

/// The folder that cargo builds examples into, beside this test's own.
fn folder() -> PathBuf {
    let this = std::env::current_exe().expect("this test's own path");
    this.parent().and_then(|deps| deps.parent()).expect("cargo's layout").join("examples")
}

fn run(name: &str) -> String {
    let program = folder().join(name);
    if !program.exists() {
        // `cargo test --test examples` alone builds none of them.
        let built = Command::new(env!("CARGO")).args(["build", "--quiet", "--example", name]).status();
        assert!(built.is_ok_and(|status| status.success()), "{name} is built");
    }
    let home = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(&program)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", home.path())
        .current_dir(home.path())
        .output()
        .expect("the example starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{name}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn embed_brings_an_agent_a_sensor_and_a_function() {
    let text = run("embed");
    assert!(text.contains("event: run_started\n") && text.contains("event: turn_ended\n"), "{text}");
    assert!(text.ends_with("the greeting is there, verified: true\n"), "{text}");
}

#[test]
fn policy_in_rust_needs_no_lua() {
    assert_eq!(run("policy_in_rust"), "complete after 2 iterations: 1 of 1 checks hold, verified: true\n");
}

#[test]
fn every_example_is_run_by_a_test() {
    let sources = std::fs::read_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples")).expect("examples");
    let mut names: Vec<String> = sources
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    assert_eq!(names, ["embed", "policy_in_rust"]);
}
