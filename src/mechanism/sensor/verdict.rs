//! What a command's end and output mean: from facts to a reading.

use super::feedback::{Shown, feedback};
use super::hearing::Heard;
use super::report::Counted;
use crate::mechanism::process::{Ending, Finished, TimeoutKind};
use crate::policy::units::show_duration;
use crate::policy::{CommandSpec, Parse, Reading, ReadingState, SensorSpec};

/// The print of every reading that ran out of time.
const TIMEOUT_PRINT: &str = "timeout";

/// What a function of the embedder or a script counted. What it does not say is left to the exit code.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parsed {
    /// Failing items.
    pub failing: Option<u64>,
    /// All items.
    pub total: Option<u64>,
    /// A score.
    pub score: Option<f64>,
    /// One line for people.
    pub summary: Option<String>,
    /// Names of failing items.
    pub items: Vec<String>,
}

/// The facts of one reading.
pub(super) struct Facts<'a> {
    pub(super) sensor: &'a SensorSpec,
    pub(super) spec: &'a CommandSpec,
    pub(super) finished: &'a Finished,
    pub(super) heard: Heard,
    /// What a report says, or why it cannot be had.
    pub(super) counted: Result<Option<Counted>, String>,
    pub(super) parsed: Option<Parsed>,
    /// How many items this sensor ran before in this run, at most.
    pub(super) ran_before: Option<u64>,
    pub(super) log: &'a str,
}

/// State and words, step by step.
struct Verdict {
    state: ReadingState,
    /// What is said of the end: `exit code 1`.
    what: String,
}

impl Verdict {
    fn fail(&mut self, why: &str) {
        self.state = ReadingState::Failed;
        self.what = format!("{}, but {why}", self.what);
    }

    fn break_down(&mut self, why: &str) {
        self.state = ReadingState::Broken;
        self.what = format!("{}; {why}", self.what);
    }
}

pub(super) fn read(facts: Facts<'_>) -> Reading {
    let Facts { sensor, spec, finished, mut heard, counted, parsed, ran_before, log } = facts;
    let (state, what) = ending(sensor, spec, finished.ending);
    let mut verdict = Verdict { state, what };
    let timed_out = matches!(finished.ending, Ending::TimedOut(_));
    let mut notes = notes(finished);
    let build = heard.reporter.build_errors();
    let named = heard.reporter.named || !sensor.counting.report.is_empty();

    let report = match counted {
        Ok(report) => report,
        Err(why) => {
            if verdict.state == ReadingState::Passed {
                verdict.break_down(&why);
            } else {
                notes.push(why);
            }
            None
        }
    };
    let report = report.or(build.filter(|_| verdict.state == ReadingState::Failed).map(|build| Counted {
        did_not_run: true,
        tests: true,
        total: 0,
        ..build
    }));
    let (mut failing, mut total) = match (&parsed, &report) {
        (Some(parsed), _) => (parsed.failing, parsed.total),
        (None, Some(report)) => (Some(report.failing), Some(report.total)),
        (None, None) => (None, None),
    };
    if report.as_ref().is_some_and(|report| report.did_not_run) {
        total = None;
    }
    let tests = parsed.is_some() || report.as_ref().is_none_or(|report| report.tests);
    let score = parsed.as_ref().and_then(|parsed| parsed.score).or(heard.watch.score);

    if verdict.state == ReadingState::Passed {
        let counts = matches!(&sensor.counting.parse, Parse::Format(format) if format.counts_tests())
            || matches!(sensor.counting.parse, Parse::Pattern(_))
            || !sensor.counting.report.is_empty();
        let missing = heard.watch.missing();
        if failing.is_some_and(|failing| failing > 0) {
            verdict.fail(&words(&report, failing, total));
        } else if tests && total == Some(0) {
            verdict.fail("no test ran");
        } else if named && counts && total.is_none() {
            verdict.fail("it reported nothing, so nothing is known to have run");
        } else if total.is_none() && ran_before.is_some_and(|before| before > 0) && sensor.counting.parse == Parse::Auto
        {
            verdict.fail(&format!("it reported nothing, and it ran {} items before", ran_before.unwrap_or(0)));
        } else if let Some(least) = sensor.counting.min_total
            && total.unwrap_or(0) < least
        {
            let ran = total.map_or("nobody counted".to_owned(), |total| format!("{total} ran"));
            verdict.fail(&format!("{ran} where at least {least} must"));
        } else if let Some(&at) = missing.first() {
            verdict.fail(&format!("no line matches `{}`", sensor.counting.must_match[at]));
        } else if let Some(least) = sensor.counting.threshold {
            match score {
                Some(score) if score < least => verdict.fail(&format!("its score is {score}, below {least}")),
                Some(_) => {}
                None => verdict.break_down("it printed no line `SCORE: n`, so there is no verdict"),
            }
        }
    } else if verdict.state == ReadingState::Failed
        && let Some(line) = &heard.watch.broken_by
    {
        verdict.break_down(&format!("a line says that it does not work: {line}"));
    }

    if verdict.state == ReadingState::Failed {
        let warnings = report.as_ref().map_or(0, |report| report.warnings);
        let counted = failing.filter(|&failing| failing > 0).or((warnings > 0).then_some(warnings)).unwrap_or(1);
        failing = Some(counted);
        // What could not be run at all is no better than all of it failing.
        if total.is_none_or(|total| total == 0)
            && let Some(before) = ran_before
            && before > counted
            && !timed_out
        {
            notes.push(format!("it ran {before} items before and none now, so all of them count as failing"));
            failing = Some(before);
        }
    }
    let fingerprint = if timed_out { TIMEOUT_PRINT.to_owned() } else { heard.print.finish(verdict.state) };
    let (head, tail, gap) = heard.output.parts();
    let summary = summary(&verdict, parsed.as_ref(), report.as_ref(), failing, total, &head, &tail);
    let items = match (verdict.state, parsed, &report) {
        (ReadingState::Failed, Some(parsed), _) => parsed.items,
        (ReadingState::Failed, None, Some(report)) => report.items.clone(),
        _ => Vec::new(),
    };
    let shown = Shown {
        what: &verdict.what,
        counted: (verdict.state == ReadingState::Failed).then_some(report.as_ref()).flatten(),
        items: &items,
        failing,
        kept: &heard.watch.kept,
        not_kept: heard.watch.not_kept,
        head: &head,
        tail: &tail,
        gap,
        log,
    };
    let feedback = feedback(&shown);
    Reading {
        failing: match verdict.state {
            ReadingState::Passed => Some(0),
            ReadingState::Failed => failing,
            ReadingState::Broken => None,
        },
        total,
        score: score.filter(|_| verdict.state != ReadingState::Broken),
        items,
        feedback,
        exit: match finished.ending {
            Ending::Exited(code) => Some(code),
            _ => None,
        },
        timed_out,
        duration_s: finished.wall.as_secs_f64(),
        notes,
        ..Reading::new(&sensor.id, verdict.state, summary, fingerprint)
    }
}

fn words(report: &Option<Counted>, failing: Option<u64>, total: Option<u64>) -> String {
    match (report, failing, total) {
        (Some(report), ..) => report.line(),
        (None, Some(failing), Some(total)) => format!("{failing} of {total} failed"),
        (None, Some(failing), None) => format!("{failing} failed"),
        (None, None, _) => "nobody counted".into(),
    }
}

fn summary(
    verdict: &Verdict,
    parsed: Option<&Parsed>,
    report: Option<&Counted>,
    failing: Option<u64>,
    total: Option<u64>,
    head: &str,
    tail: &str,
) -> String {
    if let Some(summary) = parsed.and_then(|parsed| parsed.summary.as_ref()) {
        return shorten_to_line(summary);
    }
    let last = last_line(tail).or_else(|| last_line(head)).map(shorten_to_line);
    let what = &verdict.what;
    match (verdict.state, report, last) {
        (ReadingState::Passed, Some(report), _) if report.tests => format!("passed: {}", report.line()),
        (ReadingState::Passed, ..) => "passed".to_owned(),
        (ReadingState::Failed, Some(report), _) if failing > Some(0) && !what.contains(", but ") => {
            let named = match report.items.as_slice() {
                [] => String::new(),
                [only] => format!(": {only}"),
                [first, ..] => format!(": {first}, …"),
            };
            format!("{what}: {}{}", report.line(), shorten_to_line(&named))
        }
        _ if what.contains(", but ") => what.clone(),
        (ReadingState::Failed, None, _) if parsed.is_some() => format!("{what}: {}", words(&None, failing, total)),
        (_, _, Some(line)) => format!("{what}: {line}"),
        (_, _, None) => what.clone(),
    }
}

/// The state, and what to say about the end.
fn ending(sensor: &SensorSpec, spec: &CommandSpec, ending: Ending) -> (ReadingState, String) {
    let overrun = if sensor.timeout_is_broken { ReadingState::Broken } else { ReadingState::Failed };
    match ending {
        Ending::Exited(0) | Ending::FinishedAsAsked => (ReadingState::Passed, "exit code 0".into()),
        Ending::Exited(code @ 126) => (ReadingState::Broken, format!("exit code {code} (it can't be run)")),
        Ending::Exited(code @ 127) => (ReadingState::Broken, format!("exit code {code} (a command was not found)")),
        Ending::Exited(code) => (ReadingState::Failed, format!("exit code {code}")),
        Ending::Signaled(signal) => (ReadingState::Broken, format!("it died by signal {signal}")),
        Ending::TimedOut(TimeoutKind::Wall) => (overrun, format!("timed out after {}", show_duration(spec.timeout))),
        Ending::TimedOut(TimeoutKind::Silence) => {
            (overrun, format!("timed out: silent for {}", show_duration(spec.silence.unwrap_or_default())))
        }
        Ending::Cancelled => (ReadingState::Broken, "it was stopped".into()),
        Ending::WardenLost => {
            (ReadingState::Broken, "the process that watched it was killed, so how it ended is not known".into())
        }
    }
}

fn last_line(text: &str) -> Option<&str> {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty())
}

fn shorten_to_line(line: &str) -> String {
    let mut short: String = line.chars().filter(|c| !c.is_control()).take(200).collect();
    if line.chars().count() > 200 {
        short.push('…');
    }
    short
}

fn notes(finished: &Finished) -> Vec<String> {
    let mut notes = Vec::new();
    if finished.swept > 0 {
        let names: Vec<&str> = finished.left_behind.iter().map(|left| left.name.as_str()).collect();
        notes.push(format!("it left {} processes behind, which were ended: {}", finished.swept, names.join(", ")));
    }
    if !finished.confirmed_gone {
        let names: Vec<&str> = finished.still_there.iter().map(|left| left.name.as_str()).collect();
        notes.push(format!("not all of its processes are certain to be gone: {}", names.join(", ")));
    }
    if let Ending::Exited(code @ 129..=159) = finished.ending {
        notes.push(format!("exit code {code} is what a shell tells of a process that died by signal {}", code - 128));
    }
    if let Some(why) = &finished.tmp_left {
        notes.push(format!("its temporary folder could not be removed: {why}"));
    }
    if let Some(error) = finished.log.as_ref().and_then(|log| log.error.as_ref()) {
        notes.push(format!("its log is not whole: {error}"));
    }
    notes
}
