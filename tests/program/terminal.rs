//! What a person at a terminal sees: the question of trust, and the status line.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::{Arc, Mutex};

use nix::pty::openpty;

use crate::project::{Project, eventually};

const FIXES: &str = "until [ -e \"$here/go\" ]; do sleep 0.1; done; echo 'add() { echo $(($1 + $2)); }' > src/calc.sh; echo 'I fixed add.'";

/// The program on a terminal of its own.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    fn start(project: &Project, args: &[&str]) -> Terminal {
        let pty = openpty(None, None).unwrap();
        let side = |fd: &OwnedFd| fd.try_clone().unwrap();
        let mut command = project.command(args);
        command.env("TERM", "xterm").stdin(side(&pty.slave)).stdout(side(&pty.slave)).stderr(side(&pty.slave));
        let child = command.spawn().unwrap();
        drop((command, pty.slave));
        let screen = Arc::new(Mutex::new(String::new()));
        let (mut source, seen) = (File::from(side(&pty.master)), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails when nobody has the other side open any more.
            while let Ok(read @ 1..) = source.read(&mut bytes) {
                seen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        Terminal { child, keyboard: File::from(pty.master), screen }
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        eventually(&format!("`{text}` on the screen"), || self.screen().contains(text));
    }

    #[track_caller]
    fn ends_with(&mut self, code: i32) {
        let mut status = None;
        eventually("the end of the program", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(code), "{}", self.screen());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Fails when it is over already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_new_script_is_shown_with_its_digest_and_runs_after_a_yes() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "");
    let mut terminal = Terminal::start(&project, &["run"]);
    terminal.shows("loop.lua is not trusted yet");
    terminal.shows("[y/N]");
    let plan: serde_json::Value = serde_json::from_str(&project.lunation(&["plan", "--json"]).out).unwrap();
    let digest = plan["files"]["loop.lua"].as_str().unwrap().to_owned();
    assert_eq!(digest.len(), 64);
    terminal.shows(&format!("new       {digest}  loop.lua"));
    terminal.types("y\n");
    terminal.shows("… fake is at work");
    std::fs::write(project.outside("go"), "").unwrap();
    terminal.ends_with(0);
    assert!(terminal.screen().contains("\x1b[1m"), "colour for people");
    project.lunation(&["check", "--json"]).says("\"trusted\":true");
}

#[test]
fn anything_but_a_yes_is_a_no() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "");
    let mut terminal = Terminal::start(&project, &["run"]);
    terminal.shows("[y/N]");
    terminal.types("\n");
    terminal.ends_with(4);
    project.launched_nothing();
}

#[test]
fn a_script_that_changed_while_the_person_looked_is_not_trusted() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "");
    let mut terminal = Terminal::start(&project, &["run"]);
    terminal.shows("[y/N]");
    project.write("loop.lua", format!("{}-- changed\n", project.read("loop.lua")));
    terminal.types("y\n");
    terminal.ends_with(4);
    terminal.shows("the script changed while you looked at it");
    project.launched_nothing();
}

#[test]
fn what_changed_is_named_in_the_question() {
    let project = Project::with_a_failing_test().with_a_loop(FIXES, "");
    project.lunation(&["trust"]).exits_with(0);
    project.write("loop.lua", format!("{}-- changed\n", project.read("loop.lua")));
    let mut terminal = Terminal::start(&project, &["run"]);
    terminal.shows("changed since you trusted it");
    terminal.shows("changed   ");
    terminal.types("n\n");
    terminal.ends_with(4);
}
