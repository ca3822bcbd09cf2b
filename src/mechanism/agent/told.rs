//! What an agent told about its turn, read from its output as it comes.
//!
//! Owns the reading of JSON lines by rules and of plain text. Must not know processes, exit codes or clocks; what it all
//! comes to is [`super::classify`]'s to say. Guarantees bounded memory: one line, one message, the last few retries.

use std::collections::VecDeque;

use serde_json::Value;

use super::lines::{LONGEST_LINE, LineSplitter};
use super::message::{TextTail, first_line, tail_of_message};
use super::rules::{Rules, Trouble};
use super::usage::{Tally, usage};
use crate::policy::Usage;

/// How the turn stands by the last line that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Well,
    Truncated,
    Failed,
}

/// How many retries are remembered.
const MOST_RETRIES: usize = 32;

/// Text that is appended to is cut to its tail when it grows past this.
const MOST_TEXT: usize = 1024 * 1024;

/// What was told up to now.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The final message as it stands.
    pub(super) text: String,
    /// How the turn stands; `None` when nothing was said about it.
    pub(super) verdict: Option<Verdict>,
    /// A line said that the turn is over.
    pub(super) over: bool,
    /// The trouble that stands.
    pub(super) trouble: Option<Trouble>,
    /// The trouble that the agent was waiting out when it last said anything.
    pub(super) retrying: Option<Trouble>,
    /// The last retries, one line each; at most 32.
    pub(super) retries: VecDeque<String>,
    /// How many retries there were.
    pub(super) retry_count: u64,
    /// The agent's name for its session.
    pub(super) session: Option<String>,
    /// Tokens and cost.
    pub(super) usage: Usage,
    /// Bytes of standard output.
    pub(super) bytes: u64,
    /// Lines that were not JSON objects.
    pub(super) noise: u64,
    /// Lines that were too long to look at.
    pub(super) too_long: u64,
}

/// Reads standard output.
#[derive(Debug)]
pub(super) enum Reader {
    /// Plain text.
    Text(TextTail),
    /// JSON lines.
    Lines(Box<LineReader>),
}

impl Reader {
    /// A reader of JSON lines.
    pub(super) fn json_lines(rules: Rules) -> Reader {
        let splitter = LineSplitter::new(LONGEST_LINE, rules.ignore.clone());
        let tallies = rules.usage.iter().map(|_| Tally::default()).collect();
        Reader::Lines(Box::new(LineReader { splitter, state: LineState { rules, tallies, told: Told::default() } }))
    }

    /// Takes the next bytes. True as soon as the agent said that its turn is over.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        match self {
            Reader::Text(tail) => {
                tail.push(bytes);
                false
            }
            Reader::Lines(reader) => {
                let LineReader { splitter, state } = &mut **reader;
                state.told.bytes += bytes.len() as u64;
                splitter.push(bytes, &mut |line| state.line(line));
                state.told.over
            }
        }
    }

    /// The stream ended: everything that was told.
    pub(super) fn finish(self) -> Told {
        match self {
            Reader::Text(tail) => Told { text: tail.message(), bytes: tail.total(), ..Told::default() },
            Reader::Lines(reader) => {
                let LineReader { mut splitter, mut state } = *reader;
                splitter.finish(&mut |line| state.line(line));
                let mut told = state.told;
                told.usage = usage(&state.rules.usage, &state.tallies);
                told.too_long = splitter.too_long;
                told.text = tail_of_message(told.text);
                told
            }
        }
    }
}

/// A reader of JSON lines.
#[derive(Debug)]
pub(super) struct LineReader {
    splitter: LineSplitter,
    state: LineState,
}

#[derive(Debug)]
struct LineState {
    rules: Rules,
    tallies: Vec<Tally>,
    told: Told,
}

impl LineState {
    fn line(&mut self, line: &[u8]) {
        let Ok(Value::Object(fields)) = self.rules.sieve.parse(line) else {
            self.told.noise += 1;
            return;
        };
        let line = Value::Object(fields);
        if line.get("type").and_then(Value::as_str).is_some_and(|name| self.rules.ignore.iter().any(|i| i == name)) {
            return;
        }
        self.read_text(&line);
        self.read_usage(&line);
        if let Some(trouble) = self.rules.retry.iter().find_map(|rule| rule.read(&line)) {
            self.told.note_retry(trouble);
            return;
        }
        let trouble =
            self.rules.failed.iter().find_map(|rule| rule.read(&line).map(|trouble| (trouble, rule.is_final)));
        if let Some((trouble, is_final)) = trouble {
            self.told.note_trouble(trouble, is_final);
        } else {
            self.read_verdict(&line);
        }
    }

    fn read_text(&mut self, line: &Value) {
        if self.rules.fresh.iter().any(|condition| condition.fits(line)) {
            self.told.text.clear();
        }
        if let Some((text, append)) = self.rules.text.iter().find_map(|rule| Some((rule.read(line)?, rule.append))) {
            match append {
                true => self.told.text.push_str(&text),
                false => self.told.text = text,
            }
            if append && self.told.text.len() > MOST_TEXT {
                self.told.text = tail_of_message(std::mem::take(&mut self.told.text));
            }
            self.told.retrying = None;
        }
        if let Some(session) = self.rules.session.iter().find_map(|rule| rule.read(line)) {
            self.told.session = Some(first_line(&session)).filter(|name| !name.is_empty());
        }
    }

    fn read_usage(&mut self, line: &Value) {
        for (rule, tally) in self.rules.usage.iter().zip(&mut self.tallies) {
            if let Some((raw, id)) = rule.read(line) {
                tally.add(rule, raw, id);
            }
        }
    }

    fn read_verdict(&mut self, line: &Value) {
        let said = |conditions: &[super::rules::Condition]| conditions.iter().any(|condition| condition.fits(line));
        let (done, ended) = (said(&self.rules.done), said(&self.rules.ended));
        if said(&self.rules.truncated) {
            self.told.note_verdict(Verdict::Truncated);
        } else if done || said(&self.rules.well) {
            self.told.note_verdict(Verdict::Well);
        }
        self.told.over |= done || ended;
    }
}

impl Told {
    fn note_verdict(&mut self, verdict: Verdict) {
        self.verdict = Some(verdict);
        self.trouble = None;
        self.retrying = None;
    }

    fn note_trouble(&mut self, trouble: Trouble, is_final: bool) {
        // One mishap is often told in several lines, each of which knows another part of it.
        let before = self.trouble.take().unwrap_or_default();
        self.trouble = Some(Trouble {
            message: if trouble.message.trim().is_empty() { before.message } else { trouble.message },
            status: trouble.status.or(before.status),
            code: trouble.code.or(before.code),
            resets_at: trouble.resets_at.or(before.resets_at),
        });
        self.verdict = Some(Verdict::Failed);
        self.retrying = None;
        self.over |= is_final;
    }

    fn note_retry(&mut self, trouble: Trouble) {
        self.retry_count += 1;
        if self.retries.len() == MOST_RETRIES {
            self.retries.pop_front();
        }
        self.retries.push_back(first_line(&trouble.message));
        self.retrying = Some(trouble);
    }

    /// True when it said that it is over and nothing stands against it.
    pub(super) fn ended_well(&self) -> bool {
        self.over && self.verdict != Some(Verdict::Failed)
    }
}
