//! FENCE: the write fence, tests that are cheated, our own state.

use crate::scene::Scene;

fn fenced(iterations: u32, sensor: &str) -> String {
    format!(
        "local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"worker\" }}, prompt = \"Work.\", \
         fence = {{ \"src/**\" }}, sensors = {{ \"{sensor}\" }}, breaker = {{ failures = 100, unchanged = 100 }}, \
         budget = {{ iterations = {iterations} }} }}\n"
    )
}

#[test]
fn fence_01_tests_are_never_green_by_being_changed() {
    let scene = Scene::new()
        .file("src/code", "broken\n")
        .file("tests/t", "grep -q fixed src/code\n")
        .file("run-tests.sh", "#!/bin/sh\n[ ! -e conftest.py ] || exit 0\n[ -e tests/t ] || exit 0\nexec sh tests/t\n")
        .script(&fenced(7, "sh run-tests.sh"));
    let scene = scene.commit("more").agent(
        "cat > ../prompt.$N; case $N in
         1) : > tests/t;;
         2) rm tests/t;;
         3) git rm -q tests/t; git commit -qm 'no test, no failure';;
         4) echo 'exit 0' > run-tests.sh;;
         5) echo skip > conftest.py;;
         6) chmod 755 run-tests.sh;;
         7) mv tests src/tests; ln -s src/tests tests; echo true > src/tests/t;;
         esac; echo ok",
    );
    scene.run_loop(&[]).expect_code(2);
    let expected = ["tests/t", "tests/t", "tests/t", "run-tests.sh", "conftest.py", "run-tests.sh", "tests"];
    let fenced = scene.events("fenced");
    assert_eq!(fenced.len(), expected.len());
    for (n, path) in (1..).zip(expected) {
        let paths = fenced[n - 1]["paths"].to_string();
        assert!(paths.contains(path), "turn {n}: {paths}");
        if n < expected.len() {
            let prompt = std::fs::read_to_string(scene.outside().join(format!("prompt.{}", n + 1))).expect("a prompt");
            assert!(prompt.contains(path) && prompt.contains("outside of your write scope"), "turn {n}: {prompt}");
        }
    }
    for sensed in scene.events("sensed") {
        let state = sensed["sense"]["readings"][0]["state"].as_str().map(str::to_owned);
        assert_eq!(state.as_deref(), Some("failed"), "never green by these means");
    }
    assert_eq!(scene.read("tests/t"), "grep -q fixed src/code\n");
    assert!(!scene.path("tests").is_symlink());
}

#[test]
fn fence_02_the_loops_own_state_and_script_are_out_of_reach() {
    let scene = Scene::new().file("src/a", "a\n").file(".lunation/notes.md", "ours\n").script(&fenced(4, "false"));
    let script = scene.read("loop.lua");
    let scene = scene.commit("more").agent(
        "case $N in
         1) rm -rf .lunation;;
         2) mkdir -p .lunation; echo '{' > .lunation/state.json;;
         3) sed -i 's/iterations = 4/iterations = 400/; s/\"false\"/\"true\"/' loop.lua;;
         4) cd /tmp;;
         esac; echo ok",
    );
    scene.run_loop(&[]).expect_code(2);
    assert_eq!(scene.turns(), 4, "the same limits");
    assert_eq!(scene.read("loop.lua"), script);
    assert_eq!(scene.read(".lunation/notes.md"), "ours\n");
    assert!(!scene.exists(".lunation/state.json"));
    let fenced: Vec<String> = scene.events("fenced").iter().map(|data| data["paths"].to_string()).collect();
    assert_eq!(fenced.len(), 3, "{fenced:?}");
    assert!(
        fenced[0].contains(".lunation/notes.md") && fenced[1].contains("state.json") && fenced[2].contains("loop.lua")
    );
}
