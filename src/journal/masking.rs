//! Taking secrets and environments out of an event before it is written.

use std::borrow::Cow;

use serde_json::Value;

use super::error::JournalError;
use super::event::Event;
use super::record::{MOST_STRING_BYTES, change_strings, cut, drop_environments, event_from};
use super::secrets::Secrets;

/// No name of a field and no value of an enumeration in the format is longer.
const MOST_WORD_BYTES: usize = 24;

/// The event without secrets, as JSON and as it will be read back. Strings that are too long are cut.
pub(super) fn masked(event: &Event, secrets: &Secrets) -> Result<(Value, Event), JournalError> {
    let not_json = |source| JournalError::NotJson { kind: event.kind().to_owned(), source };
    let mut changed = false;
    let mut json = plain(event).map_err(not_json)?;
    change_strings(&mut json["data"], &mut |text| {
        let masked = mask(text, secrets);
        changed |= masked.is_some();
        masked
    });
    let read = |json: &Value| event_from(json["kind"].clone(), json["data"].clone());
    if !changed && !has_environments(event) {
        return Ok((json, event.clone()));
    }
    if let Ok(event) = read(&json) {
        return Ok((json, event));
    }
    // A secret is a word of the format, or part of one. Single lower-case words then stay as they are, so that the
    // record can be read; all other text is masked.
    let mut json = plain(event).map_err(not_json)?;
    change_strings(&mut json["data"], &mut |text| if is_word(text) { None } else { mask(text, secrets) });
    let event = read(&json).map_err(not_json)?;
    Ok((json, event))
}

/// What a string becomes, where it does not stay as it is.
fn mask(text: &str, secrets: &Secrets) -> Option<String> {
    match secrets.mask(text) {
        Cow::Borrowed(text) => (text.len() > MOST_STRING_BYTES).then(|| cut(text.to_owned())),
        Cow::Owned(masked) => Some(cut(masked)),
    }
}

fn plain(event: &Event) -> Result<Value, serde_json::Error> {
    let mut json = serde_json::to_value(event)?;
    if has_environments(event) {
        drop_environments(&mut json["data"]);
    }
    Ok(json)
}

/// Only the spec of a loop has commands with environments of their own.
fn has_environments(event: &Event) -> bool {
    matches!(event, Event::LoopStarted { .. })
}

fn is_word(text: &str) -> bool {
    text.len() <= MOST_WORD_BYTES && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte == b'-')
}
