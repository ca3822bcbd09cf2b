//! What the model says, in the two dialects.
//!
//! The first request of a scenario with a tool is answered by a call (1,000 input tokens, 11 output), the last by text
//! (2,000 input of which 500 from the cache, 22 output of which 7 are thoughts).

use std::io::Result;
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::Scenario;
use super::http::{Events, error, error_body};
use super::tools::{Call, shell_call};

/// Which API is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Chat,
    Responses,
}

/// Answers one request.
pub(super) fn answer(stream: &TcpStream, dialect: Dialect, scenario: Scenario, body: &[u8]) -> Result<()> {
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return error(stream, 400, "the body is not JSON", Some("invalid_request_error"));
    };
    match scenario {
        Scenario::WrongKey => error(stream, 401, "Incorrect API key provided: sk-none.", Some("invalid_api_key")),
        Scenario::TooManyRequests => {
            let message = "Rate limit reached for stub-1 in organization o on tokens per min. Please try again in 1s.";
            let body =
                json!({"error": {"message": message, "type": "tokens", "param": null, "code": "rate_limit_exceeded"}});
            error_body(stream, 429, &body, "retry-after: 1\r\n")
        }
        Scenario::LimitReached => error_body(stream, 429, &limit_reached(dialect), ""),
        Scenario::Fails => {
            error(stream, 500, "The server had an error while processing your request.", Some("server_error"))
        }
        Scenario::TooLong => error(
            stream,
            400,
            "This model's maximum context length is 1000 tokens. Please reduce the length of the messages.",
            Some("context_length_exceeded"),
        ),
        _ => speak(stream, dialect, scenario, &body),
    }
}

fn limit_reached(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Chat => {
            let message = "You exceeded your current quota, please check your plan and billing details.";
            json!({"error": {"message": message, "type": "insufficient_quota", "param": null, "code": "insufficient_quota"}})
        }
        Dialect::Responses => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            json!({"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached",
                "plan_type": "plus", "resets_at": now + 3600, "resets_in_seconds": 3600}})
        }
    }
}

fn speak(stream: &TcpStream, dialect: Dialect, scenario: Scenario, body: &Value) -> Result<()> {
    let command = scenario.command().filter(|_| !had_tool_result(dialect, body));
    let call = match command {
        Some(command) => match shell_call(&tools(dialect, body), command) {
            Some(call) => Some(call),
            None => return error(stream, 400, "the agent offers no tool that takes a command", None),
        },
        None => None,
    };
    match dialect {
        Dialect::Chat => chat(stream, scenario, call),
        Dialect::Responses => responses(stream, scenario, call),
    }
}

fn tools(dialect: Dialect, body: &Value) -> Vec<(String, Value)> {
    let tool = |tool: &Value| {
        let tool = if dialect == Dialect::Chat { &tool["function"] } else { tool };
        Some((tool["name"].as_str()?.to_owned(), tool["parameters"].clone()))
    };
    body["tools"].as_array().into_iter().flatten().filter_map(tool).collect()
}

fn had_tool_result(dialect: Dialect, body: &Value) -> bool {
    let items = if dialect == Dialect::Chat { &body["messages"] } else { &body["input"] };
    items.as_array().into_iter().flatten().any(|item| match dialect {
        Dialect::Chat => item["role"] == "tool",
        Dialect::Responses => item["type"].as_str().is_some_and(|kind| kind.ends_with("_output")),
    })
}

fn words(scenario: Scenario) -> impl Iterator<Item = &'static str> {
    scenario.words().split_inclusive(' ')
}

/// Input, of which cached, output, of which thoughts.
fn counts(scenario: Scenario, is_call: bool) -> Option<[u64; 4]> {
    match (scenario, is_call) {
        (Scenario::CountsNothing, _) => None,
        (_, true) => Some([1000, 0, 11, 0]),
        (_, false) => Some([2000, 500, 22, 7]),
    }
}

fn chat(stream: &TcpStream, scenario: Scenario, call: Option<Call>) -> Result<()> {
    let mut events = Events::begin(stream)?;
    let chunk = |choices: Value, usage: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "stub-1",
            "choices": choices, "usage": usage})
        .to_string()
    };
    let delta = |delta: Value, finish: Value| {
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}]), Value::Null)
    };
    events.send(None, &delta(json!({"role": "assistant", "content": ""}), Value::Null))?;
    let is_call = call.is_some();
    if let Some(call) = call {
        let function = json!({"name": call.name, "arguments": call.arguments.to_string()});
        let calls = json!([{"index": 0, "id": "call_1", "type": "function", "function": function}]);
        events.send(None, &delta(json!({"tool_calls": calls}), Value::Null))?;
    } else {
        for word in words(scenario) {
            events.send(None, &delta(json!({"content": word}), Value::Null))?;
        }
    }
    if scenario == Scenario::BreaksOff {
        return Ok(());
    }
    events.send(None, &delta(json!({}), json!(if is_call { "tool_calls" } else { "stop" })))?;
    if let Some([input, cached, output, thoughts]) = counts(scenario, is_call) {
        let usage = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": thoughts}});
        events.send(None, &chunk(json!([]), usage))?;
    }
    events.send(None, "[DONE]")?;
    events.finish()
}

fn responses(stream: &TcpStream, scenario: Scenario, call: Option<Call>) -> Result<()> {
    let mut events = Events::begin(stream)?;
    let mut number = 0;
    let mut send = |kind: &str, mut data: Value| {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(number);
        number += 1;
        events.send(Some(kind), &data.to_string())
    };
    let response = |status: &str, output: Value, usage: Value| {
        json!({"response": {"id": "resp_1", "object": "response", "created_at": 1, "model": "stub-1", "status": status,
            "output": output, "usage": usage, "error": null}})
    };
    send("response.created", response("in_progress", json!([]), Value::Null))?;
    let is_call = call.is_some();
    let item = match call {
        Some(call) => json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": call.name,
            "arguments": call.arguments.to_string(), "status": "completed"}),
        None => {
            let added =
                json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []});
            send("response.output_item.added", json!({"output_index": 0, "item": added}))?;
            for word in words(scenario) {
                let delta = json!({"item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": word});
                send("response.output_text.delta", delta)?;
            }
            let content = json!([{"type": "output_text", "text": scenario.words(), "annotations": []}]);
            json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content})
        }
    };
    if scenario == Scenario::BreaksOff {
        return Ok(());
    }
    send("response.output_item.done", json!({"output_index": 0, "item": item}))?;
    let usage = counts(scenario, is_call).map(|[input, cached, output, thoughts]| {
        json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": thoughts}, "total_tokens": input + output})
    });
    send("response.completed", response("completed", json!([item]), json!(usage)))?;
    events.finish()
}
