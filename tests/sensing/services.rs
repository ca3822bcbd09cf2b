//! Services: started for a pass, looked at, always ended.

use crate::last_reading;
use crate::scene::Scene;

/// A web server of the standard library of Python; it marks itself so that it can be found.
const SERVE: &str = "python3 -c 'import http.server,os,socketserver\n\
class H(http.server.SimpleHTTPRequestHandler):\n    def log_message(self, *a): pass\n\
print(\"up and listening\", flush=True)\n\
socketserver.TCPServer((\"127.0.0.1\", int(os.environ[\"PORT\"])), H).serve_forever()'";

fn left_of(scene: &Scene) -> Vec<String> {
    let mark = scene.home().display().to_string();
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| {
            std::fs::read(entry.path().join("environ")).is_ok_and(|env| String::from_utf8_lossy(&env).contains(&mark))
        })
        .map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default())
        .filter(|line| line.contains("socketserver"))
        .collect()
}

fn script(ready: &str, sensors: &str) -> String {
    let serve = SERVE.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!(
        "local ln = require \"lunation\"\nlocal web = ln.service {{ id = \"web\", run = \"{serve}\", ready = {ready} }}\n\
         return ln.loop {{ agent = ln.agent {{ \"worker\" }}, prompt = \"Work.\", sensors = {{ {sensors} }}, \
         budget = {{ iterations = 2 }} }}\n"
    )
}

const LOOK: &str = "python3 -c 'import os,urllib.request; print(urllib.request.urlopen(\\\"http://127.0.0.1:{port}/page\\\").read().decode()); assert os.environ[\\\"PORT\\\"] == os.environ[\\\"PORT_WEB\\\"] == \\\"{port}\\\"' | grep -q hello";

#[test]
fn a_service_is_up_for_a_pass_and_gone_after_it() {
    for ready in ["{ http = \"/page\" }", "{ port = true }"] {
        let sensors = format!(
            "{{ \"{LOOK}\", id = \"one\", service = web }}, {{ \"{LOOK}\", id = \"two\", service = {{ web }} }}"
        );
        let scene = Scene::new()
            .file("page", "not yet\n")
            .commit("a page")
            .script(&script(ready, &sensors))
            .agent("echo hello $N > page");
        scene.run_loop(&[]).expect_code(0);
        assert_eq!(left_of(&scene), Vec::<String>::new(), "{ready}");
    }
}

#[test]
fn a_line_says_that_it_is_ready() {
    let scene =
        Scene::new().script(&script("{ line = \"^up and\" }", "{ \"true\", service = web }")).agent("echo $N > work");
    scene.run_loop(&[]).expect_code(0);
}

#[test]
fn one_that_does_not_come_up_is_broken_with_the_end_of_its_log() {
    for (run, ready, says) in [
        ("echo cannot bind; exit 3", "{ port = true }", ["it ended before it was ready", "cannot bind"]),
        ("echo still warming up; sleep 600", "{ port = true, within = 1 }", ["not within 1.0s", "still warming up"]),
        ("echo nearly; sleep 600", "{ line = \"^done\", within = \"1s\" }", ["not within 1.0s", "nearly"]),
    ] {
        let scene = Scene::new()
            .script(&format!(
                "local ln = require \"lunation\"\nlocal web = ln.service {{ run = \"{run}\", ready = {ready} }}\n\
                 return ln.loop {{ agent = ln.agent {{ \"worker\" }}, prompt = \"Work.\", \
                 sensors = {{ {{ \"true\", service = web }} }}, budget = {{ iterations = 1 }} }}\n"
            ))
            .agent("echo $N > work");
        scene.run_loop(&[]);
        let reading = last_reading(&scene);
        let feedback = reading["feedback"].as_str().unwrap_or_default();
        assert!(says.iter().all(|part| feedback.contains(part)), "{run}: {reading}");
        assert_eq!(
            (reading["state"].as_str(), scene.end()["reason"].as_str()),
            (Some("broken"), Some("sensor_broken"))
        );
    }
}

#[test]
fn a_stop_command_is_asked_first() {
    let scene = Scene::new()
        .script(
            "local ln = require \"lunation\"\nlocal web = ln.service { run = \"echo ready; sleep 600\", ready = { line = \"ready\" }, \
             stop = \"echo stopped $PORT > $HOME/stopped\" }\n\
             return ln.loop { agent = ln.agent { \"worker\" }, prompt = \"Work.\", sensors = { { \"true\", service = web } }, \
             budget = { iterations = 1 } }\n",
        )
        .agent("echo $N > work");
    scene.run_loop(&[]).expect_code(0);
    let stopped = std::fs::read_to_string(scene.home().join("stopped")).expect("it was asked to stop");
    assert!(stopped.trim().strip_prefix("stopped ").is_some_and(|port| port.parse::<u16>().is_ok()), "{stopped}");
}
