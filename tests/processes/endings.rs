//! Exits, budgets, cancellation, and commands that can't be started.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

use lunation::mechanism::process::{
    Command, Ending, LeaderStatus, Observer, ProcessError, Processes, ProcessesConfig, Stream, Tier, TimeoutKind,
    WardenProgram, Wish,
};
use tokio_util::sync::CancellationToken;

use crate::harness::{PATIENCE, Place, config, eventually, eventually_async, processes, run};

#[tokio::test]
async fn a_clean_exit_is_reported_with_its_code_and_its_output() {
    let (place, processes) = (Place::new(), processes());
    let command = place.sh("echo out; echo err >&2; exit 3");
    let done = processes.run(command, CancellationToken::new(), None).await.unwrap();
    assert_eq!(done.ending, Ending::Exited(3));
    assert_eq!(done.leader_status, Some(LeaderStatus::Exited(3)));
    assert_eq!((done.stdout.text().as_str(), done.stderr.text().as_str()), ("out\n", "err\n"));
    assert!(done.confirmed_gone && !done.held_pipe && done.swept == 0 && done.left_behind.is_empty(), "{done:?}");
    assert_eq!(done.tier, processes.tier().tier);
    assert!(done.wall <= done.until_gone && done.suspended == Duration::ZERO);
}

#[tokio::test]
async fn a_death_by_its_own_signal_is_no_exit() {
    let done = run(Place::new().sh("kill -SEGV $$")).await;
    assert_eq!(done.ending, Ending::Signaled(11));
}

#[tokio::test]
async fn the_wall_budget_ends_a_command_that_goes_on_talking() {
    let place = Place::new();
    let command = place.sh("while :; do echo talk; \"$EVIL\" sleep \"$MARK\" & sleep 0.05; done");
    let done = run(command.wall(Duration::from_millis(700)).silence(Some(PATIENCE))).await;
    assert_eq!(done.ending, Ending::TimedOut(TimeoutKind::Wall));
    assert!(done.stdout.text().starts_with("talk\n"));
    assert!(done.confirmed_gone);
    place.assert_nobody();
}

#[tokio::test]
async fn the_silence_budget_ends_a_command_that_says_nothing_more() {
    let place = Place::new();
    let done = run(place.sh("echo once; \"$EVIL\" sleep \"$MARK\"").silence(Some(Duration::from_millis(400)))).await;
    assert_eq!(done.ending, Ending::TimedOut(TimeoutKind::Silence));
    assert_eq!(done.stdout.text(), "once\n");
    place.assert_nobody();
}

#[tokio::test]
async fn a_command_that_talks_in_time_is_not_silent() {
    let script = "for i in 1 2 3 4 5 6; do echo $i >&2; sleep 0.25; done";
    let done = run(Place::new().sh(script).silence(Some(Duration::from_secs(10)))).await;
    assert_eq!(done.ending, Ending::Exited(0));
}

#[tokio::test]
async fn term_is_asked_first_so_that_a_program_can_say_goodbye() {
    let place = Place::new();
    let script = "trap 'echo goodbye; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let done = run(place.sh(script).wall(Duration::from_millis(500))).await;
    assert_eq!(done.ending, Ending::TimedOut(TimeoutKind::Wall), "an exit of 0 after TERM is a timeout still");
    assert_eq!(done.leader_status, Some(LeaderStatus::Exited(0)));
    assert_eq!(done.stdout.text(), "ready\ngoodbye\n");
}

#[tokio::test]
async fn a_program_that_ignores_term_is_killed_after_the_grace() {
    let place = Place::new();
    let ready = place.path().join("ready");
    let cancel = CancellationToken::new();
    let command = place.evil("stubborn").arg(&ready).term_grace(Duration::from_millis(300));
    let (processes, token) = (processes(), cancel.clone());
    let running = tokio::spawn(async move { processes.run(command, token, None).await.unwrap() });
    eventually_async("the program is ready", || ready.exists()).await;
    let asked = Instant::now();
    cancel.cancel();
    let done = running.await.unwrap();
    assert!(asked.elapsed() >= Duration::from_millis(300));
    assert_eq!(done.ending, Ending::Cancelled);
    assert_eq!(done.leader_status, Some(LeaderStatus::Signaled(9)));
    assert!(done.confirmed_gone);
    place.assert_nobody();
}

#[tokio::test]
async fn a_cancelled_command_is_ended_and_says_so() {
    let place = Place::new();
    let cancel = CancellationToken::new();
    let (processes, token, command) = (processes(), cancel.clone(), place.evil("sleep"));
    let running = tokio::spawn(async move { processes.run(command, token, None).await.unwrap() });
    eventually_async("it runs", || !place.alive().is_empty()).await;
    cancel.cancel();
    assert_eq!(running.await.unwrap().ending, Ending::Cancelled);
    place.assert_nobody();
}

#[tokio::test]
async fn cancelled_before_the_start_nothing_is_started() {
    let place = Place::new();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let done = processes().run(place.sh("echo > started"), cancel, None).await.unwrap();
    assert_eq!(done.ending, Ending::Cancelled);
    assert!(done.confirmed_gone && !place.path().join("started").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_at_any_moment_of_the_start_leaves_nobody() {
    let place = Place::new();
    let processes = processes();
    for delay in (0..40).map(|n| Duration::from_micros(n * 150)) {
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        let canceller = tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            token.cancel();
        });
        let done = processes.run(place.evil("sleep"), cancel, None).await.unwrap();
        canceller.await.unwrap();
        assert_eq!(done.ending, Ending::Cancelled, "{done:?}");
        assert!(done.confirmed_gone);
        place.assert_nobody();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_future_that_is_dropped_takes_its_processes_with_it() {
    let place = Place::new();
    let processes = processes();
    let command = place.sh("\"$EVIL\" daemon \"$MARK\"; exec \"$EVIL\" sleep \"$MARK\"");
    let mut running = Box::pin(processes.run(command, CancellationToken::new(), None));
    tokio::select! {
        _ = &mut running => panic!("it can't end"),
        () = eventually_async("both run", || place.alive().len() >= 2) => {}
    }
    drop(running);
    eventually_async("nobody is left", || place.alive().is_empty() && processes.running() == 0).await;
}

struct FinalWord(Vec<u8>, Duration);

impl Observer for FinalWord {
    fn output(&mut self, stream: Stream, bytes: &[u8]) -> Wish {
        assert_eq!(stream, Stream::Stdout);
        self.0.extend(bytes);
        if self.0.windows(4).any(|w| w == b"DONE") { Wish::FinishWithin(self.1) } else { Wish::GoOn }
    }
}

#[tokio::test]
async fn a_program_that_said_its_final_word_and_stays_is_ended_without_blame() {
    let place = Place::new();
    let command = place.sh("echo working; echo DONE; exec \"$EVIL\" sleep \"$MARK\"");
    let observer = Box::new(FinalWord(Vec::new(), Duration::from_millis(200)));
    let done = processes().run(command, CancellationToken::new(), Some(observer)).await.unwrap();
    assert_eq!(done.ending, Ending::FinishedAsAsked);
    assert_eq!(done.stdout.text(), "working\nDONE\n");
    place.assert_nobody();
}

#[tokio::test]
async fn a_program_that_exits_after_its_final_word_just_exited() {
    let observer = Box::new(FinalWord(Vec::new(), PATIENCE));
    let place = Place::new();
    let command = place.sh("echo DONE; sleep 0.1; exit 4");
    let done = processes().run(command, CancellationToken::new(), Some(observer)).await.unwrap();
    assert_eq!(done.ending, Ending::Exited(4));
}

#[test]
fn everything_can_be_killed_at_once_without_the_runtime() {
    let place = Place::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let processes = Processes::start(config(), runtime.handle().clone()).unwrap();
    let mut runs = Vec::new();
    for _ in 0..4 {
        let (processes, command) =
            (processes.clone(), place.sh("\"$EVIL\" daemon \"$MARK\"; \"$EVIL\" stubborn \"$MARK\""));
        runs.push(runtime.spawn(async move { processes.run(command, CancellationToken::new(), None).await.unwrap() }));
    }
    eventually("four daemons and four programs run", || {
        place.alive().iter().filter(|(_, a)| !a.contains("sh -c")).count() >= 8
    });
    // The only worker is busy, and nobody else polls.
    let (hold, held) = std::sync::mpsc::channel::<()>();
    runtime.spawn(async move { held.recv_timeout(PATIENCE) });
    assert_eq!(processes.kill_all_blocking(PATIENCE), 0);
    place.assert_nobody();
    drop(hold);
    for run in runs {
        let done = runtime.block_on(run).unwrap();
        assert_eq!((done.ending, done.confirmed_gone), (Ending::Cancelled, true));
    }
    let after = runtime.block_on(processes.run(place.sh("echo > started"), CancellationToken::new(), None)).unwrap();
    assert_eq!(after.ending, Ending::Cancelled, "nothing is started any more");
    assert!(!place.path().join("started").exists());
}

#[tokio::test]
async fn a_missing_program_a_missing_folder_and_a_bad_interpreter_are_named() {
    let place = Place::new();
    let processes = processes();
    let run = async |command| processes.run(command, CancellationToken::new(), None).await.unwrap_err();

    let missing = run(Command::new("no-such-tool", place.path(), vec![("PATH".into(), "/bin".into())])).await;
    assert!(matches!(&missing, ProcessError::NotFound { .. }), "{missing}");
    let folder = run(Command::new("/bin/sh", place.path().join("gone"), Vec::new())).await;
    assert!(matches!(&folder, ProcessError::Folder { .. }), "{folder}");

    for (name, text, says) in
        [("a", "#!/no/such/interpreter\n", "interpreter"), ("b", "no program at all", "first line like #!/bin/sh")]
    {
        let file = place.path().join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let error = run(Command::new(&file, place.path(), Vec::new())).await;
        assert!(matches!(&error, ProcessError::NotExecutable { .. }) && error.to_string().contains(says), "{error}");
    }
    let nul = run(place.sh("true\0")).await;
    assert!(matches!(&nul, ProcessError::Unusable { .. }), "{nul}");
    let long = run(place.sh("true").arg("x".repeat(200_000))).await;
    assert!(matches!(&long, ProcessError::SpawnFailed { errno: libc::E2BIG, transient: false, .. }), "{long}");
    assert_eq!(processes.running(), 0);
}

#[tokio::test]
async fn a_program_that_is_no_warden_is_found_out_at_the_start() {
    for program in ["/bin/true", "/bin/cat", "/no/such/program"] {
        let config = ProcessesConfig::new(WardenProgram::at(program));
        let error = Processes::start(config, tokio::runtime::Handle::current()).unwrap_err();
        assert!(matches!(&error, ProcessError::Warden { .. }) && error.to_string().contains(program), "{error}");
    }
}

#[tokio::test]
async fn the_tier_is_reported_with_the_reasons() {
    let report = processes().tier().clone();
    assert!(!report.remarks.is_empty());
    let better = [Tier::PidNamespace, Tier::ForkGate, Tier::Subreaper].into_iter().filter(|tier| *tier < report.tier);
    let reasons: Vec<bool> = better
        .zip(&report.why_not_better)
        .map(|(tier, why)| why.starts_with(&format!("{tier}: ")) && why.len() > tier.name().len() + 10)
        .collect();
    assert_eq!(reasons, vec![true; report.why_not_better.len()], "{report:?}");
    assert_eq!(
        reasons.len(),
        [Tier::PidNamespace, Tier::ForkGate, Tier::Subreaper].iter().filter(|t| **t < report.tier).count()
    );
}

#[tokio::test]
async fn at_the_weakest_tier_the_group_ends_and_nothing_is_claimed() {
    let place = Place::new();
    let config = ProcessesConfig { force_tier: Some(Tier::ProcessGroup), ..config() };
    let processes = Processes::start(config, tokio::runtime::Handle::current()).unwrap();
    let command = place.sh("\"$EVIL\" sleep \"$MARK\" & echo started; exit 0");
    let done = processes.run(command, CancellationToken::new(), None).await.unwrap();
    assert_eq!((done.ending, done.tier, done.confirmed_gone), (Ending::Exited(0), Tier::ProcessGroup, false));
    assert_eq!(done.stdout.text(), "started\n");
    eventually_async("the group is gone", || place.alive().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_commands_run_side_by_side() {
    let place = Place::new();
    let processes = processes();
    let runs: Vec<_> = (0..24)
        .map(|n| {
            let (processes, command) =
                (processes.clone(), place.sh(&format!("\"$EVIL\" daemon \"$MARK\"; echo {n}; exit {n}")));
            tokio::spawn(async move { processes.run(command, CancellationToken::new(), None).await.unwrap() })
        })
        .collect();
    for (n, run) in (0..).zip(runs) {
        let done = run.await.unwrap();
        assert_eq!((done.ending, done.stdout.text()), (Ending::Exited(n), format!("{n}\n")));
        assert_eq!(done.swept, 1);
    }
    place.assert_nobody();
    assert_eq!(processes.running(), 0);
}
