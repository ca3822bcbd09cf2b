//! A model server on the loopback interface, for tests with real agents.
//!
//! It speaks streamed OpenAI chat completions (pi) and streamed OpenAI Responses (codex). What it answers is chosen by
//! the base URL that the agent is given, `http://127.0.0.1:PORT/s/SCENARIO/v1`, so an agent needs nothing else changed.
//! Tool calls are made from the schemas in the agent's own request, so they survive a renamed tool.

mod answers;
mod http;
mod tools;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How the model behaves. Every scenario but those that fail at once calls a tool first where it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// Has the agent write `hello.txt`, then says so, with a sentinel in the last line.
    Edits,
    /// Has the agent run a command that fails, then says that all is well.
    ToolFails,
    /// Has the agent leave a process behind, then says that all is well.
    LeavesProcess,
    /// One answer without a tool.
    Answers,
    /// An answer without text.
    SaysNothing,
    /// An answer with no token counts.
    CountsNothing,
    /// 401.
    WrongKey,
    /// 429 with a wait of one second.
    TooManyRequests,
    /// 429 because the account's limit is reached.
    LimitReached,
    /// 500.
    Fails,
    /// 400 because the prompt is too long.
    TooLong,
    /// Breaks off in the middle of its answer.
    BreaksOff,
    /// Never answers.
    Hangs,
}

/// All of them with their names in URLs.
const NAMES: [(Scenario, &str); 13] = [
    (Scenario::Edits, "edits"),
    (Scenario::ToolFails, "tool-fails"),
    (Scenario::LeavesProcess, "leaves-process"),
    (Scenario::Answers, "answers"),
    (Scenario::SaysNothing, "says-nothing"),
    (Scenario::CountsNothing, "counts-nothing"),
    (Scenario::WrongKey, "wrong-key"),
    (Scenario::TooManyRequests, "too-many-requests"),
    (Scenario::LimitReached, "limit-reached"),
    (Scenario::Fails, "fails"),
    (Scenario::TooLong, "too-long"),
    (Scenario::BreaksOff, "breaks-off"),
    (Scenario::Hangs, "hangs"),
];

impl Scenario {
    fn name(self) -> &'static str {
        NAMES.iter().find(|(scenario, _)| *scenario == self).unwrap().1
    }

    fn named(name: &str) -> Option<Scenario> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(scenario, _)| *scenario)
    }

    /// The command that the agent is made to run first.
    fn command(self) -> Option<&'static str> {
        match self {
            Scenario::Edits | Scenario::CountsNothing => Some("echo hello > hello.txt"),
            Scenario::ToolFails => Some("echo 'You have hit your usage limit' >&2; exit 3"),
            Scenario::LeavesProcess => Some("setsid sleep 300 >/dev/null 2>&1 </dev/null & echo $! > pid"),
            _ => None,
        }
    }

    /// What it says at the end.
    fn words(self) -> &'static str {
        match self {
            Scenario::SaysNothing => "",
            Scenario::BreaksOff => "I am about to be cut off, in the middle of",
            _ => "Wrote hello.txt, see C:\\new\\table.\n\nALL DONE",
        }
    }
}

/// The server; it ends when dropped.
#[derive(Debug)]
pub(crate) struct StubModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Scenario and prompt-bearing body of every request for an answer.
    asked: Mutex<Vec<String>>,
}

impl StubModel {
    /// Listens on a free port.
    pub(crate) fn start() -> StubModel {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let accepting = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        StubModel { address, shared, accepting: Some(accepting) }
    }

    /// The base URL under which it behaves like this.
    pub(crate) fn url(&self, scenario: Scenario) -> String {
        format!("http://{}/s/{}/v1", self.address, scenario.name())
    }

    /// The bodies of the requests that it got.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().unwrap().clone()
    }
}

impl Drop for StubModel {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.accepting.take() {
            thread.join().unwrap();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // A client that goes away in the middle is an ordinary thing.
            let _ = serve(stream, &shared);
        });
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let request = http::Request::read(&stream)?;
    let parts: Vec<&str> = request.path.splitn(4, '/').collect();
    let (scenario, rest) = match parts.as_slice() {
        ["", "s", name, rest] => (Scenario::named(name), *rest),
        _ => (None, ""),
    };
    let Some(scenario) = scenario else { return http::error(&stream, 404, "no such scenario", None) };
    let dialect = if rest.ends_with("/chat/completions") {
        answers::Dialect::Chat
    } else if rest.ends_with("/responses") && request.method == "POST" {
        answers::Dialect::Responses
    } else {
        return http::error(&stream, 404, "not served here", None);
    };
    shared.asked.lock().unwrap().push(String::from_utf8_lossy(&request.body).into_owned());
    if scenario == Scenario::Hangs {
        while !shared.stop.load(Ordering::SeqCst) && http::is_open(&stream) {
            std::thread::sleep(Duration::from_millis(50));
        }
        return Ok(());
    }
    answers::answer(&stream, dialect, scenario, &request.body)
}
