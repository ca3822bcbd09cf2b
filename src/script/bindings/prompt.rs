//! `ln.prompt`: a prompt from a file, read once and fenced.

use mlua::{Lua, Value};

use super::objects::PromptObject;
use super::{Namespace, Shape, Signature};
use crate::policy::{PromptError, read_prompt};
use crate::script::error::{ErrorKind, ScriptError};
use crate::script::options::tables::PROMPT;
use crate::script::options::{Given, Problems, read_table};
use crate::script::vm::{Shared, place, show};

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "prompt",
    shape: Shape::Table {
        call: Some(Signature {
            doc: "A prompt from a file beside the script, or else below the root. It is read once; no agent may write the file.",
            params: &[("opts", "string|lunation.PromptOpts")],
            returns: Some("lunation.Prompt"),
        }),
        members: &[],
    },
    later: &[],
    make: |lua| {
        let content = lua.create_table()?;
        content.raw_set("()", lua.create_function(make)?)?;
        Ok(Value::Table(content))
    },
};

fn make(lua: &Lua, (_, value): (Value, Value)) -> mlua::Result<PromptObject> {
    let shared = Shared::of(lua);
    let mut problems = Problems::default();
    let (file, most) = match &value {
        Value::String(file) => (Some(file.to_string_lossy()), None),
        Value::Table(_) => {
            let mut record = read_table(&value, &PROMPT, "", &mut problems);
            (record.text("file"), record.bytes("max_bytes"))
        }
        other => {
            problems.add("", format!("must be a file's name or a table, got {}", show::short(other)));
            (None, None)
        }
    };
    problems.into_result("ln.prompt", place::of_caller(lua, &shared.texts)).map_err(|raised| raised.into_lua())?;
    read(&shared, &file.unwrap_or_default(), most)
        .map_err(|error| place::raise(lua, &shared.texts, error.kind, format!("ln.prompt: {}", error.message)))
}

fn read(shared: &Shared, file: &str, most: Option<u64>) -> Result<PromptObject, ScriptError> {
    let found = match shared.reader().as_mut() {
        Some(reader) => reader.prompt(file)?,
        None => return Err(ScriptError::new(ErrorKind::NotFound, "no script is being loaded")),
    };
    if let Some(most) = most
        && found.bytes.len() as u64 > most
    {
        let problem = PromptError::TooLong { of: found.name, bytes: found.bytes.len(), cap: most as usize };
        return Err(ScriptError::new(ErrorKind::Options, problem.to_string()));
    }
    let text = read_prompt(&found.name, &found.bytes).map_err(|problem| {
        let kind = match problem {
            PromptError::Empty { .. } | PromptError::TooLong { .. } => ErrorKind::Options,
            _ => ErrorKind::Encoding,
        };
        ScriptError::new(kind, problem.to_string())
    })?;
    Ok(PromptObject { text, file: Some(found.name) })
}

/// What a checked prompt option means: text and its file. Functions are told by the caller.
pub(super) fn from_given(given: &Given, path: &str, problems: &mut Problems) -> Option<PromptObject> {
    match given {
        Given::Text(text) => match read_prompt("the prompt", text.as_bytes()) {
            Ok(text) => Some(PromptObject { text, file: None }),
            Err(problem) => {
                problems.add(path, problem.to_string());
                None
            }
        },
        Given::Object(data) => data.borrow::<PromptObject>().ok().map(|prompt| prompt.clone()),
        _ => None,
    }
}
