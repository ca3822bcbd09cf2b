//! The completion sentinel: a word of the agent's own, believed only where it cannot be an accident.

/// A sentinel that could match by accident.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SentinelError {
    /// Blank: would match everything or nothing.
    #[error("a sentinel must not be blank: leave it out to have none, or name a line like \"RALPH COMPLETE\"")]
    Blank,
    /// Contains a line break: only one whole line is ever compared.
    #[error("a sentinel is one line: `{0}` has a line break in it")]
    SeveralLines(String),
}

/// Refuses sentinels that could never be said, or always.
pub fn check_sentinel(sentinel: &str) -> Result<String, SentinelError> {
    let trimmed = sentinel.trim();
    if trimmed.is_empty() {
        return Err(SentinelError::Blank);
    }
    if trimmed.contains(['\n', '\r']) {
        return Err(SentinelError::SeveralLines(sentinel.to_owned()));
    }
    Ok(trimmed.to_owned())
}

/// True when the last line of `message` that is not blank is exactly the sentinel (blanks around it and terminal codes
/// aside) and stands outside every code fence. A sentence that mentions the sentinel does not count.
///
/// `message` is the agent's final message, decoded once; never its whole transcript.
pub fn says_sentinel(message: &str, sentinel: &str) -> bool {
    let plain = strip_ansi_escapes::strip_str(message);
    let mut fence: Option<&str> = None;
    let mut last = "";
    let mut last_in_fence = false;
    for line in plain.lines() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let marker = if line.starts_with("```") {
            Some("```")
        } else if line.starts_with("~~~") {
            Some("~~~")
        } else {
            None
        };
        last_in_fence = fence.is_some() || marker.is_some();
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            _ => {}
        }
        last = line;
    }
    !last_in_fence && !sentinel.trim().is_empty() && last == sentinel.trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_exact_last_line_outside_fences_counts() {
        let tag = "<promise>DONE</promise>";
        for message in [
            "Not yet; I will print <promise>DONE</promise> at the end",
            "```\n<promise>DONE</promise>\n```",
            "```\n<promise>DONE</promise>",
            "\"<promise>DONE</promise>\"",
            "  - <promise>DONE</promise>",
            "<promise>DONE</promise>\nOne more thing: two tests are left.",
            "",
            "   \n",
        ] {
            assert!(!says_sentinel(message, tag), "{message:?}");
        }
        for message in [
            "<promise>DONE</promise>",
            "All good.\n\n  <promise>DONE</promise>  \n\n",
            "```\nx\n```\n<promise>DONE</promise>\r\n",
        ] {
            assert!(says_sentinel(message, tag), "{message:?}");
        }
    }

    #[test]
    fn terminal_codes_around_it_do_not_hide_it() {
        for message in
            ["\u{1b}[1;32mDONE\u{1b}[0m", "\u{1b}]8;;http://x\u{1b}\\DONE\u{1b}]8;;\u{1b}\\", "\u{1b}cDONE", "DONE\r\n"]
        {
            assert!(says_sentinel(message, "DONE"), "{message:?}");
        }
    }

    #[test]
    fn a_prefix_of_a_word_is_no_sentinel() {
        assert!(!says_sentinel("I am done", "do"));
        assert!(!says_sentinel("done", "do"));
    }

    #[test]
    fn blank_sentinels_are_refused() {
        assert_eq!(check_sentinel(" \t"), Err(SentinelError::Blank));
        assert_eq!(check_sentinel("a\nb"), Err(SentinelError::SeveralLines("a\nb".into())));
        assert_eq!(check_sentinel(" DONE "), Ok("DONE".into()));
    }
}
