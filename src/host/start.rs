//! How a run starts and ends, step by step.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use tokio::sync::broadcast;

use super::builder::{Host, RecordListener, Script};
use super::error::HostError;
use super::handle::{Canceller, Outcome, RunHandle};
use super::mend;
use super::preflight::{self, Ready};
use super::recorder::JournalRecorder;
use super::requests::Requests;
use super::stop_file;
use crate::engine::{EngineError, Recorder, Request, Run, RunParts, Urgency};
use crate::journal::{Event, Journal, JournalOptions, RunId, RunStarted, RunsFolder, ScriptRecord, Secrets};
use crate::mechanism::agent;
use crate::mechanism::process::{Processes, ProcessesConfig};
use crate::mechanism::repo::{
    self, LockHolder, Recovered, RepoError, RepoLock, Repository, Workspace, WorkspaceOptions, state_folder,
};
use crate::policy::{AgentSource, AgentSpec, LoopSpec, Policy, PromptSource, Reason};
use crate::world::{LiveParts, LiveWorld, Point, World};

/// How long a run waits for the wardens of one that was killed to finish their sweep.
const HANDOVER: Duration = Duration::from_secs(15);
/// Events that a slow reader may fall behind.
const BACKLOG: usize = 1024;

pub(super) fn script(host: &Host, script: Script) -> RunHandle {
    spawn(host, move |host, canceller, events| async move {
        let ready = preflight::ready(&host, &script).await?;
        run_script(&host, ready, canceller, events).await
    })
}

pub(super) fn spec(host: &Host, spec: LoopSpec, policy: Arc<dyn Policy>) -> RunHandle {
    spawn(host, move |host, canceller, events| async move { run_spec(&host, spec, policy, canceller, events).await })
}

type Events = broadcast::Sender<Arc<Event>>;

fn spawn<F, Fut>(host: &Host, work: F) -> RunHandle
where
    F: FnOnce(Host, Canceller, Events) -> Fut,
    Fut: Future<Output = Result<Outcome, HostError>> + Send + 'static,
{
    let canceller = Canceller::new();
    let (sender, events) = broadcast::channel(BACKLOG);
    if let Some(token) = host.0.cancel.clone() {
        let interrupts = Arc::clone(&canceller.interrupts);
        tokio::spawn(async move {
            token.cancelled().await;
            let by = "cancelled".to_owned();
            interrupts.ask(Request { urgency: Urgency::Now, reason: Reason::Interrupted, by, signal: None });
        });
    }
    let task = tokio::spawn(work(host.clone(), canceller.clone(), sender));
    RunHandle { task, canceller, events }
}

async fn run_script(host: &Host, ready: Ready, canceller: Canceller, events: Events) -> Result<Outcome, HostError> {
    let record = ScriptRecord { path: ready.shown.clone(), sha256: ready.digests() };
    let opening = Opening {
        repository: ready.repository.clone(),
        script: Some(record),
        agents: ready.agents(),
        protected: ready.protected.clone(),
        watch_ignored: ready.loaded.spec().is_some_and(|spec| spec.fence.watch_ignored),
    };
    let started = open(host, opening, canceller, events).await?;
    let result = ready.vm.run(&ready.loaded, started.run.clone()).await;
    let failure = match result {
        Ok(_) => None,
        Err(error) => Some((error.run_reason(), error.to_string())),
    };
    started.end(failure).await
}

async fn run_spec(
    host: &Host,
    mut spec: LoopSpec,
    policy: Arc<dyn Policy>,
    canceller: Canceller,
    events: Events,
) -> Result<Outcome, HostError> {
    spec.check().map_err(EngineError::Spec)?;
    let repository = preflight::repository(host).await?;
    preflight::agents_are_there(host, &repository, &spec.agents)?;
    preflight::no_kill_switch(&repository, &spec.kill_switch)?;
    if let PromptSource::Text { file: Some(file), .. } = &spec.prompt {
        spec.protected.push(file.clone());
    }
    let opening = Opening {
        repository,
        script: None,
        agents: spec.agents.clone(),
        protected: spec.protected.clone(),
        watch_ignored: spec.fence.watch_ignored,
    };
    let started = open(host, opening, canceller, events).await?;
    let result = started.run.drive(spec, policy.as_ref()).await;
    let failure = result.err().map(|error| (error.reason(), error.to_string()));
    started.end(failure).await
}

/// A run that has its lock, its record and its world.
struct Started {
    id: RunId,
    folder: PathBuf,
    start: String,
    run: Run,
    scratch: PathBuf,
    requests: Arc<Requests>,
    watchers: [tokio::task::JoinHandle<()>; 2],
    standby: mend::Standby,
    _lock: RepoLock,
}

impl Started {
    async fn end(self, failure: Option<(Reason, String)>) -> Result<Outcome, HostError> {
        self.requests.record_pending();
        let ended = self.run.finish(failure).await;
        self.watchers.iter().for_each(tokio::task::JoinHandle::abort);
        self.standby.end().await;
        let ended = ended?;
        if let Err(error) = std::fs::remove_dir_all(&self.scratch) {
            tracing::warn!(path = %self.scratch.display(), %error, "a temporary folder could not be removed");
        }
        Ok(Outcome { run: self.id, folder: self.folder, start: self.start, ended })
    }
}

/// What a run begins with.
struct Opening {
    repository: Repository,
    script: Option<ScriptRecord>,
    /// Agents that are known before the run; their versions are recorded.
    agents: Vec<AgentSpec>,
    protected: Vec<String>,
    watch_ignored: bool,
}

async fn open(host: &Host, opening: Opening, canceller: Canceller, events: Events) -> Result<Started, HostError> {
    let Opening { repository, script, agents, protected, watch_ignored } = opening;
    let repository = &repository;
    let runtime = tokio::runtime::Handle::current();
    let journal_clock: Arc<dyn crate::journal::Clock> = host.0.clock.clone();
    let id = RunId::fresh(journal_clock.as_ref())?;
    let state = state_folder(host.state(), repository)?;
    make_private(&state)?;
    let lock = take_lock(&state, &id, host).await?;
    let recovered = recover(host, &state, &lock).await?;
    stop_file::clear(&state).map_err(|source| HostError::State { path: state.clone(), source })?;

    let workspace = {
        let (repository, state) = (repository.clone(), state.clone());
        let options = WorkspaceOptions { watch_ignored, ..WorkspaceOptions::default() };
        on_blocking(move || Workspace::open(repository, &state, options)).await?
    };
    let processes = start_processes(host, &lock, &state, runtime.clone())?;
    // Set once: a canceller belongs to one run.
    let _ = canceller.processes.set(processes.clone());
    let standby = mend::Standby::start(&processes, host.warden().path());
    let all_scratch = state.join("scratch");
    // What runs that were killed left there belongs to nobody: the lock is ours.
    match std::fs::remove_dir_all(&all_scratch) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            return Err(HostError::State { path: all_scratch, source });
        }
        _ => {}
    }
    let scratch = all_scratch.join(id.as_str());
    make_private(&scratch)?;

    let runs = RunsFolder::new(repository.common_dir()).with_second_place(&state);
    let folder = runs.run_dir(&id);
    let secrets = Secrets::from_env(
        &host
            .0
            .ambient
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
            .collect::<Vec<_>>(),
        &host.0.secrets,
    );
    let mut options = JournalOptions::new(&folder, id.clone(), journal_clock);
    options.second_link = runs.second_dir(&id);
    options.secrets = secrets;
    options.listener = listener(&host.0.record_listeners);
    let journal = on_blocking_journal(move || Journal::create(options)).await?;
    let recorder: Arc<dyn Recorder> =
        Arc::new(JournalRecorder { journal: journal.clone(), listeners: host.0.listeners.clone(), events });

    let seed = host.0.seed.unwrap_or_else(|| rand::rng().random());
    let tier = processes.tier().clone();
    let world = LiveWorld::new(LiveParts {
        workspace,
        root: repository.root().to_owned(),
        scratch: scratch.clone(),
        processes: processes.clone(),
        journal,
        run: id.as_str().to_owned(),
        ambient: host.0.ambient.clone(),
        agents: host.0.agents.clone(),
        sensors: host.0.sensors.clone(),
        seed,
        clock: Arc::clone(&host.0.clock),
        runtime,
    });
    let start: Point = world.checkpoint(0).await?;
    world.settle().await?;
    let (head, dirty) = world.start_record().await?;
    let versions = agent_versions(host, &processes, repository.root(), &agents).await;
    recorder
        .record(
            "",
            &Event::RunStarted(Box::new(RunStarted {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                script,
                root: repository.root().display().to_string(),
                branch: head.branch,
                head: head.commit,
                checkpoint: start.id.clone(),
                dirty,
                tier: tier.tier.to_string(),
                tier_notes: [tier.why_not_better, tier.remarks].concat(),
                agents: versions,
                input: host.0.input.clone(),
                seed,
            })),
            true,
        )
        .map_err(EngineError::from)?;
    let requests = Requests::new(Arc::clone(&canceller.interrupts), Arc::clone(&recorder));
    let run = Run::new(RunParts {
        id: id.as_str().to_owned(),
        world: Arc::new(world),
        recorder,
        interrupts: Arc::clone(&canceller.interrupts),
        root: repository.root().to_owned(),
        start: start.clone(),
        input: host.0.input.clone(),
        protected,
    });
    if let Some(recovered) = recovered {
        run.note("warn", &told(&recovered))?;
    }
    let watchers = [
        tokio::spawn(stop_file::watch(state, id.as_str().to_owned(), canceller.interrupts)),
        tokio::spawn(Arc::clone(&requests).follow()),
    ];
    Ok(Started { id, folder, start: start.id, run, scratch, requests, watchers, standby, _lock: lock })
}

/// All listeners as one.
fn listener(listeners: &[RecordListener]) -> Option<RecordListener> {
    if listeners.is_empty() {
        return None;
    }
    let listeners = listeners.to_vec();
    Some(Arc::new(move |record| listeners.iter().for_each(|listener| listener(record))))
}

fn start_processes(
    host: &Host,
    lock: &RepoLock,
    state: &Path,
    runtime: tokio::runtime::Handle,
) -> Result<Processes, HostError> {
    let mut config = ProcessesConfig::new(host.warden());
    config.force_tier = host.0.tier;
    config.hold = Some(lock.file());
    config.after_host_death = Some(mend::command(config.warden.path(), state, &host.0.ambient));
    Ok(Processes::start(config, runtime)?)
}

/// The lock; a holder that died leaves it to its wardens until their sweep is done, and that is waited for.
async fn take_lock(state: &Path, id: &RunId, host: &Host) -> Result<RepoLock, HostError> {
    let deadline = tokio::time::Instant::now() + HANDOVER;
    loop {
        let who = LockHolder::this_process(id.as_str(), &host.0.clock.wall().to_string());
        match RepoLock::acquire(state, &who) {
            Ok(lock) => return Ok(lock),
            Err(RepoError::Held { holder }) => {
                let alive = holder.as_ref().is_some_and(LockHolder::seems_alive);
                if alive || tokio::time::Instant::now() >= deadline {
                    return Err(HostError::Held { holder: holder.map(Box::new) });
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn told(recovered: &Recovered) -> String {
    let restore = &recovered.restore;
    format!(
        "run {} had been killed in its {}; its tree was put back: {} paths written, {} removed, {} conflicts, {} changes of the git folder undone",
        recovered.intent.run,
        recovered.intent.phase,
        restore.written,
        restore.removed,
        restore.conflicts.len(),
        recovered.guard.undone.len(),
    )
}

/// Mends what a run that was killed left open.
async fn recover(host: &Host, state: &Path, lock: &RepoLock) -> Result<Option<Recovered>, HostError> {
    let options = preflight::repository_options(&host.0.ambient);
    let (state, lock) = (state.to_owned(), lock.clone());
    on_blocking(move || repo::recover(&state, &lock, &options)).await
}

async fn on_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RepoError> + Send + 'static,
) -> Result<T, HostError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(HostError::Died(error.to_string())),
    }
}

async fn on_blocking_journal(
    work: impl FnOnce() -> Result<Journal, crate::journal::JournalError> + Send + 'static,
) -> Result<Journal, HostError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(HostError::Died(error.to_string())),
    }
}

fn make_private(folder: &Path) -> Result<(), HostError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| HostError::State { path: folder.to_owned(), source })
}

async fn agent_versions(
    host: &Host,
    processes: &Processes,
    root: &Path,
    agents: &[AgentSpec],
) -> BTreeMap<String, Option<String>> {
    let mut versions = BTreeMap::new();
    for spec in agents {
        if versions.contains_key(&spec.name) {
            continue;
        }
        let version = match &spec.source {
            AgentSource::Command(_) => agent::version(processes, spec, root, &host.0.ambient).await,
            AgentSource::Function(_) => None,
        };
        versions.insert(spec.name.clone(), version);
    }
    versions
}
