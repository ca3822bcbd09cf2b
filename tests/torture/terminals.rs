//! Pseudo terminals and job control inside a command.

use lunation::mechanism::process::Ending;

use crate::stage::{everywhere, say};

#[test]
fn job_control_on_a_terminal_of_its_own_works_and_its_jobs_are_reaped() {
    everywhere(async |stage| {
        let Some(command) = stage.python(include_str!("programs/terminal.py")) else { return };
        let done = stage.run(command).await;
        let text = done.stdout.text();
        assert_eq!(done.ending, Ending::Exited(0), "{}: {text} {}", stage.tier, done.stderr.text());
        assert!(text.contains("in front: True") && text.contains("stopped: True"), "{}: {text}", stage.tier);
        assert!(done.swept >= 1, "{}: {done:?}", stage.tier);
    });
}

#[test]
fn a_tmux_server_that_the_command_started_is_its_own_and_goes() {
    everywhere(async |stage| {
        if !std::fs::exists("/usr/bin/tmux").unwrap_or(false) {
            return say("skipped: no tmux");
        }
        let script = "export TMUX_TMPDIR=$PWD; \
                      tmux -L \"$MARK\" -f /dev/null new-session -d \"exec '$EVIL' sleep '$MARK'\" && echo started";
        let done = stage.run(stage.sh(script)).await;
        assert_eq!(done.stdout.text(), "started\n", "{}: {}", stage.tier, done.stderr.text());
        assert!(done.swept >= 1, "{}: {done:?}", stage.tier);
    });
}
