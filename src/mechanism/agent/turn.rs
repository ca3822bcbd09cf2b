//! One turn: a new process with the prompt, watched until all of it is gone, judged by what it told.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio_util::sync::CancellationToken;

use super::argv::{Filling, fill};
use super::classify::Judgement;
use super::error::AgentError;
use super::rules::Pattern;
use super::start_checks::program_and_args;
use super::told::{Reader, Told};
use super::transcript::{Ended, compile, summarise, summary_of};
use crate::mechanism::process::environment::{Audience, EnvironmentRules, scrub};
use crate::mechanism::process::{
    Command, Finished, LeftBehind, LogFilters, Observer, ProcessError, Processes, Stdin, Stream, Wish,
};
use crate::policy::{AgentSpec, Outcome, PromptChannel, TurnSummary};

/// The longest prompt that may be one argument: Linux refuses 131,072 bytes, whatever the total limit is.
pub const MOST_ARGUMENT_BYTES: usize = 120_000;

/// Everything that one turn needs.
#[derive(Clone)]
pub struct TurnRequest<'a> {
    /// The agent.
    pub spec: &'a AgentSpec,
    /// The prompt, without the agent's own instructions.
    pub prompt: String,
    /// The folder that it runs in.
    pub workspace: PathBuf,
    /// Its private temporary folder: made for the turn (it must not exist yet) and removed after it.
    pub tmp: PathBuf,
    /// Id of the run; the agent finds it in `LUNATION_RUN`.
    pub run: String,
    /// Number of the iteration, from 1; the agent finds it in `LUNATION_ITERATION`.
    pub iteration: u32,
    /// The environment that the agent's is made from; scrubbed here.
    pub ambient: &'a [(OsString, OsString)],
    /// What the configuration lets through, takes out and sets; the agent's own `pass_env` and `env` are added to it.
    pub environment: EnvironmentRules,
    /// Awake time that the budget has left; the agent's own timeout counts when it is shorter.
    pub wall_left: Option<Duration>,
    /// Where its raw output goes, made anew.
    pub log_file: PathBuf,
    /// The longest that log may get, in bytes.
    pub log_cap: u64,
    /// Masks secrets in the log.
    pub log_mask: Option<LogFilters>,
    /// The zone of this machine, for "resets at 5pm".
    pub zone: TimeZone,
}

/// How a turn went.
#[derive(Debug, Clone)]
pub struct TurnReport {
    /// What policies and journals see. Its `output` is left to whoever keeps blobs.
    pub summary: TurnSummary,
    /// Names of the variables that were taken out of its environment.
    pub scrubbed: Vec<String>,
    /// Where its raw output is.
    pub log: PathBuf,
    /// What it said about its last retries, at most 32 lines.
    pub retries: Vec<String>,
    /// How often it retried.
    pub retry_count: u64,
    /// Its name for its session. `None` after a turn that was not [`Outcome::Done`] or [`Outcome::Truncated`]: what
    /// failed is nothing to go on from.
    pub session: Option<String>,
    /// False when it is not certain that all of its processes are gone.
    pub confirmed_gone: bool,
    /// What could not be brought to end, by name.
    pub still_there: Vec<String>,
    /// Remarks for the record: lines that were skipped, a log that was cut, a temporary folder that could not go.
    pub notes: Vec<String>,
}

/// Runs one turn until every process of it is gone.
///
/// An agent that fails is an [`Outcome`], never an error. `cancel` ends it with [`Outcome::Stopped`].
///
/// # Errors
/// [`AgentError::Spec`] when the spec does not compile, [`AgentError::Prompt`] when the prompt cannot go the way that
/// was chosen, [`AgentError::NotACommand`] for agents of the embedding program, and [`AgentError::Host`] or
/// [`AgentError::PromptFile`] when the machine can't carry the turn.
pub async fn take_turn(
    processes: &Processes,
    request: TurnRequest<'_>,
    cancel: CancellationToken,
) -> Result<TurnReport, AgentError> {
    let spec = request.spec;
    let argv = program_and_args(spec)?;
    let (reader, patterns) = compile(spec)?;
    let prompt = whole_prompt(spec, &request.prompt);
    check_prompt(spec, &prompt)?;
    let prompt_file = PromptFile::write(&request, &prompt)?;
    let filling = Filling {
        model: spec.model.as_deref(),
        prompt: (spec.prompt_via == PromptChannel::Arg).then_some(prompt.as_str()),
        prompt_file: prompt_file.as_ref().map(|file| file.0.as_path()),
        workspace: &request.workspace,
        tmp: &request.tmp,
    };
    let words = fill(argv, &filling);
    let (command, scrubbed) = command(&request, &words, &prompt);
    let ear = Ear::new(reader, spec.settle);
    let result = processes.run(command, cancel, Some(Box::new(ear.clone()))).await;
    drop(prompt_file);
    let told = ear.finish();
    let finished = match result {
        Ok(finished) => finished,
        Err(error) => return not_started(spec, error, scrubbed, request.log_file),
    };
    let ended = Ended {
        spec,
        prompt: &prompt,
        ending: finished.ending,
        leader: finished.leader_status,
        stderr: &stderr_tail(&finished),
        now: Timestamp::now(),
        zone: &request.zone,
    };
    Ok(report(&ended, &patterns, &finished, told, scrubbed, request.log_file))
}

fn whole_prompt(spec: &AgentSpec, prompt: &str) -> String {
    match spec.instructions.as_deref().filter(|instructions| !instructions.trim().is_empty()) {
        Some(instructions) => format!("{}\n\n{prompt}", instructions.trim_end()),
        None => prompt.to_owned(),
    }
}

fn check_prompt(spec: &AgentSpec, prompt: &str) -> Result<(), AgentError> {
    if spec.prompt_via != PromptChannel::Arg {
        return Ok(());
    }
    let wrong = |problem: String| Err(AgentError::Prompt { agent: spec.name.clone(), problem });
    if prompt.len() > MOST_ARGUMENT_BYTES {
        return wrong(format!(
            "the prompt has {} bytes, more than the {MOST_ARGUMENT_BYTES} that may be one argument; \
             use prompt_via = \"stdin\" or \"file\"",
            prompt.len()
        ));
    }
    if let Some(at) = prompt.find('\0') {
        return wrong(format!("the prompt has a NUL byte at offset {at}, so it can't be an argument"));
    }
    if prompt.starts_with('-') && !dash_is_harmless(spec) {
        return wrong(
            "the prompt begins with `-` and would be taken for an option; \
             use prompt_via = \"stdin\", or put \"--\" before \"{prompt}\""
                .into(),
        );
    }
    Ok(())
}

/// True where the argument before the prompt ends the options.
fn dash_is_harmless(spec: &AgentSpec) -> bool {
    let argv = program_and_args(spec).unwrap_or_default();
    let at = argv.iter().position(|arg| arg == "{prompt}").unwrap_or(argv.len());
    argv[..at].iter().any(|arg| arg == "--")
}

/// A prompt in a file beside the temporary folder, owner only; removed when dropped.
struct PromptFile(PathBuf);

impl PromptFile {
    fn write(request: &TurnRequest<'_>, prompt: &str) -> Result<Option<PromptFile>, AgentError> {
        if request.spec.prompt_via != PromptChannel::File {
            return Ok(None);
        }
        let mut name = request.tmp.as_os_str().to_owned();
        name.push(".prompt.md");
        let file = PathBuf::from(name);
        let write = || {
            if let Some(folder) = file.parent() {
                fs::create_dir_all(folder)?;
            }
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?.write_all(prompt.as_bytes())
        };
        match write() {
            Ok(()) => Ok(Some(PromptFile(file))),
            Err(source) => Err(AgentError::PromptFile { agent: request.spec.name.clone(), file, source }),
        }
    }
}

impl Drop for PromptFile {
    fn drop(&mut self) {
        // The agent may have removed it; and a prompt that stays in a private folder harms nobody.
        let _ = fs::remove_file(&self.0);
    }
}

fn command(request: &TurnRequest<'_>, words: &[OsString], prompt: &str) -> (Command, Vec<String>) {
    let spec = request.spec;
    let rules = agent_rules(&request.environment, spec, request.iteration);
    let scrubbed = scrub(request.ambient, Audience::Agent, &rules, &request.run);
    let (program, args) = words.split_first().map_or((OsString::new(), &[][..]), |(p, args)| (p.clone(), args));
    let mut command = Command::new(program, &request.workspace, scrubbed.vars)
        .args(args)
        .wall(request.wall_left.map_or(spec.timeout, |left| left.min(spec.timeout)))
        .silence(spec.silence)
        .term_grace(spec.grace)
        .log(&request.log_file, request.log_cap)
        .private_tmp(&request.tmp);
    if spec.prompt_via == PromptChannel::Stdin {
        command = command.stdin(Stdin::Bytes(prompt.as_bytes().to_vec()));
    }
    if let Some(mask) = request.log_mask.clone() {
        command = command.log_filter(move |stream| mask(stream));
    }
    (command, scrubbed.removed)
}

/// What the configuration says about environments, and what this agent adds to it.
fn agent_rules(configured: &EnvironmentRules, spec: &AgentSpec, iteration: u32) -> EnvironmentRules {
    let mut rules = configured.clone();
    rules.pass.extend(spec.pass_env.iter().cloned());
    rules.set.push(("LUNATION_ITERATION".into(), iteration.to_string()));
    rules.set.extend(spec.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    rules
}

/// Hears the output as it comes. Clones share one reader.
#[derive(Clone)]
struct Ear {
    reader: Arc<Mutex<Option<Reader>>>,
    settle: Duration,
}

impl Ear {
    fn new(reader: Reader, settle: Duration) -> Ear {
        Ear { reader: Arc::new(Mutex::new(Some(reader))), settle }
    }

    /// Everything that was told; what comes later is not heard.
    fn finish(&self) -> Told {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        reader.map(Reader::finish).unwrap_or_default()
    }
}

impl Observer for Ear {
    fn output(&mut self, stream: Stream, bytes: &[u8]) -> Wish {
        if stream != Stream::Stdout {
            return Wish::GoOn;
        }
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        match reader.as_mut().is_some_and(|reader| reader.push(bytes)) {
            true => Wish::FinishWithin(self.settle),
            false => Wish::GoOn,
        }
    }
}

/// How much of the end of stderr is looked at.
const STDERR_TAIL: usize = 4096;

fn report(
    ended: &Ended<'_>,
    patterns: &[Pattern],
    finished: &Finished,
    told: Told,
    scrubbed: Vec<String>,
    log: PathBuf,
) -> TurnReport {
    let names = |processes: &[LeftBehind]| processes.iter().map(|process| process.name.clone()).collect::<Vec<_>>();
    let summary = TurnSummary {
        duration_s: finished.wall.as_secs_f64(),
        left_behind: names(&finished.left_behind),
        ..summarise(ended, patterns, &told)
    };
    let went_well = matches!(summary.outcome, Outcome::Done | Outcome::Truncated);
    TurnReport {
        summary,
        scrubbed,
        log,
        notes: notes(finished, &told),
        retries: told.retries.into(),
        retry_count: told.retry_count,
        session: told.session.filter(|_| went_well),
        confirmed_gone: finished.confirmed_gone,
        still_there: names(&finished.still_there),
    }
}

/// A program that could not be started is the agent's outcome; a machine that can't start any is not.
fn not_started(
    spec: &AgentSpec,
    error: ProcessError,
    scrubbed: Vec<String>,
    log: PathBuf,
) -> Result<TurnReport, AgentError> {
    let the_agents = matches!(
        error,
        ProcessError::NotFound { .. } | ProcessError::NotExecutable { .. } | ProcessError::SpawnFailed { .. }
    );
    if !the_agents {
        return Err(AgentError::Host { agent: spec.name.clone(), source: error });
    }
    let outcome = Outcome::SpawnFailed { transient: error.is_transient() };
    Ok(TurnReport {
        summary: summary_of(spec, Judgement { outcome, error: Some(error.to_string()) }, String::new(), None),
        scrubbed,
        log,
        retries: Vec::new(),
        retry_count: 0,
        session: None,
        confirmed_gone: true,
        still_there: Vec::new(),
        notes: Vec::new(),
    })
}

fn stderr_tail(finished: &Finished) -> Vec<u8> {
    let captured = &finished.stderr;
    let mut bytes = if captured.dropped > 0 { Vec::new() } else { captured.head.clone() };
    bytes.extend_from_slice(&captured.tail);
    bytes.split_off(bytes.len().saturating_sub(STDERR_TAIL))
}

fn notes(finished: &Finished, told: &Told) -> Vec<String> {
    let mut notes = Vec::new();
    if told.too_long > 0 {
        notes.push(format!("{} lines of its output were longer than 8 MiB and were skipped", told.too_long));
    }
    if told.noise > 0 {
        notes.push(format!("{} lines of its output were not the JSON that was expected", told.noise));
    }
    if let Some(log) = &finished.log {
        if let Some(error) = &log.error {
            notes.push(format!("its log {} is not whole: {error}", log.path.display()));
        } else if log.cut > 0 {
            notes.push(format!("its log {} was cut; {} bytes are missing", log.path.display(), log.cut));
        }
    }
    if let Some(why) = &finished.tmp_left {
        notes.push(format!("its temporary folder could not be removed: {why}"));
    }
    if finished.held_pipe {
        notes.push("something that it left behind held its output open".into());
    }
    notes
}
