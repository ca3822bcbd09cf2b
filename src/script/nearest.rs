//! The nearest known name: one rule for every did-you-mean.

/// The known name that `word` was most likely meant to be, if any is near enough to say so.
pub(super) fn nearest<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let lower = word.to_lowercase();
    names
        .into_iter()
        .filter(|name| *name != word)
        .map(|name| (score(&lower, &name.to_lowercase()), name))
        .filter(|(score, _)| *score >= NEAR)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// `; did you mean `x`?`, or nothing.
pub(super) fn did_you_mean<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    nearest(word, names).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// Below this a guess would confuse more than it helps.
const NEAR: f64 = 0.7;

fn score(word: &str, name: &str) -> f64 {
    // Edits alone forgive too little in long words, Jaro-Winkler alone too much in short ones.
    (strsim::normalized_damerau_levenshtein(word, name) + strsim::jaro_winkler(word, name)) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_recognised_and_strangers_are_not() {
        let names = ["iterations", "wall", "tokens", "cost_usd", "timeout"];
        assert_eq!(nearest("iteratons", names), Some("iterations"));
        assert_eq!(nearest("timout", names), Some("timeout"));
        assert_eq!(nearest("Wall", names), Some("wall"));
        assert_eq!(nearest("banana", names), None);
        assert_eq!(nearest("x", names), None);
    }
}
