//! A project of fifty files with a suite of its own, in Rust, Python and JavaScript: counts and names are what the
//! runners say.

use crate::scene::Scene;
use crate::{last_reading, loop_over};

const BAD: [u32; 3] = [7, 23, 41];

fn names(scene: &Scene) -> Vec<String> {
    let reading = last_reading(scene);
    assert_eq!((reading["failing"].as_u64(), reading["total"].as_u64()), (Some(3), Some(50)), "{reading}");
    let mut names: Vec<String> = reading["items"]
        .as_array()
        .expect("names")
        .iter()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    names.sort();
    names
}

fn run(scene: Scene, sensor: &str) -> Scene {
    let scene =
        scene.commit("fifty files").script(&loop_over(sensor, "budget = { iterations = 1 }")).agent("echo $N > work");
    scene.run_loop(&[]).expect_code(2);
    scene
}

fn has(program: &str) -> bool {
    std::process::Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[test]
fn a_project_in_rust() {
    let mut scene =
        Scene::new().file("Cargo.toml", "[package]\nname = \"fifty\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    let modules: String = (0..50).map(|n| format!("mod m{n};\n")).collect();
    scene = scene.file("src/lib.rs", &modules).file(".gitignore", "target\nCargo.lock\n");
    for n in 0..50 {
        let right = if BAD.contains(&n) { n + 1 } else { n };
        scene = scene.file(
            &format!("src/m{n}.rs"),
            format!("pub fn n() -> u32 {{ {n} }}\n#[test]\nfn is_right() {{ assert_eq!(n(), {right}); }}\n"),
        );
    }
    // Where the toolchain lives is no business of the scene's home.
    let tools = |name: &str, folder: &str| {
        std::env::var(name).unwrap_or_else(|_| format!("{}/{folder}", std::env::var("HOME").unwrap_or_default()))
    };
    let scene =
        scene.var("CARGO_HOME", &tools("CARGO_HOME", ".cargo")).var("RUSTUP_HOME", &tools("RUSTUP_HOME", ".rustup"));
    let path = format!("{}:{}", scene.home().join("../bin").display(), std::env::var("PATH").unwrap_or_default());
    let scene = scene.var("PATH", &path);
    let scene = run(scene, "{ \"cargo test --offline\", timeout = \"5m\" }");
    assert_eq!(names(&scene), ["m23::is_right", "m41::is_right", "m7::is_right"]);
    let feedback = last_reading(&scene)["feedback"].as_str().unwrap_or_default().to_owned();
    assert!(feedback.contains("3 of 50 tests failed:\n"), "{feedback}");
}

#[test]
fn a_project_in_python() {
    let mut scene = Scene::new();
    for n in 0..50 {
        let right = if BAD.contains(&n) { n + 1 } else { n };
        scene = scene.file(
            &format!("test_m{n}.py"),
            format!(
                "import unittest\nclass M(unittest.TestCase):\n    def test_n(self): self.assertEqual({n}, {right})\n"
            ),
        );
    }
    // The runner of the standard library, told in TAP by ten lines, so that nothing has to be installed.
    let tap = "import sys, unittest\nclass R(unittest.TestResult):\n    n = 0\n    def say(self, ok, t):\n        self.n += 1\n        \
               print(('ok' if ok else 'not ok'), self.n, '-', t.id())\n    def addSuccess(self, t): self.say(True, t)\n    \
               def addFailure(self, t, e): super().addFailure(t, e); self.say(False, t)\n\
               r = R()\nunittest.defaultTestLoader.discover('.').run(r)\nprint(f'1..{r.n}')\nsys.exit(not r.wasSuccessful())\n";
    let scene = run(scene.file("run.py", tap), "{ \"python3 -B run.py\", id = \"python\" }");
    assert_eq!(names(&scene), ["test_m23.M.test_n", "test_m41.M.test_n", "test_m7.M.test_n"]);
}

#[test]
#[allow(clippy::print_stderr, reason = "a test that is left out says so")]
fn a_project_in_javascript() {
    if !has("node") {
        eprintln!("left out: there is no node on the PATH");
        return;
    }
    let mut scene = Scene::new();
    for n in 0..50 {
        let right = if BAD.contains(&n) { n + 1 } else { n };
        scene = scene.file(
            &format!("test/m{n}.test.js"),
            format!("require('node:test')('m{n} is right', () => require('node:assert').equal({n}, {right}));\n"),
        );
    }
    let scene = run(scene, "{ \"node --test test/*.test.js\", id = \"js\", parse = ln.parse.tap }");
    assert_eq!(names(&scene), ["m23 is right", "m41 is right", "m7 is right"]);
}
