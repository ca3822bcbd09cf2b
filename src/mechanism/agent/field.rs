//! Dotted paths into a JSON line, and the part of a line that a set of paths can see.
//!
//! Owns the little path language (`usage.input_tokens`, `message.content[].text`). Must not know what any field means.
//! Guarantees that parsing a line keeps only what the paths name, so that a line of megabytes costs little memory
//! however it is made.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Into the field of an object.
    Key(String),
    /// Into every element of a list.
    Each,
}

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldPath {
    steps: Vec<Step>,
}

impl FieldPath {
    /// Reads a path; the error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<FieldPath, String> {
        let wrong =
            |why: &str| format!("`{text}` is not a path: {why}; write it like `usage.input` or `content[].text`");
        let mut steps = Vec::new();
        for segment in text.split('.') {
            let name = segment.trim_end_matches("[]");
            if name.is_empty() {
                return Err(wrong("a name is missing"));
            }
            if name.contains(['[', ']']) {
                return Err(wrong("brackets stand only as `[]` after a name"));
            }
            steps.push(Step::Key(name.to_owned()));
            steps.extend((0..(segment.len() - name.len()) / 2).map(|_| Step::Each));
        }
        Ok(FieldPath { steps })
    }

    /// Calls `see` with every value that stands at this path.
    pub(super) fn each<'v>(&self, line: &'v Value, see: &mut dyn FnMut(&'v Value)) {
        fn walk<'v>(steps: &[Step], value: &'v Value, see: &mut dyn FnMut(&'v Value)) {
            match (steps.split_first(), value) {
                (None, _) => see(value),
                (Some((Step::Key(key), rest)), Value::Object(map)) => {
                    if let Some(inner) = map.get(key) {
                        walk(rest, inner, see);
                    }
                }
                (Some((Step::Each, rest)), Value::Array(list)) => list.iter().for_each(|inner| walk(rest, inner, see)),
                _ => {}
            }
        }
        walk(&self.steps, line, see);
    }

    /// The strings at this path, joined; `None` when there is none.
    pub(super) fn text(&self, line: &Value) -> Option<String> {
        let mut text: Option<String> = None;
        self.each(line, &mut |value| {
            if let Value::String(part) = value {
                text.get_or_insert_default().push_str(part);
            }
        });
        text
    }

    /// The first number at this path.
    pub(super) fn number(&self, line: &Value) -> Option<f64> {
        let mut number = None;
        self.each(line, &mut |value| number = number.or_else(|| value.as_f64()));
        number
    }
}

/// The fields that a set of paths can see. Parses lines, dropping everything else on the way.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    keys: BTreeMap<String, Sieve>,
    each: Option<Box<Sieve>>,
    /// A path ends here: a plain value is kept.
    leaf: bool,
}

impl Sieve {
    /// Lets `path` through.
    pub(super) fn admit(&mut self, path: &FieldPath) {
        let mut at = self;
        for step in &path.steps {
            at = match step {
                Step::Key(key) => at.keys.entry(key.clone()).or_default(),
                Step::Each => at.each.get_or_insert_default(),
            };
        }
        at.leaf = true;
    }

    /// Parses one whole JSON text. Nested deeper than serde_json's limit (128) is an error, like any other mistake.
    pub(super) fn parse(&self, line: &[u8]) -> Result<Value, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(line);
        let value = self.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }

    fn leaf(&self, value: impl Into<Value>) -> Value {
        if self.leaf { value.into() } else { Value::Null }
    }
}

impl<'de> DeserializeSeed<'de> for &Sieve {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &Sieve {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(self.leaf(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(self.leaf(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(self.leaf(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, |number| self.leaf(number)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(if self.leaf { Value::String(value.to_owned()) } else { Value::Null })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        let Some(each) = &self.each else {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Value::Null);
        };
        while let Some(value) = seq.next_element_seed(&**each)? {
            if !value.is_null() {
                kept.push(value);
            }
        }
        Ok(Value::Array(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            match self.keys.get(&*key) {
                Some(inner) => {
                    let value = map.next_value_seed(inner)?;
                    kept.insert(key.into_owned(), value);
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(if kept.is_empty() { Value::Null } else { Value::Object(kept) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(text: &str) -> FieldPath {
        FieldPath::parse(text).unwrap()
    }

    #[test]
    fn a_path_walks_objects_and_crosses_lists() {
        let line = json!({"message": {"content": [{"text": "one "}, {"thinking": "no"}, {"text": "two"}]}});
        assert_eq!(path("message.content[].text").text(&line).as_deref(), Some("one two"));
        assert_eq!(path("message.content.text").text(&line), None);
        assert_eq!(path("message.absent").text(&line), None);
        assert_eq!(path("rows[][].n").number(&json!({"rows": [[{"n": 4}]]})), Some(4.0));
    }

    #[test]
    fn what_is_no_path_is_refused_with_an_example() {
        for text in ["", "a..b", ".a", "a.[]", "a[0]", "[]"] {
            let error = FieldPath::parse(text).unwrap_err();
            assert!(error.contains("`content[].text`"), "{text}: {error}");
        }
    }

    #[test]
    fn a_sieve_keeps_what_paths_name_and_nothing_else() {
        let mut sieve = Sieve::default();
        for text in ["type", "message.content[].text", "usage.input", "ok"] {
            sieve.admit(&path(text));
        }
        let line = br#"{"type":"x","secret":{"a":[1,2,{"b":3}]},"ok":true,
            "message":{"content":[{"type":"image","data":"AAAA"},{"text":"C:\\new\u0007"}],"role":"r"},"usage":{"input":7}}"#;
        assert_eq!(
            sieve.parse(line).unwrap(),
            json!({"type": "x", "ok": true, "message": {"content": [{"text": "C:\\new\u{7}"}]}, "usage": {"input": 7}})
        );
    }

    #[test]
    fn lists_of_what_nobody_asked_for_cost_nothing() {
        let mut sieve = Sieve::default();
        sieve.admit(&path("content[].text"));
        let line = format!("{{\"content\":[{}1]}}", "1,".repeat(10_000));
        assert_eq!(sieve.parse(line.as_bytes()).unwrap(), json!({"content": []}));
    }

    #[test]
    fn half_a_line_and_a_bottomless_one_are_errors() {
        let sieve = Sieve::default();
        let deep = "[".repeat(100_000);
        for line in ["{\"a\":1", "{} {}", "x", "", deep.as_str()] {
            assert!(sieve.parse(line.as_bytes()).is_err(), "{}", &line[..line.len().min(9)]);
        }
    }
}
