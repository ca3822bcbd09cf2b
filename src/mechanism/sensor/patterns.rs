//! The user's regular expressions, compiled with bounds.

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

/// The largest compiled pattern, in bytes.
const MOST_COMPILED: usize = 4 << 20;

/// A regular expression that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is no regular expression that can be used: {why}")]
pub struct PatternError {
    /// As it was written.
    pub pattern: String,
    /// What is wrong with it.
    pub why: String,
}

fn error(pattern: &str, error: &regex::Error) -> PatternError {
    // The last line says what is wrong; those before it draw arrows below the pattern.
    let text = error.to_string();
    let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
    PatternError { pattern: pattern.to_owned(), why }
}

pub(super) fn compile(pattern: &str) -> Result<Regex, PatternError> {
    RegexBuilder::new(pattern).size_limit(MOST_COMPILED).build().map_err(|problem| error(pattern, &problem))
}

/// Says whether a pattern can be used.
///
/// # Errors
/// What is wrong with it.
pub fn check_pattern(pattern: &str) -> Result<(), PatternError> {
    compile(pattern).map(drop)
}

pub(super) fn compile_all(patterns: &[String]) -> Result<RegexSet, PatternError> {
    for pattern in patterns {
        check_pattern(pattern)?;
    }
    let joined = patterns.join("`, `");
    RegexSetBuilder::new(patterns).size_limit(MOST_COMPILED * 4).build().map_err(|problem| error(&joined, &problem))
}
