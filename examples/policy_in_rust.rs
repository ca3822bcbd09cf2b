//! A loop with a policy in Rust and no Lua at all.
//!
//! Run it with `cargo run --example policy_in_rust`. It makes a small repository in a temporary folder and works there.

use std::path::Path;
use std::process::Command;

use async_trait::async_trait;
use lunation::host::Host;
use lunation::policy::{AgentSpec, Decision, LoopSpec, Observation, Policy, PolicyError, SensorSpec, Verdict};

/// Keeps what is not worse, and rolls back the rest.
struct NeverWorse;

#[async_trait]
impl Policy for NeverWorse {
    async fn decide(&self, o: &Observation) -> Result<Verdict, PolicyError> {
        let now = o.sense.as_ref().map_or(0, |sense| sense.failing);
        let best = o.best.as_ref().map_or(now, |sense| sense.failing);
        Ok(if now <= best {
            Verdict::plain(Decision::Keep)
        } else {
            Verdict::because(Decision::Rollback, format!("{now} failing, {best} before"))
        })
    }
}

fn git(folder: &Path, args: &[&str]) -> anyhow::Result<()> {
    let identity = ["-c", "user.name=Example", "-c", "user.email=example@example.org"];
    let status = Command::new("git").args(identity).args(args).current_dir(folder).status()?;
    anyhow::ensure!(status.success(), "git {args:?} failed");
    Ok(())
}

#[allow(clippy::print_stdout, reason = "an example talks to its reader")]
fn main() -> anyhow::Result<()> {
    lunation::enter_warden_if_asked();
    let folder = tempfile::tempdir()?;
    let project = folder.path().join("project");
    std::fs::create_dir(&project)?;
    std::fs::write(project.join("count"), "0\n")?;
    git(&project, &["init", "-q"])?;
    git(&project, &["add", "."])?;
    git(&project, &["commit", "-qm", "start"])?;

    // The agent adds one to a number; the check wants it to be two.
    let agent = AgentSpec::command(["sh", "-c", "n=$(cat count); echo $((n + 1)) > count; echo counted"]);
    let mut spec = LoopSpec::new(agent, "Count to two.");
    spec.sensors = vec![SensorSpec::shell("test \"$(cat count)\" -eq 2")];

    tokio::runtime::Runtime::new()?.block_on(async {
        let host =
            Host::builder().root(&project).state(folder.path().join("state")).ambient(std::env::vars_os()).build()?;
        let outcome = host.run_policy(spec, NeverWorse).await?;
        println!("{}, verified: {}", outcome.ended.summary, outcome.ended.verified);
        anyhow::ensure!(outcome.ended.verified && outcome.ended.iterations == 2, "not as expected: {outcome:?}");
        Ok(())
    })
}
