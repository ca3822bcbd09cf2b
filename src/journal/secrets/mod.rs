//! Secrets: which values must never reach a record, and taking them out of text.
//!
//! Owns the only masking of the program. Knows nothing of files; the values come in as a snapshot of the environment.
//! Guarantees that text that went through here holds none of the known values: not as they are, not escaped for JSON,
//! not encoded for a URL, not in base 64, and not when a value came in two pieces (see [`MaskStream`]).
//!
//! What it cannot do: find a value that was changed in another way (reversed, encrypted, one character a line), values
//! of under eight bytes, and secrets that no variable held. When a value is a word of the journal's own format, like
//! `completed`, records that use this word keep strings that are one lower-case word, and are masked in all others.

mod forms;
mod names;
mod stream;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

pub use stream::MaskStream;

/// Shorter values are words like `true`: masking them would only make a record unreadable.
pub const SHORTEST_SECRET: usize = 8;

/// Longest pattern in bytes. Longer values are looked for in pieces of this size, so that a stream has to keep no more
/// than this.
const LONGEST_PATTERN: usize = 4096;

/// The values that are masked. Cheap to clone; never shows a value, also not in its debug form.
#[derive(Clone)]
pub struct Secrets {
    inner: Arc<Inner>,
}

struct Inner {
    finder: Option<AhoCorasick>,
    /// What each pattern is replaced by.
    masks: Vec<String>,
    /// Length of the longest pattern; 0 when there is none.
    longest: usize,
    /// Names of the variables whose values are masked, sorted.
    names: Vec<String>,
}

impl Secrets {
    /// Nothing is masked.
    pub fn none() -> Secrets {
        Secrets::from_values(BTreeMap::new())
    }

    /// Takes the values of variables whose names look like keys (`…KEY`, `…TOKEN…`, `…SECRET…`, `…PASSWORD…`,
    /// `…CREDENTIAL…` and the like), of those named in `named`, and passwords inside of URLs.
    /// Values of under eight bytes are left out.
    pub fn from_env(env: &[(String, String)], named: &[String]) -> Secrets {
        let mut values = BTreeMap::new();
        for (name, value) in env {
            if names::looks_like_a_key(name) || named.contains(name) {
                values.insert(name.clone(), value.clone());
            } else if let Some(password) = names::password_in_url(value) {
                values.insert(name.clone(), password.to_owned());
            }
        }
        Secrets::from_values(values)
    }

    /// Takes these values, by the name that stands in their place: `[masked NAME]`.
    pub fn from_values(values: BTreeMap<String, String>) -> Secrets {
        let mut patterns: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        let mut names = Vec::new();
        for (name, value) in &values {
            let mask = format!("[masked {name}]");
            let forms = forms::all(value);
            if !forms.is_empty() {
                names.push(name.clone());
            }
            for form in forms {
                patterns.entry(form).or_insert_with(|| mask.clone());
            }
        }
        let longest = patterns.keys().map(Vec::len).max().unwrap_or(0);
        // Building fails only beyond the automaton's own size limits of gigabytes, far above any environment.
        let finder = (!patterns.is_empty())
            .then(|| {
                AhoCorasick::builder()
                    .match_kind(MatchKind::LeftmostLongest)
                    .kind(Some(AhoCorasickKind::ContiguousNFA))
                    .build(patterns.keys())
            })
            .map(|built| built.expect("an environment fits into the automaton"));
        let masks = patterns.into_values().collect();
        Secrets { inner: Arc::new(Inner { finder, masks, longest, names }) }
    }

    /// Names of the variables whose values are masked, sorted.
    pub fn names(&self) -> &[String] {
        &self.inner.names
    }

    /// The text without any of the values, each replaced by `[masked NAME]`. Borrowed when there was none.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.mask_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // Whole characters were replaced by whole characters, so nothing is lossy here.
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The same for bytes of any kind.
    pub fn mask_bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let Some(finder) = &self.inner.finder else { return Cow::Borrowed(bytes) };
        let mut masked = Vec::new();
        let mut done = 0;
        for found in finder.find_iter(bytes) {
            masked.extend_from_slice(&bytes[done..found.start()]);
            masked.extend_from_slice(self.inner.masks[found.pattern().as_usize()].as_bytes());
            done = found.end();
        }
        if done == 0 {
            return Cow::Borrowed(bytes);
        }
        masked.extend_from_slice(&bytes[done..]);
        Cow::Owned(masked)
    }

    /// A masker for output that comes in pieces.
    pub fn stream(&self) -> MaskStream {
        MaskStream::new(self.clone())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("names", &self.inner.names).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
