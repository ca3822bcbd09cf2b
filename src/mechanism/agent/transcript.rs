//! From the output and the end of a turn to its summary, without running anything.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::classify::{End, Evidence, Judgement, judge, what_went_wrong};
use super::error::AgentError;
use super::message::{TextTail, first_line, plain};
use super::rules::{Pattern, RuleError, Rules, compile_patterns};
use super::told::{Reader, Told};
use crate::mechanism::process::{Ending, LeaderStatus, TimeoutKind as Overrun};
use crate::policy::{AgentSpec, Outcome, Parser, TimeoutKind, TurnSummary, Usage};

/// The record of a turn: for trying a preset on what an agent printed, and for its tests.
#[derive(Debug, Clone)]
pub struct Transcript<'a> {
    /// Its standard output, whole.
    pub stdout: &'a [u8],
    /// Its standard error; the last 4 KiB count.
    pub stderr: &'a [u8],
    /// How it ended.
    pub ending: Ending,
    /// The prompt that it got.
    pub prompt: &'a str,
    /// When it ended.
    pub now: Timestamp,
    /// The zone of the machine that it ran on.
    pub zone: TimeZone,
}

/// What a recorded turn comes to. Durations and what was left behind are not in a transcript and stay empty.
///
/// # Errors
/// [`AgentError::Spec`] when the spec does not compile.
pub fn judge_transcript(spec: &AgentSpec, transcript: &Transcript<'_>) -> Result<TurnSummary, AgentError> {
    let (mut reader, patterns) = compile(spec)?;
    reader.push(transcript.stdout);
    let told = reader.finish();
    let leader = match transcript.ending {
        Ending::Exited(code) => Some(LeaderStatus::Exited(code)),
        Ending::Signaled(signal) => Some(LeaderStatus::Signaled(signal)),
        _ => None,
    };
    let ended = Ended {
        spec,
        prompt: transcript.prompt,
        ending: transcript.ending,
        leader,
        stderr: &transcript.stderr[transcript.stderr.len().saturating_sub(4096)..],
        now: transcript.now,
        zone: &transcript.zone,
    };
    Ok(summarise(&ended, &patterns, &told))
}

/// How a turn ended, besides what it told.
#[derive(Debug)]
pub(super) struct Ended<'a> {
    pub(super) spec: &'a AgentSpec,
    pub(super) prompt: &'a str,
    pub(super) ending: Ending,
    pub(super) leader: Option<LeaderStatus>,
    /// The end of stderr.
    pub(super) stderr: &'a [u8],
    pub(super) now: Timestamp,
    pub(super) zone: &'a TimeZone,
}

/// The reader and the error patterns of an agent.
pub(super) fn compile(spec: &AgentSpec) -> Result<(Reader, Vec<Pattern>), AgentError> {
    let compiled = || -> Result<_, RuleError> {
        let reader = match &spec.parse {
            Parser::Text => Reader::Text(TextTail::default()),
            Parser::JsonLines(lines) => Reader::json_lines(Rules::compile(lines)?),
        };
        Ok((reader, compile_patterns(&spec.errors)?))
    };
    compiled().map_err(|RuleError { field, problem }| AgentError::Spec { agent: spec.name.clone(), field, problem })
}

/// The summary of a turn, but for what only its process knows.
pub(super) fn summarise(ended: &Ended<'_>, patterns: &[Pattern], told: &Told) -> TurnSummary {
    let no_codes = BTreeMap::new();
    let (structured, codes) = match &ended.spec.parse {
        Parser::JsonLines(lines) => (true, &lines.codes),
        Parser::Text => (false, &no_codes),
    };
    let judgement = judge(&Evidence {
        told,
        structured,
        end: end(ended.ending),
        stderr: &plain(ended.stderr),
        prompt: ended.prompt,
        patterns,
        codes,
        now: ended.now,
        zone: ended.zone,
    });
    let exit = match ended.leader {
        Some(LeaderStatus::Exited(code)) => Some(code),
        _ => None,
    };
    let overran = matches!(ended.ending, Ending::TimedOut(_));
    let timed_out = overran && !matches!(judgement.outcome, Outcome::Done | Outcome::Truncated | Outcome::Empty);
    TurnSummary { timed_out, usage: told.usage, ..summary_of(ended.spec, judgement, told.text.clone(), exit) }
}

/// A summary with an outcome and nothing measured.
pub(super) fn summary_of(spec: &AgentSpec, judgement: Judgement, text: String, exit: Option<i32>) -> TurnSummary {
    let said = match judgement.outcome {
        Outcome::Done | Outcome::Truncated => first_line(&text),
        _ => String::new(),
    };
    let summary = if said.is_empty() { what_went_wrong(&judgement, exit) } else { said };
    TurnSummary {
        agent: spec.label(),
        outcome: judgement.outcome,
        text,
        summary,
        error: judgement.error,
        exit,
        timed_out: false,
        usage: Usage::default(),
        duration_s: 0.0,
        left_behind: Vec::new(),
        output: None,
    }
}

fn end(ending: Ending) -> End {
    match ending {
        Ending::Exited(code) => End::Exited(code),
        Ending::Signaled(signal) => End::Signaled(signal),
        Ending::TimedOut(Overrun::Wall) => End::TimedOut(TimeoutKind::Wall),
        Ending::TimedOut(Overrun::Silence) => End::TimedOut(TimeoutKind::Silence),
        Ending::FinishedAsAsked => End::Settled,
        Ending::Cancelled => End::Stopped,
        Ending::WardenLost => End::Unwatched,
    }
}
