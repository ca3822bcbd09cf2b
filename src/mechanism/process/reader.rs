//! One output stream while it is read. Knows nothing of budgets or verdicts.

use tokio::{io::AsyncReadExt, net::unix::pipe};

use super::{Command, capture::HeadTail};

/// One output stream.
pub(super) struct Reader {
    /// `None` after its end.
    pub receiver: Option<pipe::Receiver>,
    pub buffer: Vec<u8>,
    pub capture: HeadTail,
}

pub(super) const BUFFER: usize = 64 * 1024;

impl Reader {
    pub(super) fn new(receiver: pipe::Receiver, command: &Command) -> Reader {
        let capture = HeadTail::new(command.head_bytes, command.tail_bytes);
        Reader { receiver: Some(receiver), buffer: vec![0; BUFFER], capture }
    }

    pub(super) fn is_open(&self) -> bool {
        self.receiver.is_some()
    }

    /// The length of the next chunk, 0 at the end. Never ends after the end.
    pub(super) async fn chunk(&mut self) -> usize {
        match &mut self.receiver {
            // An error of reading a pipe can't get better.
            Some(receiver) => receiver.read(&mut self.buffer).await.unwrap_or(0),
            None => std::future::pending().await,
        }
    }
}
