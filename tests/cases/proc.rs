//! PROC: processes, pipes, signals, terminals.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::scene::{Scene, alive, eventually, finish, unique_seconds};

fn simple(sensors: &str, iterations: u32) -> String {
    format!(
        "local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"worker\" }}, prompt = \"Work.\", \
         sensors = {{ {sensors} }}, budget = {{ iterations = {iterations} }} }}\n"
    )
}

#[test]
fn proc_01_standard_input_is_the_prompt_and_then_ends() {
    let scene = Scene::new().script(&simple("\"test -e done\"", 1)).agent("cat > done; echo ok");
    // A FIFO that nobody closes.
    let fifo = scene.outside().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let keep_open = std::fs::OpenOptions::new().read(true).write(true).open(&fifo).expect("a fifo");
    let mut command = scene.lunation(&["run", "--trust"]);
    command.stdin(Stdio::from(std::fs::File::open(&fifo).expect("a fifo")));
    let started = Instant::now();
    finish(command).expect_code(0);
    drop(keep_open);
    assert!(scene.read("done").starts_with("Work.\n\n----- begin feedback"), "{}", scene.read("done"));
    assert!(started.elapsed() < Duration::from_secs(30), "it does not wait for its own standard input");

    // Closed.
    let scene = Scene::new().script(&simple("\"test -e done\"", 1)).agent("cat > done; echo ok");
    let mut command = scene.command("sh");
    command.args(["-c", "exec \"$0\" run --trust <&-", env!("CARGO_BIN_EXE_lunation")]);
    finish(command).expect_code(0);

    // A terminal.
    if Command::new("script").arg("--version").output().is_ok() {
        let scene = Scene::new().script(&simple("\"test -e done\"", 1)).agent("cat > done; echo ok");
        let mut command = scene.command("script");
        command.args(["-qec", &format!("{} run --trust", env!("CARGO_BIN_EXE_lunation")), "/dev/null"]);
        finish(command).expect_code(0);
    }
}

#[test]
fn proc_03_a_sensor_that_leaves_a_helper_gives_its_verdict_at_once() {
    let seconds = unique_seconds();
    let sensor = format!("(sleep {seconds} &) ; echo FAIL detail; exit 1");
    let scene = Scene::new()
        .script(&simple(&format!("ln.sensor {{ \"{sensor}\", id = \"s\" }}"), 1))
        .agent("echo $N > work; echo ok");
    let started = Instant::now();
    scene.run_loop(&[]).expect_code(2);
    assert!(started.elapsed() < Duration::from_secs(30));
    let sense = &scene.events("sensed")[0]["sense"]["readings"][0];
    assert_eq!(sense["state"].as_str(), Some("failed"));
    assert!(sense["feedback"].as_str().is_some_and(|text| text.contains("FAIL detail")), "{sense}");
    assert!(sense["notes"].as_array().is_some_and(|notes| !notes.is_empty()), "the leak is a note: {sense}");
    assert_eq!(alive(&format!("sleep {seconds}")), [0i32; 0]);
}

#[test]
fn proc_04_nothing_of_a_successful_turn_stays_alive() {
    let seconds = unique_seconds();
    let scene = Scene::new()
        .script(&simple("\"false\"", 3))
        .agent(&format!("nohup sleep {seconds} >/dev/null 2>&1 & echo $! > pid; ls -l /proc/self/fd > fds; exit 0"));
    scene.run_loop(&[]).expect_code(2);
    assert_eq!(scene.turns(), 3);
    assert_eq!(alive(&format!("sleep {seconds}")), [0i32; 0]);
    let fds = scene.read("fds");
    assert!(!fds.contains("journal") && !fds.contains("lock"), "no descriptor of ours is inherited: {fds}");
}

#[test]
fn proc_07_signals_leave_no_process_and_a_whole_tree() {
    let cases: [(&[&str], i32); 4] = [(&["TERM"], 143), (&["HUP"], 129), (&["INT", "INT"], 130), (&["INT"], 130)];
    for (signals, code) in cases {
        for place in ["agent", "sensor"] {
            let seconds = unique_seconds();
            // One Ctrl-C lets the iteration end, so what it waits for must end by itself then.
            let wait = if signals == ["INT"] { "sleep 1".to_owned() } else { format!("sleep {seconds}") };
            let (agent, sensor) = match place {
                "agent" => {
                    (format!("echo half > tracked; touch here; {wait}; echo whole > tracked"), "false".to_owned())
                }
                _ => (
                    "echo half > tracked".to_owned(),
                    format!("[ ! -e {0} ] || {{ touch here; {wait}; }}; false", "start"),
                ),
            };
            let scene = Scene::new().file("tracked", "as it was\n").file(".gitignore", "here\nstart\n");
            let scene = scene.script(&simple(&format!("ln.sensor {{ \"{sensor}\", id = \"s\" }}"), 2)).commit("more");
            let scene = scene.agent(&format!("touch start; {agent}; echo ok"));
            let running = scene.start(&["run", "--trust"]);
            eventually("the place is reached", || scene.exists("here"));
            for (n, signal) in signals.iter().enumerate() {
                running.signal(signal);
                // Signals of one kind that come at once are one signal.
                eventually("the request is in the record", || scene.events("interrupted").len() > n);
            }
            let ran = running.wait();
            assert_eq!(ran.code, code, "{signals:?} in {place}: {} {}", ran.stdout, ran.stderr);
            assert_eq!(alive(&format!("sleep {seconds}")), [0i32; 0], "{signals:?} in {place}");
            assert!(!scene.exists(".git/index.lock"));
            let tree = scene.read("tracked");
            if signals == ["INT"] {
                assert_ne!(tree, "as it was\n", "the iteration went on to its end in {place}");
            } else {
                assert_eq!(tree, "as it was\n", "{signals:?} in {place}: rolled back");
            }
            assert_eq!(scene.end()["reason"].as_str(), Some("interrupted"), "the journal has its end");
        }
    }
}

#[test]
fn proc_08_an_agent_that_never_exits_after_its_last_word_is_scored_on_it() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"all done","session_id":"s","usage":{"input_tokens":1,"output_tokens":1}}"#;
    let seconds = unique_seconds();
    let lua = "local ln = require \"lunation\"\nreturn ln.loop { agent = \"claude\", prompt = \"Work.\", \
               sensors = { \"test -e done\" }, budget = { iterations = 1 } }\n";
    let scene = Scene::new().script(lua).program(
        "claude",
        &format!("case \"$1\" in --version) echo 2.1.0; exit 0;; esac; cat >/dev/null; touch done; echo '{result}'; sleep {seconds}"),
    );
    scene.run_loop(&[]).expect_code(0);
    let turn = &scene.events("turn_ended")[0]["turn"];
    assert_eq!((turn["outcome"].as_str(), turn["text"].as_str()), (Some("done"), Some("all done")));
    assert_eq!(alive(&format!("sleep {seconds}")), [0i32; 0]);
    // The defaults are finite.
    let plan = scene.run(&["plan", "--json"]).expect_code(0).stdout;
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
    let agent = &plan["spec"]["agents"][0];
    assert!(agent["timeout"].as_f64().is_some_and(|s| s > 0.0) && agent["silence"].as_f64().is_some_and(|s| s > 0.0));
}

#[test]
fn proc_09_a_pattern_kill_by_the_agent_hits_nothing_of_ours() {
    let words = format!("next start --port {}", unique_seconds());
    let lua = |prompt: &str| {
        format!(
            "local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"worker\" }}, prompt = \"{prompt}\", \
             sensors = {{ \"test -e done\" }}, budget = {{ iterations = 1 }} }}\n"
        )
    };
    let scene = Scene::new()
        .script(&lua(&words))
        .agent("words=$(cat | tr -d '\\n'); pkill -f \"$words\"; echo $? > killed; touch done; echo ok");
    scene.run_loop(&[]).expect_code(0);
    // pkill never matches itself; 1 says that nothing else matched.
    assert_eq!(scene.read("killed"), "1\n", "the prompt is in no argument vector");

    // Signalled from below: the warden ignores it, the run goes on, the tree is whole.
    let scene = Scene::new().script(&lua("Work.")).agent("touch done; pkill -TERM -P $PPID; echo ok");
    let ran = scene.run_loop(&[]);
    assert!([0, 2].contains(&ran.code), "{ran:?}");
    assert_eq!(scene.events("run_ended").len(), 1);
}

#[test]
fn tried_04_twenty_five_turns_of_a_daemon_leave_none() {
    let seconds = unique_seconds();
    let scene = Scene::new()
        .script(&simple("\"false\"", 25))
        .agent(&format!("setsid sleep {seconds} & echo $N > work; echo ok"));
    scene.run_loop(&[]).expect_code(2);
    assert_eq!(scene.turns(), 25);
    assert_eq!(alive(&format!("sleep {seconds}")), [0i32; 0]);
}
