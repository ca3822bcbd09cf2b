//! What a command leaves behind after a good end, and that it is not there any more.

use std::{
    fs,
    time::{Duration, Instant},
};

use lunation::mechanism::process::{Ending, Tier};
use tokio_util::sync::CancellationToken;

use crate::harness::{Place, evil, processes, run};

#[tokio::test]
async fn a_daemon_left_by_a_clean_exit_is_reaped_and_named() {
    let place = Place::new();
    let done = run(place.evil("daemon")).await;
    assert_eq!(done.ending, Ending::Exited(0));
    assert_eq!(done.swept, 1);
    let name = evil().file_name().unwrap().to_str().unwrap();
    assert_eq!(done.left_behind.len(), 1);
    assert_eq!(done.left_behind[0].name, name[..15]);
    assert!(done.confirmed_gone && !done.held_pipe);
    place.assert_nobody();
}

#[tokio::test]
async fn a_background_job_with_nohup_is_gone_after_each_of_three_turns() {
    let place = Place::new();
    let processes = processes();
    for turn in 1..=3 {
        let command = place.sh("nohup \"$EVIL\" sleep \"$MARK\" >/dev/null 2>&1 & echo $! > pid; exit 0");
        let done = processes.run(command, CancellationToken::new(), None).await.unwrap();
        assert_eq!((done.ending, done.swept), (Ending::Exited(0), 1), "turn {turn}");
        place.assert_nobody();
        let pid = fs::read_to_string(place.path().join("pid")).unwrap();
        // In a namespace the number is one of that namespace, and means somebody else here.
        assert!(done.tier == Tier::PidNamespace || !fs::exists(format!("/proc/{}", pid.trim())).unwrap());
    }
}

#[tokio::test]
async fn twenty_five_turns_of_a_process_in_its_own_session_leave_none() {
    let place = Place::new();
    let processes = processes();
    for turn in 0..25 {
        let done = processes.run(place.evil("daemon"), CancellationToken::new(), None).await.unwrap();
        assert!(done.confirmed_gone && done.swept == 1, "turn {turn}: {done:?}");
        place.assert_nobody();
    }
}

#[tokio::test]
async fn a_helper_that_holds_the_output_pipe_delays_the_verdict_by_the_grace_only() {
    let place = Place::new();
    let began = Instant::now();
    let done = run(place.sh("(\"$EVIL\" sleep \"$MARK\" &) ; echo FAIL detail; exit 1")).await;
    assert_eq!(done.ending, Ending::Exited(1), "the leak is a note and not the verdict");
    assert_eq!(done.stdout.text(), "FAIL detail\n");
    assert!(done.held_pipe && done.swept == 1 && done.confirmed_gone, "{done:?}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(done.until_gone - done.wall >= Duration::from_millis(900), "it had its time for late output");
    place.assert_nobody();
}

#[tokio::test]
async fn what_is_written_shortly_after_the_exit_is_whole() {
    let done = run(Place::new().sh("(sleep 0.3; echo late) & echo early; exit 0")).await;
    assert_eq!(done.stdout.text(), "early\nlate\n");
    assert_eq!((done.swept, done.held_pipe), (0, false));
}

#[tokio::test]
async fn a_process_with_an_odd_name_is_found_and_its_name_told() {
    let place = Place::new();
    let done = run(place.evil("odd-name")).await;
    assert!(done.confirmed_gone);
    place.assert_nobody();
    // It may have been killed before it changed its name.
    let name = &done.left_behind[0].name;
    assert!(name == "x) S 1 1 1" || name.starts_with("evil-"), "{name}");
}

#[tokio::test]
async fn neither_a_wiped_environment_nor_a_subreaper_of_its_own_hides_a_process() {
    for mode in ["wiped", "nested-subreaper", "stopped", "headless"] {
        let place = Place::new();
        let done = run(place.evil(mode).wall(Duration::from_secs(2)).term_grace(Duration::from_millis(200))).await;
        assert!(done.confirmed_gone, "{mode}: {done:?}");
        place.assert_nobody();
    }
}

#[tokio::test]
async fn a_leader_whose_main_thread_ended_is_still_running() {
    let place = Place::new();
    let command = place.evil("headless").wall(Duration::from_secs(1)).term_grace(Duration::from_millis(100));
    let done = run(command).await;
    assert!(matches!(done.ending, Ending::TimedOut(_)), "{done:?}");
    place.assert_nobody();
}

#[tokio::test]
async fn a_hundred_daemons_are_swept_and_the_list_of_names_is_bounded() {
    let place = Place::new();
    let done = run(place.evil("hundred-daemons")).await;
    assert_eq!((done.ending, done.swept, done.left_behind.len()), (Ending::Exited(0), 100, 32));
    place.assert_nobody();
}

#[tokio::test]
async fn a_stranger_of_the_same_user_with_the_same_name_lives() {
    let place = Place::new();
    let mut stranger = std::process::Command::new(evil()).args(["sleep", "a-stranger"]).spawn().unwrap();
    let done = run(place.sh("\"$EVIL\" daemon \"$MARK\"; \"$EVIL\" hundred-daemons \"$MARK\"")).await;
    let lives = stranger.try_wait().unwrap().is_none();
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert!(lives);
    assert_eq!(done.swept, 101);
    place.assert_nobody();
}

#[tokio::test]
async fn no_warden_is_left_as_a_zombie() {
    let processes = processes();
    for _ in 0..10 {
        processes.run(Place::new().sh("true"), CancellationToken::new(), None).await.unwrap();
    }
    let me = std::process::id();
    let zombies = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.unwrap().path().join("stat")).ok())
        .filter(|stat| stat.contains("(lunation-warden) Z") && stat.contains(&format!(") Z {me} ")))
        .count();
    // Wardens of tests that run at the same time may be ending right now; ten of ours would show.
    assert!(zombies < 8, "{zombies} zombies");
}
