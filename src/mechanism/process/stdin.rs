//! What a command reads, as a descriptor that ends. Owns the anonymous file of a prompt.

use std::{
    fs::{File, OpenOptions},
    io::{self, Seek, Write},
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::{ProcessError, Stdin};

/// Opens what the command is to read.
pub(super) fn open(stdin: &Stdin, cwd: &Path) -> Result<OwnedFd, ProcessError> {
    let (what, opened) = match stdin {
        Stdin::Null => ("/dev/null".into(), File::open("/dev/null")),
        Stdin::Bytes(bytes) => ("(prompt)".into(), anonymous_file(bytes)),
        Stdin::File(path) => (path.clone(), open_file(&cwd.join(path))),
    };
    opened.map(OwnedFd::from).map_err(|source| ProcessError::Stdin { what, source })
}

/// A FIFO of that name would block the open, and a terminal never ends: only regular files and the null device do.
fn open_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let kind = file.metadata()?.file_type();
    let null = kind.is_char_device() && path == Path::new("/dev/null");
    if kind.is_file() || null {
        return Ok(file);
    }
    let what = if kind.is_fifo() { "a FIFO" } else { "not a regular file" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, and may never end")))
}

/// A sealed file in memory that is in no folder. The descriptor that is given away is opened anew for reading, so the
/// program can't change the text and has an offset of its own.
fn anonymous_file(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("prompt", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(bytes)?;
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    // Without /proc the first descriptor does as well: it is sealed and stands at the start.
    Ok(File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn read(stdin: Stdin) -> Vec<u8> {
        let mut bytes = Vec::new();
        File::from(open(&stdin, Path::new("/")).unwrap()).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn every_kind_of_stdin_ends() {
        assert_eq!(read(Stdin::Null), b"");
        assert_eq!(read(Stdin::Bytes(Vec::new())), b"");
        let big = vec![7; 3 * 1024 * 1024];
        assert_eq!(read(Stdin::Bytes(big.clone())), big);
    }

    #[test]
    fn the_prompt_can_not_be_changed_by_its_reader() {
        let mut file = File::from(open(&Stdin::Bytes(b"text".to_vec()), Path::new("/")).unwrap());
        assert!(file.write_all(b"x").is_err());
        let again = OpenOptions::new().write(true).open(format!("/proc/self/fd/{}", file.as_raw_fd()));
        assert!(again.is_err() || again.unwrap().write_all(b"x").is_err());
    }

    #[test]
    fn a_fifo_is_refused_instead_of_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = open(&Stdin::File(fifo), Path::new("/")).unwrap_err();
        assert!(error.to_string().contains("FIFO"), "{error}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = open(&Stdin::File("prompt.md".into()), Path::new("/nowhere")).unwrap_err();
        assert!(error.to_string().contains("prompt.md"), "{error}");
    }
}
