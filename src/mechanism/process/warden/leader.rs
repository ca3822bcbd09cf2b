//! Starting the command itself. Owns what happens between fork and exec, in the child.

use std::{
    convert::Infallible,
    ffi::{CString, OsString},
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
};

use nix::{
    errno::Errno,
    sys::{prctl, signal::Signal},
    unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, execve, getppid, setsid},
};

use super::super::{
    protocol::{Order, Stage},
    sys,
};

/// The three standard descriptors of the command.
pub(super) struct Standard {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// A leader that was forked and has not reported yet.
pub(super) struct Starting {
    /// Gets five bytes (stage and error number) when the start failed, and ends with nothing when exec succeeded.
    report: File,
}

impl Starting {
    /// Reads the report; to be called when `report` is readable. `None` means that the program is running (or was
    /// killed before it did; then its end tells).
    pub(super) fn outcome(&mut self) -> Option<(Stage, i32)> {
        let mut bytes = [0u8; 5];
        self.report.read_exact(&mut bytes).ok()?;
        let [stage, errno @ ..] = bytes;
        Some((Stage::from_byte(stage), i32::from_ne_bytes(errno)))
    }
}

impl AsFd for Starting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.report.as_fd()
    }
}

/// Everything that the leader needs, made before the fork.
pub(super) struct Launch {
    program: CString,
    argv: Vec<CString>,
    env: Vec<CString>,
    cwd: CString,
    standard: Standard,
    report: File,
}

impl Launch {
    /// Prepares what the order says.
    pub(super) fn new(order: &Order, standard: Standard) -> Result<(Launch, Starting), (Stage, i32)> {
        let (reader, writer) = io::pipe().map_err(|error| (Stage::Descriptors, errno(&error)))?;
        let launch = Launch {
            program: c_string(&order.program)?,
            argv: order.argv.iter().map(c_string).collect::<Result<_, _>>()?,
            env: order.env.iter().map(c_string).collect::<Result<_, _>>()?,
            cwd: c_string(&order.cwd)?,
            standard,
            report: File::from(OwnedFd::from(writer)),
        };
        Ok((launch, Starting { report: File::from(OwnedFd::from(reader)) }))
    }

    /// The descriptors that must stay open until the leader has them.
    pub(super) fn descriptors(&self) -> [i32; 4] {
        let Standard { stdin, stdout, stderr } = &self.standard;
        [stdin.as_raw_fd(), stdout.as_raw_fd(), stderr.as_raw_fd(), self.report.as_raw_fd()]
    }

    /// Goes on as the leader, in a child of `parent`; comes back only when that failed and was reported. `restrict` is
    /// the last step before exec.
    pub(super) fn become_leader(&mut self, parent: Pid, restrict: impl FnOnce() -> io::Result<()>) {
        let Err((stage, errno)) = self.try_become_leader(parent, restrict);
        self.failed(stage, errno);
    }

    /// Reports that the start failed.
    pub(super) fn failed(&mut self, stage: Stage, errno: i32) {
        let mut bytes = vec![stage as u8];
        bytes.extend(errno.to_ne_bytes());
        // If even this fails, the end of this process without a report is still an end that the warden sees.
        let _ = self.report.write_all(&bytes);
    }

    fn try_become_leader(
        &self,
        parent: Pid,
        restrict: impl FnOnce() -> io::Result<()>,
    ) -> Result<Infallible, (Stage, i32)> {
        let at = |stage: Stage| move |errno: Errno| (stage, errno as i32);
        setsid().map_err(at(Stage::Session))?;
        // The parent has one thread, so this is the death of the process. A second line: the proof is the warden's.
        prctl::set_pdeathsig(Signal::SIGKILL).map_err(at(Stage::Session))?;
        if getppid() != parent {
            sys::exit_now(127);
        }
        dup2_stdin(&self.standard.stdin).map_err(at(Stage::Descriptors))?;
        dup2_stdout(&self.standard.stdout).map_err(at(Stage::Descriptors))?;
        dup2_stderr(&self.standard.stderr).map_err(at(Stage::Descriptors))?;
        sys::close_on_exec_from(3).map_err(|error| (Stage::Descriptors, errno(&error)))?;
        chdir(self.cwd.as_c_str()).map_err(at(Stage::Folder))?;
        sys::reset_signals();
        restrict().map_err(|error| (Stage::Gate, errno(&error)))?;
        execve(&self.program, &self.argv, &self.env).map_err(at(Stage::Exec))
    }
}

fn c_string(text: &OsString) -> Result<CString, (Stage, i32)> {
    CString::new(text.as_bytes()).map_err(|_| (Stage::Exec, libc::EINVAL))
}

pub(super) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Replaces the warden by another program, which keeps the descriptors that were made inheritable.
pub(super) fn replace(argv: &[OsString], env: &[OsString]) -> Option<Infallible> {
    let strings = |list: &[OsString]| -> Option<Vec<CString>> {
        list.iter().map(|s| CString::new(s.clone().into_vec()).ok()).collect()
    };
    let (argv, env) = (strings(argv)?, strings(env)?);
    sys::reset_signals();
    execve(argv.first()?, &argv, &env).ok()
}
