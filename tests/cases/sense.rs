//! SENSE: sensors and judges.

use crate::scene::Scene;

fn script(sensors: &str, more: &str) -> String {
    format!(
        "local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"worker\" }}, prompt = \"Work.\", \
         sensors = {{ {sensors} }}, {more} budget = {{ iterations = 2 }}, breaker = {{ unchanged = 9 }} }}\n"
    )
}

#[test]
fn sense_01_nothing_ran_is_no_proof() {
    let filtered = "printf 'running 0 tests\\\\n\\\\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 57 filtered out; finished in 0.00s\\\\n'";
    for sensor in [
        format!("\"{filtered}\""),
        format!("{{ \"{filtered}\", parse = ln.parse.libtest }}"),
        "{ \"true\", min_total = 1 }".to_owned(),
        "{ \"true\", must_match = \"[1-9][0-9]* passed\" }".to_owned(),
    ] {
        let scene = Scene::new().script(&script(&sensor, "")).agent("echo $N > work");
        scene.run_loop(&[]).expect_code(2);
        let end = scene.end();
        assert_eq!(
            (end["reason"].as_str(), end["verified"].as_bool()),
            (Some("max_iterations"), Some(false)),
            "{sensor}"
        );
        let readings = scene.events("sensed")[0]["sense"]["readings"].clone();
        assert_eq!(readings[0]["state"], "failed", "{sensor}: {readings}");
    }
    // A blank command is no check.
    let scene = Scene::new().script(&script("\" \"", "")).agent("true");
    scene.run_loop(&[]).expect_code(4);
    assert_eq!(scene.turns(), 0);
    // Without sensors, "done" is a word.
    let scene = Scene::new()
        .script(&script("", "complete = ln.complete.sentinel \"DONE\","))
        .agent("echo $N > work; echo DONE");
    let ran = scene.run_loop(&[]).expect_code(1);
    assert_eq!(scene.end()["verified"], false);
    assert!(!ran.all().contains("completed and verified"), "{}", ran.all());
}

#[test]
fn sense_02_a_cut_keeps_what_matters_and_says_itself_first() {
    let check = "yes 'noise' | head -n 30000; echo 'assertion failed: left 1, right 2'; i=0; \
                 while [ $i -lt 50 ]; do printf '\\rbar %s%%' $i; i=$((i+1)); done; echo; \
                 head -c 400000 /dev/zero | tr '\\0' x; echo; yes 'noise' | head -n 270000; echo '3 failed, 57 passed'; exit 1\n";
    let scene = Scene::new()
        .file("check", check)
        .commit("a loud check")
        .script(&script("{ \"sh check\", id = \"loud\", keep_lines = \"^assertion\" }", ""))
        .agent("echo $N > work");
    scene.run_loop(&[]).expect_code(2);
    let reading = scene.events("sensed")[0]["sense"]["readings"][0].clone();
    let feedback = reading["feedback"].as_str().expect("feedback").to_owned();
    assert!(feedback.len() <= 8192, "{}", feedback.len());
    let first = feedback.lines().next().unwrap_or_default();
    assert!(first.starts_with("exit code 1; 2200") && first.contains("cut to 8192; whole output: "), "{first}");
    assert_eq!(feedback.lines().nth(1), Some("assertion failed: left 1, right 2"));
    assert!(feedback.contains("\nnoise\n") && feedback.ends_with("3 failed, 57 passed\n"), "{feedback}");
    assert!(!feedback.contains('\r') && !feedback.contains('\u{fffd}'));
    assert!(scene.prompt(2).contains("assertion failed: left 1, right 2"));
}

#[test]
fn sense_04_broken_is_not_red() {
    for (sensor, says) in [
        ("{ \"no-such-program-at-all\" }", "exit code 127"),
        ("{ \"exit 126\" }", "exit code 126"),
        ("{ \"kill -KILL $$\" }", "signal 9"),
        ("{ \"sleep 60\", timeout = 1, timeout_is = \"broken\" }", "timed out after 1.0s"),
        (
            "{ \"echo 'dial tcp 127.0.0.1:5432: connection refused'; exit 1\", broken_if = \"connection refused\" }",
            "connection refused",
        ),
        ("ln.judge { agent = ln.agent { \"true\" }, rubric = \"RUBRIC.md\" }", "the judge gave no verdict"),
    ] {
        let scene = Scene::new()
            .file("RUBRIC.md", "Good.\n")
            .commit("a rubric")
            .script(&script(sensor, ""))
            .agent("echo $N > work");
        scene.run_loop(&[]).expect_code(1);
        let end = scene.end();
        assert_eq!(end["reason"], "sensor_broken", "{sensor}: {end}");
        assert!(end.to_string().contains(says), "{sensor}: {end}");
        assert!(scene.decisions().is_empty(), "nothing was kept or rolled back because of it: {sensor}");
    }
    // A check that cannot reach what it needs, in the middle of a run: not told as something to fix.
    let scene = Scene::new()
        .script(&script(
            "{ \"test -e up && { echo real failure; exit 1; }; echo connection refused; exit 1\", id = \"db\", broken_if = { \"connection refused\" } }",
            "",
        ))
        .file("up", "")
        .commit("the database is up")
        .agent("[ $N = 1 ] && rm up; echo $N > work");
    scene.run_loop(&[]).expect_code(1);
    assert_eq!((scene.end()["reason"].as_str(), scene.turns()), (Some("sensor_broken"), 1));
    let reading = scene.events("sensed")[0]["sense"]["readings"][0].clone();
    assert_eq!((reading["state"].as_str(), &reading["failing"]), (Some("broken"), &serde_json::Value::Null));
}
