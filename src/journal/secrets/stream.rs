//! Masking of output that comes in pieces: a value split over two writes is still found.

use std::fmt;

use super::Secrets;

/// Masks a stream. What comes out, put together, is what [`Secrets::mask_bytes`] makes of the whole input.
///
/// Keeps back at most one byte less than the longest form of a value (4 KiB at most), until more comes or
/// [`MaskStream::finish`] is called.
pub struct MaskStream {
    secrets: Secrets,
    held: Vec<u8>,
}

impl MaskStream {
    pub(super) fn new(secrets: Secrets) -> MaskStream {
        MaskStream { secrets, held: Vec::new() }
    }

    /// Takes the next piece and gives out all that is decided.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let inner = self.secrets.inner.clone();
        let Some(finder) = &inner.finder else { return piece.to_vec() };
        self.held.extend_from_slice(piece);
        let mut out = Vec::new();
        let mut done = 0;
        // A longer value may begin where a shorter one ends, so a find counts only when the longest would have fitted.
        let decided = (self.held.len() + 1).saturating_sub(inner.longest);
        for found in finder.find_iter(&self.held) {
            if found.start() >= decided {
                break;
            }
            out.extend_from_slice(&self.held[done..found.start()]);
            out.extend_from_slice(inner.masks[found.pattern().as_usize()].as_bytes());
            done = found.end();
        }
        let safe = decided.max(done);
        out.extend_from_slice(&self.held[done..safe]);
        self.held.drain(..safe);
        out
    }

    /// Gives out the rest.
    pub fn finish(self) -> Vec<u8> {
        self.secrets.mask_bytes(&self.held).into_owned()
    }
}

impl fmt::Debug for MaskStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is held back may be half a secret.
        f.debug_struct("MaskStream").field("secrets", &self.secrets).field("held_bytes", &self.held.len()).finish()
    }
}
