//! The raw system calls that have no safe wrapper. The only module of the crate that may be unsafe; each function says
//! why what it does is sound. Policy of any kind lives elsewhere.
#![allow(unsafe_code)]

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use super::LeaderStatus;

/// Forks. The child runs `child` and then ends with code 127, also when `child` panics; the parent gets the child's
/// process id.
///
/// Only for the warden, which has one thread: then the child is a whole copy of the process, no lock can be held by a
/// thread that is not there, and ordinary code may run in it.
pub(super) fn fork(child: impl FnOnce()) -> io::Result<i32> {
    // SAFETY: the caller is single-threaded (see above), so the child may do what the parent may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => run_and_exit(child),
        pid => Ok(pid),
    }
}

/// Like [`fork`], with the child in new namespaces: `namespaces` is a set of `CLONE_NEW*` flags.
pub(super) fn fork_into(namespaces: i32, child: impl FnOnce()) -> io::Result<i32> {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    // SAFETY: without CLONE_VM and without a stack this is a fork: the child goes on here, on its copy of everything.
    // What the C library would do around its own fork is about other threads, and there are none (see `fork`).
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        0 => run_and_exit(child),
        pid => i32::try_from(pid).map_err(io::Error::other),
    }
}

/// A panic must not unwind into what the parent was doing: the child would go on as a second parent.
fn run_and_exit(child: impl FnOnce()) -> ! {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
    exit_now(127)
}

/// Ends the process at once, without running what was registered for an ordinary exit.
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Ignores every signal that a terminal or a careless `kill` sends, so that the warden only ends by its own decision,
/// and makes sure that the ends of its children are kept for it.
pub(super) fn ignore_common_signals() {
    // A host that was started with this signal ignored hands that down, and then the kernel would reap by itself.
    // SAFETY: SIG_DFL is a valid disposition and no handler of ours is replaced.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    for signal in [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGTERM,
        libc::SIGQUIT,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGPIPE,
        libc::SIGALRM,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGIO,
        libc::SIGPWR,
        libc::SIGXCPU,
        libc::SIGXFSZ,
        libc::SIGSTKFLT,
    ] {
        // SAFETY: SIG_IGN is a valid disposition and no handler of ours is replaced.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    for signal in libc::SIGRTMIN()..=libc::SIGRTMAX() {
        // SAFETY: as above; the two that the C library keeps for itself are below SIGRTMIN.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Gives every signal its default disposition and unblocks all of them, for a program that is about to be executed.
pub(super) fn reset_signals() {
    // The C library hides two signals of its own (which may have been inherited as ignored), so its wrapper won't do.
    // An action of all zeroes is the default disposition without flags; 64 bytes are more than the kernel reads.
    let default = [0u64; 8];
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: the pointer is valid for the call, the last argument is the kernel's size of a signal set; signals
        // that can't be changed answer with an error and stay.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), std::ptr::null_mut::<u64>(), 8usize) };
    }
    // SAFETY: the set is initialised by sigemptyset before it is used.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Closes every descriptor from `first` on: garbage that a careless host let its children inherit.
///
/// Only for the very start of the warden, before anything was opened.
pub(super) fn close_from(first: i32) {
    // SAFETY: nothing in this process owns a descriptor from `first` on yet, see above.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
    if done != 0 {
        for fd in first..highest_descriptor() {
            // SAFETY: as above.
            unsafe { libc::close(fd) };
        }
    }
}

/// Marks every descriptor from `first` on as closed by the next exec.
pub(super) fn close_on_exec_from(first: i32) -> io::Result<()> {
    const CLOSE_RANGE_CLOEXEC: u32 = 4;
    // SAFETY: changes flags only.
    if unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, CLOSE_RANGE_CLOEXEC) } == 0 {
        return Ok(());
    }
    for fd in first..highest_descriptor() {
        // SAFETY: changes a flag only; numbers that are no descriptor answer with an error.
        unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFD);
            if flags >= 0 && libc::fcntl(fd, libc::F_SETFD, flags | libc::FD_CLOEXEC) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Closes every descriptor from 3 on but those in `keep`.
///
/// Only for a child that was just forked and never drops what its parent owned: in it nobody else uses the descriptors.
pub(super) fn close_all_but(keep: &mut [i32]) {
    keep.sort_unstable();
    let mut from = 3u32;
    for kept in keep.iter().filter_map(|&fd| u32::try_from(fd).ok()).filter(|&fd| fd >= 3) {
        close_between(from, kept.wrapping_sub(1));
        from = kept + 1;
    }
    close_between(from, u32::MAX);
}

fn close_between(first: u32, last: u32) {
    // SAFETY: see `close_all_but`; an empty range answers with an error and closes nothing.
    if first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0 {
        return;
    }
    for fd in
        i32::try_from(first).unwrap_or(i32::MAX)..=i32::try_from(last).unwrap_or(i32::MAX).min(highest_descriptor())
    {
        // SAFETY: as above.
        unsafe { libc::close(fd) };
    }
}

fn highest_descriptor() -> i32 {
    // SAFETY: has no preconditions.
    match unsafe { libc::sysconf(libc::_SC_OPEN_MAX) } {
        n if n > 0 => i32::try_from(n).unwrap_or(i32::MAX).min(1 << 20),
        _ => 1 << 16,
    }
}

/// A child that ended and is not reaped yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub pid: i32,
    pub status: LeaderStatus,
}

/// What [`peek`] and [`reap`] find.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found {
    /// This one ended.
    Ended(Ended),
    /// There are children, and none of those asked about has ended.
    NoneEnded,
    /// There is no child (of those asked about) at all.
    NoChild,
}

/// Looks for a child that ended, of any kind, and leaves it unreaped.
pub(super) fn peek() -> io::Result<Found> {
    wait(libc::P_ALL, 0, libc::WNOWAIT)
}

/// Reaps one child that ended, whichever.
pub(super) fn reap_any() -> io::Result<Found> {
    wait(libc::P_ALL, 0, 0)
}

/// Reaps this child if it ended.
pub(super) fn reap(pid: i32) -> io::Result<Found> {
    match libc::id_t::try_from(pid) {
        Ok(id) if id > 0 => wait(libc::P_PID, id, 0),
        _ => Ok(Found::NoChild),
    }
}

fn wait(which: libc::idtype_t, id: libc::id_t, more: i32) -> io::Result<Found> {
    loop {
        // SAFETY: siginfo_t is plain data for which all zeroes is a valid value, and the call fills it.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let flags = libc::WEXITED | libc::WNOHANG | libc::__WALL | more;
        // SAFETY: the pointer is valid for the call.
        if unsafe { libc::waitid(which, id, &mut info, flags) } != 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => continue,
                Some(libc::ECHILD) => return Ok(Found::NoChild),
                _ => return Err(error),
            }
        }
        // SAFETY: waitid fills the fields of a SIGCHLD, and leaves zeroes when nothing has ended.
        let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
        if pid == 0 {
            return Ok(Found::NoneEnded);
        }
        let status = if info.si_code == libc::CLD_EXITED {
            LeaderStatus::Exited(status)
        } else {
            LeaderStatus::Signaled(status)
        };
        return Ok(Found::Ended(Ended { pid, status }));
    }
}

/// Lets this process run before every ordinary one, if it is allowed to; says whether.
pub(super) fn go_first() -> bool {
    // SAFETY: has no preconditions.
    let parameters = libc::sched_param { sched_priority: unsafe { libc::sched_get_priority_min(libc::SCHED_RR) } };
    // Reset on fork, so that nothing that this process starts later inherits it.
    // SAFETY: the pointer is valid for the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &parameters) == 0 }
}

/// The end of [`go_first`]: what this process becomes next is an ordinary one.
pub(super) fn go_along() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is valid for the call; going back is always allowed.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &parameters) };
}

/// The descriptor with this number as a file, when it is open. The caller must be the program that it was handed to by
/// number, and must ask once: the file closes it.
pub(super) fn handed_down(number: i32) -> Option<std::fs::File> {
    // SAFETY: fcntl only looks; the number was made for this process by the warden that became it, so nobody else in it
    // owns the descriptor.
    unsafe {
        if number < 3 || libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) < 0 {
            return None;
        }
        Some(std::fs::File::from_raw_fd(number))
    }
}

/// Puts a seccomp filter in force for this thread and what comes of it, and gives the descriptor that hears of the calls
/// which the filter answers with a notification. Needs `no_new_privs` to be set.
pub(super) fn seccomp_listener(filter: &mut [libc::sock_filter]) -> io::Result<OwnedFd> {
    let len = libc::c_ushort::try_from(filter.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
    let install = |flags: libc::c_ulong| {
        // SAFETY: the program points to `len` instructions that live until after the call, which copies and checks them.
        let fd = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &program) };
        i32::try_from(fd).ok().filter(|&fd| fd >= 0).ok_or_else(io::Error::last_os_error)
    };
    // A call that was heard of is better not interrupted by signals; kernels before 5.19 can't promise that.
    let fd = install(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
        .or_else(|_| install(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER))?;
    // SAFETY: the kernel just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Lets one call that waits at this seccomp listener go on. To be asked when the listener is readable, else it waits.
/// `Ok(false)`: the caller died meanwhile.
pub(super) fn let_pass(listener: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: plain data for which all zeroes is a valid value, and what the kernel wants to see.
    let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for the call and of the size that the number of the request says.
    if unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &mut call) } != 0 {
        return dead_or(io::Error::last_os_error());
    }
    let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    let answer = libc::seccomp_notif_resp { id: call.id, val: 0, error: 0, flags };
    // SAFETY: as above.
    if unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &answer) } != 0 {
        return dead_or(io::Error::last_os_error());
    }
    Ok(true)
}

fn dead_or(error: io::Error) -> io::Result<bool> {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINTR | libc::EINPROGRESS) => Ok(false),
        _ => Err(error),
    }
}
