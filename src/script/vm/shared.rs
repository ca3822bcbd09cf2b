//! What the VM's thread and its handles both see.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mlua::Lua;

use super::limits::Limits;
use super::options::VmOptions;
use crate::engine::Run;
use crate::script::error::{ScriptError, Texts};
use crate::script::source::Reader;

/// What the script is allowed to do now.
#[derive(Clone)]
pub(in crate::script) enum Phase {
    /// Nothing was loaded yet, or loading is over and nothing runs.
    Idle,
    /// The script is being read: no effects.
    Loading,
    /// A run is on; effects go through its door.
    Running(Run),
    /// One of a loop's questions is being asked, by this name. `pure`: no effects; else commands, but no second loop.
    Asking { hook: &'static str, pure: bool, run: Run },
}

impl fmt::Debug for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Idle => "Idle",
            Phase::Loading => "Loading",
            Phase::Running(_) => "Running",
            Phase::Asking { .. } => "Asking",
        })
    }
}

/// Bytes of one logged line; the middle of longer ones is cut out.
const MOST_LINE: usize = 64 << 10;

/// State of one VM outside of Lua.
#[derive(Debug)]
pub(in crate::script) struct Shared {
    pub(in crate::script) options: VmOptions,
    pub(in crate::script) limits: Limits,
    pub(in crate::script) texts: Texts,
    phase: Mutex<Phase>,
    reader: Mutex<Option<Reader>>,
    runtime: Mutex<Option<tokio::runtime::Handle>>,
}

impl Shared {
    pub(super) fn new(options: VmOptions) -> Shared {
        let limits = Limits::new(options.instruction_budget, options.stuck_after, options.stuck_grace);
        Shared {
            options,
            limits,
            texts: Texts::default(),
            phase: Mutex::new(Phase::Idle),
            reader: Mutex::new(None),
            runtime: Mutex::new(None),
        }
    }

    /// The one that belongs to this VM.
    pub(in crate::script) fn of(lua: &Lua) -> Arc<Shared> {
        match lua.app_data_ref::<Arc<Shared>>() {
            Some(shared) => Arc::clone(&shared),
            None => unreachable!("a VM is made with its shared state"),
        }
    }

    pub(in crate::script) fn phase(&self) -> Phase {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(in crate::script) fn set_phase(&self, phase: Phase) -> Phase {
        std::mem::replace(&mut *self.phase.lock().unwrap_or_else(PoisonError::into_inner), phase)
    }

    pub(in crate::script) fn reader(&self) -> MutexGuard<'_, Option<Reader>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A line of the script's own: to the run's record when one is on, else to the host's sink.
    pub(in crate::script) fn log(&self, level: &str, text: &str) {
        let text = &crate::policy::cap_feedback(text, MOST_LINE, None);
        match self.phase() {
            Phase::Running(run) | Phase::Asking { run, .. } => {
                if let Err(error) = run.log(level, text) {
                    tracing::warn!(target: "lunation::script", "a line of the script was not recorded: {error}");
                }
            }
            Phase::Idle | Phase::Loading => match &self.options.log {
                Some(sink) => sink.write(level, text),
                None => tracing::debug!(target: "lunation::script", level, "{text}"),
            },
        }
    }

    /// Where effects are carried out.
    pub(super) fn runtime(&self) -> Option<tokio::runtime::Handle> {
        self.runtime.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(in crate::script) fn set_runtime(&self, runtime: tokio::runtime::Handle) {
        *self.runtime.lock().unwrap_or_else(PoisonError::into_inner) = Some(runtime);
    }

    /// With the line of the script at the error's place.
    pub(in crate::script) fn with_source(&self, mut error: ScriptError) -> ScriptError {
        if error.source_line.is_none() {
            error.source_line = error.place.as_ref().and_then(|place| self.texts.line(place));
        }
        error
    }
}
