//! What reading a command sensor costs beyond the command itself, and how fast output is read.
//!
//! `cargo bench --bench sensing` measures both in turns in one run and prints ratios: machines are noisy.
//!
//! - A command that does nothing, as a sensor and by `bash -c` from the same process.
//! - 100 MB of the output of each runner, through everything that hears it: cleaning, counting, the print of the result.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lunation::mechanism::process::environment::EnvironmentRules;
use lunation::mechanism::process::{Processes, ProcessesConfig, WardenProgram};
use lunation::mechanism::sensor::{Rehearsal, SensorRequest, read_command};
use lunation::policy::{Counting, Format, Parse, SensorSource, SensorSpec};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 60;
const BYTES: usize = 100_000_000;

fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

fn bash() -> anyhow::Result<Duration> {
    let started = Instant::now();
    let output = Command::new("bash").args(["-c", "echo ok"]).stdin(Stdio::null()).output()?;
    anyhow::ensure!(output.status.success(), "bash failed");
    Ok(started.elapsed())
}

async fn sensor(
    processes: &Processes,
    folder: &std::path::Path,
    ambient: &[(OsString, OsString)],
) -> anyhow::Result<Duration> {
    let spec = SensorSpec::shell("echo ok");
    let SensorSource::Command(command) = &spec.source else { anyhow::bail!("a shell line is a command") };
    let request = SensorRequest {
        folder: folder.into(),
        root: folder.into(),
        tmp: folder.join("tmp"),
        run: "bench".into(),
        ambient,
        environment: EnvironmentRules::default(),
        log_file: folder.join("sensor.log"),
        log_name: None,
        log_cap: 64 << 20,
        log_mask: None,
        ran_before: None,
    };
    let started = Instant::now();
    let reading = read_command(processes, &spec, command, request, CancellationToken::new()).await?;
    let took = started.elapsed();
    anyhow::ensure!(reading.ok(), "{reading:?}");
    Ok(took)
}

/// Lines of a runner, again and again; then how it ends.
fn output(format: Format) -> (String, &'static str) {
    let mut text = String::with_capacity(BYTES + 200);
    if format == Format::Libtest {
        text.push_str("running 1000000 tests\n");
    }
    let mut n = 0_u64;
    while text.len() < BYTES {
        n += 1;
        let line = match format {
            Format::Libtest => format!("test module_{}::sub::does_what_it_should_{n} ... ok\n", n % 97),
            Format::Tap => format!("ok {n} - module {} does what it should\n", n % 97),
            Format::Go => format!(
                "{{\"Time\":\"2026-11-30T21:57:00.47Z\",\"Action\":\"pass\",\"Package\":\"example.org/calc\",\"Test\":\"Test{n}\",\"Elapsed\":0}}\n"
            ),
            Format::Pytest => format!("tests/test_module_{}.py::test_does_what_it_should[{n}] PASSED\n", n % 97),
            _ => format!("  \u{2713} module does what it should and says so in many words ({} ms)\n", n % 9),
        };
        text.push_str(&line);
    }
    let end = match format {
        Format::Libtest => {
            "\ntest result: ok. 1000000 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9s\n"
        }
        Format::Tap => "1..0\n",
        Format::Pytest => "===== 1000000 passed in 9.00s =====\n",
        _ => "Tests:       1000000 passed, 1000000 total\n",
    };
    (text, end)
}

fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0)
}

#[allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
fn main() -> anyhow::Result<()> {
    lunation::enter_warden_if_asked();
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let warden = WardenProgram::this_executable();
    let processes = Processes::start(ProcessesConfig::new(warden), runtime.handle().clone())?;
    let ambient: Vec<(OsString, OsString)> = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    let (mut plain, mut sensed) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(bash()?);
        sensed.push(runtime.block_on(sensor(&processes, folder.path(), &ambient))?);
    }
    let (plain, sensed) = (median(plain), median(sensed));
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!("medians of {ROUNDS} rounds, in turns; containment: {}", processes.tier().tier.name());
    println!("bash -c                {:7.2} ms", ms(plain));
    println!(
        "a sensor               {:7.2} ms   +{:.2} ms   x{:.2}",
        ms(sensed),
        ms(sensed) - ms(plain),
        ms(sensed) / ms(plain)
    );
    println!("{} MB of output, heard in pieces of 64 KiB", BYTES / 1_000_000);
    for format in [Format::Libtest, Format::Pytest, Format::Tap, Format::Go, Format::Jest] {
        let (text, end) = output(format);
        let before = peak_memory_kib();
        let started = Instant::now();
        let copied = text
            .as_bytes()
            .chunks(64 << 10)
            .fold(0_u64, |sum, piece| sum.wrapping_add(piece.iter().filter(|&&byte| byte == b'\n').count() as u64));
        let floor = started.elapsed();
        let counting = Counting { parse: Parse::Format(format), ..Counting::default() };
        let mut rehearsal = Rehearsal::new(&counting)?;
        let started = Instant::now();
        text.as_bytes().chunks(64 << 10).for_each(|piece| rehearsal.hear(piece));
        rehearsal.hear(end.as_bytes());
        let counted = rehearsal.finish();
        let took = started.elapsed();
        println!(
            "{:10} {:6.0} MB/s   counting lines alone: {:6.0} MB/s ({copied} lines)   memory +{:.1} MiB   {:?}",
            format.name(),
            BYTES as f64 / took.as_secs_f64() / 1e6,
            BYTES as f64 / floor.as_secs_f64() / 1e6,
            peak_memory_kib().saturating_sub(before) as f64 / 1024.0,
            counted.map(|counted| counted.total),
        );
    }
    Ok(())
}
