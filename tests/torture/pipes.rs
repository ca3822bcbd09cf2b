//! Output and input: pipes that are held, output that comes late or without end, and readers that hang.

use std::time::{Duration, Instant};

use lunation::mechanism::process::{Ending, Stdin, TimeoutKind};

use crate::stage::everywhere;

#[test]
fn a_held_pipe_delays_the_verdict_by_the_grace_only_and_is_told() {
    everywhere(async |stage| {
        let began = Instant::now();
        let script = "(\"$EVIL\" sleep \"$MARK\" &) ; echo FAIL detail; exit 1";
        let done = stage.run(stage.sh(script).late_output(Duration::from_millis(300))).await;
        assert_eq!((done.ending, done.stdout.text().as_str()), (Ending::Exited(1), "FAIL detail\n"), "{}", stage.tier);
        assert!(done.held_pipe && done.swept == 1, "{}: {done:?}", stage.tier);
        assert!(began.elapsed() < Duration::from_secs(10), "{}", stage.tier);
    });
}

#[test]
fn output_that_comes_after_the_exit_is_whole() {
    everywhere(async |stage| {
        let done = stage.run(stage.sh("(sleep 0.2; echo late) & echo early; exit 0")).await;
        assert_eq!((done.stdout.text().as_str(), done.swept), ("early\nlate\n", 0), "{}", stage.tier);
        if std::fs::exists("/bin/bash").unwrap_or(false) {
            let script = "exec bash -c 'exec > >(sleep 0.2; cat); echo through a substitution'";
            let done = stage.run(stage.sh(script)).await;
            assert_eq!(done.stdout.text(), "through a substitution\n", "{}", stage.tier);
        }
    });
}

#[test]
fn an_endless_writer_that_left_its_session_is_ended_with_its_leader() {
    everywhere(async |stage| {
        let script = "setsid sh -c 'while :; do echo \"$MARK\"; done' & sleep 0.1; exit 0";
        let done = stage.run(stage.sh(script).late_output(Duration::from_millis(200))).await;
        assert_eq!(done.ending, Ending::Exited(0), "{}", stage.tier);
        assert!(done.held_pipe && done.stdout.total > 0, "{}: {:?}", stage.tier, done.held_pipe);
    });
}

#[test]
fn a_program_that_said_all_and_stays_is_ended_by_the_silence_budget() {
    everywhere(async |stage| {
        let command = stage.sh("echo done; exec \"$EVIL\" sleep \"$MARK\"").silence(Some(Duration::from_millis(300)));
        let done = stage.run(command).await;
        assert_eq!(done.ending, Ending::TimedOut(TimeoutKind::Silence), "{}", stage.tier);
        assert_eq!(done.stdout.text(), "done\n");
    });
}

#[test]
fn every_kind_of_input_ends_at_once() {
    everywhere(async |stage| {
        let done = stage.run(stage.sh("cat; echo ok")).await;
        assert_eq!(done.stdout.text(), "ok\n", "{}", stage.tier);
        let prompt = b"a \0 prompt \xff that is no text\n".to_vec();
        let done = stage.run(stage.sh("cat").stdin(Stdin::Bytes(prompt.clone()))).await;
        assert_eq!(done.stdout.head, prompt, "{}", stage.tier);
    });
}

#[test]
fn only_the_three_standard_descriptors_come_in() {
    everywhere(async |stage| {
        let done = stage.run(stage.sh("ls /proc/$$/fd; :")).await;
        let text = done.stdout.text();
        assert_eq!(text, "0\n1\n2\n", "{}", stage.tier);
    });
}
