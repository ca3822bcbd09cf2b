//! Which variables hold secrets, judged by their names.

/// Anywhere in a name.
const PARTS: [&str; 7] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY"];

/// At the end of one of the words of a name.
const ENDINGS: [&str; 2] = ["KEY", "KEYS"];

/// A word of a name as a whole.
const WORDS: [&str; 6] = ["PASS", "PAT", "PWD", "DSN", "COOKIE", "BEARER"];

/// Folders, and a socket: they look like keys and are none.
const NEVER: [&str; 3] = ["PWD", "OLDPWD", "SSH_AUTH_SOCK"];

/// True for `X_API_KEY`, `githubToken`, `DB_PASSWORD`, `AWS_SECRET_ACCESS_KEY`, `NPM_CONFIG__AUTH` and their like.
pub(super) fn looks_like_a_key(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if NEVER.contains(&name.as_str()) {
        return false;
    }
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    PARTS.iter().any(|part| name.contains(part))
        || name.ends_with("_AUTH")
        || words.any(|word| WORDS.contains(&word) || ENDINGS.iter().any(|ending| word.ends_with(ending)))
}

/// The password of `scheme://user:password@host`, whatever the variable is called.
pub(super) fn password_in_url(value: &str) -> Option<&str> {
    let (scheme, rest) = value.split_once("://")?;
    if scheme.is_empty() || !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user_info, _host) = authority.rsplit_once('@')?;
    let (_user, password) = user_info.split_once(':')?;
    (!password.is_empty()).then_some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_their_names() {
        for name in [
            "X_API_KEY",
            "OPENAI_API_KEY",
            "githubToken",
            "GH_TOKEN",
            "CLAUDE_CODE_SESSION_ACCESS_TOKEN",
            "DB_PASSWORD",
            "PGPASSWORD",
            "AWS_SECRET_ACCESS_KEY",
            "GOOGLE_CREDENTIALS",
            "NPM_CONFIG__AUTH",
            "SENTRY_DSN",
            "DB_PWD",
            "APIKEY",
        ] {
            assert!(looks_like_a_key(name), "{name}");
        }
    }

    #[test]
    fn ordinary_variables_are_left_alone() {
        for name in [
            "PATH",
            "HOME",
            "PWD",
            "OLDPWD",
            "SSH_AUTH_SOCK",
            "LANG",
            "PATTERN",
            "KEYBOARD",
            "COMPASS",
            "COMPAT",
            "AUTHOR",
        ] {
            assert!(!looks_like_a_key(name), "{name}");
        }
    }

    #[test]
    fn passwords_are_found_in_urls() {
        assert_eq!(password_in_url("postgres://me:hunter2hunter2@db/x?y=1"), Some("hunter2hunter2"));
        for text in ["https://example.org/a:b@c", "postgres://me@db", "a:b@c", "://u:p@h", "x://u:@h"] {
            assert_eq!(password_in_url(text), None, "{text}");
        }
    }
}
