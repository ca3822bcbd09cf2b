//! What an iteration costs beside its agent, against what a bare loop would do for the same safety: `git status` to see
//! what changed and `git stash create` to be able to go back.
//!
//! `cargo bench --bench iteration_overhead` makes a repository of 1,000 files in a temporary folder, runs both in turns
//! in one process, and prints medians and their ratio. Machines are noisy: look at the ratio.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lunation::host::{FunctionContext, FunctionTurn, Host};
use lunation::journal::Event;
use lunation::policy::{AgentSpec, LoopSpec};

const FILES: usize = 1_000;
const ROUNDS: u32 = 41;

fn git(root: &Path, args: &[&str]) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let status = Command::new("git")
        .args(["-c", "user.name=Bench", "-c", "user.email=bench@example.org"])
        .args(args)
        .current_dir(root)
        .stdout(Stdio::null())
        .status()?;
    anyhow::ensure!(status.success(), "git {args:?} failed");
    Ok(started.elapsed())
}

fn make_project(root: &Path) -> anyhow::Result<()> {
    for n in 0..FILES {
        let folder = root.join(format!("src/part{}", n / 12));
        std::fs::create_dir_all(&folder)?;
        let text = format!("line {n}\n").repeat(1 + n % 200);
        std::fs::write(folder.join(format!("file{n}.txt")), text)?;
    }
    git(root, &["init", "-q"])?;
    git(root, &["add", "-A"])?;
    git(root, &["commit", "-qm", "start"])?;
    // Something to stash, or `git stash create` has nothing to do.
    std::fs::write(root.join("src/part0/file0.txt"), "changed\n")?;
    Ok(())
}

fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

async fn nothing(_: FunctionContext, _: String) -> anyhow::Result<FunctionTurn> {
    Ok(FunctionTurn::text("nothing to do"))
}

/// Times from the start of one iteration to the start of the next.
async fn iterations(root: &Path, state: &Path, agent: AgentSpec) -> anyhow::Result<Vec<Duration>> {
    let starts: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let seen = Arc::clone(&starts);
    let host = Host::builder()
        .root(root)
        .state(state)
        .ambient(std::env::vars_os())
        .agent("nothing", nothing)
        .subscribe(move |event| {
            if matches!(event, Event::IterationStarted { .. }) {
                seen.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(Instant::now());
            }
        })
        .build()?;
    let mut spec = LoopSpec::new(agent, "Do nothing.");
    spec.budget.iterations = Some(ROUNDS);
    spec.breaker.unchanged = ROUNDS + 1;
    spec.breaker.failures = ROUNDS + 1;
    spec.breaker.instant = ROUNDS + 1;
    let outcome = host.run_spec(spec).await?;
    anyhow::ensure!(outcome.ended.iterations == ROUNDS, "ended early: {:?}", outcome.ended);
    let starts = starts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    Ok(starts.windows(2).map(|pair| pair[1] - pair[0]).collect())
}

fn peak_memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse().ok())
}

#[allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn main() -> anyhow::Result<()> {
    lunation::enter_warden_if_asked();
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("project");
    std::fs::create_dir(&root)?;
    make_project(&root)?;

    let mut baseline = Vec::new();
    let mut measure_git = || -> anyhow::Result<()> {
        for _ in 0..ROUNDS / 2 {
            baseline.push(git(&root, &["status", "--porcelain"])? + git(&root, &["stash", "create"])?);
        }
        Ok(())
    };
    measure_git()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let state = folder.path().join("state");
    let inside = runtime.block_on(iterations(&root, &state, AgentSpec::function("nothing")))?;
    let process = runtime.block_on(iterations(&root, &state, AgentSpec::command(["echo", "ok"])))?;
    measure_git()?;

    let (git, inside, process) = (median(baseline), median(inside), median(process));
    let ratio = |time: Duration| time.as_secs_f64() / git.as_secs_f64();
    println!("{FILES} files, medians of {ROUNDS} rounds");
    println!("git status + git stash create       {:8.2} ms", git.as_secs_f64() * 1e3);
    println!("iteration, agent is a function      {:8.2} ms   x{:.2}", inside.as_secs_f64() * 1e3, ratio(inside));
    println!("iteration, agent is the program echo{:8.2} ms   x{:.2}", process.as_secs_f64() * 1e3, ratio(process));
    if let Some(kib) = peak_memory_kib() {
        println!("peak memory of the host             {:8.1} MiB", kib as f64 / 1024.0);
    }
    Ok(())
}
