//! The log file of one command: both streams as they came, up to a cap. Knows nothing of what is secret.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use super::{LogFilter, LogReport, Stream, command::LogFilters};

/// An open log. After the cap or the first error nothing more is written, and the report says so.
pub(super) struct Log {
    path: PathBuf,
    file: File,
    cap: u64,
    written: u64,
    cut: u64,
    error: Option<String>,
    filters: Option<[Box<dyn LogFilter>; 2]>,
    filtered: Vec<u8>,
}

impl Log {
    /// Makes the file anew, owner only, never through a link.
    pub(super) fn create(path: &Path, cap: u64, filters: Option<&LogFilters>) -> io::Result<Log> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file"));
        }
        let filters = filters.map(|make| [make(Stream::Stdout), make(Stream::Stderr)]);
        Ok(Log { path: path.into(), file, cap, written: 0, cut: 0, error: None, filters, filtered: Vec::new() })
    }

    /// Takes the next bytes of a stream.
    pub(super) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        match &mut self.filters {
            None => self.write(bytes),
            Some(filters) => {
                let mut out = std::mem::take(&mut self.filtered);
                out.clear();
                filters[index(stream)].pass(bytes, &mut out);
                self.write(&out);
                self.filtered = out;
            }
        }
    }

    /// The streams have ended.
    pub(super) fn finish(mut self) -> LogReport {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let mut out = Vec::new();
            if let Some(filters) = &mut self.filters {
                filters[index(stream)].finish(&mut out);
            }
            self.write(&out);
        }
        if self.cut > 0 && self.error.is_none() {
            let marker = format!("\n[… {} bytes cut: the log reached its cap of {} bytes …]\n", self.cut, self.cap);
            match self.file.write_all(marker.as_bytes()) {
                Ok(()) => self.written += marker.len() as u64,
                Err(error) => self.error = Some(error.to_string()),
            }
        }
        LogReport { path: self.path, bytes: self.written, cut: self.cut, error: self.error }
    }

    fn write(&mut self, bytes: &[u8]) {
        let room = if self.error.is_some() { 0 } else { self.cap - self.written };
        let take = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        let (now, not) = bytes.split_at(take);
        self.cut += not.len() as u64;
        match self.file.write_all(now) {
            Ok(()) => self.written += now.len() as u64,
            Err(error) => {
                self.cut += now.len() as u64;
                self.error = Some(error.to_string());
            }
        }
    }
}

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{os::unix::fs::PermissionsExt, sync::Arc};

    #[test]
    fn a_log_stops_at_its_cap_with_a_marker_and_is_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/log");
        let mut log = Log::create(&path, 10, None).unwrap();
        log.push(Stream::Stdout, b"123456");
        log.push(Stream::Stderr, b"789abcdef");
        let report = log.finish();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("123456789a\n[… 5 bytes cut"), "{text}");
        assert_eq!((report.cut, report.bytes, report.error), (5, text.len() as u64, None));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_link_or_a_fifo_in_the_place_of_the_log_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        std::fs::write(&target, "mine").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(Log::create(&link, 10, None).is_err());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "mine");
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(Log::create(&fifo, 10, None).is_err());
    }

    #[test]
    fn a_full_disk_is_told_and_not_hidden() {
        let mut log = Log::create(Path::new("/dev/null"), 10, None).err();
        assert!(log.take().is_some(), "a device is no log");
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::create(&dir.path().join("log"), 1000, None).unwrap();
        log.file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        log.push(Stream::Stdout, b"abc");
        log.push(Stream::Stdout, b"def");
        let report = log.finish();
        assert_eq!((report.bytes, report.cut), (0, 6));
        assert!(report.error.unwrap().contains("space"));
    }

    struct Hold(Vec<u8>);
    impl LogFilter for Hold {
        fn pass(&mut self, bytes: &[u8], _: &mut Vec<u8>) {
            self.0.extend(bytes);
        }
        fn finish(&mut self, out: &mut Vec<u8>) {
            out.extend(String::from_utf8_lossy(&self.0).replace("secret", "******").bytes());
        }
    }

    #[test]
    fn a_filter_sees_each_stream_joined() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let make: LogFilters = Arc::new(|_| Box::new(Hold(Vec::new())));
        let mut log = Log::create(&path, 1000, Some(&make)).unwrap();
        log.push(Stream::Stdout, b"a sec");
        log.push(Stream::Stderr, b"between ");
        log.push(Stream::Stdout, b"ret\n");
        log.finish();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a ******\nbetween ");
    }
}
