//! `--events jsonl`: the records of a run on standard output, as they are in its journal.
//!
//! The journal's file is followed, not a queue in memory: a reader may be as slow as it likes, nothing is lost, nothing
//! grows, and the run never waits. A reader that is gone ends the telling and nothing else.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lunation::journal::{Record, RunsFolder};

/// Bytes that are read at a time.
const CHUNK: usize = 64 << 10;

/// How long a reader that takes nothing is waited for at the end.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the end looks at it.
const LOOKS: Duration = Duration::from_millis(10);

enum Wake {
    Open(PathBuf),
    More,
    End,
}

/// The thread that copies.
pub(crate) struct EventStream {
    wake: SyncSender<Wake>,
    /// Bytes that the reader took.
    taken: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl EventStream {
    /// Starts it; it waits for the first record.
    pub(crate) fn start() -> std::io::Result<EventStream> {
        let (wake, wakes) = sync_channel(2);
        let taken = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&taken);
        let thread = std::thread::Builder::new().name("events".into()).spawn(move || copy(&wakes, &count))?;
        Ok(EventStream { wake, taken, thread })
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

    /// Copies what is left, then ends. A reader that takes nothing for half a minute is left: false, and standard output
    /// is held by a thread that does not come back.
    pub(crate) fn finish(self) -> bool {
        let mut end = Some(Wake::End);
        let (mut taken, mut since) = (self.taken.load(Ordering::Relaxed), Instant::now());
        while !self.thread.is_finished() {
            if let Some(wake) = end.take()
                && let Err(TrySendError::Full(back)) = self.wake.try_send(wake)
            {
                end = Some(back);
            }
            let now = self.taken.load(Ordering::Relaxed);
            if now != taken {
                (taken, since) = (now, Instant::now());
            }
            if since.elapsed() > PATIENCE {
                return false;
            }
            std::thread::sleep(LOOKS);
        }
        true
    }
}

fn copy(wakes: &Receiver<Wake>, taken: &AtomicU64) {
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
            && copy_on(file, &mut buffer, taken).is_err()
        {
            return;
        }
        if is_end {
            return;
        }
    }
}

/// Copies to the end of the file. A record is written whole, so what is there is whole lines.
fn copy_on(file: &mut File, buffer: &mut [u8], taken: &AtomicU64) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    loop {
        match file.read(buffer)? {
            0 => return out.flush(),
            read => {
                out.write_all(&buffer[..read])?;
                taken.fetch_add(read as u64, Ordering::Relaxed);
            }
        }
    }
}
