//! The house rules that can be checked: who may use whom, how long a file may be, how files may be called.

use std::fs;
use std::path::{Path, PathBuf};

/// Layer, the layers that it may use, and crates that it must never name.
const LAYERS: &[(&str, &[&str], &[&str])] = &[
    ("policy", &[], &["mlua", "git2", "clap", "nix", "tokio", "rustix", "tempfile"]),
    ("journal", &["policy"], &["mlua", "git2", "clap"]),
    ("mechanism", &["policy", "journal"], &["mlua", "clap"]),
    ("world", &["policy", "journal", "mechanism"], &["mlua", "clap"]),
    ("engine", &["policy", "journal", "mechanism", "world"], &["mlua", "clap", "git2"]),
    ("script", &["policy", "journal", "mechanism", "world", "engine"], &["clap", "git2"]),
    ("report", &["policy", "journal"], &["mlua", "clap", "git2", "tokio"]),
    ("host", &["policy", "journal", "mechanism", "world", "engine", "script"], &["clap", "git2"]),
];

/// Lines after which a file wants splitting by noun.
const MOST_LINES: usize = 500;

fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The code of a file without comments, and without its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source file is readable");
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Names of first segments after `crate::`, also in `use crate::{a::b, c}`.
fn layers_used(code: &str) -> Vec<String> {
    let mut used = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            let mut first = true;
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => first = true,
                    c if depth == 0 && first && (c.is_alphanumeric() || c == '_') => word.push(c),
                    c if depth == 0 && first && !c.is_whitespace() => {
                        used.push(std::mem::take(&mut word));
                        first = false;
                    }
                    _ => {}
                }
            }
            used.push(word);
        } else {
            used.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    used.retain(|name| !name.is_empty());
    used
}

/// Whether a crate is named, and not merely a path that ends like it.
fn names_crate(code: &str, name: &str) -> bool {
    code.contains(&format!("use {name};"))
        || code
            .match_indices(&format!("{name}::"))
            .any(|(at, _)| !code[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':'))
}

#[test]
fn every_layer_uses_only_the_layers_below_it() {
    let mut wrong = Vec::new();
    for (layer, may_use, never) in LAYERS {
        for path in files_below(&root().join("src").join(layer), "rs") {
            let code = code(&path);
            let shown = path.strip_prefix(root()).expect("below the root").display().to_string();
            for used in layers_used(&code) {
                let is_layer = LAYERS.iter().any(|(name, ..)| *name == used);
                if is_layer && used != *layer && !may_use.contains(&used.as_str()) {
                    wrong.push(format!("{shown} uses {used}"));
                }
            }
            for word in *never {
                if names_crate(&code, word) {
                    wrong.push(format!("{shown} names {word}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_program_uses_the_public_interface_alone() {
    for path in files_below(&root().join("src/bin"), "rs") {
        let code = code(&path);
        assert!(!code.contains("#[path"), "{} reaches into the library by path", path.display());
        assert!(!code.contains("use mlua"), "{} names mlua", path.display());
    }
    let main = fs::read_to_string(root().join("src/bin/lunation/main.rs")).expect("main.rs");
    assert!(main.lines().count() <= 20, "main.rs has {} lines", main.lines().count());
}

#[test]
fn the_library_is_silent_and_reads_no_ambient_environment() {
    let mut wrong = Vec::new();
    for path in files_below(&root().join("src"), "rs") {
        let is_test = path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs");
        if path.starts_with(root().join("src/bin")) || is_test {
            continue;
        }
        let code = code(&path);
        for word in ["println!(", "eprintln!(", "print!(", "env::var(", "env::vars", "home_dir("] {
            if code.contains(word) {
                wrong.push(format!("{} uses {word}", path.strip_prefix(root()).expect("below").display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn raw_system_calls_stay_in_one_module() {
    let allowing: Vec<String> = files_below(&root().join("src"), "rs")
        .into_iter()
        .filter(|path| code(path).contains("allow(unsafe_code)"))
        .map(|path| path.strip_prefix(root()).expect("below").display().to_string())
        .collect();
    assert_eq!(allowing, ["src/mechanism/process/sys.rs"]);
}

#[test]
fn no_file_is_far_too_long_or_called_after_nothing() {
    let mut wrong = Vec::new();
    let files = files_below(&root().join("src"), "rs").into_iter().chain(files_below(&root().join("lua"), "lua"));
    for path in files {
        let shown = path.strip_prefix(root()).expect("below the root").display().to_string();
        let lines = fs::read_to_string(&path).expect("a source file is readable").lines().count();
        // The annotations are one long generated table.
        if lines > MOST_LINES && !shown.starts_with("lua/types/") {
            wrong.push(format!("{shown} has {lines} lines"));
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if ["util", "utils", "helper", "helpers", "common", "misc", "imp"].contains(&stem) {
            wrong.push(format!("{shown} is named after nothing"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_opens_with_what_it_is() {
    let silent: Vec<String> = files_below(&root().join("src"), "rs")
        .into_iter()
        .filter(|path| !path.ends_with("tests.rs") && !path.to_string_lossy().ends_with("_tests.rs"))
        .filter(|path| !fs::read_to_string(path).expect("a source file is readable").starts_with("//!"))
        .map(|path| path.strip_prefix(root()).expect("below").display().to_string())
        .collect();
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

#[test]
fn the_reader_of_imports_sees_through_groups() {
    let code =
        "use crate::policy::{A, B};\nuse crate::{journal::X, world};\nlet a = crate::engine::f(); my_crate::no();";
    assert_eq!(layers_used(code), ["policy", "journal", "world", "engine"]);
}
