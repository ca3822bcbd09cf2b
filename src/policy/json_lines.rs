//! How an agent that speaks in JSON lines is read, as data: rules over fields, no code.
//!
//! A rule says which lines it is about ([`Match`]) and where in them something stands (a dotted path). A path may cross
//! lists: `content[].text` is the text of every element, joined. The rules of one line are all tried; of several lines
//! that say the same kind of thing the last one counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::turn::ErrorKind;

/// One condition on a JSON line: each dotted path must have this value.
///
/// A string that starts with `^` or is wrapped in `/…/` is a regular expression over the string there; any other value
/// must be equal (numbers by value: 1 equals 1.0). Where a path crosses a list, one element that fits is enough.
/// A condition without any path fits no line, so that a forgotten one is not "always".
pub type Match = BTreeMap<String, serde_json::Value>;

/// How to read an agent that speaks in JSON lines.
///
/// How a turn went is the last of `done`, `well`, `truncated` and `failed` that was seen, and it is over with a line of
/// `done` or `ended` or a `failed` line that is `final`. A turn without such a line never ended well.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JsonLines {
    /// Lines with (part of) the final message.
    pub text: Vec<TextRule>,
    /// After these lines, text that is appended starts afresh.
    pub fresh: Vec<Match>,
    /// Lines that say that the turn ended well.
    pub done: Vec<Match>,
    /// Lines that only say that the turn is over; how it went is what stood before them.
    pub ended: Vec<Match>,
    /// Lines that say that all is well so far: trouble that was told before them is over.
    pub well: Vec<Match>,
    /// Lines that say that the answer was cut by a length limit.
    pub truncated: Vec<Match>,
    /// Lines that report trouble.
    pub failed: Vec<FailedRule>,
    /// Lines about a retry; they name the trouble that the agent is waiting out.
    pub retry: Vec<FailedRule>,
    /// What the agent's own error codes (see [`FailedRule::code`]) mean.
    pub codes: BTreeMap<String, ErrorKind>,
    /// Token counts and cost; for each of both the first rule that found something counts.
    pub usage: Vec<UsageRule>,
    /// Lines with the name of the session.
    pub session: Vec<TextRule>,
    /// Values of `type` whose lines are dropped, before they are parsed where `type` stands first, because they are
    /// huge and say nothing.
    pub ignore: Vec<String>,
}

/// A line that holds text.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextRule {
    /// Which lines.
    pub when: Match,
    /// Lines that match this too are passed over (a sub-agent's own message is not the agent's).
    pub unless: Match,
    /// Dotted path of the text. A matching line without it holds the empty text: absence is no signal, and never an
    /// older message.
    pub text: String,
    /// True: the line adds to the text. False (default): it replaces it.
    pub append: bool,
}

/// A line that reports trouble.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FailedRule {
    /// Which lines.
    pub when: Match,
    /// Lines that match this too are passed over.
    pub unless: Match,
    /// True: the turn is over with this line. False (default): it may still get well. No meaning in `retry`.
    #[serde(rename = "final")]
    pub is_final: bool,
    /// Dotted paths of the message; the first that holds text counts.
    pub message: Vec<String>,
    /// Dotted path of a numeric status like 429.
    pub status: Option<String>,
    /// Dotted path of the agent's own word for the error, looked up in [`JsonLines::codes`].
    pub code: Option<String>,
    /// Dotted path of the time of reset in Unix seconds.
    pub resets_at: Option<String>,
}

/// Where token counts stand in a JSON line, and by which convention. Paths are dotted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UsageRule {
    /// Which lines hold it.
    pub when: Match,
    /// Path of the input tokens.
    pub input: Option<String>,
    /// Path of the tokens read from the cache.
    pub cache_read: Option<String>,
    /// Path of the tokens written to the cache.
    pub cache_write: Option<String>,
    /// Path of the output tokens.
    pub output: Option<String>,
    /// Path of the reasoning tokens.
    pub reasoning: Option<String>,
    /// Path of the cost in US dollars.
    pub cost: Option<String>,
    /// True: every matching line adds. False (default): the last matching line holds the total of the process.
    pub sum: bool,
    /// With `sum`: path of an id. Lines in a row with the same id tell of the same call, so only the last of them adds.
    pub id: Option<String>,
    /// True where `input` counts cached tokens too.
    pub input_includes_cache: bool,
    /// True where `output` leaves reasoning tokens out.
    pub output_excludes_reasoning: bool,
}
