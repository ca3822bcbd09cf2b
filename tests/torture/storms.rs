//! Processes that multiply, run away or come back faster than anybody can look.

use std::time::Duration;

use lunation::mechanism::process::{Ending, Tier};

use crate::stage::{everywhere, say};

#[test]
fn a_hundred_runners_and_twenty_that_share_their_memory_are_caught() {
    everywhere(async |stage| {
        for (mode, count) in [("runners", "100"), ("vm-runners", "20")] {
            if stage.tier == Tier::Subreaper && !nix::unistd::geteuid().is_root() {
                // Without the right to go before others it may lose, and then says so.
                say(&format!("skipped: {count} {mode} at the subreaper tier as an unprivileged user"));
                continue;
            }
            let (_, took) = stage.run_until_ready(stage.evil(mode, &[count])).await;
            say(&format!("{count} {mode} at {}: {took:?}", stage.tier));
            // The figure of the benchmark is 2 s; here other tests run beside it.
            assert!(took < Duration::from_secs(9), "{}: {mode}: {took:?}", stage.tier);
        }
    });
}

#[test]
fn five_hundred_runners_are_caught_where_forks_can_be_stopped() {
    everywhere(async |stage| {
        if stage.tier == Tier::Subreaper {
            return say("skipped: 500 runners at the subreaper tier, which can only outrun them");
        }
        let (_, took) = stage.run_until_ready(stage.evil("runners", &["500"])).await;
        assert!(took < Duration::from_secs(9), "{}: {took:?}", stage.tier);
    });
}

#[test]
fn a_tree_that_grows_again_where_it_is_cut_is_felled() {
    everywhere(async |stage| {
        for mode in ["tree", "phoenix"] {
            stage.run(stage.evil(mode, &[])).await;
        }
    });
}

#[test]
fn a_flood_of_orphans_does_not_keep_the_warden_from_listening() {
    everywhere(async |stage| {
        let command = stage.evil("flood-children", &[]).wall(Duration::from_millis(400));
        let done = stage.run(command.term_grace(Duration::from_millis(100))).await;
        assert!(matches!(done.ending, Ending::TimedOut(_)), "{}: {done:?}", stage.tier);
        assert!(done.until_gone < Duration::from_secs(20), "{}: {done:?}", stage.tier);
    });
}

#[test]
fn a_program_that_forks_a_lot_or_threads_a_lot_is_served() {
    everywhere(async |stage| {
        let done = stage.run(stage.evil("many-forks", &["2000"])).await;
        assert_eq!((done.ending, done.stdout.text().as_str()), (Ending::Exited(0), "forked\n"), "{}", stage.tier);
        let done = stage.run(stage.evil("threads", &[])).await;
        assert_eq!((done.ending, done.stdout.text().as_str()), (Ending::Exited(0), "500 threads\n"), "{}", stage.tier);
    });
}

#[test]
fn a_shell_that_pipes_a_lot_never_fails_to_fork() {
    everywhere(async |stage| {
        let script = "i=0; while [ $i -lt 200 ]; do x=$(echo a | cat) || exit 9; i=$((i+1)); done; echo \"fine $x\"";
        let done = stage.run(stage.sh(script)).await;
        assert_eq!(done.stdout.text(), "fine a\n", "{}: {}", stage.tier, done.stderr.text());
    });
}
