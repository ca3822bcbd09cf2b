//! What of a line of output stays the same from run to run.
//!
//! Durations, clock times and dates, temporary paths, addresses, process and thread numbers, ports, long hexadecimal
//! names and UUIDs are replaced; lines in which a build tool only tells what it is doing are nothing at all.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// One pass over a line finds them all.
static CHANGING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?xi)
          (?P<path>(?:/tmp|/var/tmp|/dev/shm|/private/tmp|/var/folders)/[^\s:'")\]]+)
        | (?P<uuid>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)
        | (?P<address>\b0x[0-9a-f]{2,}\b)
        | (?P<date>\b\d{4}-\d\d-\d\d(?:[T\ ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\ ?(?:Z|[+-]\d\d:?\d\d))?)?\b)
        | (?P<clock>\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b)
        | (?P<duration>\b\d+(?:[.,]\d+)?\s?(?:ns|µs|us|ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b
            (?:\s?\d+(?:[.,]\d+)?\s?(?:ms|s|secs?|seconds?|m|mins?|minutes?)\b)*)
        | (?P<pid>\b(?:pid|process|thread|worker)[\s:=\#(]{1,3}\d+\b|\(\d{3,}\)|\[\d{3,}\])
        | (?P<port>\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):\d{2,5}\b)
        | (?P<hex>\b(?:[0-9a-f]*\d[0-9a-f]*[a-f][0-9a-f]*|[0-9a-f]*[a-f][0-9a-f]*\d[0-9a-f]*)\b)
        "#,
    )
    .expect("a pattern of this file")
});

/// What a build tool is doing depends on what it did before.
static DOING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"\A\s{3,}(?:Compiling|Checking|Finished|Running|Building|Blocking|Fresh|Dirty|Updating|Locking|Adding|Downloading|Downloaded|Documenting)\s",
    )
    .expect("a pattern of this file")
});

/// Hexadecimal names shorter than this are words or numbers.
const SHORTEST_HEX: usize = 12;

/// The line with what changes replaced; `None` when nothing of it counts.
pub(super) fn normal(line: &str) -> Option<Cow<'_, str>> {
    let line = line.trim_end();
    if line.trim_start().is_empty() || DOING.is_match(line) {
        return None;
    }
    Some(CHANGING.replace_all(line, |found: &regex::Captures<'_>| {
        let text = &found[0];
        let name = CHANGING.capture_names().flatten().find(|name| found.name(name).is_some());
        match name {
            Some("hex") if text.len() < SHORTEST_HEX => text.to_owned(),
            Some(name) => format!("<{name}>"),
            None => text.to_owned(),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_from_run_to_run_is_replaced() {
        for (one, other) in [
            ("test result: FAILED. 1 failed; finished in 0.03s", "test result: FAILED. 1 failed; finished in 12.71s"),
            ("ok (3 ms)", "ok (12 ms)"),
            ("took 1m 02s", "took 59s"),
            ("can't open /tmp/a1/x.txt: no", "can't open /tmp/b2/y/x.txt: no"),
            ("object at 0x7f3a", "object at 0x55ce01"),
            ("[2026-11-30T17:30:00.123Z] FAIL", "[2026-12-01T08:00:00.9Z] FAIL"),
            ("17:30:00 FAIL", "08:01:02.33 FAIL"),
            ("pid 4711 died", "pid 12 died"),
            ("thread 'main' (31742) panicked at src/a.rs:3:5", "thread 'main' (9001) panicked at src/a.rs:3:5"),
            ("connect 127.0.0.1:40123 refused", "connect 127.0.0.1:51000 refused"),
            ("deps/thing-ff53385c41a2826c", "deps/thing-0123456789abcdef"),
            ("id 01a22d8a-68b9-74ce-82c5-79dc8ecb50f2", "id 11a22d8a-68b9-74ce-82c5-79dc8ecb50f3"),
        ] {
            assert_eq!(normal(one), normal(other));
            assert!(normal(one).unwrap().contains('<'), "{one}");
        }
    }

    #[test]
    fn what_is_a_result_stays() {
        for (one, other) in [
            ("3 failed, 57 passed", "4 failed, 57 passed"),
            ("left: 5", "left: 6"),
            ("assertion failed at src/a.rs:10", "assertion failed at src/a.rs:11"),
            ("expected decade, got facade", "expected facade, got decade"),
            ("v1.2.3", "v1.2.4"),
            ("coverage 81.3%", "coverage 81.4%"),
        ] {
            assert_ne!(normal(one), normal(other));
            assert_eq!(normal(one).unwrap(), one);
        }
    }

    #[test]
    fn what_a_build_tool_is_doing_does_not_count() {
        for line in ["   Compiling x v0.1.0 (/w)", "    Finished `test` profile in 3.2s", "", "  \t"] {
            assert_eq!(normal(line), None);
        }
        assert_eq!(normal("Running out of ideas: 3 failed").unwrap(), "Running out of ideas: 3 failed");
    }
}
