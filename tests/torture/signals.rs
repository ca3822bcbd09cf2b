//! Signals in both directions: the ladder, exit codes, and commands that signal whom they should not.

use std::time::Duration;

use lunation::mechanism::process::{Ending, LeaderStatus, Stdin, Tier};

use crate::stage::{as_another_user_only, everywhere, say};

#[test]
fn exit_codes_and_signals_of_the_leader_arrive_as_they_are() {
    everywhere(async |stage| {
        for code in [0, 1, 42, 126, 127, 255] {
            let done = stage.run(stage.sh(&format!("exit {code}"))).await;
            assert_eq!(done.ending, Ending::Exited(code), "{}", stage.tier);
        }
        for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGABRT, libc::SIGSEGV, libc::SIGHUP] {
            let done = stage.run(stage.sh(&format!("kill -{signal} $$"))).await;
            assert_eq!(done.ending, Ending::Signaled(signal), "{}", stage.tier);
        }
    });
}

#[test]
fn term_reaches_the_whole_group_of_the_leader_and_nobody_else() {
    everywhere(async |stage| {
        // The child in the same group and the leader each say goodbye; the one in another session is not asked.
        let script = "sh -c 'trap \"echo child; exit\" TERM; sleep 30 & wait' & \
                      setsid sh -c 'trap \"echo stranger\" TERM; sleep 30 & wait' & \
                      trap 'echo leader; sleep 0.2; exit 7' TERM; echo up; sleep 30 & wait";
        let command = stage.sh(script).wall(Duration::from_millis(700)).term_grace(Duration::from_secs(10));
        let done = stage.run(command).await;
        assert!(matches!(done.ending, Ending::TimedOut(_)), "{}: {done:?}", stage.tier);
        assert_eq!(done.leader_status, Some(LeaderStatus::Exited(7)), "{}: {done:?}", stage.tier);
        let text = done.stdout.text();
        assert!(text.contains("leader\n") && text.contains("child\n"), "{}: {text}", stage.tier);
        assert!(!text.contains("stranger"), "{}: {text}", stage.tier);
    });
}

#[test]
fn a_program_that_ignores_everything_is_killed_after_the_grace() {
    everywhere(async |stage| {
        let command = stage.evil("stubborn", &[]).wall(Duration::from_millis(200));
        let done = stage.run(command.term_grace(Duration::from_millis(200))).await;
        assert_eq!(done.leader_status, Some(LeaderStatus::Signaled(libc::SIGKILL)), "{}: {done:?}", stage.tier);
    });
}

#[test]
fn a_stopped_leader_hears_term() {
    everywhere(async |stage| {
        let script = "trap 'echo bye; exit 3' TERM; kill -STOP $$; sleep 0.01";
        let done = stage.run(stage.sh(script).wall(Duration::from_millis(300))).await;
        assert_eq!(done.leader_status, Some(LeaderStatus::Exited(3)), "{}: {done:?}", stage.tier);
        assert_eq!(done.stdout.text(), "bye\n");
    });
}

#[test]
fn a_command_that_bothers_its_parent_changes_nothing() {
    everywhere(async |stage| {
        let script = "\"$EVIL\" daemon \"$MARK\"; exec \"$EVIL\" bother-warden \"$MARK\"";
        let done = stage.run(stage.sh(script)).await;
        assert_eq!(done.stdout.text(), "done\n", "{}", stage.tier);
        assert_eq!((done.ending, done.swept), (Ending::Exited(0), 1), "{}", stage.tier);
        // Stopping it is no way either: it is woken, or was never reached.
        stage.run(stage.evil("stop-warden", &[])).await;
    });
}

#[test]
fn a_command_that_kills_its_parent_gains_nothing_at_the_better_tiers() {
    everywhere(async |stage| {
        if stage.tier == Tier::Subreaper || can_be_killed(stage) {
            return say(&format!("skipped: killing the warden at {}, where that is known to work", stage.tier));
        }
        let command = stage.evil("kill-warden", &[]).wall(Duration::from_millis(300));
        let done = stage.run(command.term_grace(Duration::ZERO)).await;
        assert!(matches!(done.ending, Ending::TimedOut(_)), "{}: {done:?}", stage.tier);
        assert_eq!(done.swept, 1, "{}: {done:?}", stage.tier);
    });
}

fn can_be_killed(stage: &crate::stage::Stage) -> bool {
    stage.processes.tier().remarks.iter().any(|remark| remark.contains("can kill its warden"))
}

#[test]
fn a_kill_of_everybody_hits_the_command_only() {
    as_another_user_only(async |stage| {
        if stage.tier == Tier::Subreaper || can_be_killed(stage) {
            return say(&format!("skipped: kill -1 at {}, where it hits everybody of the user", stage.tier));
        }
        let command = stage.evil("kill-everybody", &[]).wall(Duration::from_secs(2)).term_grace(Duration::ZERO);
        stage.run(command).await;
        // The bystander, of the same user, is looked at by the stage.
    });
}

#[test]
fn a_pattern_kill_of_the_prompt_hits_nothing_of_ours() {
    everywhere(async |stage| {
        if !["/usr/bin/pkill", "/bin/pkill"].into_iter().any(|p| std::fs::exists(p).unwrap_or(false)) {
            return say("skipped: no pkill");
        }
        let prompt = format!("restart {} on port 3000", stage.marker);
        // The pattern does not match the command line that it is in.
        let script =
            format!("cat >/dev/null; pkill -f 'restart [t]orture-{} on' && echo hit; echo alive", &stage.marker[8..]);
        let command = stage.sh(&script).stdin(Stdin::Bytes(prompt.into_bytes()));
        let done = stage.run(command).await;
        assert_eq!((done.ending, done.stdout.text().as_str()), (Ending::Exited(0), "alive\n"), "{}", stage.tier);
        // And what hits the parent's children hits the command itself.
        let done = stage.run(stage.sh("pkill -TERM -P $PPID; sleep 30")).await;
        assert!(matches!(done.ending, Ending::Signaled(libc::SIGTERM) | Ending::Exited(_)), "{}: {done:?}", stage.tier);
    });
}

#[test]
fn a_process_held_in_its_exit_by_a_tracer_is_freed_and_reaped() {
    everywhere(async |stage| {
        let done = stage.run(stage.evil("exit-stop", &[])).await;
        assert_eq!(done.ending, Ending::Exited(0), "{}: {done:?}", stage.tier);
    });
}
