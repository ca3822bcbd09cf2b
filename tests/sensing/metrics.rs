//! Metrics: Prometheus for real where it is installed, Prometheus and Loki by what they answer.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::scene::{PATIENCE, Scene};
use crate::stub_http::serve;
use crate::{last_reading, loop_over};

fn read_metric(options: &str) -> (Scene, Value) {
    let scene = Scene::new()
        .script(&loop_over(&format!("ln.sensor.metric {{ {options} }}"), "budget = { iterations = 1 }"))
        .var("METRICS_TOKEN", "s3cr3t-token")
        .agent("echo $N > work");
    scene.run_loop(&[]);
    let reading = last_reading(&scene);
    (scene, reading)
}

fn vector(rows: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{rows}]}}}}"#)
}

/// What Prometheus answers to the time, to the age of samples and to the query itself.
fn prometheus(answer: &'static str) -> String {
    let (url, _) = serve(move |path| {
        let body = if path.contains("query=time()") {
            r#"{"status":"success","data":{"resultType":"scalar","result":[1000.5,"1000.5"]}}"#.to_owned()
        } else if path.contains("query=timestamp(") {
            vector(r#"{"metric":{"job":"web"},"value":[1001,"1000.9"]}"#)
        } else {
            answer.to_owned()
        };
        (200, body)
    });
    url
}

const GOOD: &str = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","job":"web"},"value":[1001,"1"]}]}}"#;

#[test]
fn a_value_is_held_against_the_assertion() {
    let url = prometheus(GOOD);
    let (scene, reading) = read_metric(&format!("promql = \"up\", url = \"{url}\", assert = \"== 1\""));
    assert_eq!((reading["state"].as_str(), reading["total"].as_u64()), (Some("passed"), Some(1)), "{reading}");
    assert_eq!((reading["id"].as_str(), scene.end()["reason"].as_str()), (Some("up"), Some("completed")));
    let (_, reading) =
        read_metric(&format!("promql = \"up\", url = \"{url}/\", assert = \">= 2 and < 9\", hint = \"start it\""));
    assert_eq!((reading["state"].as_str(), reading["failing"].as_u64()), (Some("failed"), Some(1)), "{reading}");
    assert_eq!(reading["items"][0], "up{job=\"web\"}");
    assert!(reading["feedback"].as_str().is_some_and(|text| text.contains("hint: start it")), "{reading}");
}

#[test]
fn what_is_no_answer_is_broken_and_never_green() {
    for (answer, says) in [
        (r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#, "the answer is empty"),
        (r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"NaN"]}]}}"#, "is NaN"),
        (
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"+Inf"]}]}}"#,
            "is inf",
        ),
        (
            r#"{"status":"success","warnings":["one store is down"],"data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}"#,
            "may not be whole: one store is down",
        ),
        (r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#, "it refused the query: parse error"),
        (r#"{"status":"success","data":{"resultType":"string","result":[1,"a"]}}"#, "gives a string"),
        ("<html>", "cannot be read"),
    ] {
        let url = prometheus(answer);
        let (scene, reading) =
            read_metric(&format!("promql = \"up\", url = \"{url}\", assert = \"< 5\", timeout = \"1s\""));
        assert_eq!(
            (reading["state"].as_str(), &reading["failing"]),
            (Some("broken"), &Value::Null),
            "{answer}: {reading}"
        );
        assert!(reading["feedback"].as_str().is_some_and(|text| text.contains(says)), "{answer}: {reading}");
        assert_eq!(scene.end()["reason"], "sensor_broken", "{answer}");
    }
    let (_, reading) = read_metric("promql = \"up\", url = \"http://127.0.0.1:1\", assert = \"< 5\", timeout = \"1s\"");
    assert!(reading["feedback"].as_str().is_some_and(|text| text.contains("cannot be asked")), "{reading}");
}

#[test]
fn a_stale_sample_is_waited_for_and_then_broken() {
    let (url, asked) = serve(|path| {
        let body = if path.contains("query=time()") {
            r#"{"status":"success","data":{"resultType":"scalar","result":[1000,"1000"]}}"#.to_owned()
        } else if path.contains("query=timestamp(") {
            vector(r#"{"metric":{"job":"web"},"value":[1001,"990"]}"#)
        } else {
            GOOD.to_owned()
        };
        (200, body)
    });
    let options = format!("promql = \"up\", url = \"{url}\", assert = \"== 1\", timeout = \"2s\"");
    let (_, reading) = read_metric(&options);
    assert_eq!(reading["state"], "broken", "{reading}");
    assert!(
        reading["feedback"].as_str().is_some_and(|text| text.contains("is stale: its last sample is 10.0s too old"))
    );
    let times = asked.lock().unwrap().iter().filter(|path| path.contains("timestamp(up)")).count();
    assert!(times > 2, "it asked again: {times}");
    let (_, reading) = read_metric(&format!("{options}, fresh = \"1m\""));
    assert_eq!(reading["state"], "passed", "{reading}");
    let (_, reading) = read_metric(&format!("{options}, fresh = \"any\""));
    assert_eq!(reading["state"], "passed", "{reading}");
}

#[test]
fn every_sample_of_a_range_must_hold_and_gaps_are_broken() {
    let matrix = |values: &str| {
        format!(
            r#"{{"status":"success","data":{{"resultType":"matrix","result":[{{"metric":{{"job":"web"}},"values":[{values}]}}]}}}}"#
        )
    };
    for (values, state, says) in [
        (r#"[1,"1"],[2,"2"],[3,"3"],[4,"1"]"#, "failed", "is 3 (not as asserted)"),
        (r#"[1,"1"],[2,"2"],[3,"2"],[4,"1"]"#, "passed", ""),
        (r#"[1,"1"]"#, "broken", "partial: {job=\"web\"} has 1 samples where 4 belong"),
    ] {
        let answer: &'static str = Box::leak(matrix(values).into_boxed_str());
        let url = prometheus(answer);
        let (_, reading) = read_metric(&format!(
            "promql = \"load\", url = \"{url}\", assert = \"< 3\", range = \"3s\", step = 1, timeout = \"1s\""
        ));
        assert_eq!(reading["state"].as_str(), Some(state), "{values}: {reading}");
        assert!(reading["feedback"].as_str().is_some_and(|text| text.contains(says)), "{values}: {reading}");
    }
}

#[test]
fn loki_answers_with_numbers_or_lines() {
    let streams = r#"{"status":"success","data":{"resultType":"streams","result":[{"stream":{"app":"web"},"values":[["1700000000000000000","error one"],["1700000001000000000","error two"]]}],"stats":{"summary":{"totalLinesProcessed":2}}}}"#;
    let numbers = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"app":"web"},"value":[1700000000.1,"2"]}],"stats":{}}}"#;
    for (answer, range) in [(streams, ", range = \"5m\", step = \"5m\""), (numbers, "")] {
        let (url, asked) = serve(move |_| (200, answer.to_owned()));
        let (_, reading) = read_metric(&format!(
            "logql = \"{{app='web'}}\", url = \"{url}\", assert = \"< 2\", token_env = \"METRICS_TOKEN\" {range}"
        ));
        assert_eq!(
            (reading["state"].as_str(), reading["items"][0].as_str()),
            (Some("failed"), Some("{app=\"web\"}")),
            "{reading}"
        );
        let asked = asked.lock().unwrap();
        let kind = if range.is_empty() { "/loki/api/v1/query?" } else { "/loki/api/v1/query_range?" };
        assert!(asked[0].starts_with(kind) && asked[0].contains("{app='web'}"), "{asked:?}");
        assert!(asked[0].contains("Bearer s3cr3t-token"), "{asked:?}");
    }
}

/// A Prometheus that this test started, and the exporter that it scrapes.
struct Prometheus {
    child: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port()
}

fn start_prometheus(program: &std::path::Path, exporter: &str) -> Prometheus {
    let folder = tempfile::tempdir().expect("a folder");
    let target = exporter.trim_start_matches("http://");
    let config = format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: app\n    static_configs:\n      - targets: ['{target}']\n"
    );
    std::fs::write(folder.path().join("prometheus.yml"), config).expect("a configuration");
    let port = free_port();
    let child = Command::new(program)
        .arg(format!("--config.file={}", folder.path().join("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("prometheus starts");
    let prometheus = Prometheus { child, url: format!("http://127.0.0.1:{port}"), _folder: folder };
    let deadline = Instant::now() + PATIENCE;
    while !is_ready(port) {
        assert!(Instant::now() < deadline, "prometheus is not ready");
        std::thread::sleep(Duration::from_millis(100));
    }
    prometheus
}

fn is_ready(port: u16) -> bool {
    let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) else { return false };
    let _ = stream.write_all(b"GET /-/ready HTTP/1.0\r\n\r\n");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.starts_with("HTTP/1.0 200")
}

#[test]
#[allow(clippy::print_stderr, reason = "a test that is left out says so")]
fn the_real_prometheus_is_asked_until_its_sample_is_fresh() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(program) = std::env::split_paths(&path).map(|dir| dir.join("prometheus")).find(|file| file.is_file())
    else {
        eprintln!("left out: there is no prometheus on the PATH");
        return;
    };
    // The exporter counts how often it was scraped: a value of this pass is one that was not there before it.
    let scrapes = std::sync::atomic::AtomicU64::new(0);
    let (exporter, _) = serve(move |_| {
        let n = scrapes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        (
            200,
            format!(
                "# TYPE latency gauge\nlatency{{quantile=\"0.95\"}} 0.5\n# TYPE scrapes gauge\nscrapes {n}\nnothing NaN\n"
            ),
        )
    });
    let prometheus = start_prometheus(&program, &exporter);
    let url = &prometheus.url;
    let (_, reading) =
        read_metric(&format!("promql = \"latency\", url = \"{url}\", assert = \"< 0.8\", timeout = \"30s\""));
    assert_eq!(reading["state"], "passed", "{reading}");
    let (_, reading) = read_metric(&format!(
        "promql = \"latency * 2\", source = \"latency\", url = \"{url}\", assert = \"< 0.8\", timeout = \"30s\""
    ));
    assert_eq!((reading["state"].as_str(), reading["failing"].as_u64()), (Some("failed"), Some(1)), "{reading}");
    let (_, reading) =
        read_metric(&format!("promql = \"nothing\", url = \"{url}\", assert = \"< 0.8\", timeout = \"3s\""));
    assert_eq!(reading["state"], "broken", "{reading}");
    let (_, reading) =
        read_metric(&format!("promql = \"no_such\", url = \"{url}\", assert = \"< 0.8\", timeout = \"2s\""));
    assert_eq!(reading["state"], "broken", "{reading}");
    let (_, reading) =
        read_metric(&format!("promql = \"rate(\", url = \"{url}\", assert = \"< 0.8\", fresh = \"any\""));
    assert!(reading["feedback"].as_str().is_some_and(|text| text.contains("refused the query")), "{reading}");
}
