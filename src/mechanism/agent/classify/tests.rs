use super::super::message::TextTail;
use super::super::rules::{Rules, compile_patterns};
use super::super::told::Reader;
use super::*;
use crate::policy::{AgentSpec, ErrorPattern, JsonLines, Parser};
use serde_json::json;

/// Monday, 30 November 2026, 18:30 in Berlin.
const NOW: &str = "2026-11-30T17:30:00Z";

/// A turn, made up.
struct Turn {
    spec: AgentSpec,
    stdout: String,
    stderr: String,
    prompt: String,
    end: End,
}

impl Turn {
    fn of(spec: AgentSpec) -> Turn {
        Turn { spec, stdout: String::new(), stderr: String::new(), prompt: String::new(), end: End::Exited(0) }
    }

    fn says(mut self, stdout: &str) -> Turn {
        self.stdout = stdout.into();
        self
    }

    fn stderr(mut self, stderr: &str) -> Turn {
        self.stderr = stderr.into();
        self
    }

    fn ends(mut self, end: End) -> Turn {
        self.end = end;
        self
    }

    fn told(&self) -> Told {
        let mut reader = match &self.spec.parse {
            Parser::Text => Reader::Text(TextTail::default()),
            Parser::JsonLines(lines) => Reader::json_lines(Rules::compile(lines).unwrap()),
        };
        // Cut at awkward places, as pipes do.
        self.stdout.as_bytes().chunks(7).for_each(|chunk| {
            reader.push(chunk);
        });
        reader.finish()
    }

    fn judge(&self) -> Judgement {
        let none = BTreeMap::new();
        judge(&Evidence {
            told: &self.told(),
            structured: self.spec.parse != Parser::Text,
            end: self.end,
            stderr: &self.stderr,
            prompt: &self.prompt,
            patterns: &compile_patterns(&self.spec.errors).unwrap(),
            codes: match &self.spec.parse {
                Parser::JsonLines(lines) => &lines.codes,
                Parser::Text => &none,
            },
            now: NOW.parse().unwrap(),
            zone: &TimeZone::get("Europe/Berlin").unwrap(),
        })
    }

    fn outcome(&self) -> Outcome {
        self.judge().outcome
    }
}

fn seconds(time: &str) -> Option<i64> {
    Some(time.parse::<Timestamp>().unwrap().as_second())
}

/// An agent with simple rules of every kind.
fn simple() -> AgentSpec {
    let lines: JsonLines = serde_json::from_value(json!({
        "text": [{"when": {"type": "say"}, "unless": {"parent": "/./"}, "text": "text"}],
        "done": [{"type": "done"}],
        "ended": [{"type": "ended"}],
        "well": [{"type": "well"}],
        "truncated": [{"type": "cut"}],
        "failed": [
            {"when": {"type": "fatal"}, "message": ["message"], "status": "status", "final": true},
            {"when": {"type": "trouble"}, "message": ["message"], "status": "status", "code": "code", "resets_at": "at"},
        ],
        "retry": [{"when": {"type": "retry"}, "message": ["message"], "status": "status"}],
        "codes": {"nope": "auth"},
        "session": [{"when": {"type": "start"}, "text": "id"}],
        "ignore": ["tool"],
    }))
    .unwrap();
    let errors =
        vec![ErrorPattern { kind: ErrorKind::Overloaded, pattern: "no seats left".into(), whole_message: false }];
    AgentSpec { parse: Parser::JsonLines(Box::new(lines)), errors, ..AgentSpec::command(["simple"]) }
}

fn text() -> AgentSpec {
    AgentSpec::command(["plain"])
}

const WELL: &str = "{\"type\":\"say\",\"text\":\"All good.\"}\n{\"type\":\"done\"}\n";

#[test]
fn success_needs_the_word_the_code_and_a_message() {
    let well = || Turn::of(simple()).says(WELL);
    assert_eq!(well().outcome(), Outcome::Done);
    assert_eq!(well().ends(End::Settled).outcome(), Outcome::Done);
    let failed = well().ends(End::Exited(3)).judge();
    assert_eq!(failed.outcome, Outcome::AgentError);
    assert!(failed.error.unwrap().contains("exit code is 3"));
    assert_eq!(well().ends(End::Signaled(6)).outcome(), Outcome::Crashed { signal: 6 });
    let silent = "{\"type\":\"say\",\"text\":\" \\n\"}\n{\"type\":\"done\"}\n";
    assert_eq!(Turn::of(simple()).says(silent).outcome(), Outcome::Empty);
    let unfinished = "{\"type\":\"say\",\"text\":\"All good.\"}\n";
    assert_eq!(Turn::of(simple()).says(unfinished).outcome(), Outcome::NoTerminalEvent);
}

#[test]
fn a_line_that_only_ends_leaves_the_verdict_to_the_lines_before_it() {
    let turn = |stdout: &str| Turn::of(simple()).says(stdout).outcome();
    let say = "{\"type\":\"say\",\"text\":\"x\"}\n";
    assert_eq!(turn(&format!("{say}{{\"type\":\"well\"}}\n{{\"type\":\"ended\"}}")), Outcome::Done);
    let trouble = "{\"type\":\"trouble\",\"message\":\"odd\"}\n";
    assert_eq!(turn(&format!("{say}{trouble}{{\"type\":\"ended\"}}")), Outcome::AgentError);
    assert_eq!(turn(&format!("{trouble}{say}{{\"type\":\"well\"}}\n{{\"type\":\"ended\"}}")), Outcome::Done);
    assert_eq!(turn(&format!("{say}{{\"type\":\"cut\"}}\n{{\"type\":\"ended\"}}")), Outcome::Truncated);
    assert_eq!(turn("{\"type\":\"ended\"}"), Outcome::Empty);
}

#[test]
fn a_status_counts_before_words_and_words_tell_the_two_limits_apart() {
    let turn = |line: serde_json::Value| Turn::of(simple()).says(&line.to_string()).outcome();
    for (line, outcome) in [
        (json!({"type": "fatal", "message": "no seats left", "status": 401}), Outcome::Auth),
        (json!({"type": "fatal", "message": "no seats left"}), Outcome::Overloaded),
        (json!({"type": "fatal", "message": "who knows", "status": 429}), Outcome::RateLimited { retry_after: None }),
        (
            json!({"type": "fatal", "message": "Rate limit. Try again in 20s", "status": 429}),
            Outcome::RateLimited { retry_after: Some(20.0) },
        ),
        (
            json!({"type": "fatal", "message": "You've hit your usage limit, resets 11pm", "status": 429}),
            Outcome::UsageLimit { reset_at: seconds("2026-11-30T22:00:00Z") },
        ),
        (json!({"type": "fatal", "message": "x", "status": 529}), Outcome::Overloaded),
        (json!({"type": "fatal", "message": "x", "status": 502}), Outcome::Server),
        (json!({"type": "fatal", "message": "prompt is too long", "status": 400}), Outcome::ContextOverflow),
        (json!({"type": "fatal", "message": "socket hang up"}), Outcome::Network),
        (json!({"type": "fatal", "message": "I give up"}), Outcome::AgentError),
        (json!({"type": "fatal"}), Outcome::AgentError),
    ] {
        assert_eq!(turn(line.clone()), outcome, "{line}");
    }
}

#[test]
fn one_mishap_may_be_told_in_several_lines() {
    let lines =
        "{\"type\":\"trouble\",\"at\":1796155200}\n{\"type\":\"fatal\",\"message\":\"no more\",\"status\":429}\n";
    let reset_at = Some(1_796_155_200);
    assert_eq!(Turn::of(simple()).says(lines).outcome(), Outcome::UsageLimit { reset_at });
    let lines = "{\"type\":\"trouble\",\"code\":\"nope\"}\n{\"type\":\"fatal\",\"message\":\"no more\"}\n";
    assert_eq!(Turn::of(simple()).says(lines).outcome(), Outcome::Auth);
}

#[test]
fn what_tools_print_and_what_echoes_the_prompt_is_no_evidence() {
    let tool = "{\"type\":\"tool\",\"output\":\"429 You've hit your usage limit - resets 3pm\"}\n";
    assert_eq!(Turn::of(simple()).says(&format!("{tool}{WELL}")).outcome(), Outcome::Done);
    assert_eq!(Turn::of(simple()).says(tool).ends(End::Exited(1)).outcome(), Outcome::NoTerminalEvent);
    let mut echo = Turn::of(simple()).stderr("> Why do users see\n> 401 Unauthorized: invalid api key?\n");
    echo.prompt = "Find out:\n> Why do users see\n> 401 Unauthorized: invalid api key?\n".into();
    echo.stdout = "not json\n".into();
    assert_eq!(echo.ends(End::Exited(1)).outcome(), Outcome::NoTerminalEvent);
}

#[test]
fn stderr_counts_when_the_output_says_nothing() {
    let turn = Turn::of(simple()).stderr("starting\nError: connect ECONNREFUSED 127.0.0.1:1\n").ends(End::Exited(1));
    assert_eq!(turn.outcome(), Outcome::Network);
    let turn = Turn::of(simple()).says("{\"type\":\"fatal\",\"message\":\"socket hang up\"}").stderr("invalid api key");
    assert_eq!(turn.outcome(), Outcome::Network);
}

#[test]
fn a_signal_counts_last() {
    assert_eq!(Turn::of(simple()).ends(End::Signaled(11)).outcome(), Outcome::Crashed { signal: 11 });
    assert_eq!(Turn::of(simple()).stderr("fatal: overloaded").ends(End::Signaled(6)).outcome(), Outcome::Overloaded);
}

#[test]
fn a_turn_that_was_ended_after_its_last_word_is_judged_by_it() {
    let late = Turn::of(simple()).says(WELL).ends(End::TimedOut(TimeoutKind::Wall));
    assert_eq!(late.outcome(), Outcome::Done);
    let fatal = "{\"type\":\"fatal\",\"message\":\"invalid api key\"}\n";
    assert_eq!(Turn::of(simple()).says(fatal).ends(End::Settled).outcome(), Outcome::Auth);
}

#[test]
fn silence_while_a_limit_is_waited_out_is_the_limit() {
    let retry = "{\"type\":\"retry\",\"message\":\"too many requests\",\"status\":429}\n";
    let turn = |stdout: &str, which| Turn::of(simple()).says(stdout).ends(End::TimedOut(which)).outcome();
    let (wall, silence) = (TimeoutKind::Wall, TimeoutKind::Silence);
    assert_eq!(turn(retry, silence), Outcome::RateLimited { retry_after: None });
    assert_eq!(turn(retry, wall), Outcome::TimedOut { which: wall });
    assert_eq!(turn("", silence), Outcome::TimedOut { which: silence });
    let went_on = format!("{retry}{{\"type\":\"say\",\"text\":\"working\"}}\n");
    assert_eq!(turn(&went_on, silence), Outcome::TimedOut { which: silence });
}

#[test]
fn stopped_is_stopped_whatever_was_said() {
    assert_eq!(Turn::of(simple()).says(WELL).ends(End::Stopped).outcome(), Outcome::Stopped);
}

#[test]
fn text_without_a_last_line_and_a_message_of_a_sub_agent_are_not_its_message() {
    let lines = "{\"type\":\"say\",\"text\":\"Working on it\"}\n{\"type\":\"say\",\"tool\":\"bash\"}\n";
    let told = Turn::of(simple()).says(lines).told();
    assert_eq!((told.text.as_str(), told.over), ("", false));
    let lines = format!("{WELL}{{\"type\":\"say\",\"parent\":\"t1\",\"text\":\"DONE\"}}\n");
    assert_eq!(Turn::of(simple()).says(&lines).told().text, "All good.");
}

#[test]
fn json_is_decoded_once() {
    let line = r#"{"type":"say","text":"C:\\new\\table \u0007 \\n\nDONE"}"#;
    let told = Turn::of(simple()).says(&format!("{line}\n{{\"type\":\"done\"}}\n")).told();
    assert_eq!(told.text, "C:\\new\\table \u{7} \\n\nDONE");
    assert!(crate::policy::says_sentinel(&told.text, "DONE"));
}

#[test]
fn plain_commands_are_judged_by_exit_code_and_output() {
    let turn =
        |stdout: &str, stderr: &str, code| Turn::of(text()).says(stdout).stderr(stderr).ends(End::Exited(code)).judge();
    assert_eq!(turn("fixed it\n", "", 0).outcome, Outcome::Done);
    assert_eq!(turn(" \n", "warning", 0).outcome, Outcome::Empty);
    assert_eq!(turn("fixed it\n", "boom", 1).outcome, Outcome::AgentError);
    assert_eq!(turn("fixed it\n", "boom", 1).error.as_deref(), Some("boom"));
    assert_eq!(turn("no luck\n", "", 1).error.as_deref(), Some("no luck"));
    assert_eq!(turn("", "HTTP 401 from x", 1).outcome, Outcome::Auth);
    assert_eq!(turn("", "", 1).outcome, Outcome::AgentError);
    let read = "I read the page: You've hit your usage limit - resets 3pm\nNow the page is right.\n";
    assert_eq!(turn(read, "", 0).outcome, Outcome::Done);
    assert_eq!(
        turn("You've hit your limit · resets 11:30pm (Europe/Berlin)\n", "", 0).outcome,
        Outcome::UsageLimit { reset_at: seconds("2026-11-30T22:30:00Z") }
    );
}

#[test]
fn only_json_that_names_something_is_read_and_the_rest_is_counted() {
    let told = Turn::of(simple()).says(&format!("warming up\n[1]\n{{\"typ\n{WELL}")).told();
    assert_eq!(told.noise, 3);
    assert!(told.ended_well());
}

#[test]
fn retries_are_remembered_in_bounded_memory() {
    let lines: String = (0..100).map(|n| format!("{{\"type\":\"retry\",\"message\":\"try {n}\"}}\n")).collect();
    let told = Turn::of(simple()).says(&lines).told();
    assert_eq!((told.retries.len(), told.retry_count), (32, 100));
    assert_eq!(told.retries.back().map(String::as_str), Some("try 99"));
}

proptest::proptest! {
    #[test]
    fn no_output_can_break_it(
        stdout in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        line in "\\{\"type\":\"(say|done|fatal|trouble|retry|cut|well|ended)\",\"(text|message|status|at)\":(\"[a-z0-9 ]{0,9}\"|[0-9.e-]{1,9}|null|\\[\\])\\}",
        stderr in "\\PC{0,80}",
        code in 0i32..256,
    ) {
        let mut turn = Turn::of(simple()).stderr(&stderr).ends(End::Exited(code));
        turn.stdout = format!("{}\n{line}\n{line}\n", String::from_utf8_lossy(&stdout));
        let outcome = turn.outcome();
        proptest::prop_assert!(outcome != Outcome::Done, "{outcome:?}: nothing says that it ended well with a message");
    }
}
