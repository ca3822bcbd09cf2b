//! Who the warden's children are right now, and what they call themselves. Reads `/proc`, signals nobody.

use std::{fs, io, io::Read};

use super::super::{LeftBehind, protocol::MOST_NAMES};

/// Lists the direct children of this process.
pub(super) struct OwnChildren {
    me: i32,
    buffer: Vec<u8>,
    /// The kernel was built without the list of children; look through all processes instead.
    scan: bool,
}

const LIST: &str = "/proc/thread-self/children";

impl OwnChildren {
    pub(super) fn new() -> OwnChildren {
        OwnChildren { me: nix::unistd::getpid().as_raw(), buffer: Vec::new(), scan: !fs::exists(LIST).unwrap_or(false) }
    }

    /// The process ids of the children, ended ones that are not reaped included. The kernel may leave some out while
    /// others come and go, so an empty list proves nothing; only `waitpid` does.
    pub(super) fn list(&mut self) -> io::Result<Vec<i32>> {
        if self.scan {
            return self.scan_all();
        }
        self.buffer.clear();
        fs::File::open(LIST)?.read_to_end(&mut self.buffer)?;
        Ok(numbers(&self.buffer).collect())
    }

    fn scan_all(&mut self) -> io::Result<Vec<i32>> {
        let mut children = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|n| n.parse().ok()) else { continue };
            // It may have ended meanwhile; then it is no child that we would have to signal.
            let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else { continue };
            if parent_in_stat(&stat) == Some(self.me) {
                children.push(pid);
            }
        }
        Ok(children)
    }
}

/// The most processes that are counted below another one.
const MOST_COUNTED: usize = 100_000;

/// How many processes are below that one, and the names of some. Only a look: they may come and go meanwhile.
pub(super) fn descendants_of(pid: i32) -> (u64, Vec<LeftBehind>) {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next).filter(|_| found.len() < MOST_COUNTED) {
        next += 1;
        // One that ended meanwhile has no children to show.
        let Ok(tasks) = fs::read_dir(format!("/proc/{parent}/task")) else { continue };
        for task in tasks.flatten() {
            found.extend(numbers(&fs::read(task.path().join("children")).unwrap_or_default()));
        }
    }
    let below = &found[1..];
    (below.len() as u64, below.iter().take(MOST_NAMES).map(|&pid| describe(pid)).collect())
}

fn numbers(text: &[u8]) -> impl Iterator<Item = i32> {
    text.split(|b| !b.is_ascii_digit()).filter_map(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
}

/// The parent's id in the text of `/proc/<pid>/stat`. The name before it is chosen by the process and may hold
/// anything, so what counts is the text after the *last* parenthesis.
fn parent_in_stat(stat: &[u8]) -> Option<i32> {
    let after_name = &stat[stat.iter().rposition(|&b| b == b')')? + 1..];
    let mut fields = after_name.split(|&b| b == b' ').filter(|f| !f.is_empty());
    let _state = fields.next()?;
    std::str::from_utf8(fields.next()?).ok()?.parse().ok()
}

/// The name of an unreaped child, made harmless for terminals and records.
pub(super) fn describe(pid: i32) -> LeftBehind {
    let raw = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let raw = raw.strip_suffix(b"\n").unwrap_or(&raw);
    let name: String =
        String::from_utf8_lossy(raw).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    LeftBehind { pid, name: if name.is_empty() { "?".into() } else { name } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_parentheses_does_not_hide_the_parent() {
        assert_eq!(parent_in_stat(b"7 (x) S 1 1 1) R 42 7 7 0"), Some(42));
        assert_eq!(parent_in_stat(b"7 (plain) S 3 7 7 0"), Some(3));
        assert_eq!(parent_in_stat(b"7 (cut"), None);
    }

    #[test]
    fn both_ways_of_listing_find_a_child() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let pid = child.id() as i32;
        // Other tests of this process have children too, and the list is that of one thread.
        let mut own = OwnChildren::new();
        let listed = own.list().unwrap();
        own.scan = true;
        let scanned = own.list().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(listed.contains(&pid), "{pid} is not in {listed:?}");
        assert!(scanned.contains(&pid), "{pid} is not in {scanned:?}");
        assert_ne!(describe(std::process::id() as i32).name, "?");
    }

    #[test]
    fn grandchildren_are_counted() {
        // The shell stays the parent of both, for it has something to do afterwards.
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 30 & sleep 30; :"]).spawn().unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
        let (mut count, mut names) = (0, Vec::new());
        while count < 2 && std::time::Instant::now() < until {
            (count, names) = descendants_of(child.id() as i32);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let pids: Vec<i32> = names.iter().map(|n| n.pid).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        for pid in pids {
            // Orphans by now, and nobody has reaped them: the sleeps of the shell above.
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
        assert_eq!(count, 2);
    }
}
