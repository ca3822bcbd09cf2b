//! Reading a sensor that is a command.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;

use super::hearing::{Ear, Heard};
use super::report::read_files;
use super::verdict::{Facts, Parsed, read};
use crate::mechanism::process::environment::{Audience, EnvironmentRules, scrub};
use crate::mechanism::process::{Command, Finished, LogFilters, ProcessError, Processes};
use crate::policy::{CommandSpec, Parse, Reading, ReadingState, SensorSpec};

/// What is kept of each stream for a function that counts.
const KEPT_HEAD: usize = 256 << 10;
const KEPT_TAIL: usize = 768 << 10;

/// Everything that one reading needs.
#[derive(Clone)]
pub struct SensorRequest<'a> {
    /// The folder that it runs in.
    pub folder: PathBuf,
    /// Root of the workspace: report files are looked for below it.
    pub root: PathBuf,
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
    /// How many items this sensor ran before, at most; for one that can't run any more.
    pub ran_before: Option<u64>,
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

/// A command that ran to its end, before anybody judged it.
pub struct Observed {
    result: Result<(Box<Finished>, Box<Heard>), Box<Reading>>,
    root: PathBuf,
    started: SystemTime,
    log: String,
    ran_before: Option<u64>,
}

/// Runs a sensor's command until every process of it is gone, and reads its exit code: 0 passed, 126, 127, a signal, a
/// command that can't be started or was stopped by us broken, anything else failed. Running out of time is failed with
/// the constant print `timeout`, or broken where the sensor says so. What its output reports is counted; see
/// [`Counting`](crate::policy::Counting). A pass that reports no item is failed.
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
    Ok(observe_command(processes, sensor, spec, request, cancel).await?.read(sensor, spec, None))
}

/// The first half of [`read_command`]: the caller may count by itself what the streams say, and then calls
/// [`Observed::read`].
///
/// # Errors
/// [`SensorError`] when the machine can't carry it.
pub async fn observe_command(
    processes: &Processes,
    sensor: &SensorSpec,
    spec: &CommandSpec,
    request: SensorRequest<'_>,
    cancel: CancellationToken,
) -> Result<Observed, SensorError> {
    let log = request.log_name.clone().unwrap_or_else(|| request.log_file.display().to_string());
    let observed = |result| Observed {
        result,
        root: request.root.clone(),
        started: started(),
        log,
        ran_before: request.ran_before,
    };
    let ear = match Ear::new(&sensor.counting, &spec.line.show()) {
        Ok(ear) => ear,
        Err(error) => return Ok(observed(Err(Box::new(broken(sensor, &error.to_string()))))),
    };
    let observed = observed(Err(Box::new(broken(sensor, "it did not run"))));
    let command = command(sensor, spec, &request);
    match processes.run(command, cancel, Some(Box::new(ear.clone()))).await {
        Ok(finished) => match ear.finish() {
            Some(heard) => Ok(Observed { result: Ok((Box::new(finished), Box::new(heard))), ..observed }),
            None => Ok(observed),
        },
        Err(error) if is_the_commands(&error) => {
            Ok(Observed { result: Err(Box::new(broken(sensor, &error.to_string()))), ..observed })
        }
        Err(source) => Err(SensorError { sensor: sensor.id.clone(), source }),
    }
}

/// File systems keep times in coarse steps that may lie a little before the clock.
fn started() -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(std::time::Duration::from_millis(20)).unwrap_or(now)
}

fn command(sensor: &SensorSpec, spec: &CommandSpec, request: &SensorRequest<'_>) -> Command {
    let argv = spec.line.argv();
    let (program, args) = argv.split_first().map_or(("", &[][..]), |(program, args)| (program.as_str(), args));
    let mut environment = request.environment.clone();
    environment.set.extend(spec.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    let vars = scrub(request.ambient, Audience::Command, &environment, &request.run).vars;
    let keeps = matches!(sensor.counting.parse, Parse::Function(_));
    let (head, tail) = if keeps { (KEPT_HEAD, KEPT_TAIL) } else { (0, 0) };
    let mut command = Command::new(program, &request.folder, vars)
        .args(args)
        .wall(spec.timeout)
        .silence(spec.silence)
        .keep_output(head, tail)
        .log(&request.log_file, request.log_cap)
        .private_tmp(&request.tmp);
    if let Some(mask) = request.log_mask.clone() {
        command = command.log_filter(move |stream| mask(stream));
    }
    command
}

impl Observed {
    /// How it ended, for who counts by itself; `None` when it could not be started.
    pub fn finished(&self) -> Option<&Finished> {
        self.result.as_ref().ok().map(|(finished, _)| finished.as_ref())
    }

    /// The reading. `parsed` stands for what a function counted.
    pub fn read(self, sensor: &SensorSpec, spec: &CommandSpec, parsed: Option<Parsed>) -> Reading {
        let (finished, mut heard) = match self.result {
            Ok(both) => both,
            Err(reading) => return *reading,
        };
        let globs = &sensor.counting.report;
        let counted = if globs.is_empty() {
            heard.reporter.finish()
        } else {
            read_files(&self.root, globs, &sensor.counting.parse, self.started)
                .map(Some)
                .map_err(|error| error.to_string())
        };
        read(Facts {
            sensor,
            spec,
            finished: &finished,
            heard: *heard,
            counted,
            parsed,
            ran_before: self.ran_before,
            log: &self.log,
        })
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

/// A reading of a sensor that cannot say anything.
pub(super) fn broken(sensor: &SensorSpec, why: &str) -> Reading {
    let print = super::fingerprint(ReadingState::Broken, why);
    Reading { feedback: why.to_owned(), ..Reading::new(&sensor.id, ReadingState::Broken, why, print) }
}
