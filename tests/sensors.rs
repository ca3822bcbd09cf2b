//! Sensors that are commands, in real processes: verdicts, feedback, prints, leftovers.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use lunation::mechanism::process::environment::EnvironmentRules;
use lunation::mechanism::process::{Processes, ProcessesConfig, WardenProgram};
use lunation::mechanism::sensor::{FEEDBACK_CAP, SensorRequest, read_command};
use lunation::policy::{CommandLine, CommandSpec, Reading, ReadingState, SensorSpec};
use tokio_util::sync::CancellationToken;

struct Bench {
    folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    processes: Processes,
    ambient: Vec<(OsString, OsString)>,
}

impl Bench {
    fn new() -> Bench {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let warden = WardenProgram::at(env!("CARGO_BIN_EXE_lunation"));
        let processes = Processes::start(ProcessesConfig::new(warden), runtime.handle().clone()).unwrap();
        let ambient = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("CLAUDECODE", "1"), ("OPENAI_API_KEY", "sk")];
        let ambient = ambient.map(|(name, value)| (name.into(), value.into())).to_vec();
        Bench { folder: tempfile::tempdir().unwrap(), runtime, processes, ambient }
    }

    fn read_spec(&self, sensor: &SensorSpec, spec: &CommandSpec) -> Reading {
        let request = SensorRequest {
            folder: self.folder.path().into(),
            tmp: self.folder.path().join("private/tmp"),
            run: "run-1".into(),
            ambient: &self.ambient,
            environment: EnvironmentRules::default(),
            log_file: self.folder.path().join("sensor.log"),
            log_name: None,
            log_cap: 64 << 20,
            log_mask: None,
        };
        self.runtime.block_on(read_command(&self.processes, sensor, spec, request, CancellationToken::new())).unwrap()
    }

    fn read(&self, line: &str) -> Reading {
        self.read_spec(&SensorSpec::shell(line), &CommandSpec::new(CommandLine::Shell(line.into())))
    }
}

#[test]
fn exit_codes_are_verdicts_or_none() {
    let bench = Bench::new();
    for (line, state, failing, exit) in [
        ("true", ReadingState::Passed, Some(0), Some(0)),
        ("exit 1", ReadingState::Failed, Some(1), Some(1)),
        ("exit 200", ReadingState::Failed, Some(1), Some(200)),
        ("exit 126", ReadingState::Broken, None, Some(126)),
        ("exit 127", ReadingState::Broken, None, Some(127)),
        ("no-such-program", ReadingState::Broken, None, Some(127)),
        ("kill -KILL $$", ReadingState::Broken, None, None),
        ("kill -SEGV $$", ReadingState::Broken, None, None),
    ] {
        let reading = bench.read(line);
        assert_eq!((reading.state, reading.failing, reading.exit), (state, failing, exit), "{line}: {reading:?}");
    }
    let words = CommandLine::Words(vec!["no-such-program".into()]);
    let reading = bench.read_spec(&SensorSpec::shell("x"), &CommandSpec::new(words));
    assert_eq!((reading.state, reading.failing), (ReadingState::Broken, None));
    assert!(reading.summary.contains("no-such-program"), "{}", reading.summary);
}

#[test]
fn running_out_of_time_is_failed_with_one_print_or_broken_where_wanted() {
    let bench = Bench::new();
    let spec = |line: &str| CommandSpec {
        timeout: Duration::from_millis(300),
        ..CommandSpec::new(CommandLine::Shell(line.into()))
    };
    let one = bench.read_spec(&SensorSpec::shell("x"), &spec("echo one; sleep 300"));
    let other = bench.read_spec(&SensorSpec::shell("x"), &spec("echo other; sleep 300"));
    assert_eq!((one.state, one.timed_out, one.fingerprint.as_str()), (ReadingState::Failed, true, "timeout"));
    assert_eq!(one.fingerprint, other.fingerprint);
    assert!(one.feedback.starts_with("timed out after 300ms\none\n"), "{}", one.feedback);
    let strict = SensorSpec { timeout_is_broken: true, ..SensorSpec::shell("x") };
    let broken = bench.read_spec(&strict, &spec("sleep 300"));
    assert_eq!((broken.state, broken.timed_out, broken.failing), (ReadingState::Broken, true, None));
    let silent = CommandSpec {
        silence: Some(Duration::from_millis(300)),
        ..CommandSpec::new(CommandLine::Shell("sleep 300".into()))
    };
    assert!(bench.read_spec(&SensorSpec::shell("x"), &silent).feedback.starts_with("timed out: silent for 300ms"));
}

#[test]
fn a_helper_that_holds_the_output_open_is_a_note_and_not_the_verdict() {
    let bench = Bench::new();
    let begun = Instant::now();
    let reading = bench.read("(sleep 600 & echo $! > pid) ; echo FAIL detail; exit 1");
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!((reading.state, reading.exit), (ReadingState::Failed, Some(1)));
    assert_eq!(reading.feedback, "exit code 1\nFAIL detail\n");
    assert_eq!(reading.summary, "exit code 1: FAIL detail");
    assert!(reading.notes.iter().any(|note| note.contains("left 1 processes behind")), "{:?}", reading.notes);
    let pid = std::fs::read_to_string(bench.folder.path().join("pid")).unwrap();
    let line = std::fs::read(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
    assert!(!line.starts_with(b"sleep"), "it is gone");
}

#[test]
fn long_output_is_cut_so_that_what_matters_survives() {
    let bench = Bench::new();
    let reading = bench.read(
        "printf 'first line\\n'; i=0; while [ $i -lt 50 ]; do printf '\\rbar %s%%' $i; i=$((i+1)); done; printf '\\n'; \
         head -c 400000 /dev/zero | tr '\\0' x; echo; \
         yes '\x1b[31mnoise that says nothing\x1b[0m' | head -n 80000; echo '3 failed, 57 passed'; exit 1",
    );
    let feedback = &reading.feedback;
    assert!(feedback.len() <= FEEDBACK_CAP, "{}", feedback.len());
    let log = bench.folder.path().join("sensor.log");
    let first = feedback.lines().next().unwrap();
    assert!(first.starts_with("exit code 1; 2320") && first.contains("bytes of output, cut to 8192"), "{first}");
    assert!(first.ends_with(&format!("whole output: {}", log.display())), "{first}");
    assert!(feedback.contains("\nfirst line\nbar 49%\nxxx"), "{}", &feedback[..300]);
    assert!(feedback.ends_with("noise that says nothing\n3 failed, 57 passed\n"));
    assert!(feedback.contains(" bytes cut ...]\n"), "the place of the cut is marked too");
    assert!(!feedback.contains('\u{1b}') && !feedback.contains("[31m"));
    assert_eq!(reading.summary, "exit code 1: 3 failed, 57 passed");
    assert!(std::fs::metadata(log).unwrap().len() > 2_500_000, "the log is whole");
}

#[test]
fn equal_results_have_equal_prints() {
    let bench = Bench::new();
    let read = |fail: &str, seconds: &str| {
        bench.read(&format!(
            "echo \"pid $$ at $(date +%T) in $TMPDIR/x\"; echo {fail}; echo finished in {seconds}s; exit 1"
        ))
    };
    let (one, same, other) = (read("b", "0.1"), read("b", "12.7"), read("c", "0.1"));
    assert_eq!(one.fingerprint, same.fingerprint, "{}\n{}", one.feedback, same.feedback);
    assert_ne!(one.fingerprint, other.fingerprint);
    assert_eq!(one.fingerprint.len(), 64);
}

#[test]
fn a_sensor_gets_no_key_and_no_mark_of_a_session() {
    let bench = Bench::new();
    let spec = CommandSpec {
        env: [("MINE".to_owned(), "yes".to_owned())].into(),
        ..CommandSpec::new(CommandLine::Shell("env; exit 1".into()))
    };
    let feedback = bench.read_spec(&SensorSpec::shell("x"), &spec).feedback;
    assert!(feedback.contains("MINE=yes") && feedback.contains("LUNATION_RUN=run-1"), "{feedback}");
    assert!(!feedback.contains("CLAUDECODE") && !feedback.contains("OPENAI_API_KEY"), "{feedback}");
}

#[test]
fn what_a_shell_tells_of_a_killed_program_is_noted() {
    let reading = Bench::new().read("sh -c 'kill -KILL $$'; exit $?");
    assert_eq!(reading.state, ReadingState::Failed);
    assert!(reading.notes.iter().any(|note| note.contains("signal 9")), "{:?}", reading.notes);
}
