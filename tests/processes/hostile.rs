//! Commands that fight: against their warden, against the sweep, against the reader.

use std::time::{Duration, Instant};

use lunation::mechanism::process::{Ending, Processes, ProcessesConfig, Tier};
use tokio_util::sync::CancellationToken;

use crate::harness::{PATIENCE, Place, config, eventually_async, processes, run};

#[tokio::test]
async fn signals_to_the_warden_do_nothing() {
    let place = Place::new();
    let done = run(place.sh("\"$EVIL\" daemon \"$MARK\"; exec \"$EVIL\" bother-warden \"$MARK\"")).await;
    assert_eq!((done.ending, done.swept), (Ending::Exited(0), 1));
    assert_eq!(done.stdout.text(), "done\n");
    place.assert_nobody();
}

#[tokio::test]
async fn a_warden_that_was_stopped_is_woken() {
    let began = Instant::now();
    let done = run(Place::new().evil("stop-warden")).await;
    assert_eq!(done.ending, Ending::Exited(0));
    assert!(done.confirmed_gone && began.elapsed() < PATIENCE);
}

#[tokio::test]
async fn a_killed_warden_is_never_reported_as_an_end() {
    let place = Place::new();
    // At the better tiers it can't be reached; the torture set shows that.
    let config = ProcessesConfig { force_tier: Some(Tier::Subreaper), ..config() };
    let processes = Processes::start(config, tokio::runtime::Handle::current()).unwrap();
    let done = processes.run(place.evil("kill-warden"), CancellationToken::new(), None).await.unwrap();
    assert_eq!(done.ending, Ending::WardenLost);
    assert!(!done.confirmed_gone);
    // The leader itself died with its warden.
    eventually_async("the leader is gone", || place.alive().len() <= 1).await;
    for (pid, _) in place.alive() {
        // A daemon of ours that escaped at this tier, as documented; its arguments have this test's own marker.
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    }
}

#[tokio::test]
async fn processes_that_fork_faster_than_they_are_seen_lose() {
    let place = Place::new();
    let done = run(place.evil("runners")).await;
    assert!(done.confirmed_gone, "{done:?}");
    place.assert_nobody();
}

#[tokio::test]
async fn processes_that_come_back_when_killed_lose() {
    let place = Place::new();
    let done = run(place.evil("phoenix")).await;
    assert!(done.confirmed_gone, "{done:?}");
    place.assert_nobody();
}

#[tokio::test]
async fn a_flood_of_orphans_does_not_keep_the_warden_from_listening() {
    let place = Place::new();
    let command = place.evil("flood-children").wall(Duration::from_millis(500)).term_grace(Duration::from_millis(200));
    let done = run(command).await;
    assert!(matches!(done.ending, Ending::TimedOut(_)) && done.confirmed_gone, "{done:?}");
    place.assert_nobody();
}

struct Panics;

impl lunation::mechanism::process::Observer for Panics {
    fn output(&mut self, _: lunation::mechanism::process::Stream, _: &[u8]) -> lunation::mechanism::process::Wish {
        std::panic::resume_unwind(Box::new("an observer that fails"));
    }
}

#[tokio::test]
async fn an_observer_that_panics_ends_the_command_and_its_processes() {
    let place = Place::new();
    let processes = processes();
    let command = place.sh("\"$EVIL\" daemon \"$MARK\"; echo x; exec \"$EVIL\" stubborn \"$MARK\"");
    let error = processes.run(command, CancellationToken::new(), Some(Box::new(Panics))).await.unwrap_err();
    assert!(error.to_string().contains("was ended"), "{error}");
    eventually_async("nobody is left", || place.alive().is_empty()).await;
    assert_eq!(processes.running(), 0);
}

#[test]
fn a_runtime_that_is_shut_down_takes_its_processes_with_it_and_is_no_death_of_the_host() {
    let place = Place::new();
    let died = place.path().join("died");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let after = ["/bin/sh", "-c", "echo died > \"$0\""].map(Into::into).into_iter().chain([died.clone().into()]);
    let config = ProcessesConfig { after_host_death: Some(after.collect()), ..config() };
    let processes = Processes::start(config, runtime.handle().clone()).unwrap();
    let command = place.sh("\"$EVIL\" daemon \"$MARK\"; \"$EVIL\" stubborn \"$MARK\"");
    let task = processes.clone();
    runtime.spawn(async move { task.run(command, CancellationToken::new(), None).await });
    crate::harness::eventually("both run", || place.alive().len() >= 2);
    runtime.shutdown_background();
    crate::harness::eventually("nobody is left", || place.alive().is_empty());
    assert!(!died.exists());
}
