//! The program while it runs: what it said so far, signals, and its end.

use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::project::eventually;

/// A running program; it is killed when a test forgets it.
pub(crate) struct Running {
    child: Child,
    said: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let readers = vec![
            read(child.stdout.take().unwrap(), Arc::clone(&said)),
            read(child.stderr.take().unwrap(), Arc::clone(&said)),
        ];
        Running { child, said, readers }
    }

    /// All that it said, on both streams.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits until it has said this.
    #[track_caller]
    pub(crate) fn until_it_says(&self, text: &str) {
        eventually(&format!("`{text}` in\n{}", self.said()), || self.said().contains(text));
    }

    /// Sends it a signal. It is our own child and was not waited for, so the number is its own.
    pub(crate) fn gets(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the end of the program", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        self.readers.drain(..).for_each(|reader| reader.join().unwrap());
        status.unwrap()
    }

    /// Waits for its end, and checks the exit code.
    #[track_caller]
    pub(crate) fn ends_with(&mut self, code: i32) {
        let status = self.ends();
        assert_eq!((status.code(), status.signal()), (Some(code), None), "\n{}", self.said());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails when it is over already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(stream: impl Read + Send + 'static, said: Arc<Mutex<String>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
            said.lock().unwrap().push_str(&line);
            line.clear();
        }
    })
}
