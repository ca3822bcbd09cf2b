//! Command sensors: order, scratch, hints, floors, scores, what is kept.

use crate::scene::Scene;
use crate::{last_reading, last_readings, loop_over};

const ONCE: &str = "budget = { iterations = 1 }";

fn read_once(sensors: &str) -> Scene {
    let scene = Scene::new().script(&loop_over(sensors, ONCE)).agent("echo $N > work");
    scene.run_loop(&[]);
    scene
}

#[test]
fn sensors_are_read_in_their_order_and_told_in_that_of_the_script() {
    let scene = read_once(
        "{ \"echo e2e >> $HOME/../order; false\", id = \"e2e\", after = \"build\" }, \
         { \"echo build >> $HOME/../order; false\", id = \"build\" }",
    );
    let order = std::fs::read_to_string(scene.home().join("../order")).expect("they were read");
    let pass: Vec<&str> = order.lines().collect();
    assert_eq!(pass[..2], ["build", "e2e"], "{order}");
    let ids: Vec<String> = last_readings(&scene).iter().map(|r| r["id"].as_str().unwrap_or_default().into()).collect();
    assert_eq!(ids, ["e2e", "build"]);
}

#[test]
fn what_a_scratch_sensor_writes_is_gone_before_the_next_one_and_is_no_remark() {
    let scene = read_once(
        "{ \"touch litter\", id = \"dirty\", scratch = true }, { \"test ! -e litter\", id = \"clean\", after = \"dirty\" }",
    );
    assert_eq!(scene.end()["reason"], "completed", "{}", scene.end());
    assert!(last_readings(&scene).iter().all(|r| r["notes"].as_array().is_some_and(Vec::is_empty)));
    assert!(!scene.exists("litter"));
}

#[test]
fn a_hint_goes_with_a_failure_into_the_next_prompt() {
    let scene = Scene::new()
        .script(&loop_over(
            "{ \"echo bad format; exit 1\", id = \"fmt\", hint = \"run cargo fmt\" }, \
             { \"exit 3\", id = \"x\", hint = function(r) return r.id .. \" left with \" .. r.exit end }",
            "budget = { iterations = 2 }, breaker = { unchanged = 9 }",
        ))
        .agent("echo $N > work");
    scene.run_loop(&[]);
    let prompt = scene.prompt(2);
    assert!(prompt.contains("exit code 1\nhint: run cargo fmt\nbad format\n"), "{prompt}");
    assert!(prompt.contains("exit code 3\nhint: x left with 3\n"), "{prompt}");
}

#[test]
fn a_floor_makes_nothing_ran_red() {
    for (sensor, summary) in [
        ("{ \"true\", min_total = 1 }", "exit code 0, but nobody counted where at least 1 must"),
        ("{ \"echo 1..2; echo ok 1; echo ok 2\", min_total = 3 }", "exit code 0, but 2 ran where at least 3 must"),
        ("{ \"echo hello\", must_match = \"all good\" }", "exit code 0, but no line matches `all good`"),
        ("{ \"echo 1..0\", id = \"t\" }", "exit code 0, but no test ran"),
        ("{ \"echo 1..1; echo not ok 1 - a; exit 0\" }", "exit code 0, but 1 of 1 test failed"),
        ("{ \"true\", parse = \"tap\" }", "exit code 0, but it reported nothing, so nothing is known to have run"),
        ("{ \"true\", report = \"r/*.xml\" }", "exit code 0; it wrote no report: nothing new matches r/*.xml"),
    ] {
        let scene = read_once(sensor);
        let reading = last_reading(&scene);
        assert_eq!(reading["summary"], summary, "{sensor}: {reading}");
        assert_ne!(scene.end()["verified"], true, "{sensor}");
    }
    let scene =
        read_once("{ \"echo 1..2; echo ok 1; echo ok 2; echo all good\", min_total = 2, must_match = { \"good$\" } }");
    assert_eq!(scene.end()["reason"], "completed");
    assert_eq!(last_reading(&scene)["summary"], "passed: 2 tests passed");
}

#[test]
fn scores_are_read_and_held_against_a_threshold() {
    for (sensor, state, score, summary) in [
        ("{ \"echo SCORE: 3; echo SCORE: 7.5\" }", "passed", Some(7.5), "passed"),
        ("{ \"echo SCORE: 7\", threshold = 8 }", "failed", Some(7.0), "exit code 0, but its score is 7, below 8"),
        ("{ \"echo SCORE: 8\", threshold = 8 }", "passed", Some(8.0), "passed"),
        (
            "{ \"echo no\", threshold = 8 }",
            "broken",
            None,
            "exit code 0; it printed no line `SCORE: n`, so there is no verdict: no",
        ),
        ("{ \"echo 'SCORE: 5 of 9'; exit 1\" }", "failed", None, "exit code 1: SCORE: 5 of 9"),
    ] {
        let reading = last_reading(&read_once(sensor));
        assert_eq!((reading["state"].as_str(), reading["score"].as_f64()), (Some(state), score), "{sensor}: {reading}");
        assert_eq!(reading["summary"], summary, "{sensor}");
    }
}

#[test]
fn a_suite_that_cannot_run_any_more_is_no_progress() {
    // Five of six fail; then the build breaks, which would look like one failure only.
    let check = "#!/bin/sh\nif [ -e broken ]; then echo 'error: no'; exit 1; fi\n\
                 echo 1..6; echo ok 1; for n in 2 3 4 5 6; do echo \"not ok $n - t$n\"; done; exit 1\n";
    let scene = Scene::new()
        .file("check", check)
        .script(&loop_over("{ \"sh check\", id = \"t\" }", "budget = { iterations = 1 }"))
        .commit("five of six fail")
        .agent("touch broken");
    scene.run_loop(&[]).expect_code(2);
    let reading = last_reading(&scene);
    assert_eq!((reading["failing"].as_u64(), reading["total"].as_u64()), (Some(6), None), "{reading}");
    assert!(reading["notes"].to_string().contains("it ran 6 items before and none now"), "{reading}");
    assert_eq!(scene.decisions(), ["rollback"]);
}

#[test]
fn a_suite_that_is_silenced_is_not_green() {
    let scene = Scene::new()
        .file("check", "echo 1..2; echo ok 1; echo not ok 2 - t2; exit 1\n")
        .script(&loop_over("{ \"sh check\", id = \"t\" }", "budget = { iterations = 1 }"))
        .commit("one of two fails")
        .agent("echo true > check");
    scene.run_loop(&[]).expect_code(2);
    let reading = last_reading(&scene);
    assert_eq!(reading["summary"], "exit code 0, but it reported nothing, and it ran 2 items before", "{reading}");
}

#[test]
fn lines_that_are_picked_survive_every_cut() {
    let noise = "yes 'noise that says nothing' | head -n 20000";
    let scene = read_once(&format!(
        "{{ \"{noise}; echo E first reason; {noise}; echo E second reason; {noise}; exit 1\", id = \"loud\", keep_lines = \"^E \" }}"
    ));
    let feedback = last_reading(&scene)["feedback"].as_str().unwrap_or_default().to_owned();
    assert!(feedback.len() <= 8192, "{}", feedback.len());
    let mut lines = feedback.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("exit code 1; ")), "{feedback}");
    assert_eq!((lines.next(), lines.next()), (Some("E first reason"), Some("E second reason")), "{feedback}");
}

#[test]
fn a_parser_of_the_script_counts() {
    let scene = read_once(
        "{ \"echo 3 bad of 9; echo quality 0.5; exit 1\", id = \"q\", parse = function(out) \
           return { failing = tonumber(out.stdout:match(\"(%d+) bad\")), total = 9, score = 0.5, summary = \"three bad\", items = { \"a\", \"b\", \"c\" } } \
         end }",
    );
    let reading = last_reading(&scene);
    assert_eq!(
        (reading["failing"].as_u64(), reading["total"].as_u64(), reading["score"].as_f64()),
        (Some(3), Some(9), Some(0.5)),
        "{reading}"
    );
    assert_eq!((reading["summary"].as_str(), reading["items"][2].as_str()), (Some("three bad"), Some("c")));
    for (body, says) in [
        ("return 3", "a parser returns {"),
        ("error('no luck')", "no luck"),
        ("return ln.sh('true')", "ln.sh is an effect"),
        ("return { failing = 3, total = 1 }", "3 of 1 fail"),
        ("return { failng = 3 }", "failng"),
    ] {
        let scene = read_once(&format!("{{ \"exit 1\", id = \"q\", parse = function(out) {body} end }}"));
        let reading = last_reading(&scene);
        assert_eq!(
            (reading["state"].as_str(), scene.end()["reason"].as_str()),
            (Some("broken"), Some("sensor_broken"))
        );
        assert!(reading["feedback"].as_str().is_some_and(|text| text.contains(says)), "{body}: {reading}");
    }
}

#[test]
fn parsers_of_the_library_can_be_called() {
    let scene = Scene::new()
        .script(
            "local ln = require \"lunation\"\nreturn function(run)\n  local out = ln.sh \"echo 1..2; echo ok 1 - a; echo not ok 2 - b\"\n  \
             local r = ln.parse.tap(out)\n  ln.log.info(\"%d of %d: %s (%s)\", r.failing, r.total, r.items[1], r.summary)\n  \
             ln.log.info(tostring(ln.parse.pytest(\"nothing\").failing))\n  return run:stop \"done\"\nend\n",
        )
        .agent("true");
    scene.run_loop(&[]);
    let logged: Vec<String> =
        scene.events("logged").iter().map(|e| e["text"].as_str().unwrap_or_default().into()).collect();
    assert_eq!(logged, ["1 of 2: b (1 of 2 tests failed)", "nil"]);
}

#[test]
fn a_sensor_without_network_is_refused_where_it_cannot_be_had() {
    let scene = Scene::new().script(&loop_over("{ \"true\", network = false }", ONCE)).agent("echo $N > work");
    let ran = scene.run_loop(&[]);
    if ran.code == 4 {
        assert!(ran.all().contains("`network = false`"), "{}", ran.all());
        assert_eq!(scene.turns(), 0, "nothing was launched");
    } else {
        ran.expect_code(0);
    }
}
