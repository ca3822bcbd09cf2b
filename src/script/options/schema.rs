//! The words in which options are described: one description serves the validator, the annotations and the reference.

/// A kind of value that an option takes.
#[derive(Debug)]
pub(in crate::script) enum Kind {
    /// A string, never blank.
    Text,
    /// A string that may be empty.
    AnyText,
    /// True or false.
    Bool,
    /// A whole number of at least `min`.
    Integer { min: u64, max: u64 },
    /// A finite number above 0.
    PositiveNumber,
    /// A duration, more than 0: `"90s"`, `"20m"` or seconds.
    Duration,
    /// A size in bytes, at least 1: `"4KiB"` or bytes.
    Bytes,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A shell line, or a list of words.
    Command,
    /// A list.
    List(&'static Kind),
    /// A table by names of the user's choosing.
    Map(&'static Kind),
    /// A list, or a table by names.
    ListOrMap(&'static Kind),
    /// A table of options.
    Table(&'static TableSchema),
    /// Something that another `ln` function made.
    Object(Object),
    /// A function; its annotation.
    Function(&'static str),
    /// Plain data, read by its own rules; its annotation.
    Data(&'static str),
    /// The first of these that takes a value of the given type.
    Either(&'static [Kind]),
}

/// What `ln` functions make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::script) enum Object {
    Agent,
    Prompt,
    Sensor,
    Complete,
}

impl Object {
    /// Its name in annotations and messages.
    pub(in crate::script) fn name(self) -> &'static str {
        match self {
            Object::Agent => "Agent",
            Object::Prompt => "Prompt",
            Object::Sensor => "Sensor",
            Object::Complete => "Complete",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Object::Agent => "ln.agent \"claude\"",
            Object::Prompt => "ln.prompt \"PROMPT.md\"",
            Object::Sensor => "ln.sensor{ \"cargo test\" }",
            Object::Complete => "ln.complete.sentinel \"RALPH COMPLETE\"",
        }
    }
}

/// One option.
#[derive(Debug)]
pub(in crate::script) struct Field {
    pub(in crate::script) name: &'static str,
    pub(in crate::script) kind: Kind,
    pub(in crate::script) required: bool,
    pub(in crate::script) default: Option<&'static str>,
    pub(in crate::script) doc: &'static str,
    /// First version that has it.
    pub(in crate::script) since: &'static str,
}

/// An option that may be left out.
pub(in crate::script) const fn field(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field { name, kind, required: false, default: None, doc, since: "0.1.0" }
}

impl Field {
    /// It must be given.
    pub(in crate::script) const fn required(mut self) -> Field {
        self.required = true;
        self
    }

    /// What holds when it is left out, as a script would write it.
    pub(in crate::script) const fn default(mut self, value: &'static str) -> Field {
        self.default = Some(value);
        self
    }
}

/// A table of options.
#[derive(Debug)]
pub(in crate::script) struct TableSchema {
    /// Name of its class in the annotations, without `lunation.`.
    pub(in crate::script) class: &'static str,
    /// How a script writes it: `ln.loop{…}`, `budget = {…}`.
    pub(in crate::script) written: &'static str,
    pub(in crate::script) doc: &'static str,
    /// What may stand in its list part.
    pub(in crate::script) list: Option<(Kind, &'static str)>,
    pub(in crate::script) fields: &'static [Field],
    /// Options that a later version brings: an honest answer instead of "unknown".
    pub(in crate::script) later: &'static [&'static str],
    /// Names that people try, and what to write instead.
    pub(in crate::script) instead: &'static [(&'static str, &'static str)],
}

impl TableSchema {
    pub(in crate::script) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Kind {
    /// In words, for messages: "a whole number".
    pub(in crate::script) fn words(&self) -> String {
        match self {
            Kind::Text | Kind::AnyText => "a string".into(),
            Kind::Bool => "true or false".into(),
            Kind::Integer { .. } => "a whole number".into(),
            Kind::PositiveNumber => "a number".into(),
            Kind::Duration => "a duration like \"90s\" or \"20m\", or seconds".into(),
            Kind::Bytes => "a size like \"4KiB\", or bytes".into(),
            Kind::Choice(choices) => {
                format!("one of {}", choices.iter().map(|c| format!("\"{c}\"")).collect::<Vec<_>>().join(", "))
            }
            Kind::Command => "a command: a string for the shell, or a list of words".into(),
            Kind::List(of) => format!("a list, each {}", of.words()),
            Kind::Map(of) => format!("a table by names, each {}", of.words()),
            Kind::ListOrMap(of) => format!("a list or a table by names, each {}", of.words()),
            Kind::Table(schema) => format!("a table like {}", schema.written),
            Kind::Object(object) => format!("made by {}", object.example()),
            Kind::Function(_) => "a function".into(),
            Kind::Data(_) => "a table".into(),
            Kind::Either(kinds) => kinds.iter().map(Kind::words).collect::<Vec<_>>().join(", or "),
        }
    }

    /// As a LuaCATS type.
    pub(in crate::script) fn annotation(&self) -> String {
        match self {
            Kind::Text | Kind::AnyText => "string".into(),
            Kind::Bool => "boolean".into(),
            Kind::Integer { .. } => "integer".into(),
            Kind::PositiveNumber => "number".into(),
            Kind::Duration => "lunation.Duration".into(),
            Kind::Bytes => "lunation.Bytes".into(),
            Kind::Choice(choices) => choices.iter().map(|c| format!("\"{c}\"")).collect::<Vec<_>>().join("|"),
            Kind::Command => "lunation.Command".into(),
            Kind::List(of) => match of {
                Kind::Either(_) | Kind::Choice(_) | Kind::Function(_) => format!("({})[]", of.annotation()),
                _ => format!("{}[]", of.annotation()),
            },
            Kind::Map(of) => format!("table<string, {}>", of.annotation()),
            Kind::ListOrMap(of) => format!("table<integer|string, {}>", of.annotation()),
            Kind::Table(schema) => format!("lunation.{}", schema.class),
            Kind::Object(object) => format!("lunation.{}", object.name()),
            Kind::Function(annotation) | Kind::Data(annotation) => (*annotation).into(),
            Kind::Either(kinds) => kinds.iter().map(Kind::annotation).collect::<Vec<_>>().join("|"),
        }
    }
}
