//! A print of a result: equal for equal results.

use sha2::{Digest, Sha256};

use super::normal::normal;
use crate::policy::{ReadingState, hex};

/// Takes lines in any order. Runners that work in parallel print the same lines in another order each time, so the
/// print is that of the *set* of lines, with how often each came.
#[derive(Debug, Default)]
pub(super) struct Print {
    sums: [u64; 4],
    lines: u64,
}

impl Print {
    /// Takes one clean line.
    pub(super) fn add(&mut self, line: &str) {
        let Some(line) = normal(line) else { return };
        let digest = Sha256::digest(line.as_bytes());
        for (sum, bytes) in self.sums.iter_mut().zip(digest.chunks_exact(8)) {
            let part = bytes.iter().fold(0_u64, |part, &byte| part << 8 | u64::from(byte));
            *sum = sum.wrapping_add(part);
        }
        self.lines += 1;
    }

    /// The print of these lines together with a state.
    pub(super) fn finish(&self, state: ReadingState) -> String {
        let mut hash = Sha256::new();
        hash.update(match state {
            ReadingState::Passed => b"passed",
            ReadingState::Failed => b"failed",
            ReadingState::Broken => b"broken",
        });
        self.sums.iter().chain([&self.lines]).for_each(|part| hash.update(part.to_be_bytes()));
        hex(&hash.finalize())
    }
}

/// The print of a result whose whole output is `text`: durations, temporary paths, addresses, process numbers, times and
/// the order of lines do not count.
pub fn fingerprint(state: ReadingState, text: &str) -> String {
    let mut print = Print::default();
    text.lines().for_each(|line| print.add(line));
    print.finish(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_results_have_equal_prints_whatever_their_order() {
        let print = |text: &str| fingerprint(ReadingState::Failed, text);
        assert_eq!(print("a ... ok\nb ... FAILED\nin 0.1s\n"), print("b ... FAILED\n\na ... ok\nin 2.5s"));
        assert_ne!(print("a\nb"), print("a\nb\nb"));
        assert_ne!(print("a"), print("b"));
        assert_eq!(print("").len(), 64);
    }

    #[test]
    fn the_state_is_part_of_it() {
        assert_ne!(fingerprint(ReadingState::Failed, "x"), fingerprint(ReadingState::Passed, "x"));
        assert_ne!(fingerprint(ReadingState::Failed, "x"), fingerprint(ReadingState::Broken, "x"));
    }
}
