//! Reports that are one document: JSON or XML.

use std::io::BufRead;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, SeqAccess, Visitor};

use super::counted::Counted;
use super::{eslint, jest, junit, mocha, ruff, sarif};
use crate::policy::Format;

/// A list that is summed up while it is read, so that its length costs no memory.
#[derive(Default)]
pub(super) struct Fold<S>(pub(super) S);

/// What a list is summed up to.
pub(super) trait Summary: Default {
    /// An item of the list.
    type Item: DeserializeOwned;

    /// Takes the next one.
    fn add(&mut self, item: Self::Item);
}

impl<'de, S: Summary> Deserialize<'de> for Fold<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fold<S>, D::Error> {
        struct Folding<S>(S);

        impl<'de, S: Summary> Visitor<'de> for Folding<S> {
            type Value = Fold<S>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Fold<S>, A::Error> {
                while let Some(item) = list.next_element()? {
                    self.0.add(item);
                }
                Ok(Fold(self.0))
            }
        }

        deserializer.deserialize_seq(Folding(S::default()))
    }
}

/// True where the first line of a document of this format looks like this one.
pub(super) fn begins(format: Format, line: &str) -> bool {
    let line = line.trim_start_matches('\u{feff}').trim_start();
    match format {
        Format::Jest | Format::Vitest | Format::Sarif => line.starts_with('{'),
        Format::Mocha => line.starts_with('{'),
        Format::Eslint | Format::Ruff => line.starts_with("[{") || line == "[" || line == "[]",
        Format::Junit => line.starts_with("<?xml") || line.starts_with("<testsuite"),
        _ => false,
    }
}

/// Reads a document of this format.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(format: Format, input: impl BufRead) -> Result<Counted, String> {
    match format {
        Format::Jest | Format::Vitest => json::<jest::Document>(input).map(jest::Document::counted),
        Format::Mocha => json::<mocha::Document>(input).map(mocha::Document::counted),
        Format::Sarif => json::<sarif::Document>(input).map(sarif::Document::counted),
        Format::Eslint => json::<eslint::Document>(input).map(eslint::Document::counted),
        Format::Ruff => json::<ruff::Document>(input).map(ruff::Document::counted),
        Format::Junit => junit::read(input),
        other => Err(format!("`{}` has no documents", other.name())),
    }
}

/// The first value; what follows it is not the report's.
fn json<T: DeserializeOwned>(input: impl BufRead) -> Result<T, String> {
    let mut values = serde_json::Deserializer::from_reader(input).into_iter::<T>();
    match values.next() {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("it is empty".into()),
    }
}
