//! What the file system says about a file, and when that is proof that its content is unchanged.
//!
//! Owns stamps and the rule about racy ones: a file whose times are not older than the look at it may be written again
//! within one tick of the clock with no trace in its times, so it is read again at the next look.

use rustix::fs::Stat;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const TYPE_MASK: u32 = 0o170_000;
pub(crate) const FOLDER: u32 = 0o040_000;
pub(crate) const FILE: u32 = 0o100_000;
pub(crate) const LINK: u32 = 0o120_000;
pub(crate) const FIFO: u32 = 0o010_000;

/// Times in ns since 1970, size, inode, and mode with its type bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Stamp {
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) size: u64,
    pub(crate) ino: u64,
    pub(crate) mode: u32,
}

impl Stamp {
    pub(crate) fn of(stat: &Stat) -> Stamp {
        let time = |seconds: i64, ns: i64| seconds.saturating_mul(1_000_000_000).saturating_add(ns);
        Stamp {
            mtime: time(stat.st_mtime, stat.st_mtime_nsec as i64),
            ctime: time(stat.st_ctime, stat.st_ctime_nsec as i64),
            size: stat.st_size as u64,
            ino: stat.st_ino,
            mode: stat.st_mode,
        }
    }

    pub(crate) fn kind(&self) -> u32 {
        self.mode & TYPE_MASK
    }

    pub(crate) fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }
}

/// The instant of a look at the tree, in ns since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instant(i64);

impl Instant {
    pub(crate) fn now() -> Instant {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Instant(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX))
    }

    /// Could this file be written again with no trace in its times?
    pub(crate) fn makes_racy(self, stamp: &Stamp) -> bool {
        // Kernels stamp files with the time of the last tick, at most 10 ms old. File systems that keep whole
        // seconds (or two of them) show it in the times that they hand out.
        const TICK: i64 = 50_000_000;
        const WHOLE_SECONDS: i64 = 2_100_000_000;
        let whole = |time: i64| time % 1_000_000_000 == 0;
        let slack = if whole(stamp.mtime) && whole(stamp.ctime) { WHOLE_SECONDS } else { TICK };
        let newest = stamp.mtime.max(stamp.ctime);
        newest >= self.0.saturating_sub(slack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn stamped(time: i64) -> Stamp {
        Stamp { mtime: time, ctime: time, ..Stamp::default() }
    }

    #[test]
    fn a_file_stamped_at_the_look_or_just_before_is_racy() {
        let look = Instant(100 * SECOND + 5);
        assert!(look.makes_racy(&stamped(100 * SECOND + 5)));
        assert!(look.makes_racy(&stamped(100 * SECOND - 9_000_000)));
        assert!(!look.makes_racy(&stamped(100 * SECOND - 60_000_000)));
    }

    #[test]
    fn a_clock_of_whole_seconds_gets_more_slack() {
        let look = Instant(100 * SECOND + 5);
        assert!(look.makes_racy(&stamped(98 * SECOND)));
        assert!(!look.makes_racy(&stamped(97 * SECOND)));
    }

    #[test]
    fn an_old_mtime_with_a_new_ctime_is_racy() {
        let look = Instant(100 * SECOND + 5);
        let stamp = Stamp { mtime: 3, ctime: 100 * SECOND, ..Stamp::default() };
        assert!(look.makes_racy(&stamp));
    }
}
