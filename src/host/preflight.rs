//! Everything that is checked before anything is launched.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::builder::{Host, Script, TrustMode};
use super::error::HostError;
use super::plan::{AgentPlan, Plan};
use crate::engine::EngineError;
use crate::mechanism::agent;
use crate::mechanism::repo::{Repository, RepositoryOptions};
use crate::policy::scope::Scope;
use crate::policy::{AgentSource, AgentSpec, LoopSpec, Mode, Parser, SpecError};
use crate::script::{Loaded, Source, Trust, Trusted, Vm, VmOptions, find};

/// A script that may run.
pub(super) struct Ready {
    pub(super) repository: Repository,
    pub(super) vm: Vm,
    pub(super) loaded: Loaded,
    /// Path of the script for records: relative to the root where it is inside.
    pub(super) shown: String,
    pub(super) protected: Vec<String>,
}

impl Ready {
    pub(super) fn digests(&self) -> BTreeMap<String, String> {
        digests(&self.loaded)
    }

    pub(super) fn agents(&self) -> Vec<AgentSpec> {
        self.loaded.spec().map(|spec| spec.agents.clone()).unwrap_or_default()
    }
}

fn digests(loaded: &Loaded) -> BTreeMap<String, String> {
    loaded.manifest.entries.iter().map(|entry| (entry.name.clone(), entry.sha256.clone())).collect()
}

/// The repository around the host's root.
pub(super) async fn repository(host: &Host) -> Result<Repository, HostError> {
    let root = host.0.root.clone();
    let options = repository_options(&host.0.ambient);
    match tokio::task::spawn_blocking(move || Repository::discover(&root, &options)).await {
        Ok(found) => Ok(found?),
        Err(error) => Err(HostError::Died(error.to_string())),
    }
}

/// What finding a repository may look at.
pub(super) fn repository_options(ambient: &[(OsString, OsString)]) -> RepositoryOptions {
    let var = |wanted: &str| {
        ambient.iter().find(|(name, value)| name == wanted && !value.is_empty()).map(|(_, value)| value.clone())
    };
    RepositoryOptions {
        home: var("HOME").map(PathBuf::from),
        xdg_config: var("XDG_CONFIG_HOME").map(PathBuf::from),
        path: var("PATH"),
        sudo_uid: var("SUDO_UID").and_then(|uid| uid.to_str().and_then(|uid| uid.parse().ok())),
        ..RepositoryOptions::default()
    }
}

struct Checked {
    repository: Repository,
    vm: Vm,
    loaded: Loaded,
    path: PathBuf,
    trusted: Trusted,
}

async fn load(host: &Host, script: &Script) -> Result<Checked, HostError> {
    let path = match script {
        Script::Find => find(&host.0.root)?,
        Script::File(path) => host.0.root.join(path),
    };
    let repository = repository(host).await?;
    let source = Source::open(&path, repository.root())?;
    let options = VmOptions {
        memory_limit: host.0.memory_limit,
        instruction_budget: host.0.instruction_budget,
        input: host.0.input.clone(),
        functions: host.0.functions.clone(),
        agents: host.0.agents.keys().cloned().collect(),
        sensors: host.0.sensors.keys().cloned().collect(),
        ..VmOptions::default()
    };
    let loading = tokio::task::spawn_blocking(move || {
        let vm = Vm::start(options)?;
        let loaded = vm.load(&source)?;
        Ok::<_, crate::script::ScriptError>((vm, loaded))
    });
    let (vm, loaded) = match loading.await {
        Ok(loaded) => loaded?,
        Err(error) => return Err(HostError::Died(error.to_string())),
    };
    let trusted = trust_store(host).check(&loaded.manifest).map_err(|error| HostError::Config(error.to_string()))?;
    Ok(Checked { repository, vm, loaded, path, trusted })
}

fn trust_store(host: &Host) -> Trust {
    Trust::new(host.state().join("trust.json"))
}

pub(super) async fn ready(host: &Host, script: &Script) -> Result<Ready, HostError> {
    let checked = load(host, script).await?;
    if host.0.trust == TrustMode::Refuse {
        match &checked.trusted {
            Trusted::Trusted => {}
            Trusted::Unknown => return Err(HostError::Untrusted { script: checked.path, changed: Vec::new() }),
            Trusted::Changed { files } => {
                return Err(HostError::Untrusted { script: checked.path, changed: files.clone() });
            }
        }
    }
    if let Some(spec) = checked.loaded.spec() {
        check_spec(spec)?;
        agents_are_there(host, &checked.repository, &spec.agents)?;
        no_kill_switch(&checked.repository, &spec.kill_switch)?;
    }
    let shown = relative(checked.repository.root(), &checked.path);
    Ok(Ready {
        protected: checked.loaded.protected.clone(),
        repository: checked.repository,
        vm: checked.vm,
        loaded: checked.loaded,
        shown,
    })
}

pub(super) async fn plan(host: &Host, script: &Script) -> Result<Plan, HostError> {
    let checked = load(host, script).await?;
    let spec = checked.loaded.spec().cloned();
    let mut warnings = Vec::new();
    let mut agents = Vec::new();
    if let Some(spec) = &spec {
        check_spec(spec)?;
        agents_are_there(host, &checked.repository, &spec.agents)?;
        for agent in &spec.agents {
            let program = match &agent.source {
                AgentSource::Command(_) => Some(resolve(host, &checked.repository, agent)?),
                AgentSource::Function(_) => None,
            };
            agents.push(AgentPlan { agent: agent.label(), program });
        }
        warnings = odd(spec);
    }
    Ok(Plan {
        script: checked.path,
        root: checked.repository.root().to_owned(),
        spec: spec.map(Box::new),
        agents,
        files: digests(&checked.loaded),
        trusted: checked.trusted == Trusted::Trusted,
        changed: match checked.trusted {
            Trusted::Changed { files } => files,
            Trusted::Trusted | Trusted::Unknown => Vec::new(),
        },
        warnings,
    })
}

pub(super) async fn trust(host: &Host, script: &Script, seen: Option<&Plan>) -> Result<Plan, HostError> {
    let checked = load(host, script).await?;
    if seen.is_some_and(|seen| seen.files != digests(&checked.loaded)) {
        return Err(HostError::Config("the script changed while you looked at it: look again".into()));
    }
    let manifest = checked.loaded.manifest.clone();
    drop(checked);
    trust_store(host).grant(&manifest).map_err(|error| HostError::Config(error.to_string()))?;
    plan(host, script).await
}

fn check_spec(spec: &LoopSpec) -> Result<(), HostError> {
    spec.check().map_err(EngineError::Spec)?;
    Scope::new(spec.fence.clone(), spec.protected.clone()).map_err(EngineError::Scope)?;
    for agent in &spec.agents {
        agent::check(agent).map_err(|error| HostError::Config(error.to_string()))?;
    }
    Ok(())
}

fn resolve(host: &Host, repository: &Repository, spec: &AgentSpec) -> Result<PathBuf, HostError> {
    let path = host.0.ambient.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    agent::resolve(spec, &path.unwrap_or_default(), repository.root())
        .map_err(|error| HostError::Config(error.to_string()))
}

/// Every program that a loop would start as an agent must be there before anything is.
pub(super) fn agents_are_there(host: &Host, repository: &Repository, agents: &[AgentSpec]) -> Result<(), HostError> {
    let mut seen = BTreeSet::new();
    for agent in agents {
        match &agent.source {
            AgentSource::Command(argv) if seen.insert(argv.first().cloned()) => {
                resolve(host, repository, agent)?;
            }
            AgentSource::Function(name) if !host.0.agents.contains_key(name) => {
                let known = host.0.agents.keys().cloned().collect::<Vec<_>>().join(", ");
                return Err(HostError::Config(format!("no agent function named `{name}`; there are: {known}")));
            }
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn no_kill_switch(repository: &Repository, path: &str) -> Result<(), HostError> {
    match repository.root().join(path).symlink_metadata() {
        Ok(_) => Err(HostError::KillSwitch { path: path.to_owned() }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(()),
        Err(source) => Err(HostError::State { path: repository.root().join(path), source }),
    }
}

/// What is allowed and probably not meant.
fn odd(spec: &LoopSpec) -> Vec<String> {
    let mut warnings = Vec::new();
    let completes = spec.callbacks.complete || spec.completion.sentinel.is_some() || !spec.sensors.is_empty();
    if !completes {
        warnings.push(
            "nothing can complete this loop: it runs until its budget ends; add sensors = { \"cargo test\" } or complete = ln.complete.sentinel \"DONE\"".into(),
        );
    }
    if completes && spec.sensors.is_empty() && spec.completion.mode == Mode::LlmOnly {
        warnings.push(
            "the agent's word alone completes this loop: that is reported as unverified and exits with 1; add sensors to verify it".into(),
        );
    }
    let tells_usage =
        |agent: &AgentSpec| !matches!((&agent.source, &agent.parse), (AgentSource::Command(_), Parser::Text));
    if (spec.budget.cost_usd.is_some() || spec.budget.tokens.is_some()) && !spec.agents.iter().any(tells_usage) {
        warnings.push(
            "no agent of this loop tells what it uses, so its budget for tokens or cost never ends it; iterations and wall do".into(),
        );
    }
    warnings
}

fn relative(root: &Path, path: &Path) -> String {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real.strip_prefix(root).unwrap_or(&real).display().to_string()
}

impl From<Vec<SpecError>> for HostError {
    fn from(problems: Vec<SpecError>) -> HostError {
        HostError::Engine(EngineError::Spec(problems))
    }
}
