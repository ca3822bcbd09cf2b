//! Where the lines of a run go: a thread of its own, so that a reader that is slow or gone never holds up the run.
//!
//! Owns the queue, the colours and the status line of a terminal. Does not know what the lines say. Guarantees that
//! handing a line over never blocks: what a slow reader could not take in time is counted, and the count is told; and that
//! an output that was closed ends the telling and nothing else. At most 1,024 messages wait.

use std::io::{IsTerminal as _, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::happenings::Line;
use crate::present::{Tone, seconds};

/// Messages that may wait.
const BACKLOG: usize = 1024;
/// How often the status line of a terminal is drawn again.
const TICK: Duration = Duration::from_millis(500);
/// How long a reader that takes nothing is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(5);

enum Message {
    Line(Line),
    Busy(String),
    End(SyncSender<()>),
}

/// Which stream the lines go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// For people.
    Stdout,
    /// For people, when standard output is for a program.
    Stderr,
}

/// The hand that lines are given to; cheap to clone.
#[derive(Clone)]
pub(crate) struct Teller {
    queue: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

impl Teller {
    /// Prints a line, soon.
    pub(crate) fn line(&self, tone: Tone, text: impl Into<String>) {
        self.give(Message::Line(Line::new(tone, text)));
    }

    /// Prints a line that is made already.
    pub(crate) fn tell(&self, line: Line) {
        self.give(Message::Line(line));
    }

    /// Names what is going on, for the status line; nothing when it is empty.
    pub(crate) fn busy(&self, what: String) {
        self.give(Message::Busy(what));
    }

    fn give(&self, message: Message) {
        if let Err(TrySendError::Full(Message::Line(_))) = self.queue.try_send(message) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The thread that prints.
pub(crate) struct Printer {
    teller: Teller,
    thread: JoinHandle<()>,
}

impl Printer {
    /// Starts it. `quiet`: nothing is printed.
    pub(crate) fn start(target: Target, quiet: bool) -> std::io::Result<Printer> {
        let (queue, messages) = sync_channel(BACKLOG);
        let dropped = Arc::new(AtomicU64::new(0));
        let page = Page::open(target, quiet, Arc::clone(&dropped));
        let thread = std::thread::Builder::new().name("printer".into()).spawn(move || page.print_all(&messages))?;
        Ok(Printer { teller: Teller { queue, dropped }, thread })
    }

    /// The hand for lines.
    pub(crate) fn teller(&self) -> Teller {
        self.teller.clone()
    }

    /// Prints what waits, then ends. A reader that takes nothing for five seconds is left: false, and the stream is held
    /// by a thread that does not come back.
    pub(crate) fn finish(self) -> bool {
        let (done, is_done) = sync_channel(1);
        let deadline = Instant::now() + PATIENCE;
        let mut end = Message::End(done);
        loop {
            match self.teller.queue.try_send(end) {
                Ok(()) => break,
                Err(TrySendError::Full(back)) if Instant::now() < deadline => {
                    end = back;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(_) => return false,
            }
        }
        let done = is_done.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok();
        if done {
            // It ends right after it said so; a panic there was shown by the thread itself.
            let _ = self.thread.join();
        }
        done
    }
}

struct Page {
    out: Option<Box<dyn Write + Send>>,
    /// A status line is drawn, because a person watches.
    live: bool,
    drawn: bool,
    busy: String,
    since: Instant,
    dropped: Arc<AtomicU64>,
}

impl Page {
    fn open(target: Target, quiet: bool, dropped: Arc<AtomicU64>) -> Page {
        let (out, terminal): (Box<dyn Write + Send>, bool) = match target {
            Target::Stdout => (Box::new(anstream::stdout()), std::io::stdout().is_terminal()),
            Target::Stderr => (Box::new(anstream::stderr()), std::io::stderr().is_terminal()),
        };
        let out = (!quiet).then_some(out);
        let live = terminal && !quiet;
        Page { out, live, drawn: false, busy: String::new(), since: Instant::now(), dropped }
    }

    fn print_all(mut self, messages: &Receiver<Message>) {
        loop {
            match messages.recv_timeout(TICK) {
                Ok(Message::Line(line)) => self.print(&line),
                Ok(Message::Busy(what)) => {
                    self.since = Instant::now();
                    self.busy = what;
                    self.draw();
                }
                Ok(Message::End(done)) => {
                    self.wipe();
                    // Whoever asked may have given up waiting.
                    let _ = done.send(());
                    return;
                }
                Err(RecvTimeoutError::Timeout) => self.draw(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn print(&mut self, line: &Line) {
        self.wipe();
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            self.write(&format!("[{dropped} lines are left out: this output was not read fast enough]\n"));
        }
        self.write(&format!("{}\n", line.tone.paint(&line.text)));
        self.draw();
    }

    /// Draws the status line below the last line.
    fn draw(&mut self) {
        if !self.live || self.busy.is_empty() {
            return;
        }
        let time = seconds(self.since.elapsed().as_secs() as f64);
        self.write(&format!("\r\x1b[K{}", Tone::Dim.paint(&format!("  … {}, {time}", self.busy))));
        self.drawn = true;
    }

    fn wipe(&mut self) {
        if std::mem::take(&mut self.drawn) {
            self.write("\r\x1b[K");
        }
    }

    fn write(&mut self, text: &str) {
        let Some(out) = &mut self.out else { return };
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            // Nobody reads any more; the run goes on without.
            self.out = None;
            self.live = false;
        }
    }
}
