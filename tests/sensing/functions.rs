//! Sensors that are functions of the script.

use crate::scene::Scene;
use crate::{last_reading, loop_over};

#[test]
fn a_check_says_whether_it_holds_and_why_not() {
    let scene = Scene::new()
        .script(&loop_over(
            "{ id = \"size\", check = function(ws) local n = tonumber(ln.sh(\"cat work\").stdout) or 0 \
               if n >= 2 then return true end return false, ws.path .. \" has only \" .. n end }",
            "budget = { iterations = 5 }",
        ))
        .agent("echo $N > work");
    scene.run_loop(&[]).expect_code(0);
    assert_eq!(scene.turns(), 2);
    assert!(scene.prompt(2).contains(" has only 1"), "{}", scene.prompt(2));
    assert_eq!(last_reading(&scene)["state"], "passed");
}

#[test]
fn a_check_that_answers_nothing_or_fails_is_broken() {
    for (body, says) in [("", "a check returns true or false"), ("error 'down'", "down"), ("return 1", "got 1")] {
        let scene = Scene::new()
            .script(&loop_over(&format!("{{ check = function() {body} end }}"), "budget = { iterations = 2 }"))
            .agent("echo $N > work");
        scene.run_loop(&[]);
        assert_eq!(scene.end()["reason"], "sensor_broken", "{body}");
        let reading = last_reading(&scene);
        assert_eq!(reading["id"], "check at loop.lua:5", "{reading}");
        assert!(reading["feedback"].as_str().is_some_and(|text| text.contains(says)), "{body}: {reading}");
    }
}

#[test]
fn checks_of_loops_by_hand_are_asked_too() {
    let scene = Scene::new()
        .script(
            "local ln = require \"lunation\"\nlocal checks = ln.sensors { { id = \"a\", check = function() return true end }, \"true\" }\n\
             return function(run)\n  for it in run:iterations { max = 1 } do\n    it:turn(ln.agent { \"worker\" }, \"Work.\")\n    \
             if it:sense(checks).ok then return it:done \"good\" end\n  end\nend\n",
        )
        .agent("echo $N > work");
    scene.run_loop(&[]).expect_code(0);
}
