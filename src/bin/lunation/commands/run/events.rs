//! `--events jsonl`: the records of a run on standard output, as they are in its journal.
//!
//! The journal's file is followed, not a queue in memory: a reader may be as slow as it likes, nothing is lost, nothing
//! grows, and the run never waits. A reader that is gone ends the telling and nothing else.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use lunation::journal::{Record, RunsFolder};

/// Bytes that are read at a time.
const CHUNK: usize = 64 << 10;

enum Wake {
    Open(PathBuf),
    More,
    End,
}

/// The thread that copies.
pub(crate) struct EventStream {
    wake: SyncSender<Wake>,
    thread: JoinHandle<()>,
}

impl EventStream {
    /// Starts it; it waits for the first record.
    pub(crate) fn start() -> std::io::Result<EventStream> {
        let (wake, wakes) = sync_channel(2);
        let thread = std::thread::Builder::new().name("events".into()).spawn(move || copy(&wakes))?;
        Ok(EventStream { wake, thread })
    }

    /// To be called with every record after it was written.
    pub(crate) fn listener(&self, runs: RunsFolder) -> impl Fn(&Record) + Send + Sync + use<> {
        let wake = self.wake.clone();
        move |record| {
            if record.seq == 1 {
                // The queue is empty before the first record, so there is room.
                let _ = wake.try_send(Wake::Open(runs.run_dir(&record.run).join("journal.jsonl")));
            }
            // A full queue means that it is going to look anyway.
            let _ = wake.try_send(Wake::More);
        }
    }

    /// Copies what is left, then ends.
    pub(crate) fn finish(self) {
        // Fails only when the thread is over already.
        let _ = self.wake.send(Wake::End);
        let _ = self.thread.join();
    }
}

fn copy(wakes: &Receiver<Wake>) {
    let mut source = None;
    let mut buffer = vec![0; CHUNK];
    while let Ok(wake) = wakes.recv() {
        let is_end = matches!(wake, Wake::End);
        if let Wake::Open(path) = wake {
            match File::open(&path) {
                Ok(file) => source = Some(file),
                Err(error) => tracing::error!(path = %path.display(), %error, "the journal cannot be followed"),
            }
        }
        if let Some(file) = &mut source
            && copy_on(file, &mut buffer).is_err()
        {
            return;
        }
        if is_end {
            return;
        }
    }
}

/// Copies to the end of the file. A record is written whole, so what is there is whole lines.
fn copy_on(file: &mut File, buffer: &mut [u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    loop {
        match file.read(buffer)? {
            0 => return out.flush(),
            read => out.write_all(&buffer[..read])?,
        }
    }
}
