//! `ln.prompt`: a prompt from a file, read once and fenced.

use mlua::{Lua, Value};

use super::objects::PromptObject;
use super::{Namespace, Shape, Signature};
use crate::policy::{Keep, PromptError, STANDARD_SLOTS, SlotSource, SlotSpec, read_prompt};
use crate::script::error::{ErrorKind, ScriptError};
use crate::script::options::schema::Kind;
use crate::script::options::tables::{PROMPT, SLOT};
use crate::script::options::{Given, Problems, Record, join, read as read_kind, read_table};
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
    let mut slots = Vec::new();
    let (file, most) = match &value {
        Value::String(file) => (Some(file.to_string_lossy()), None),
        Value::Table(_) => {
            let mut record = read_table(&value, &PROMPT, "", &mut problems);
            slots = slots_of(record.map("slots").unwrap_or_default(), "slots", &mut problems);
            (record.text("file"), record.bytes("max_bytes"))
        }
        other => {
            problems.add("", format!("must be a file's name or a table, got {}", show::short(other)));
            (None, None)
        }
    };
    problems.into_result("ln.prompt", place::of_caller(lua, &shared.texts)).map_err(|raised| raised.into_lua())?;
    let mut prompt = read(&shared, &file.unwrap_or_default(), most)
        .map_err(|error| place::raise(lua, &shared.texts, error.kind, format!("ln.prompt: {}", error.message)))?;
    prompt.add(slots);
    Ok(prompt)
}

static SLOTS: Kind = Kind::Map(&Kind::Table(&SLOT));

/// `prompt:with{ plan = {…} }`: the same prompt with further slots, or others in the place of those of the same name.
pub(super) fn with(lua: &Lua, (this, value): (mlua::AnyUserData, Value)) -> mlua::Result<PromptObject> {
    let shared = Shared::of(lua);
    let mut problems = Problems::default();
    let slots = match read_kind(&value, &SLOTS, "", &mut problems) {
        Some(Given::Map(items)) => slots_of(items, "", &mut problems),
        _ => Vec::new(),
    };
    problems.into_result("prompt:with", place::of_caller(lua, &shared.texts)).map_err(|raised| raised.into_lua())?;
    let mut prompt = this.borrow::<PromptObject>()?.clone();
    prompt.add(slots);
    Ok(prompt)
}

impl PromptObject {
    fn add(&mut self, slots: Vec<(SlotSpec, Option<mlua::Function>)>) {
        for (slot, reader) in slots {
            self.slots.retain(|old| old.name != slot.name);
            self.readers.remove(&slot.name);
            if let Some(reader) = reader {
                self.readers.insert(slot.name.clone(), reader);
            }
            self.slots.push(slot);
        }
    }
}

/// What checked slots mean; each with its function, where it has one.
fn slots_of(
    items: std::collections::BTreeMap<String, Given>,
    path: &str,
    problems: &mut Problems,
) -> Vec<(SlotSpec, Option<mlua::Function>)> {
    let mut slots = Vec::new();
    for (name, given) in items {
        let Given::Table(record) = given else { continue };
        let field = join(path, &name);
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            problems.add(&field, "is no name for a slot: use letters, digits, _ and -");
            continue;
        }
        if let Some(slot) = one_slot(name, record, &field, problems) {
            slots.push(slot);
        }
    }
    slots
}

fn one_slot(
    name: String,
    mut record: Record,
    field: &str,
    problems: &mut Problems,
) -> Option<(SlotSpec, Option<mlua::Function>)> {
    let max_bytes = usize::try_from(record.bytes("max_bytes")?).unwrap_or(usize::MAX);
    let keep = match record.text("keep").as_deref() {
        Some("head") => Keep::Head,
        Some("tail") => Keep::Tail,
        _ => Keep::Both,
    };
    let reader = record.function("read");
    let sources: Vec<SlotSource> = [
        record.text("text").map(SlotSource::Text),
        record.text("file").map(SlotSource::File),
        record.text("glob").map(SlotSource::Glob),
        reader.as_ref().map(|_| SlotSource::Function),
    ]
    .into_iter()
    .flatten()
    .collect();
    let standard = STANDARD_SLOTS.contains(&name.as_str());
    let source = match <[SlotSource; 1]>::try_from(sources) {
        Ok([source]) if !standard => source,
        Err(none) if none.is_empty() && standard => SlotSource::Standard,
        Ok(_) => {
            problems.add(field, "is filled by the loop itself: give it max_bytes and keep only");
            return None;
        }
        Err(none) if none.is_empty() => {
            problems.add(field, "needs one of text, file, glob or read");
            return None;
        }
        Err(_) => {
            problems.add(field, "has several sources: give one of text, file, glob or read");
            return None;
        }
    };
    Some((SlotSpec { name, source, max_bytes, keep }, reader))
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
    Ok(PromptObject { text, file: Some(found.name), slots: Vec::new(), readers: Default::default() })
}

/// What a checked prompt option means: text and its file. Functions are told by the caller.
pub(super) fn from_given(given: &Given, path: &str, problems: &mut Problems) -> Option<PromptObject> {
    match given {
        Given::Text(text) => match read_prompt("the prompt", text.as_bytes()) {
            Ok(text) => Some(PromptObject { text, file: None, slots: Vec::new(), readers: Default::default() }),
            Err(problem) => {
                problems.add(path, problem.to_string());
                None
            }
        },
        Given::Object(data) => data.borrow::<PromptObject>().ok().map(|prompt| prompt.clone()),
        _ => None,
    }
}
