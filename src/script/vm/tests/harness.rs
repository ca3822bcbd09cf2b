//! A script, a world in memory, and what came of both.

use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;

use serde_json::Value as Json;

use crate::engine::{Interrupts, MemoryRecorder, Run, RunParts, RunResult};
use crate::script::{Loaded, LogSink, ScriptError, Source, Vm, VmOptions};
use crate::world::{ScriptedWorld, World};

/// A folder with files, and a VM for one script in it.
pub(super) struct Case {
    pub(super) folder: tempfile::TempDir,
    options: VmOptions,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Case {
    pub(super) fn new() -> Case {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let log = LogSink::new(move |_, text| kept.lock().unwrap().push(text.to_owned()));
        let options = VmOptions { log: Some(log), ..VmOptions::default() };
        Case { folder: tempfile::tempdir().unwrap(), options, lines }
    }

    pub(super) fn options(mut self, change: impl FnOnce(&mut VmOptions)) -> Case {
        change(&mut self.options);
        self
    }

    pub(super) fn file(self, name: &str, text: impl AsRef<[u8]>) -> Case {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    pub(super) fn vm(&self) -> Vm {
        Vm::start(self.options.clone()).unwrap()
    }

    /// Loads the text as `loop.lua`.
    pub(super) fn load(&self, text: &str) -> Result<(Vm, Loaded), ScriptError> {
        std::fs::write(self.folder.path().join("loop.lua"), text).unwrap();
        self.load_file("loop.lua")
    }

    pub(super) fn load_file(&self, name: &str) -> Result<(Vm, Loaded), ScriptError> {
        let vm = self.vm();
        let source = Source::open(&self.folder.path().join(name), self.folder.path())?;
        let loaded = vm.load(&source)?;
        Ok((vm, loaded))
    }

    /// What the top level of a script prints, line by line; the script need not return anything.
    pub(super) fn prints(&self, text: &str) -> Result<Vec<String>, ScriptError> {
        self.load(&format!("{text}\nreturn function() end"))?;
        Ok(std::mem::take(&mut *self.lines.lock().unwrap()))
    }

    /// Loads and runs in a world.
    pub(super) async fn run(&self, text: &str, world: ScriptedWorld) -> (Result<RunResult, ScriptError>, Outcome) {
        let (vm, loaded) = self.load(text).unwrap_or_else(|error| panic!("{error}"));
        let outcome = Outcome::new(world, self.folder.path());
        (vm.run(&loaded, outcome.run.clone()).await, outcome)
    }
}

/// A run and what it left.
pub(super) struct Outcome {
    pub(super) run: Run,
    pub(super) world: Arc<ScriptedWorld>,
    pub(super) recorder: Arc<MemoryRecorder>,
}

impl Outcome {
    pub(super) fn new(world: ScriptedWorld, root: &Path) -> Outcome {
        let world = Arc::new(world);
        let recorder = MemoryRecorder::new();
        let own: Arc<dyn World> = Arc::clone(&world) as Arc<dyn World>;
        let start = crate::world::Point { tree: String::new(), id: String::new() };
        let run = Run::new(RunParts {
            id: "20260101-000000-test".into(),
            world: own,
            recorder: Arc::clone(&recorder) as Arc<dyn crate::engine::Recorder>,
            interrupts: Arc::new(Interrupts::new()),
            root: root.to_owned(),
            start,
            input: Json::Null,
            protected: Vec::new(),
        });
        Outcome { run, world, recorder }
    }

    /// Lines that the script logged.
    pub(super) fn logged(&self) -> Vec<String> {
        self.recorder
            .events()
            .into_iter()
            .filter_map(|event| match event {
                crate::journal::Event::Logged { text, .. } => Some(text),
                _ => None,
            })
            .collect()
    }
}
