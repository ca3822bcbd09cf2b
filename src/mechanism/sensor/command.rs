//! Reading a sensor that is a command.

use std::ffi::OsString;
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::hearing::{Ear, Heard};
use crate::mechanism::process::environment::{Audience, EnvironmentRules, scrub};
use crate::mechanism::process::{Command, Ending, Finished, LogFilters, ProcessError, Processes, TimeoutKind};
use crate::policy::units::show_duration;
use crate::policy::{CommandSpec, Reading, ReadingState, SensorSpec, cap_feedback_with_gap};

/// The most that one sensor may show the next prompt, in bytes.
pub const FEEDBACK_CAP: usize = 8 * 1024;

/// The print of every reading that ran out of time.
const TIMEOUT_PRINT: &str = "timeout";

/// Everything that one reading needs.
#[derive(Clone)]
pub struct SensorRequest<'a> {
    /// The folder that it runs in.
    pub folder: PathBuf,
    /// Its private temporary folder: made for the reading (it must not exist yet) and removed after it.
    pub tmp: PathBuf,
    /// Id of the run; the command finds it in `LUNATION_RUN`.
    pub run: String,
    /// The environment that the command's is made from; scrubbed here.
    pub ambient: &'a [(OsString, OsString)],
    /// What the configuration lets through, takes out and sets; the command's own `env` is added to it.
    pub environment: EnvironmentRules,
    /// Where its raw output goes, made anew.
    pub log_file: PathBuf,
    /// How the feedback calls the whole output; default: the path of the log file.
    pub log_name: Option<String>,
    /// The longest that log may get, in bytes.
    pub log_cap: u64,
    /// Masks secrets in the log.
    pub log_mask: Option<LogFilters>,
}

/// A machine that can't carry a reading. A command that can't be started is a broken reading, not one of these.
#[derive(Debug, thiserror::Error)]
#[error("sensor `{sensor}`: {source}")]
pub struct SensorError {
    /// Name of the sensor.
    pub sensor: String,
    /// What happened.
    pub source: ProcessError,
}

/// Runs a sensor's command until every process of it is gone, and reads its exit code: 0 passed, 126, 127, a signal, a
/// command that can't be started or was stopped by us broken, anything else failed. Running out of time is failed with
/// the constant print `timeout`, or broken where the sensor says so.
///
/// Leftover processes are ended and are a note, never the verdict. The reading's `output` is left to whoever keeps blobs.
///
/// # Errors
/// [`SensorError`] when the machine can't carry it.
pub async fn read_command(
    processes: &Processes,
    sensor: &SensorSpec,
    spec: &CommandSpec,
    request: SensorRequest<'_>,
    cancel: CancellationToken,
) -> Result<Reading, SensorError> {
    let argv = spec.line.argv();
    let (program, args) = argv.split_first().map_or(("", &[][..]), |(program, args)| (program.as_str(), args));
    let mut environment = request.environment.clone();
    environment.set.extend(spec.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    let vars = scrub(request.ambient, Audience::Command, &environment, &request.run).vars;
    let mut command = Command::new(program, &request.folder, vars)
        .args(args)
        .wall(spec.timeout)
        .silence(spec.silence)
        .keep_output(0, 0)
        .log(&request.log_file, request.log_cap)
        .private_tmp(&request.tmp);
    if let Some(mask) = request.log_mask.clone() {
        command = command.log_filter(move |stream| mask(stream));
    }
    let ear = Ear::default();
    match processes.run(command, cancel, Some(Box::new(ear.clone()))).await {
        Ok(finished) => {
            let log = request.log_name.unwrap_or_else(|| request.log_file.display().to_string());
            Ok(read(sensor, spec, &finished, ear.finish(), &log))
        }
        Err(error) if is_the_commands(&error) => Ok(not_started(sensor, &error)),
        Err(source) => Err(SensorError { sensor: sensor.id.clone(), source }),
    }
}

fn is_the_commands(error: &ProcessError) -> bool {
    matches!(
        error,
        ProcessError::NotFound { .. }
            | ProcessError::NotExecutable { .. }
            | ProcessError::SpawnFailed { .. }
            | ProcessError::Folder { .. }
            | ProcessError::Unusable { .. }
    )
}

fn not_started(sensor: &SensorSpec, error: &ProcessError) -> Reading {
    let why = error.to_string();
    Reading { feedback: why.clone(), ..blank(sensor, ReadingState::Broken, why) }
}

fn blank(sensor: &SensorSpec, state: ReadingState, summary: String) -> Reading {
    Reading {
        id: sensor.id.clone(),
        state,
        failing: match state {
            ReadingState::Passed => Some(0),
            ReadingState::Failed => Some(1),
            ReadingState::Broken => None,
        },
        score: None,
        items: Vec::new(),
        fingerprint: super::fingerprint(state, &summary),
        summary,
        feedback: String::new(),
        exit: None,
        timed_out: false,
        duration_s: 0.0,
        output: None,
        notes: Vec::new(),
        flaky: false,
        attribution: None,
    }
}

fn read(sensor: &SensorSpec, spec: &CommandSpec, finished: &Finished, heard: Heard, log: &str) -> Reading {
    let (state, what) = verdict(sensor, spec, finished.ending);
    let timed_out = matches!(finished.ending, Ending::TimedOut(_));
    let fingerprint = if timed_out { TIMEOUT_PRINT.to_owned() } else { heard.print.finish(state) };
    let (head, tail, gap) = heard.output.parts();
    let last = last_line(&tail).or_else(|| last_line(&head)).map(shorten);
    let summary = match (state, last) {
        (ReadingState::Passed, _) => "passed".to_owned(),
        (_, Some(line)) => format!("{what}: {line}"),
        (_, None) => what.clone(),
    };
    Reading {
        fingerprint,
        feedback: feedback(&what, &head, &tail, gap, log),
        exit: match finished.ending {
            Ending::Exited(code) => Some(code),
            _ => None,
        },
        timed_out,
        duration_s: finished.wall.as_secs_f64(),
        notes: notes(finished),
        ..blank(sensor, state, summary)
    }
}

/// The state, and what to say about the end.
fn verdict(sensor: &SensorSpec, spec: &CommandSpec, ending: Ending) -> (ReadingState, String) {
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

/// Exit code and cut notice first, where nobody can miss them; then as much of the output as there is room for.
fn feedback(what: &str, head: &str, tail: &str, gap: usize, log: &str) -> String {
    let total = head.len() + gap + tail.len();
    let plain = format!("{what}\n");
    if plain.len() + total <= FEEDBACK_CAP {
        return format!("{plain}{head}{tail}");
    }
    let notice = format!("{what}; {total} bytes of output, cut to {FEEDBACK_CAP}; whole output: {log}\n");
    let room = FEEDBACK_CAP.saturating_sub(notice.len());
    format!("{notice}{}", cap_feedback_with_gap(head, tail, gap, room))
}

fn last_line(text: &str) -> Option<&str> {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty())
}

fn shorten(line: &str) -> String {
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
