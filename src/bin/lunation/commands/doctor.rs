//! `lunation doctor`: what this machine can do for a loop, and what is missing. Starts only version commands.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use lunation::host::{TierReport, WardenProgram};
use lunation::mechanism::agent;
use lunation::mechanism::process::environment::{Audience, EnvironmentRules, scrub};
use lunation::mechanism::process::{Command, Processes, ProcessesConfig, find_program};
use lunation::policy::{AgentSource, ExitCode};
use lunation::script::{preset, preset_names};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::runtime;
use crate::present::{Output, Table, Tone, clean};
use crate::surroundings::Surroundings;

/// A program that is used.
#[derive(Debug, Serialize)]
struct Tool {
    name: String,
    program: Option<PathBuf>,
    version: Option<String>,
    /// What to do when it is not there.
    install: Option<String>,
}

/// Everything that was found.
#[derive(Debug, Serialize)]
struct Report {
    lunation: &'static str,
    tier: TierReport,
    tools: Vec<Tool>,
    agents: Vec<Tool>,
    state: PathBuf,
    repository: Option<PathBuf>,
    repository_state: Option<PathBuf>,
    /// Why there is no repository.
    repository_problem: Option<String>,
}

pub(crate) fn run(around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let report = runtime()?.block_on(look(around))?;
    if out.json() {
        out.value(&report)?;
    } else {
        tell(&report, out)?;
    }
    let usable = report.tools.iter().all(|tool| tool.program.is_some());
    Ok(if usable { ExitCode::Verified } else { ExitCode::Unverified })
}

async fn look(around: &Surroundings) -> anyhow::Result<Report> {
    let mut config = ProcessesConfig::new(WardenProgram::this_executable());
    config.force_tier = around.tier()?;
    let processes = Processes::start(config, tokio::runtime::Handle::current())?;
    let mut tools = Vec::new();
    for (name, install) in [("git", "install git with your package manager"), ("sh", "a POSIX shell is needed")] {
        let program = program(name, around);
        let version = match (&program, name) {
            (Some(program), "git") => version(&processes, program, around).await,
            _ => None,
        };
        tools.push(Tool { name: name.into(), program, version, install: Some(install.into()) });
    }
    let mut agents = Vec::new();
    for name in preset_names() {
        let spec = preset(name)?;
        let program = match &spec.source {
            AgentSource::Command(argv) => argv.first().and_then(|name| program(name, around)),
            AgentSource::Function(_) => None,
        };
        let version = match program {
            Some(_) => agent::version(&processes, &spec, &around.folder, &around.vars).await,
            None => None,
        };
        agents.push(Tool { name: name.into(), program, version, install: spec.install });
    }
    let (repository, repository_state, repository_problem) = match around.here() {
        Ok(here) => (Some(here.repository.root().to_owned()), Some(here.state), None),
        Err(error) => (None, None, Some(format!("{error:#}"))),
    };
    Ok(Report {
        lunation: env!("CARGO_PKG_VERSION"),
        tier: processes.tier().clone(),
        tools,
        agents,
        state: around.state_home()?,
        repository,
        repository_state,
        repository_problem,
    })
}

fn program(name: &str, around: &Surroundings) -> Option<PathBuf> {
    find_program(OsStr::new(name), around.var("PATH").unwrap_or_default(), &around.folder).ok()
}

async fn version(processes: &Processes, program: &std::path::Path, around: &Surroundings) -> Option<String> {
    let scrubbed = scrub(&around.vars, Audience::Command, &EnvironmentRules::default(), "");
    let command =
        Command::new(program, &around.folder, scrubbed.vars).args(["--version"]).wall(Duration::from_secs(10));
    let finished = processes.run(command, CancellationToken::new(), None).await.ok()?;
    let text = String::from_utf8_lossy(&finished.stdout.head).lines().next().map(clean);
    text.filter(|_| finished.is_success())
}

fn tell(report: &Report, out: &mut Output) -> anyhow::Result<()> {
    out.line(&format!("lunation {}", report.lunation))?;
    out.line(&format!("processes are held by: {}", Tone::Strong.paint(report.tier.tier.name())))?;
    for why in &report.tier.why_not_better {
        out.line(&format!("  not {}", clean(why)))?;
    }
    for remark in &report.tier.remarks {
        out.line(&format!("  {}", clean(remark)))?;
    }
    let mut table = Table::new(["program", "version", "where"]);
    for tool in report.tools.iter().chain(&report.agents) {
        table.row(row(tool));
    }
    for line in table.lines() {
        out.line(&line)?;
    }
    out.line(&format!("state: {}", report.state.display()))?;
    match (&report.repository, &report.repository_state, &report.repository_problem) {
        (Some(root), Some(state), _) => {
            out.line(&format!("repository: {}", root.display()))?;
            out.line(&format!("  its state: {}", state.display()))
        }
        (_, _, Some(problem)) => out.line(&format!("repository: {}", Tone::Warn.paint(&clean(problem)))),
        _ => Ok(()),
    }
}

fn row(tool: &Tool) -> Vec<(Tone, String)> {
    let version = tool.version.clone().unwrap_or_else(|| "–".into());
    match (&tool.program, &tool.install) {
        (Some(program), _) => {
            vec![(Tone::Good, tool.name.clone()), (Tone::Plain, version), (Tone::Plain, program.display().to_string())]
        }
        (None, install) => {
            let how = install.as_ref().map(|how| format!("not found; {how}")).unwrap_or_else(|| "not found".into());
            vec![(Tone::Warn, tool.name.clone()), (Tone::Dim, "–".into()), (Tone::Dim, how)]
        }
    }
}
