//! lunation inside another program: an agent, a sensor and a function of its own, driven by a script.
//!
//! Run it with `cargo run --example embed`. It makes a small repository in a temporary folder and works there.

use std::path::Path;
use std::process::Command;

use lunation::host::{FunctionContext, FunctionReading, FunctionTurn, Host, Script, TrustMode};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Ask {
    id: u32,
}

#[derive(Serialize)]
struct Ticket {
    title: String,
}

const LOOP: &str = r#"
local ln = require "lunation"

return function(run)
  local ticket = ln.tickets.get { id = run.input.ticket }
  local sensors = ln.sensors { ln.sensor "greeting" }
  for it in run:iterations { max = 3, fence = { "*.txt" } } do
    it:turn(ln.agent "house", ticket.title)
    if it:sense(sensors).ok then return it:done("the greeting is there") end
    it:keep()
  end
  return run:stop "no greeting"
end
"#;

/// An agent is any async function from a prompt to an answer.
async fn house(context: FunctionContext, prompt: String) -> anyhow::Result<FunctionTurn> {
    std::fs::write(context.workspace.join("greeting.txt"), format!("{prompt}\n"))?;
    Ok(FunctionTurn::text("wrote greeting.txt"))
}

/// A sensor is any async function to a reading.
async fn greeting(context: FunctionContext) -> anyhow::Result<FunctionReading> {
    let there = context.workspace.join("greeting.txt").exists();
    let feedback = if there { String::new() } else { "greeting.txt is missing".to_owned() };
    Ok(FunctionReading { failing: u64::from(!there), score: None, feedback })
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
    std::fs::write(project.join("loop.lua"), LOOP)?;
    git(&project, &["init", "-q"])?;
    git(&project, &["add", "."])?;
    git(&project, &["commit", "-qm", "start"])?;

    tokio::runtime::Runtime::new()?.block_on(async {
        let host = Host::builder()
            .root(&project)
            .state(folder.path().join("state"))
            .ambient(std::env::vars_os())
            .trust(TrustMode::Accept)
            .input(serde_json::json!({ "ticket": 7 }))
            .agent("house", house)
            .sensor("greeting", greeting)
            .function("tickets.get", "Gets a ticket by its number.", |ask: Ask| async move {
                anyhow::ensure!(ask.id != 404, "no such ticket");
                Ok(Ticket { title: format!("Greet ticket {}", ask.id) })
            })
            .build()?;
        let mut run = host.run(Script::find());
        while let Some(event) = run.next_event().await {
            let json = serde_json::to_value(&*event)?;
            println!("event: {}", json["kind"].as_str().unwrap_or_default());
        }
        let outcome = run.await?;
        println!("{}, verified: {}", outcome.ended.summary, outcome.ended.verified);
        anyhow::ensure!(outcome.ended.verified, "the run is not verified");
        Ok(())
    })
}
