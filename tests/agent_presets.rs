//! The shipped presets: that they are good data, and that they read what agents print.

mod presets;

use std::path::Path;

use jiff::tz::TimeZone;
use lunation::mechanism::agent::{Transcript, check, judge_transcript};
use lunation::mechanism::process::{Ending, TimeoutKind};
use lunation::policy::{Outcome, Parser, PromptChannel, TurnSummary, says_sentinel};
use presets::preset;
use serde_json::{Value, json};

/// The names of all shipped presets.
fn names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua/lunation/agents");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "lua"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn every_shipped_preset_is_an_agent_without_mistakes() {
    assert_eq!(names(), ["claude", "codex", "pi"]);
    for name in names() {
        let spec = preset(&name);
        check(&spec).unwrap();
        assert_eq!(spec.name, name);
        assert_eq!(spec.prompt_via, PromptChannel::Stdin, "{name}: a prompt belongs into no argument");
        assert!(matches!(spec.parse, Parser::JsonLines(_)));
        assert!(spec.install.is_some() && spec.version.is_some());
        assert!(spec.silence.is_some() && !spec.timeout.is_zero(), "{name}: both limits are finite by default");
    }
}

fn judge(name: &str, stdout: &[u8], stderr: &str, ending: Ending) -> TurnSummary {
    let transcript = Transcript {
        stdout,
        stderr: stderr.as_bytes(),
        ending,
        prompt: "Fix it.",
        now: "2026-11-30T17:30:00Z".parse().unwrap(),
        zone: TimeZone::get("Europe/Berlin").unwrap(),
    };
    judge_transcript(&preset(name), &transcript).unwrap()
}

#[test]
fn transcripts_come_to_what_they_are() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/agents");
    let cases: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("cases.json")).unwrap()).unwrap();
    let cases = cases.as_array().unwrap();
    assert!(cases.len() > 40);
    for case in cases {
        let (name, transcript) = (case["preset"].as_str().unwrap(), case["transcript"].as_str().unwrap());
        let stdout = std::fs::read(folder.join(name).join(format!("{transcript}.jsonl"))).unwrap();
        let ending = match case["killed"].as_str() {
            Some("silence") => Ending::TimedOut(TimeoutKind::Silence),
            Some(other) => panic!("unknown end {other}"),
            None => Ending::Exited(case["exit"].as_i64().unwrap() as i32),
        };
        let summary = judge(name, &stdout, "", ending);
        let found = json!({
            "outcome": summary.outcome,
            "text": summary.text,
            "error": summary.error,
            "tokens": [summary.usage.input, summary.usage.cache_read, summary.usage.output, summary.usage.reasoning],
            "cost": summary.usage.cost_usd,
        });
        for (key, wanted) in case["wanted"].as_object().unwrap() {
            assert_eq!(&found[key], wanted, "{name}/{transcript}: {key} of {summary:?}");
        }
    }
}

#[test]
fn a_sentinel_in_an_escaped_string_is_found_and_backslashes_survive() {
    let line =
        r#"{"type":"result","subtype":"success","is_error":false,"result":"C:\\new\\table \u0007\nall good\nDONE"}"#;
    let summary = judge("claude", line.as_bytes(), "", Ending::Exited(0));
    assert_eq!(summary.outcome, Outcome::Done);
    assert_eq!(summary.text, "C:\\new\\table \u{7}\nall good\nDONE");
    assert!(says_sentinel(&summary.text, "DONE"));
}

#[test]
fn a_missing_model_or_login_is_read_from_stderr() {
    let stderr = "Warning: No models available. Use /login to log into a provider via OAuth or API key. See:\n  /x/providers.md\n";
    assert_eq!(judge("pi", b"", stderr, Ending::Exited(1)).outcome, Outcome::Auth);
}

#[test]
fn every_message_of_a_failed_turn_is_told_in_one_line() {
    let stdout = br#"{"type":"turn.failed","error":{"message":"You've hit your usage limit.\nTry again at 7:11 PM."}}"#;
    let summary = judge("codex", stdout, "", Ending::Exited(1));
    assert_eq!(summary.summary, "usage limit until 2026-11-30T18:11:00Z (exit code 1): You've hit your usage limit.");
}
