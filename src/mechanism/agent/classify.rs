//! What a turn came to: one outcome from what the agent told, how it exited and what it left on stderr.
//!
//! Owns the order in which evidence counts: structured status, then the message of the terminal or last error event
//! (the preset's patterns before the general ones), then the tail of stderr, then the signal. Tool output, echoed
//! prompts and the transcript are no evidence. Pure: everything it looks at is given.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::message::first_line;
use super::patterns::{general_kind, general_whole, says_usage_limit, status_in, status_kind};
use super::reset::{reset_at, retry_after};
use super::rules::{Pattern, Trouble};
use super::told::{Told, Verdict};
use crate::policy::{ErrorKind, Outcome, TimeoutKind};

/// How the process ended, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that was not ours.
    Signaled(i32),
    /// By us, because a budget ran out.
    TimedOut(TimeoutKind),
    /// By us, because it had said its last word and did not leave.
    Settled,
    /// By us, because the caller wanted it.
    Stopped,
    /// Somebody killed the process that watches it.
    Unwatched,
}

/// Everything that is known.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    /// What it told.
    pub(super) told: &'a Told,
    /// True for agents that speak in JSON lines.
    pub(super) structured: bool,
    /// How it ended.
    pub(super) end: End,
    /// The end of its standard error, without terminal codes.
    pub(super) stderr: &'a str,
    /// The prompt that it got; lines of it on stderr are an echo.
    pub(super) prompt: &'a str,
    /// The agent's own patterns.
    pub(super) patterns: &'a [Pattern],
    /// The agent's own error codes.
    pub(super) codes: &'a BTreeMap<String, ErrorKind>,
    /// When it ended.
    pub(super) now: Timestamp,
    /// The zone of the machine.
    pub(super) zone: &'a TimeZone,
}

/// What it came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judgement {
    pub(super) outcome: Outcome,
    /// Message of the error, where there was one; at most 4 KiB.
    pub(super) error: Option<String>,
}

/// The longest error message that is kept.
const MOST_ERROR: usize = 4096;

impl Judgement {
    fn of(outcome: Outcome, message: &str) -> Judgement {
        let message = message.trim();
        let cut = (0..=message.len().min(MOST_ERROR)).rev().find(|&at| message.is_char_boundary(at)).unwrap_or(0);
        Judgement { outcome, error: (!message.is_empty()).then(|| message[..cut].to_owned()) }
    }

    fn plain(outcome: Outcome) -> Judgement {
        Judgement { outcome, error: None }
    }
}

/// Judges a turn.
pub(super) fn judge(evidence: &Evidence<'_>) -> Judgement {
    match evidence.end {
        End::Stopped => Judgement::plain(Outcome::Stopped),
        End::Exited(0) if !evidence.structured => evidence.judge_message(),
        End::Exited(0) | End::Settled | End::TimedOut(_) if evidence.structured && evidence.told.ended_well() => {
            evidence.judge_message()
        }
        End::TimedOut(which) if !evidence.told.over => evidence.judge_timeout(which),
        _ => evidence.judge_failure(),
    }
}

impl Evidence<'_> {
    /// It ended well by all signs; its message decides.
    fn judge_message(&self) -> Judgement {
        let message = self.told.text.trim();
        if self.told.verdict == Some(Verdict::Truncated) {
            return Judgement::plain(Outcome::Truncated);
        }
        if message.is_empty() {
            return Judgement::plain(Outcome::Empty);
        }
        match self.whole_kind(message) {
            Some(kind) => self.trouble(kind, message, None),
            None => Judgement::plain(Outcome::Done),
        }
    }

    /// Its time ran out. A silent one that was waiting out a limit did not hang: the limit is the news.
    fn judge_timeout(&self, which: TimeoutKind) -> Judgement {
        let standing = self.told.trouble.as_ref().or(self.told.retrying.as_ref());
        if which == TimeoutKind::Silence {
            if let Some(judgement) = standing.and_then(|trouble| self.judge_trouble(trouble)) {
                return judgement;
            }
            if let Some(judgement) = self.judge_stderr() {
                return judgement;
            }
        }
        Judgement::of(Outcome::TimedOut { which }, standing.map_or("", |trouble| &trouble.message))
    }

    /// It did not end well.
    fn judge_failure(&self) -> Judgement {
        let told = self.told;
        let standing = told.trouble.as_ref().or(told.retrying.as_ref());
        if let Some(judgement) = standing.and_then(|trouble| self.judge_trouble(trouble)) {
            return judgement;
        }
        if let Some(judgement) = self.judge_stderr() {
            return judgement;
        }
        let stderr = last_line(self.stderr);
        let message = standing.map_or(stderr, |trouble| trouble.message.as_str());
        match self.end {
            End::Signaled(signal) => return Judgement::of(Outcome::Crashed { signal }, message),
            End::Unwatched => {
                let why = "the process that watches this turn was killed, so nothing is known about how it ended";
                return Judgement::of(Outcome::Crashed { signal: 9 }, why);
            }
            _ => {}
        }
        if told.verdict == Some(Verdict::Failed) {
            return Judgement::of(Outcome::AgentError, message);
        }
        match self.end {
            End::Exited(code) if self.structured && told.over => {
                Judgement::of(Outcome::AgentError, &format!("it said that it ended well, but its exit code is {code}"))
            }
            End::Exited(0) if told.bytes == 0 => Judgement::plain(Outcome::Empty),
            End::Exited(_) if !self.structured => self.judge_text_failure(stderr),
            _ => Judgement::of(Outcome::NoTerminalEvent, message),
        }
    }

    /// A plain command that failed: the last line of what it printed may be its error message.
    fn judge_text_failure(&self, stderr: &str) -> Judgement {
        let line = last_line(&self.told.text);
        if let Some(kind) = self.whole_kind(line) {
            return self.trouble(kind, line, None);
        }
        Judgement::of(Outcome::AgentError, if stderr.is_empty() { line } else { stderr })
    }

    fn judge_trouble(&self, trouble: &Trouble) -> Option<Judgement> {
        let kind = self.kind_of(trouble)?;
        Some(self.trouble(kind, &trouble.message, trouble.resets_at))
    }

    fn kind_of(&self, trouble: &Trouble) -> Option<ErrorKind> {
        let message = trouble.message.as_str();
        let status = trouble.status.or_else(|| status_in(message));
        let by_code = trouble.code.as_ref().and_then(|code| self.codes.get(code)).copied();
        let structured = by_code.or_else(|| trouble.status.and_then(status_kind));
        // Both limits come as 429, and only the words tell which of the two it is.
        let limited = matches!(structured, Some(ErrorKind::RateLimited)) || status == Some(429);
        if limited && (trouble.resets_at.is_some() || self.says_usage_limit(message)) {
            return Some(ErrorKind::UsageLimit);
        }
        structured
            .or_else(|| self.own_kind(message))
            .or_else(|| status.and_then(status_kind))
            .or_else(|| general_kind(message))
            .or_else(|| trouble.resets_at.map(|_| ErrorKind::UsageLimit))
    }

    fn says_usage_limit(&self, message: &str) -> bool {
        self.own_kind(message).map_or_else(|| says_usage_limit(message), |kind| kind == ErrorKind::UsageLimit)
    }

    fn own_kind(&self, message: &str) -> Option<ErrorKind> {
        self.patterns.iter().find(|pattern| pattern.anywhere.is_match(message)).map(|pattern| pattern.kind)
    }

    fn whole_kind(&self, message: &str) -> Option<ErrorKind> {
        let own = self.patterns.iter().find(|pattern| pattern.whole.as_ref().is_some_and(|r| r.is_match(message)));
        own.map(|pattern| pattern.kind).or_else(|| general_whole(message))
    }

    /// The tail of stderr, line by line from its end, without what is only an echo of the prompt.
    fn judge_stderr(&self) -> Option<Judgement> {
        const LINES: usize = 20;
        let lines = self.stderr.lines().rev().map(str::trim).filter(|line| !line.is_empty());
        lines.take(LINES).filter(|line| !self.echoed(line)).find_map(|line| {
            let kind = self.kind_of(&Trouble { message: line.to_owned(), ..Trouble::default() })?;
            Some(self.trouble(kind, line, None))
        })
    }

    fn echoed(&self, line: &str) -> bool {
        self.prompt.contains(line)
    }

    fn trouble(&self, kind: ErrorKind, message: &str, resets_at: Option<i64>) -> Judgement {
        let outcome = match kind {
            ErrorKind::UsageLimit => kind.outcome(resets_at.or_else(|| reset_at(message, self.now, self.zone)), None),
            ErrorKind::RateLimited => kind.outcome(None, retry_after(message, self.now, self.zone)),
            _ => kind.outcome(None, None),
        };
        Judgement::of(outcome, message)
    }
}

fn last_line(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}

/// One line for people about a turn that did not end with a message.
pub(super) fn what_went_wrong(judgement: &Judgement, exit: Option<i32>) -> String {
    let kind = match &judgement.outcome {
        Outcome::UsageLimit { reset_at: Some(at) } => match Timestamp::from_second(*at) {
            Ok(at) => format!("usage limit until {at}"),
            Err(_) => "usage limit".to_owned(),
        },
        Outcome::UsageLimit { reset_at: None } => "usage limit, reset unknown".to_owned(),
        Outcome::RateLimited { retry_after: Some(seconds) } => format!("too many requests, wait {seconds} s"),
        Outcome::RateLimited { retry_after: None } => "too many requests".to_owned(),
        Outcome::Auth => "not logged in, wrong key or no credit".to_owned(),
        Outcome::ContextOverflow => "the prompt or session was too long for the model".to_owned(),
        Outcome::Overloaded => "the provider has no room".to_owned(),
        Outcome::Server => "the provider failed".to_owned(),
        Outcome::Network => "the provider could not be reached".to_owned(),
        Outcome::AgentError => "the agent reports an error".to_owned(),
        Outcome::NoTerminalEvent => "it ended without saying how".to_owned(),
        Outcome::TimedOut { which: TimeoutKind::Wall } => "its time ran out".to_owned(),
        Outcome::TimedOut { which: TimeoutKind::Silence } => "it was silent for too long".to_owned(),
        Outcome::Crashed { signal } => format!("it died by signal {signal}"),
        Outcome::SpawnFailed { .. } => "it could not be started".to_owned(),
        Outcome::Stopped => "stopped".to_owned(),
        Outcome::Empty => "it said nothing".to_owned(),
        Outcome::Done | Outcome::Truncated => "it ended well".to_owned(),
    };
    let code = match exit {
        Some(code) if code != 0 => format!(" (exit code {code})"),
        _ => String::new(),
    };
    match &judgement.error {
        Some(error) => format!("{kind}{code}: {}", first_line(error)),
        None => format!("{kind}{code}"),
    }
}

#[cfg(test)]
mod tests;
