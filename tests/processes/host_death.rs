//! The host dies by SIGKILL: nothing of it is left, its lock is held until then, and one program cleans up.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use lunation::mechanism::process::{Processes, ProcessesConfig};
use rustix::fs::{FlockOperation, flock};
use tokio_util::sync::CancellationToken;

use crate::harness::{Place, config, eventually};

const FOLDER: &str = "LUNATION_TEST_HOST_FOLDER";
const MARKER: &str = "LUNATION_TEST_HOST_MARKER";

/// The host of the tests below: this test binary, started again. It holds a lock and runs three commands.
#[test]
#[ignore = "a helper process of the other tests here"]
fn act_as_host() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("only started by the tests below"));
    let marker = std::env::var(MARKER).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let lock = fs::File::create(folder.join("lock")).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        let script = "echo \"$0 $(readlink /proc/self/fd/$LUNATION_HOLD_FD)\" >> after; \
                      while [ ! -e release ]; do sleep 0.02; done; echo over >> after";
        let script = format!("cd {} && {script}", folder.display());
        let config = ProcessesConfig {
            hold: Some(Arc::new(lock)),
            after_host_death: Some(["/bin/sh", "-c", &script, "cleaned"].map(Into::into).to_vec()),
            after_host_death_env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            ..config()
        };
        let processes = Processes::start(config, tokio::runtime::Handle::current()).unwrap();
        let runs = (0..3).map(|n| {
            let env = vec![("PATH".into(), "/usr/bin:/bin".into())];
            let script = format!(
                "\"$EVIL\" daemon {marker} {ready}; \"$EVIL\" stubborn {marker} {ready}-2",
                ready = folder.join(format!("ready-{n}")).display()
            );
            let command = lunation::mechanism::process::Command::new("sh", &folder, env)
                .args(["-c", &script])
                .env("EVIL", crate::harness::evil());
            let processes = processes.clone();
            tokio::spawn(async move { processes.run(command, CancellationToken::new(), None).await })
        });
        let runs: Vec<_> = runs.collect();
        let first = tokio::time::timeout(Duration::from_secs(100), runs.into_iter().next().unwrap()).await;
        panic!("the test should have killed this process: {first:?}");
    });
}

fn start_host(place: &Place) -> Child {
    let host = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "host_death::act_as_host", "--ignored", "--nocapture"])
        .env(FOLDER, place.path())
        .env(MARKER, &place.marker)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let ready = ["ready-0", "ready-0-2", "ready-1", "ready-1-2", "ready-2", "ready-2-2"];
    eventually("the host's commands run", || ready.iter().all(|file| place.path().join(file).exists()));
    host
}

fn is_locked(place: &Path) -> bool {
    let lock = fs::File::open(place.join("lock")).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err()
}

#[test]
fn a_killed_host_leaves_no_process_keeps_its_lock_until_then_and_one_program_cleans_up() {
    let place = Place::new();
    let mut host = start_host(&place);
    assert!(is_locked(place.path()));
    host.kill().unwrap();
    host.wait().unwrap();
    let after = place.path().join("after");
    let lines = || fs::read_to_string(&after).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    eventually("the cleaning program runs", || !lines().is_empty());
    place.assert_nobody();
    assert!(is_locked(place.path()), "the cleaning program has the lock");
    assert_eq!(lines(), [format!("cleaned {}", place.path().join("lock").display())]);
    fs::write(place.path().join("release"), "").unwrap();
    eventually("the lock is free", || !is_locked(place.path()));
    assert_eq!(lines().len(), 2, "it ran once, not once for each command");
}

#[test]
fn a_stopped_warden_wakes_when_its_host_dies() {
    let place = Place::new();
    let mut host = start_host(&place);
    for (pid, _) in crate::harness::with_argument("--lunation-warden=") {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.split(' ').nth(1) == Some(&host.id().to_string())) {
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGSTOP).unwrap();
        }
    }
    host.kill().unwrap();
    host.wait().unwrap();
    eventually("nobody is left", || place.alive().is_empty());
    fs::write(place.path().join("release"), "").unwrap();
    eventually("the lock is free", || !is_locked(place.path()));
}

/// A host that runs one talking command with a small silence budget, and writes down how it ended.
#[test]
#[ignore = "a helper process of the other tests here"]
fn act_as_host_of_a_talker() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("only started by the tests below"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let done = runtime.block_on(async {
        let processes = Processes::start(config(), tokio::runtime::Handle::current()).unwrap();
        let script = "while [ ! -e release ]; do echo talk; echo x >> progress; sleep 0.05; done; exit 9";
        let command =
            lunation::mechanism::process::Command::new("sh", &folder, vec![("PATH".into(), "/usr/bin:/bin".into())])
                .args(["-c", script])
                .silence(Some(Duration::from_secs(2)));
        processes.run(command, CancellationToken::new(), None).await.unwrap()
    });
    fs::write(folder.join("scratch"), format!("{:?} {}", done.ending, done.confirmed_gone)).unwrap();
    fs::rename(folder.join("scratch"), folder.join("ending")).unwrap();
}

fn start_host_of_a_talker(place: &Place, through: &str) -> Child {
    std::process::Command::new("/bin/sh")
        .args(["-c", &format!("{through} exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "host_death::act_as_host_of_a_talker", "--ignored", "--nocapture"])
        .env(FOLDER, place.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap()
}

fn progress(place: &Place) -> u64 {
    fs::metadata(place.path().join("progress")).map_or(0, |meta| meta.len())
}

#[test]
fn a_host_that_stood_still_does_not_take_its_own_silence_for_the_programs() {
    let place = Place::new();
    let mut host = start_host_of_a_talker(&place, "");
    let pid = nix::unistd::Pid::from_raw(host.id().try_into().unwrap());
    eventually("it talks", || progress(&place) > 4);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
    let (before, began) = (progress(&place), Instant::now());
    // Longer than the budget, by the clock and by what the program did meanwhile.
    eventually("the program goes on", || progress(&place) > before + 40 && began.elapsed() > Duration::from_secs(3));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).unwrap();
    let before = progress(&place);
    eventually("the program still goes on", || progress(&place) > before + 20);
    fs::write(place.path().join("release"), "").unwrap();
    host.wait().unwrap();
    assert_eq!(fs::read_to_string(place.path().join("ending")).unwrap(), "Exited(9) true");
}

#[test]
fn a_host_that_was_started_with_ignored_child_signals_still_sees_how_programs_end() {
    let place = Place::new();
    fs::write(place.path().join("release"), "").unwrap();
    let mut host = start_host_of_a_talker(&place, "trap '' CHLD;");
    host.wait().unwrap();
    assert_eq!(fs::read_to_string(place.path().join("ending")).unwrap(), "Exited(9) true");
}

#[tokio::test]
async fn no_command_gets_the_lock() {
    let place = Place::new();
    let lock = Arc::new(fs::File::create(place.path().join("lock")).unwrap());
    flock(&*lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let config = ProcessesConfig { hold: Some(Arc::clone(&lock)), ..config() };
    let processes = Processes::start(config, tokio::runtime::Handle::current()).unwrap();
    let done = processes.run(place.sh("ls -l /proc/$$/fd"), CancellationToken::new(), None).await.unwrap();
    assert!(!done.stdout.text().contains("lock"), "{}", done.stdout.text());
    drop((processes, lock));
    eventually("the lock is free", || !is_locked(place.path()));
}

#[tokio::test]
async fn a_command_that_ends_well_starts_no_cleaning_program() {
    let place = Place::new();
    let died = place.path().join("died");
    let after = ["/bin/sh", "-c", "echo died > \"$0\""].map(Into::into).into_iter().chain([died.clone().into()]);
    let config = ProcessesConfig { after_host_death: Some(after.collect()), ..config() };
    let with_program = Processes::start(config, tokio::runtime::Handle::current()).unwrap();
    with_program.run(place.evil("daemon"), CancellationToken::new(), None).await.unwrap();
    // The warden was waited for, and the program would have been the same process.
    assert!(!died.exists());
}
