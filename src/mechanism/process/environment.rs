//! The environment that a command gets: a snapshot that the caller took, less what must not reach it.
//!
//! Owns the lists of names and why they are on them. It must not read the environment of this process, and it never
//! tells a value, only names.
//!
//! Taken out for everybody: variables of git (they point it at another repository or run programs), marks of an
//! enclosing agent session (nested agents refuse to start or attach to it) with their tokens, handles to things outside
//! the command's tree (a multiplexer's server, a service manager's or a make's descriptors), and our own. Taken out for
//! sensors and commands, besides: everything whose name looks like a secret. An agent keeps the keys of model
//! providers, for without them it can't work, and no other secret.

use std::ffi::OsString;

/// For whom the environment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// A coding agent: gets the keys of model providers.
    Agent,
    /// A sensor, a fix or any other command: gets no key at all.
    Command,
}

/// What a configuration adds to the built-in lists. Patterns may contain `*`, which stands for any text; names are
/// case-sensitive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvironmentRules {
    /// Let through although a built-in list takes them out.
    pub pass: Vec<String>,
    /// Taken out although nothing else does; wins over `pass`.
    pub remove: Vec<String>,
    /// Set last, whatever was there.
    pub set: Vec<(String, String)>,
}

/// The environment, and what is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scrubbed {
    /// Complete; give it to [`Command::new`](super::Command::new).
    pub vars: Vec<(OsString, OsString)>,
    /// The names that were taken out, sorted; for the record.
    pub removed: Vec<String>,
}

/// Names of a mark, a handle or a token of something around us.
const NEVER: &[&str] = &[
    "GIT_*",
    // Marks and tokens of agent sessions.
    "CLAUDECODE",
    "CLAUDE_CODE_*",
    "CLAUDE_EFFORT",
    "CODEX_SANDBOX*",
    "CODEX_*_SANDBOX*",
    "CODEX_THREAD*",
    "CODEX_SESSION*",
    "CODEX_INTERNAL_*",
    "CODEX_MANAGED_*",
    "CODEX_CI",
    "GEMINI_CLI",
    "GEMINI_CLI_NO_RELAUNCH",
    "QWEN_CODE",
    "QWEN_CODE_NO_RELAUNCH",
    "OPENCODE",
    "OPENCODE_PID",
    "OPENCODE_RUN_ID",
    "OPENCODE_PROCESS_ROLE",
    "OPENCODE_CALLER",
    "CURSOR_AGENT",
    "CURSOR_TRACE_ID",
    "CLINE_ACTIVE",
    "COPILOT_CLI",
    "COPILOT_AGENT_*",
    "AMP_CURRENT_THREAD_ID",
    "AMP_THREAD_ID",
    "GOOSE_TERMINAL",
    "PI_CODING_AGENT",
    "AI_AGENT",
    "AGENT",
    "LUNATION_*",
    // Tokens of sessions, whoever issued them.
    "*_ACCESS_TOKEN",
    "*_SESSION_TOKEN",
    "*_REFRESH_TOKEN",
    "*_ID_TOKEN",
    "ACTIONS_RUNTIME_*",
    "ACTIONS_ID_TOKEN_*",
    // Handles to servers that would run work outside of the command's tree.
    "TMUX",
    "TMUX_PANE",
    "STY",
    "ZELLIJ*",
    "VSCODE_*",
    "ELECTRON_RUN_AS_NODE",
    "NVIM",
    "NVIM_LISTEN_ADDRESS",
    // Descriptors and sockets of a parent, which the command does not inherit.
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "CARGO_MAKEFLAGS",
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "LISTEN_PID",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "NODE_CHANNEL_FD",
    "BASH_XTRACEFD",
];

/// Configuration of model providers that the lists above or the look of the name would take out; agents keep it.
const KEPT_FOR_AGENTS: &[&str] = &[
    "*_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_*",
    "CLAUDE_CODE_SKIP_*_AUTH",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_DISABLE_*",
    "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HF_TOKEN",
];

/// Words of a name that make it look like a secret.
const SECRET_WORDS: &[&str] =
    &["KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS"];

/// Set for everybody, so that nothing waits for a person. An editor or a question fails at once instead.
const SET: &[(&str, &str)] = &[
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_ASKPASS", "false"),
    ("GIT_PAGER", "cat"),
    ("SSH_ASKPASS", "false"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("PAGER", "cat"),
    ("MANPAGER", "cat"),
];

/// The variable that names the run to what runs in it.
pub const RUN_VARIABLE: &str = "LUNATION_RUN";

/// Makes the environment of a command.
///
/// `ambient` is a snapshot of the environment of the program (its binary takes it once), `run` the id of the run, put
/// into [`RUN_VARIABLE`]. Names that are no UTF-8 are kept as they are.
pub fn scrub(ambient: &[(OsString, OsString)], audience: Audience, rules: &EnvironmentRules, run: &str) -> Scrubbed {
    let mut scrubbed = Scrubbed { vars: Vec::new(), removed: Vec::new() };
    for (name, value) in ambient {
        match name.to_str() {
            Some(text) if is_removed(text, audience, rules) => scrubbed.removed.push(text.to_owned()),
            _ => set(&mut scrubbed.vars, name.clone(), value.clone()),
        }
    }
    for (name, value) in SET {
        set(&mut scrubbed.vars, name.into(), value.into());
    }
    set(&mut scrubbed.vars, RUN_VARIABLE.into(), run.into());
    for (name, value) in &rules.set {
        set(&mut scrubbed.vars, name.into(), value.into());
    }
    scrubbed.removed.sort();
    scrubbed.removed.dedup();
    scrubbed
}

/// True when the name looks like that of a secret (`X_API_KEY`, `GITHUB_TOKEN`, `DB_PASSWORD`), by its words. Plurals
/// that count something (`MAX_TOKENS`) do not.
pub fn looks_secret(name: &str) -> bool {
    name.split(['_', '-', '.']).any(|word| SECRET_WORDS.iter().any(|secret| word.eq_ignore_ascii_case(secret)))
}

fn is_removed(name: &str, audience: Audience, rules: &EnvironmentRules) -> bool {
    let in_list = |list: &[String]| list.iter().any(|pattern| matches(pattern, name));
    let in_names = |list: &[&str]| list.iter().any(|pattern| matches(pattern, name));
    if in_list(&rules.remove) {
        return true;
    }
    if in_list(&rules.pass) || audience == Audience::Agent && in_names(KEPT_FOR_AGENTS) {
        return false;
    }
    in_names(NEVER) || looks_secret(name)
}

fn set(vars: &mut Vec<(OsString, OsString)>, name: OsString, value: OsString) {
    vars.retain(|(other, _)| *other != name);
    vars.push((name, value));
}

/// A pattern with any number of `*`, without backtracking beyond the last one.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or("")) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ambient(names: &[&str]) -> Vec<(OsString, OsString)> {
        names.iter().map(|n| (n.into(), "value".into())).collect()
    }

    fn has(scrubbed: &Scrubbed, name: &str) -> bool {
        scrubbed.vars.iter().any(|(n, _)| n == name)
    }

    fn value<'a>(scrubbed: &'a Scrubbed, name: &str) -> Option<&'a str> {
        scrubbed.vars.iter().find(|(n, _)| n == name)?.1.to_str()
    }

    #[test]
    fn marks_of_an_enclosing_session_its_tokens_and_git_are_gone_for_everybody_and_named() {
        let names = ["CLAUDECODE", "CLAUDE_CODE_SESSION_ACCESS_TOKEN", "GIT_DIR", "PAGER", "HOME", "CODEX_SANDBOX"];
        for audience in [Audience::Agent, Audience::Command] {
            let s = scrub(&ambient(&names), audience, &EnvironmentRules::default(), "r1");
            assert_eq!(s.removed, ["CLAUDECODE", "CLAUDE_CODE_SESSION_ACCESS_TOKEN", "CODEX_SANDBOX", "GIT_DIR"]);
            assert!(s.removed.iter().all(|n| !has(&s, n)));
            assert_eq!(value(&s, "PAGER"), Some("cat"));
            assert_eq!(value(&s, "HOME"), Some("value"));
            assert_eq!(value(&s, "LUNATION_RUN"), Some("r1"));
            assert_eq!(value(&s, "GIT_TERMINAL_PROMPT"), Some("0"));
        }
    }

    #[test]
    fn agents_keep_the_keys_of_model_providers_and_sensors_get_none() {
        let names = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "PATH"];
        let agent = scrub(&ambient(&names), Audience::Agent, &EnvironmentRules::default(), "r");
        assert_eq!(agent.removed, ["DB_PASSWORD", "GITHUB_TOKEN"]);
        let sensor = scrub(&ambient(&names), Audience::Command, &EnvironmentRules::default(), "r");
        assert_eq!(sensor.removed, ["ANTHROPIC_API_KEY", "DB_PASSWORD", "GITHUB_TOKEN", "OPENAI_API_KEY"]);
        assert!(has(&sensor, "PATH"));
    }

    #[test]
    fn the_lists_are_configurable() {
        let rules = EnvironmentRules {
            pass: vec!["GITHUB_*".into(), "SECRET_SAUCE_TOKEN".into()],
            remove: vec!["HOME".into(), "SECRET_SAUCE*".into()],
            set: vec![("PAGER".into(), "more".into()), ("NEW".into(), "1".into())],
        };
        let names = ["GITHUB_TOKEN", "HOME", "SECRET_SAUCE_TOKEN"];
        let s = scrub(&ambient(&names), Audience::Command, &rules, "r");
        assert!(has(&s, "GITHUB_TOKEN"));
        assert_eq!(s.removed, ["HOME", "SECRET_SAUCE_TOKEN"], "remove wins over pass");
        assert_eq!((value(&s, "PAGER"), value(&s, "NEW")), (Some("more"), Some("1")));
    }

    #[test]
    fn counts_of_tokens_are_no_secrets() {
        for name in
            ["MAX_THINKING_TOKENS", "KEYBOARD", "MONKEY", "XDG_SESSION_ID", "SSH_AUTH_SOCK", "PATH", "TOKENIZERS"]
        {
            assert!(!looks_secret(name), "{name}");
        }
        for name in ["X_API_KEY", "GITHUB_TOKEN", "npm_config_token", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY"] {
            assert!(looks_secret(name), "{name}");
        }
    }

    #[test]
    fn names_that_are_no_text_and_doubles_do_no_harm() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(b"\xff".to_vec());
        let twice = [(odd.clone(), "1".into()), (odd.clone(), "2".into())];
        let s = scrub(&twice, Audience::Command, &EnvironmentRules::default(), "r");
        let found: Vec<_> = s.vars.iter().filter(|(n, _)| *n == odd).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].1, "2");
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, fits) in [
            ("GIT_*", "GIT_DIR", true),
            ("GIT_*", "GIT_", true),
            ("GIT_*", "XGIT_DIR", false),
            ("*_KEY", "A_KEY", true),
            ("A", "A", true),
            ("A", "AB", false),
            ("A*B*C", "AxxBxxC", true),
            ("A*B*C", "AxxCxxB", false),
            ("*", "", true),
            ("A*A", "A", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
