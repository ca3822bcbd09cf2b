//! The general table of error messages and statuses, for agents of any make.
//!
//! A preset's own patterns are tried before it. Wordings here are those that several providers and tools share.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

use crate::policy::ErrorKind;

fn regex(pattern: &str) -> Regex {
    RegexBuilder::new(pattern).case_insensitive(true).build().expect("a pattern of this file")
}

/// First match wins.
static TABLE: LazyLock<Vec<(ErrorKind, Regex)>> = LazyLock::new(|| {
    [
        (ErrorKind::RateLimited, r"not your usage limit|temporarily limiting requests"),
        (ErrorKind::Auth, r"credit balance is too low|insufficient (?:credits?|balance|funds)|payment required"),
        (ErrorKind::UsageLimit, USAGE_LIMIT),
        (ErrorKind::RateLimited, r"rate[ _-]?limit|too many requests|RESOURCE_EXHAUSTED|throttl(?:ed|ing)"),
        (
            ErrorKind::ContextOverflow,
            r"context[ _](?:length|window|limit)|ran out of room|(?:prompt|input|request) is too long|input token count|maximum number of tokens|reduce the length",
        ),
        (
            ErrorKind::Auth,
            r"(?:invalid|incorrect|missing|no) (?:x-)?api[ _-]?key|api[ _]key (?:is )?(?:not valid|invalid|missing)|API_KEY_INVALID|authentication[ _](?:failed|error|required)|not (?:logged|signed) in|oauth token|unauthori[sz]ed|permission_error|(?:run|use) `?/login|please (?:log|sign) in",
        ),
        (ErrorKind::Overloaded, r"overloaded|high demand|at capacity|service unavailable|\bUNAVAILABLE\b"),
        (ErrorKind::Server, r"internal (?:server )?error|server had an error|bad gateway|gateway time-?out|api_error"),
        (
            ErrorKind::Network,
            r"\bE(?:CONN\w+|NOTFOUND|AI_AGAIN|TIMEDOUT|PIPE|HOSTUNREACH|NETUNREACH)\b|socket hang up|fetch failed|network error|stream disconnected|error decoding response body|incomplete chunked|connection (?:refused|reset|closed|error|timed out|aborted)|could(?: not|n't) resolve|dns (?:error|lookup)|name resolution|tls handshake|(?:request|operation) timed out|error sending request",
        ),
    ]
    .into_iter()
    .map(|(kind, pattern)| (kind, regex(pattern)))
    .collect()
});

const USAGE_LIMIT: &str = r"usage[ _]?limit|(?:hit|reached|exceeded) your [\w -]{0,20}limit\b|(?:session|weekly|daily|monthly) limit (?:reached|exceeded)|insufficient_quota|exceeded your (?:current|monthly|daily) quota|exhausted your [\w -]{0,20}quota|out of (?:extra )?usage|quota (?:exceeded|exhausted|insufficient)";

/// Messages that are nothing but the announcement of a limit. An agent that ends "well" with one of them did nothing.
static WHOLE: LazyLock<Vec<(ErrorKind, Regex)>> = LazyLock::new(|| {
    [
        (ErrorKind::UsageLimit, r"you[’']ve (?:hit|reached) your (?:[\w-]+ ){0,2}limit\b[^\n]{0,200}"),
        (ErrorKind::UsageLimit, r"(?:claude )?(?:ai )?usage limit reached[.|][^\n]{0,200}"),
        (
            ErrorKind::RateLimited,
            r"api error: (?:request rejected \(429\)|server is temporarily limiting requests)[^\n]{0,200}",
        ),
        (ErrorKind::Overloaded, r"api error: repeated 529 overloaded errors[^\n]{0,200}"),
        (
            ErrorKind::Auth,
            r"not logged in · please run /login|invalid api key(?: · [^\n]{0,80})?|credit balance is too low",
        ),
    ]
    .into_iter()
    .map(|(kind, pattern)| (kind, regex(&format!(r"\A(?:{pattern})\z"))))
    .collect()
});

/// What an error message says.
pub(super) fn general_kind(message: &str) -> Option<ErrorKind> {
    TABLE.iter().find(|(_, regex)| regex.is_match(message)).map(|(kind, _)| *kind)
}

/// What a final message says that is nothing but an announcement.
pub(super) fn general_whole(message: &str) -> Option<ErrorKind> {
    WHOLE.iter().find(|(_, regex)| regex.is_match(message)).map(|(kind, _)| *kind)
}

/// True when an error message speaks of an account's limit, not of too many requests.
pub(super) fn says_usage_limit(message: &str) -> bool {
    general_kind(message) == Some(ErrorKind::UsageLimit)
}

/// What an HTTP status says by itself.
pub(super) fn status_kind(status: u16) -> Option<ErrorKind> {
    match status {
        401..=403 => Some(ErrorKind::Auth),
        408 => Some(ErrorKind::Network),
        413 => Some(ErrorKind::ContextOverflow),
        429 => Some(ErrorKind::RateLimited),
        503 | 529 => Some(ErrorKind::Overloaded),
        500..=599 => Some(ErrorKind::Server),
        _ => None,
    }
}

/// A status that stands in a message where only a status stands: at its start, or after a word that announces it.
pub(super) fn status_in(message: &str) -> Option<u16> {
    static STATUS: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r"\A\W{0,3}([45]\d\d)\b|\b(?:status(?: code)?|http(?:/\d(?:\.\d)?)?|error(?: code)?|rejected)\W{1,3}([45]\d\d)\b",
        )
    });
    let found = STATUS.captures(message)?;
    found.get(1).or_else(|| found.get(2))?.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_real_agents_have_their_kinds() {
        for (message, kind) in [
            ("You’ve hit your usage limit. Upgrade to Pro or try again at 7:11 PM.", ErrorKind::UsageLimit),
            ("You exceeded your current quota, please check your plan", ErrorKind::UsageLimit),
            ("Server is temporarily limiting requests (not your usage limit)", ErrorKind::RateLimited),
            ("Rate limit reached for m in organization o", ErrorKind::RateLimited),
            ("Codex ran out of room in the model's context window.", ErrorKind::ContextOverflow),
            ("This model's maximum context length is 128000 tokens.", ErrorKind::ContextOverflow),
            ("Incorrect API key provided: sk-dummy.", ErrorKind::Auth),
            ("Credit balance is too low", ErrorKind::Auth),
            ("We’re currently experiencing high demand", ErrorKind::Overloaded),
            ("The server had an error while processing your request", ErrorKind::Server),
            ("terminated: read ECONNRESET", ErrorKind::Network),
            ("stream disconnected before completion: Transport error", ErrorKind::Network),
        ] {
            assert_eq!(general_kind(message), Some(kind), "{message}");
        }
        assert_eq!(general_kind("Unknown tool: frobnicate"), None);
    }

    #[test]
    fn a_status_is_read_only_where_a_status_stands() {
        for (message, status) in [
            ("429: {\"message\":\"x\"}", Some(429)),
            ("unexpected status 401 Unauthorized: x", Some(401)),
            ("last status: 429 Too Many Requests", Some(429)),
            ("HTTP/1.1 503", Some(503)),
            ("Request rejected (429)", Some(429)),
            ("wrote 500 lines", None),
            ("listening on port 4290", None),
            ("fixed issue #401", None),
        ] {
            assert_eq!(status_in(message), status, "{message}");
        }
    }

    #[test]
    fn only_a_message_that_is_nothing_else_is_an_announcement() {
        for message in [
            "You've hit your limit · resets 11:30pm (Europe/Berlin)",
            "You’ve hit your session limit",
            "Claude AI usage limit reached|1755615600",
            "Not logged in · Please run /login",
        ] {
            assert!(general_whole(message).is_some(), "{message}");
        }
        for message in [
            "I changed the text to: You've hit your usage limit",
            "You've hit your limit · resets 3pm\nThat is what the page says now; the tests pass.",
            "The usage limit is now configurable.",
            "You've hit your stride",
        ] {
            assert_eq!(general_whole(message), None, "{message}");
        }
    }
}
