//! Words as a shell reads them back: for every command that we tell a person to type.

/// The word, in quotes where a shell would not read it as it is.
pub(crate) fn quoted(word: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ',' | ':' | '=' | '@' | '+' | '%');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn only_words_that_need_quotes_get_them() {
        assert_eq!(quoted("src/a-b_c.rs"), "src/a-b_c.rs");
        assert_eq!(quoted("a file"), "'a file'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
