//! The process half: what a command costs, and that everything of it ends.

mod capture;
mod crowds;
mod evil;
pub(crate) mod host_death;
mod peer;
mod spawning;

use lunation::mechanism::process::{Processes, ProcessesConfig, Tier, WardenProgram};

use super::table::{Row, say};

/// The tiers that promise that nobody is left.
const TIERS: [Tier; 3] = [Tier::PidNamespace, Tier::ForkGate, Tier::Subreaper];

pub(crate) fn run() -> anyhow::Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let tiers = tiers();
        let mut rows = Vec::new();
        rows.extend(spawning::run(&tiers).await?);
        rows.extend(crowds::daemons(&tiers).await?);
        rows.extend(crowds::storms(&tiers).await?);
        rows.extend(peer::run(&tiers).await?);
        rows.extend(host_death::run(&tiers).await?);
        rows.extend(capture::run(&tiers).await?);
        Ok(rows)
    })
}

/// Those that this machine has.
fn tiers() -> Vec<Processes> {
    let start = |tier| {
        // The real program, as large as it is.
        let mut config = ProcessesConfig::new(WardenProgram::at(env!("CARGO_BIN_EXE_lunation")));
        config.force_tier = Some(tier);
        Processes::start(config, tokio::runtime::Handle::current())
            .inspect_err(|error| say(&format!("skipped: {error}")))
            .ok()
    };
    TIERS.into_iter().filter_map(start).collect()
}
