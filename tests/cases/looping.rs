//! LOOP: loop control, breakers, progress.

use std::os::unix::fs::PermissionsExt as _;

use crate::scene::{Scene, eventually};

fn counting_loop(extra: &str) -> String {
    format!(
        "local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"worker\", {extra} }}, prompt = \"Work.\", \
         sensors = {{ ln.sensor {{ \"./check\", id = \"check\" }} }}, budget = {{ iterations = 10 }}, breaker = {{ unchanged = 2 }} }}\n"
    )
}

#[test]
fn loop_01_an_agent_that_commits_its_work_makes_progress() {
    let scene =
        Scene::new().file("check", "#!/bin/sh\n[ \"$(wc -l < f)\" -ge 4 ]\n").file("f", "").script(&counting_loop(""));
    scene.git(&["update-index", "--add", "--chmod=+x", "check"]);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(scene.path("check"), mode).expect("a mode");
    let scene = scene.commit("work to do").agent("echo $N >> f; git add f; git commit -qm x; echo did $N");
    let head = scene.git(&["rev-parse", "HEAD"]);
    scene.run_loop(&[]).expect_code(0);
    assert_eq!(scene.turns(), 4);
    assert_eq!(scene.git(&["rev-parse", "HEAD"]), head, "the branch is where it was");
    assert_eq!(scene.read("f"), "1\n2\n3\n4\n");
    assert_eq!(scene.events("guarded").len(), 4, "each commit was undone and told");
    assert_eq!(scene.status(), " M f\n");
}

#[test]
fn loop_03_what_a_killed_run_left_completes_no_other_run() {
    let lua = "local ln = require \"lunation\"\nreturn ln.loop { agent = ln.agent { \"worker\" }, prompt = \"Work.\", \
               sensors = { ln.sensor { \"[ ! -e slow ] || sleep 30; false\", id = \"s\" } }, \
               complete = ln.complete.sentinel \"DONE\", budget = { iterations = 1 } }\n";
    let scene = Scene::new().script(lua).agent("echo $N > work; [ $N = 1 ] && touch slow; echo DONE");
    let running = scene.start(&["run", "--trust"]);
    eventually("the turn is over", || !scene.events("turn_ended").is_empty());
    running.signal("KILL");
    assert_eq!(running.wait().code, 137);
    scene.run_loop(&[]).expect_code(2);
    assert_eq!(scene.turns(), 2, "the new run did its own iteration");
    assert!(!scene.exists("slow"), "what the killed iteration wrote was rolled back");
}

#[test]
fn loop_05_an_agent_that_ends_at_once_is_stopped_soon() {
    let lua = "local ln = require \"lunation\"\nreturn ln.loop { agent = ln.agent { \"worker\" }, prompt = \"Work.\", \
               budget = { iterations = 1000 } }\n";
    for (shell, mode) in [("sleep 0.1; exit 0", "agent-silent"), ("echo no such model >&2; exit 1", "agent-error")] {
        let scene = Scene::new().script(lua).agent(shell);
        scene.run_loop(&[]).expect_code(1);
        let end = scene.end();
        assert_eq!((end["reason"].as_str(), end["breaker"].as_str()), (Some("breaker"), Some("instant")), "{end}");
        assert_eq!((scene.turns(), end["iterations"].as_u64()), (3, Some(3)), "every launch counts");
        assert_eq!(scene.events("backed_off").len(), 2, "it backs off between tries");
        assert_eq!(scene.events("breaker_opened").len(), 1);
        let report = scene.run(&["report", "--json"]).expect_code(0).stdout;
        assert!(report.contains(mode), "{report}");
    }
}

#[test]
fn loop_06_a_timed_out_turn_is_scored_like_any_other() {
    let lua = "local ln = require \"lunation\"\nreturn ln.loop { agent = ln.agent { \"worker\", timeout = \"2s\" }, prompt = \"Work.\", \
               sensors = { a = \"test -e a\", b = \"test -e b\", c = \"test -e c\" }, budget = { iterations = 2 } }\n";
    let scene = Scene::new().script(lua).agent("if [ $N = 1 ]; then touch a b; sleep 60; else touch c; echo ok; fi");
    scene.run_loop(&[]).expect_code(0);
    assert!(scene.exists("a") && scene.exists("b"));
    let turn = &scene.events("turn_ended")[0]["turn"];
    assert_eq!((turn["outcome"].as_str(), turn["timed_out"].as_bool()), (Some("timed_out"), Some(true)));
    assert_eq!(scene.decisions(), ["keep", "keep"]);
    assert!(scene.prompt(2).contains("The last turn was cut short"), "{}", scene.prompt(2));
}

#[test]
fn loop_08_a_cap_of_nothing_is_an_error_unless_another_limit_holds() {
    let lua = |budget: &str| {
        format!(
            "local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"worker\" }}, prompt = \"Work.\", {budget} }}\n"
        )
    };
    for budget in [
        "max_iterations = 0",
        "max_iterations = -1",
        "max_iterations = \"10\"",
        "max_iterations = 2.5",
        "budget = { iterations = 0 }",
    ] {
        let scene = Scene::new().script(&lua(budget)).agent("echo ok");
        let ran = scene.run_loop(&[]).expect_code(4);
        assert!(ran.stderr.contains("iterations") && ran.stderr.contains("loop.lua:2"), "{budget}: {}", ran.stderr);
        assert_eq!(scene.turns(), 0);
    }
    // An id that is empty belongs to nobody.
    assert!("".parse::<lunation::journal::RunId>().is_err());
}

#[test]
fn tried_01_runs_of_the_same_second_never_share_a_name() {
    let lua = "local ln = require \"lunation\"\nreturn ln.loop { agent = ln.agent { \"worker\" }, prompt = \"Work.\", \
               sensors = { \"test -e done\" }, budget = { iterations = 1 } }\n";
    let scene = Scene::new().script(lua).agent("touch done; echo ok");
    let both = [scene.start(&["run", "--trust"]), scene.start(&["run", "--trust"])];
    let codes: Vec<i32> = both.into_iter().map(|running| running.wait().code).collect();
    assert!(codes.iter().all(|code| [0, 5].contains(code)) && codes.contains(&0), "{codes:?}");
    scene.run_loop(&[]).expect_code(0);
    let runs = std::fs::read_dir(scene.path(".git/lunation/runs")).expect("runs").count();
    assert_eq!(runs, codes.iter().filter(|code| **code == 0).count() + 1);
}

#[test]
fn tried_02_a_cap_with_nothing_verified_is_exit_2_and_says_so() {
    let lua = "local ln = require \"lunation\"\nreturn ln.loop { agent = ln.agent { \"worker\" }, prompt = \"Work.\", \
               sensors = { \"false\" }, budget = { iterations = 3 } }\n";
    let scene = Scene::new().script(lua).agent("echo $N > work; echo ok");
    let ran = scene.run_loop(&[]).expect_code(2);
    assert!(ran.stdout.contains("nothing was verified"), "{}", ran.stdout);
    assert!(ran.last_line().contains("lunation "), "the last line names the next command: {}", ran.last_line());
}
