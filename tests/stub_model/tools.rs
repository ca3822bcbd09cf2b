//! Calling the agent's own shell tool, by the schema that it sent.

use serde_json::{Map, Value, json};

/// A call of a tool.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Value,
}

/// A call that runs `command` with the first tool that takes a command, shells first; `None` when there is none.
pub(super) fn shell_call(tools: &[(String, Value)], command: &str) -> Option<Call> {
    const SHELLS: [&str; 4] = ["bash", "shell", "exec", "command"];
    let mut able: Vec<&(String, Value)> = tools.iter().filter(|(_, schema)| command_field(schema).is_some()).collect();
    able.sort_by_key(|(name, _)| SHELLS.iter().position(|shell| name.contains(shell)).unwrap_or(SHELLS.len()));
    let (name, schema) = able.first()?;
    Some(Call { name: name.clone(), arguments: arguments(schema, command) })
}

fn command_field(schema: &Value) -> Option<&str> {
    let fields = schema["properties"].as_object()?;
    ["command", "cmd", "commands"].into_iter().find(|name| fields.contains_key(*name))
}

fn arguments(schema: &Value, command: &str) -> Value {
    let field = command_field(schema).unwrap();
    let mut arguments = Map::new();
    let is_list = schema["properties"][field]["type"] == "array";
    arguments.insert(field.into(), if is_list { json!(["bash", "-c", command]) } else { json!(command) });
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if name != field {
            arguments.insert(name.into(), placeholder(&schema["properties"][name]));
        }
    }
    Value::Object(arguments)
}

fn placeholder(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("boolean") => json!(false),
        Some("number" | "integer") => json!(30_000),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("write hello.txt"),
    }
}
