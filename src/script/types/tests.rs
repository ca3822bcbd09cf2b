//! The annotations against the file that is checked in, the live table and the data.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value as Json;

use super::records::RECORDS;
use super::{annotations, objects::OBJECTS};
use crate::engine::RunResult;
use crate::policy::{
    ChangeSummary, Decision, HistoryEntry, Left, Observation, Outcome, Reading, ReadingState, Sense, Status, Strategy,
    TurnSummary, Usage, UsageTotals,
};
use crate::script::records;
use crate::script::{LogSink, Source, Vm, VmOptions};
use crate::world::CommandResult;

#[test]
fn the_file_that_is_checked_in_is_what_is_generated() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua/types/lunation.lua");
    let generated = annotations();
    if std::env::var("LUNATION_BLESS").is_ok_and(|bless| bless == "1") {
        std::fs::write(&path, &generated).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(checked_in == generated, "lua/types/lunation.lua is old: write it with LUNATION_BLESS=1");
}

#[test]
fn the_annotations_are_lua() {
    mlua::Lua::new().load(annotations()).into_function().unwrap();
}

/// Lines that a script prints while it is loaded.
fn prints(text: &str) -> Vec<String> {
    let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = std::sync::Arc::clone(&lines);
    let log = Some(LogSink::new(move |_, line| kept.lock().unwrap().push(line.to_owned())));
    let folder = tempfile::tempdir().unwrap();
    let source = Source::text("loop.lua", &format!("{text}\nreturn function() end"), folder.path()).unwrap();
    Vm::start(VmOptions { log, ..VmOptions::default() })
        .unwrap()
        .load(&source)
        .unwrap_or_else(|error| panic!("{error}"));
    let lines = lines.lock().unwrap();
    lines.clone()
}

#[test]
fn every_function_in_the_live_table_is_in_the_annotations_and_the_other_way_round() {
    let live: BTreeSet<String> = prints(
        "for name, value in pairs(ln) do
           if type(value) == 'function' then
             print('M.' .. name)
           elseif type(value) == 'table' and name ~= 'input' then
             for member, inner in pairs(value) do
               if type(inner) == 'function' then print('ns_' .. name .. '.' .. member) end
             end
           end
         end",
    )
    .into_iter()
    .collect();
    let documented: BTreeSet<String> = annotations()
        .lines()
        .filter_map(|line| line.strip_prefix("function ")?.split('(').next().map(str::to_owned))
        .filter(|path| !path.contains(':'))
        .collect();
    assert_eq!(live, documented);
    assert!(live.len() > 15);
}

#[test]
fn every_name_in_the_live_table_is_in_the_annotations_and_the_other_way_round() {
    let live: BTreeSet<String> = prints("for name in pairs(ln) do print(name) end").into_iter().collect();
    let text = annotations();
    let class = text.split("---@class lunation\n").nth(1).unwrap();
    let documented: BTreeSet<String> = class
        .lines()
        .filter_map(|line| {
            let field = line.strip_prefix("---@field ").and_then(|rest| rest.split(' ').next());
            field.or_else(|| line.strip_prefix("function M.")?.split('(').next()).map(str::to_owned)
        })
        .collect();
    assert_eq!(live, documented);
}

#[test]
fn every_method_and_field_of_an_object_exists() {
    for (class, made) in [
        ("Agent", "ln.agent 'claude'"),
        ("Sensor", "ln.sensor 'x'"),
        ("Sensors", "ln.sensors { 'x' }"),
        ("Prompt", "nil"),
        ("Runnable", "ln.loop { agent = 'claude', prompt = 'x' }"),
        ("Policy", "ln.decide.default"),
    ] {
        let object = OBJECTS.iter().find(|object| object.class == class).unwrap();
        if made == "nil" {
            continue;
        }
        for (method, _) in object.methods {
            assert_eq!(prints(&format!("print(type(({made}).{method}))")), ["function"], "{class}:{method}");
        }
        for (field, ..) in object.fields {
            let field = field.trim_end_matches('?');
            assert_ne!(prints(&format!("print(type(({made}).{field}))")), ["nil"], "{class}.{field}");
        }
    }
}

fn reading() -> Reading {
    Reading {
        id: "t".into(),
        state: ReadingState::Failed,
        failing: Some(1),
        score: None,
        items: vec![],
        fingerprint: "f".into(),
        summary: String::new(),
        feedback: String::new(),
        exit: Some(1),
        timed_out: false,
        duration_s: 0.0,
        output: None,
        notes: vec![],
        flaky: false,
        attribution: None,
    }
}

fn observation() -> Observation {
    let sense = Sense::combine("tree".into(), vec![reading()], Strategy::All, 100);
    Observation {
        iteration: 1,
        ok: false,
        rung: 1,
        rungs: 1,
        stalls: 0.0,
        turn: Some(TurnSummary {
            agent: "a".into(),
            outcome: Outcome::Done,
            text: String::new(),
            summary: String::new(),
            error: None,
            exit: Some(0),
            timed_out: false,
            usage: Usage::default(),
            duration_s: 0.0,
            left_behind: vec![],
            output: None,
        }),
        change: ChangeSummary::default(),
        sense: Some(sense.clone()),
        sensor: [("t".to_owned(), reading())].into(),
        best: Some(sense),
        feedback: String::new(),
        tried: String::new(),
        usage: UsageTotals::default(),
        left: Left::default(),
        history: vec![HistoryEntry { iteration: 1, decision: Decision::Keep, failing: None, note: None }],
        seen: vec![],
    }
}

fn keys(json: &Json) -> BTreeSet<String> {
    json.as_object().unwrap().keys().cloned().collect()
}

#[test]
fn every_field_of_a_record_is_in_the_annotations_and_the_other_way_round() {
    let o = records::observation(&observation());
    let command = CommandResult {
        ok: true,
        code: 0,
        stdout: String::new(),
        stderr: String::new(),
        tail: String::new(),
        timed_out: false,
        duration_s: 0.0,
    };
    let result = RunResult {
        status: Status::Passed,
        reason: "completed".into(),
        why: None,
        ok: true,
        verified: true,
        iterations: 1,
        escalations: 0,
        summary: String::new(),
        diff: ChangeSummary::default(),
        usage: UsageTotals::default(),
    };
    for (class, json) in [
        ("Observation", o.clone()),
        ("Sense", o["sense"].clone()),
        ("Sense", o["best"].clone()),
        ("Reading", o["sensor"]["t"].clone()),
        ("Reading", o["sense"]["readings"][0].clone()),
        ("Turn", o["turn"].clone()),
        ("TurnUsage", o["turn"]["usage"].clone()),
        ("Change", o["change"].clone()),
        ("UsageTotals", o["usage"].clone()),
        ("Left", o["left"].clone()),
        ("HistoryEntry", o["history"][0].clone()),
        ("CmdResult", records::plain(&command)),
        ("Result", records::plain(&result)),
    ] {
        let record = RECORDS.iter().find(|record| record.class == class).unwrap();
        let documented: BTreeSet<String> = record
            .fields
            .iter()
            .filter(|(_, kind, _)| !kind.starts_with("fun("))
            .map(|(name, ..)| (*name).to_owned())
            .collect();
        assert_eq!(documented, keys(&json), "{class}");
    }
    assert_eq!(o["sense"]["score"], 0);
}
