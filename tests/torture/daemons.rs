//! Processes that leave their parent, their group, their session or their environment.

use std::time::Duration;

use lunation::mechanism::process::Ending;

use crate::stage::everywhere;

#[test]
fn a_daemon_that_forked_twice_is_reaped() {
    everywhere(async |stage| {
        let done = stage.run(stage.evil("daemon", &[])).await;
        assert_eq!((done.ending, done.swept), (Ending::Exited(0), 1), "{}", stage.tier);
        assert!(done.left_behind[0].name.starts_with("evil-"), "{}: {done:?}", stage.tier);
    });
}

#[test]
fn background_jobs_are_reaped_after_a_clean_exit_turn_after_turn() {
    everywhere(async |stage| {
        for _ in 0..3 {
            let script = "nohup \"$EVIL\" sleep \"$MARK\" >/dev/null 2>&1 & (\"$EVIL\" sleep \"$MARK\" >/dev/null 2>&1 &) ; \
                          setsid \"$EVIL\" sleep \"$MARK\" >/dev/null 2>&1 & exit 0";
            let done = stage.run(stage.sh(script)).await;
            assert_eq!(done.ending, Ending::Exited(0), "{}", stage.tier);
            assert!((1..=3).contains(&done.swept), "{}: {done:?}", stage.tier);
        }
    });
}

#[test]
fn groups_sessions_names_and_environments_of_their_own_hide_nobody() {
    everywhere(async |stage| {
        for mode in ["groups", "wiped", "odd-name", "nested-subreaper", "stopped"] {
            let done = stage.run(stage.evil(mode, &[])).await;
            assert!(done.swept >= 1, "{}: {mode}: {done:?}", stage.tier);
        }
    });
}

#[test]
fn a_thousand_daemons_are_reaped_and_counted() {
    everywhere(async |stage| {
        let (done, took) = stage.run_until_ready(stage.evil("daemons", &["1000"])).await;
        assert_eq!((done.swept, done.left_behind.len()), (1000, 32), "{}", stage.tier);
        assert!(took < Duration::from_secs(20), "{}: {took:?}", stage.tier);
    });
}

#[test]
fn processes_made_by_calls_that_no_library_makes_are_reaped() {
    everywhere(async |stage| {
        let done = stage.run(stage.evil("raw-forks", &[])).await;
        assert_eq!(done.ending, Ending::Exited(0), "{}: {done:?}", stage.tier);
        assert!(done.swept >= 1, "{}: {done:?}", stage.tier);
    });
}

#[test]
fn pythons_own_sessions_and_pools_are_reaped() {
    everywhere(async |stage| {
        let Some(command) = stage.python(include_str!("programs/sessions.py")) else { return };
        let done = stage.run(command).await;
        assert_eq!((done.ending, done.stdout.text().as_str()), (Ending::Exited(0), "started\n"), "{done:?}");
        assert!(done.swept >= 3, "{}: {done:?}", stage.tier);
    });
}

#[test]
fn a_leader_whose_main_thread_ended_is_not_dead() {
    everywhere(async |stage| {
        let command =
            stage.evil("headless", &[]).wall(Duration::from_millis(500)).term_grace(Duration::from_millis(50));
        let done = stage.run(command).await;
        assert!(matches!(done.ending, Ending::TimedOut(_)), "{}: {done:?}", stage.tier);
    });
}
