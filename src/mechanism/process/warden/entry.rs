//! From `main` into the warden: recognising the call, making the process safe, reading the first message.

use std::{
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    panic::{AssertUnwindSafe, catch_unwind},
};

use nix::sys::{prctl, signal::Signal};

use super::{
    super::{
        protocol::{FromWarden, MARKER, ToWarden, VERSION},
        sys,
    },
    control::Control,
    probe, watch,
};

/// Call this first thing in `main`, before threads, runtimes or argument parsing. If this process was started by
/// lunation as a warden, it does that work and never returns; otherwise it returns at once.
///
/// Takes nothing; looks at the first argument only.
pub fn enter_warden_if_asked() {
    let Some(first) = std::env::args_os().nth(1) else { return };
    let Some(version) = first.as_bytes().strip_prefix(MARKER.as_bytes()) else { return };
    let same = version == VERSION.to_string().as_bytes();
    std::process::exit(enter(same));
}

/// The warden was started wrongly, or could not reach its host.
const USELESS: i32 = 2;

fn enter(same_version: bool) -> i32 {
    sys::close_from(3);
    sys::ignore_common_signals();
    // A message of a panic has no reader; the host gets it over the socket.
    std::panic::set_hook(Box::new(|_| {}));
    let Ok(mut control) = Control::from_standard_input() else { return USELESS };
    if !same_version {
        control.say(&FromWarden::Failed { message: "it is of a different version than the host".into() });
        return USELESS;
    }
    let subreaper = prctl::set_child_subreaper(true).map_err(|error| format!("the kernel refused it ({error})"));
    // Harmless when only the thread of the host that started us ends, and wakes us when somebody stopped us before the
    // host died, so that we see the end of the socket.
    let woken = prctl::set_pdeathsig(Signal::SIGCONT).map_err(|error| format!("no parent-death signal ({error})"));
    // What a command of the same user could read or change here would be the proof itself.
    let closed = prctl::set_dumpable(false).map_err(|error| format!("it can't be shut to others ({error})"));
    let _ = std::env::set_current_dir("/");
    let ready = subreaper.clone().and(woken).and(closed);

    let Some(descriptors) = control.take_descriptors() else { return USELESS };
    match control.first_message() {
        Ok(Some(ToWarden::Probe)) => {
            let abilities = probe::abilities(subreaper);
            control.say(&FromWarden::Abilities(abilities));
            0
        }
        Ok(Some(ToWarden::Start(order))) => match ready {
            Ok(()) => guarded(control, *order, descriptors),
            Err(message) => {
                control.say(&FromWarden::Failed { message });
                USELESS
            }
        },
        Ok(Some(ToWarden::Stop { .. } | ToWarden::Sweep { .. })) | Ok(None) => 0,
        Err(message) => {
            control.say(&FromWarden::Failed { message });
            USELESS
        }
    }
}

/// Runs the watch; should it panic, the tree is swept all the same before the process ends.
fn guarded(control: Control, order: super::super::protocol::Order, descriptors: Vec<OwnedFd>) -> i32 {
    let mut watch = match watch::Watch::new(control, order, descriptors) {
        Ok(watch) => watch,
        Err(code) => return code,
    };
    match catch_unwind(AssertUnwindSafe(|| watch.run())) {
        Ok(code) => code,
        Err(panic) => watch.after_panic(&*panic),
    }
}
