//! What can go wrong with a script, classified before it becomes words.
//!
//! Owns [`ScriptError`]: kind, place, message, source line, trace. Must not know how a person will see it beyond plain
//! text. Guarantees that a place in the script is named wherever Lua knows one, and that frames of the host are not in
//! the trace.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::policy::Reason;

/// What kind of trouble it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The text is no Lua, or uses a name that nobody declared.
    Compile,
    /// An option is unknown, of the wrong type, or out of its range.
    Options,
    /// The script tried to do something while it was being loaded.
    EffectAtLoad,
    /// Any other error that the script or a function that it called raised.
    Runtime,
    /// The instruction budget between two effects was used up.
    Budget,
    /// The memory limit was reached.
    Memory,
    /// Lua did not come back; the VM is lost, the host goes on.
    Stuck,
    /// The run was ended from outside.
    Cancelled,
    /// A script, module or prompt file is not there or may not be read.
    NotFound,
    /// A file is not UTF-8 text.
    Encoding,
    /// `require` was refused: a bad name, a cycle, a link to outside.
    Require,
}

/// A place in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as it is shown: relative to the workspace.
    pub file: String,
    /// The line, from 1, where known.
    pub line: Option<u32>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

/// A script that could not be loaded or run.
///
/// `Display` gives the whole text for a person:
///
/// ```text
/// loop.lua:4: sense has no field `failling`; did you mean `failing`?
///    |
///  4 |   return o.sense.failling == 0
///    |
///    loop.lua:4: in function <loop.lua:3>
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// What kind of trouble.
    pub kind: ErrorKind,
    /// Where, where known.
    pub place: Option<Place>,
    /// What is wrong and what to write instead; may have several lines.
    pub message: String,
    /// The line of the script at the place.
    pub source_line: Option<Box<str>>,
    /// Frames of the script, innermost first, one line each.
    pub trace: Vec<String>,
    /// Which of the script's functions was asked, like `decide`.
    pub hook: Option<&'static str>,
    /// Why the run ends, where an effect of the engine failed and not the script.
    pub reason: Option<Reason>,
}

impl ScriptError {
    /// An error without a place.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ScriptError {
        ScriptError {
            kind,
            place: None,
            message: message.into(),
            source_line: None,
            trace: Vec::new(),
            hook: None,
            reason: None,
        }
    }

    /// The same error at a place.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> ScriptError {
        self.place = place.or(self.place);
        self
    }

    /// File of the place.
    pub fn file(&self) -> Option<&str> {
        self.place.as_ref().map(|place| place.file.as_str())
    }

    /// Line of the place.
    pub fn line(&self) -> Option<u32> {
        self.place.as_ref().and_then(|place| place.line)
    }

    /// Place and message in one piece, without source line and trace.
    pub fn headline(&self) -> String {
        match &self.place {
            Some(place) => format!("{place}: {}", self.message),
            None => self.message.clone(),
        }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline())?;
        if let (Some(line), Some(text)) = (self.line(), &self.source_line) {
            let number = line.to_string();
            let blank = " ".repeat(number.len());
            write!(f, "\n {blank} |\n {number} | {text}\n {blank} |")?;
        }
        for frame in &self.trace {
            write!(f, "\n   {frame}")?;
        }
        if let Some(hook) = &self.hook {
            write!(f, "\n   in the script's `{hook}` function")?;
        }
        Ok(())
    }
}

impl std::error::Error for ScriptError {}

/// What a binding raises into Lua; found again in whatever Lua made of it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", .place.as_ref().map_or_else(|| message.clone(), |place| format!("{place}: {message}")))]
pub(super) struct Raised {
    pub(super) kind: ErrorKind,
    pub(super) place: Option<Place>,
    pub(super) message: String,
    /// Why a run ends that this ends, where the engine knows better than "the script failed".
    pub(super) reason: Option<Reason>,
}

impl Raised {
    pub(super) fn new(kind: ErrorKind, place: Option<Place>, message: impl Into<String>) -> Raised {
        Raised { kind, place, message: message.into(), reason: None }
    }

    pub(super) fn into_lua(self) -> mlua::Error {
        mlua::Error::external(self)
    }
}

/// The texts of a script and its modules, by shown name: where source lines come from.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts(Arc<Mutex<Vec<NamedText>>>);

type NamedText = (String, Arc<str>);

impl Texts {
    pub(super) fn add(&self, name: &str, text: &str) {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        texts.retain(|(known, _)| known != name);
        texts.push((name.to_owned(), text.into()));
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|(known, _)| known == name)
    }

    /// Prompt files that the texts name as plain strings.
    pub(super) fn prompt_names(&self) -> Vec<String> {
        let texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(pattern) =
            regex::Regex::new(r#"ln\s*\.\s*prompt\s*\(?\s*(?:\{\s*file\s*=\s*)?(?:"([^"\\\n]+)"|'([^'\\\n]+)')"#)
        else {
            return Vec::new();
        };
        let found = texts.iter().flat_map(|(_, text)| {
            pattern.captures_iter(text).filter_map(|found| Some(found.get(1).or(found.get(2))?.as_str().to_owned()))
        });
        found.collect()
    }

    pub(super) fn line(&self, place: &Place) -> Option<Box<str>> {
        let texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, text) = texts.iter().find(|(name, _)| *name == place.file)?;
        let line = text.lines().nth(place.line?.checked_sub(1)? as usize)?;
        Some(line.trim_end().chars().take(MOST_SOURCE_LINE).collect::<String>().into())
    }
}

/// Characters of a source line that are shown.
const MOST_SOURCE_LINE: usize = 160;
/// Bytes of a message that are kept.
const MOST_MESSAGE: usize = 8 << 10;
/// Frames of a trace that are shown.
const MOST_FRAMES: usize = 12;

/// An error value as it left Lua, with the stack where it was raised.
pub(super) struct Caught<'a> {
    pub(super) value: &'a mlua::Value,
    pub(super) trace: &'a str,
}

impl Caught<'_> {
    /// Classifies, finds the place, and drops the host's frames.
    pub(super) fn into_error(self, texts: &Texts) -> ScriptError {
        let trace = script_frames(self.trace, texts);
        let mut error = match self.value {
            mlua::Value::Error(error) => from_mlua(error),
            mlua::Value::String(text) => from_text(&text.to_string_lossy(), texts),
            mlua::Value::Nil => ScriptError::new(ErrorKind::Runtime, NO_ERROR),
            other => {
                ScriptError::new(ErrorKind::Runtime, format!("the script raised {}", super::vm::show::value(other)))
            }
        };
        if error.place.is_none() {
            error.place = trace.first().and_then(|frame| place_of(frame, texts)).map(|(place, _)| place);
        }
        error.source_line = error.place.as_ref().and_then(|place| texts.line(place));
        error.trace = trace;
        if error.message.len() > MOST_MESSAGE {
            error.message = crate::policy::cap_feedback(&error.message, MOST_MESSAGE, None);
        }
        // A single main-chunk frame at the place itself says nothing new.
        if error.trace.len() == 1 && error.trace[0].ends_with("in main chunk") {
            error.trace.clear();
        }
        error
    }
}

/// From an error that mlua itself returned.
pub(super) fn from_mlua(error: &mlua::Error) -> ScriptError {
    if let Some(raised) = error.chain().find_map(|cause| cause.downcast_ref::<Raised>()) {
        let mut error = ScriptError::new(raised.kind, raised.message.clone()).at(raised.place.clone());
        error.reason = raised.reason;
        return error;
    }
    if let Some(script) = error.chain().find_map(|cause| cause.downcast_ref::<ScriptError>()) {
        return script.clone();
    }
    match error {
        mlua::Error::MemoryError(_) => ScriptError::new(ErrorKind::Memory, MEMORY),
        mlua::Error::CallbackError { cause, .. } | mlua::Error::WithContext { cause, .. } => from_mlua(cause),
        mlua::Error::RuntimeError(text) => {
            let text = text.split("\nstack traceback:").next().unwrap_or(text);
            ScriptError::new(ErrorKind::Runtime, friendly(text))
        }
        mlua::Error::BadArgument { pos, name, cause, .. } => {
            let name = name.as_ref().map_or_else(|| format!("argument {pos}"), |name| format!("`{name}`"));
            ScriptError::new(ErrorKind::Runtime, format!("{name}: {}", from_mlua(cause).message))
        }
        mlua::Error::FromLuaConversionError { from, to, .. } => {
            ScriptError::new(ErrorKind::Runtime, format!("{to} expected, got {from}"))
        }
        other => ScriptError::new(ErrorKind::Runtime, friendly(&other.to_string())),
    }
}

const NO_ERROR: &str = "the script raised an error that is nil: write error(\"what is wrong\")";
pub(super) const MEMORY: &str =
    "the script's memory limit was reached: build smaller strings and tables, recurse less deeply";

/// From the text of a Lua error: `file:line: message`, or a message alone.
fn from_text(text: &str, texts: &Texts) -> ScriptError {
    if text.ends_with("not enough memory") {
        return ScriptError::new(ErrorKind::Memory, MEMORY);
    }
    // What Lua 5.5 makes of an error that is nil.
    if text == "<no error object>" {
        return ScriptError::new(ErrorKind::Runtime, NO_ERROR);
    }
    match place_of(text, texts) {
        Some((place, rest)) => ScriptError::new(ErrorKind::Runtime, friendly(rest)).at(Some(place)),
        None => ScriptError::new(ErrorKind::Runtime, friendly(without_host_place(text))),
    }
}

/// Splits `file:line: rest` where the file is one of the script's.
pub(super) fn place_of<'t>(text: &'t str, texts: &Texts) -> Option<(Place, &'t str)> {
    for (at, _) in text.match_indices(':') {
        let file = &text[..at];
        let digits = text[at + 1..].split(|c: char| !c.is_ascii_digit()).next().unwrap_or("");
        let after = &text[at + 1 + digits.len()..];
        if let (Ok(line), Some(rest)) = (digits.parse(), after.strip_prefix(':'))
            && texts.knows(file)
        {
            return Some((Place { file: file.to_owned(), line: Some(line) }, rest.trim_start()));
        }
        if at > 4096 {
            break;
        }
    }
    None
}

/// Drops `lunation/prelude.lua:30: `, a place that a script's author can do nothing with.
pub(super) fn without_host_place(text: &str) -> &str {
    if !text.starts_with("lunation/") {
        return text;
    }
    match text.split_once(": ") {
        Some((_, rest)) => rest,
        None => text,
    }
}

fn script_frames(trace: &str, texts: &Texts) -> Vec<String> {
    trace
        .lines()
        .map(str::trim)
        .filter(|line| place_of(line, texts).is_some())
        .take(MOST_FRAMES)
        .map(str::to_owned)
        .collect()
}

/// Puts what Lua says into words that tell a beginner what to do.
pub(super) fn friendly(message: &str) -> String {
    if message.contains("attempt to yield across a C-call boundary")
        || message.contains("attempt to yield from outside a coroutine")
    {
        return "a lunation call that waits was used inside a table.sort or string.gsub callback or a __tostring \
                metamethod, where Lua cannot wait: collect the values in a table first, then sort or replace with them"
            .into();
    }
    if message.contains("field 'sense')") || message.contains("field 'best')") {
        return format!("{message} (a loop without sensors has no `sense` and no `best`)");
    }
    message.to_owned()
}
