//! Signals while a run is under way.
//!
//! | signal | what happens |
//! |---|---|
//! | first Ctrl-C | the run ends after the current iteration |
//! | second Ctrl-C | the open iteration is aborted and rolled back |
//! | third Ctrl-C | everything of ours is killed, and the program leaves |
//! | TERM, HUP | the open iteration is aborted and rolled back |
//!
//! A signal that was ignored when the program was started (`nohup`, a background job of a script) stays ignored.

use lunation::host::{Canceller, Urgency};
use lunation::policy::Reason;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::printer::Teller;
use crate::present::Tone;

const HUP: i32 = 1;
const INT: i32 = 2;
const TERM: i32 = 15;

/// Who asked, in the words of the record.
const CTRL_C: [&str; 3] = ["Ctrl-C", "second Ctrl-C", "third Ctrl-C"];
const HUP_NAME: &str = "HUP";
const TERM_NAME: &str = "TERM";

/// True when a request of this name came from here.
pub(crate) fn are_named(by: &str) -> bool {
    CTRL_C.contains(&by) || [HUP_NAME, TERM_NAME].contains(&by)
}

/// The signals that are listened to.
pub(crate) struct Signals {
    interrupt: Option<Signal>,
    hangup: Option<Signal>,
    terminate: Signal,
}

impl Signals {
    /// Begins to listen. Must be called within a runtime, before the run starts.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn listen() -> std::io::Result<Signals> {
        let ignored = ignored_signals();
        let unless_ignored = |number: i32, kind| match ignored >> (number - 1) & 1 {
            1 => Ok(None),
            _ => signal(kind).map(Some),
        };
        Ok(Signals {
            interrupt: unless_ignored(INT, SignalKind::interrupt())?,
            hangup: unless_ignored(HUP, SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Hands signals to the run for as long as it is polled; returns at the third Ctrl-C.
    pub(crate) async fn hand_to(mut self, canceller: Canceller, teller: Teller) {
        let mut interrupts = 0;
        loop {
            tokio::select! {
                () = next(&mut self.interrupt) => {
                    interrupts += 1;
                    match interrupts {
                        1 => {
                            canceller.ask(Urgency::AfterIteration, Reason::Interrupted, CTRL_C[0], Some(INT));
                            teller.line(Tone::Warn, "Ctrl-C: the run ends after this iteration; press it again to abort the iteration and roll it back");
                        }
                        2 => {
                            canceller.ask(Urgency::Now, Reason::Interrupted, CTRL_C[1], Some(INT));
                            teller.line(Tone::Warn, "Ctrl-C: the iteration is aborted and rolled back; press it again to leave at once");
                        }
                        _ => {
                            canceller.ask(Urgency::AtOnce, Reason::Interrupted, CTRL_C[2], Some(INT));
                            return;
                        }
                    }
                }
                () = next(&mut self.hangup) => {
                    canceller.ask(Urgency::Now, Reason::Interrupted, HUP_NAME, Some(HUP));
                    teller.line(Tone::Warn, "HUP: the iteration is aborted and rolled back");
                }
                _ = self.terminate.recv() => {
                    canceller.ask(Urgency::Now, Reason::Interrupted, TERM_NAME, Some(TERM));
                    teller.line(Tone::Warn, "TERM: the iteration is aborted and rolled back");
                }
            }
        }
    }
}

async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// The mask of signals that are ignored, one bit each; none where that cannot be told.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
