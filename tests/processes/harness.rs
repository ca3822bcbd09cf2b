//! What every test here needs: a place of its own, a program that behaves badly, and a look at the process table.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use lunation::mechanism::process::{Command, Finished, Processes, ProcessesConfig, Tier, WardenProgram};
use tokio_util::sync::CancellationToken;

/// The longest that anything here may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A folder and a marker that nothing else on the machine has.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    pub(crate) marker: String,
}

impl Place {
    pub(crate) fn new() -> Place {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let marker = format!("marker-{}-{n}-{:08x}", std::process::id(), rand::random::<u32>());
        Place { dir: tempfile::tempdir().unwrap(), marker }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A shell script that finds `$EVIL` (the badly behaved program) and `$MARK` (the marker) in its environment.
    pub(crate) fn sh(&self, script: &str) -> Command {
        Command::new("sh", self.path(), self.env()).args(["-c", script])
    }

    /// The badly behaved program itself.
    pub(crate) fn evil(&self, mode: &str) -> Command {
        Command::new(evil(), self.path(), self.env()).args([mode, &self.marker])
    }

    fn env(&self) -> Vec<(OsString, OsString)> {
        [("PATH", "/usr/local/bin:/usr/bin:/bin".into()), ("HOME", self.path().into()), ("LC_ALL", "C".into())]
            .into_iter()
            .chain([("EVIL", evil().as_os_str().to_owned()), ("MARK", self.marker.clone().into())])
            .map(|(n, v)| (n.into(), v))
            .collect()
    }

    /// The processes with the marker in their arguments.
    pub(crate) fn alive(&self) -> Vec<(i32, String)> {
        with_argument(&self.marker)
    }

    /// Looks at the process table: what was confirmed gone must be gone now, not soon.
    #[track_caller]
    pub(crate) fn assert_nobody(&self) {
        let alive = self.alive();
        assert!(alive.is_empty(), "still alive: {alive:?}");
    }
}

/// The processes with this text in their arguments.
pub(crate) fn with_argument(text: &str) -> Vec<(i32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let Some(pid) = entry.unwrap().file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let Ok(arguments) = fs::read(format!("/proc/{pid}/cmdline")) else { continue };
        if arguments.windows(text.len()).any(|w| w == text.as_bytes()) {
            found.push((pid, String::from_utf8_lossy(&arguments).replace('\0', " ")));
        }
    }
    found
}

/// Waits for something that must come.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "did not come: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) async fn eventually_async(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "did not come: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The best tier, or the one that `LUNATION_TIER` names.
pub(crate) fn config() -> ProcessesConfig {
    let mut config = ProcessesConfig::new(WardenProgram::at(env!("CARGO_BIN_EXE_lunation")));
    config.force_tier = std::env::var("LUNATION_TIER").ok().map(|name| Tier::from_name(&name).expect("a tier"));
    config
}

pub(crate) fn processes() -> Processes {
    Processes::start(config(), tokio::runtime::Handle::current()).unwrap()
}

/// Runs a command with nothing special around it.
pub(crate) async fn run(command: Command) -> Finished {
    processes().run(command, CancellationToken::new(), None).await.unwrap()
}

/// The badly behaved program, compiled once for each version of its text.
pub(crate) fn evil() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let text = include_bytes!("evil.c");
        let hash = text.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        fs::create_dir_all(folder).unwrap();
        let program = folder.join(format!("evil-{hash:016x}"));
        if !program.exists() {
            let scratch = tempfile::tempdir_in(folder).unwrap();
            let (source, made) = (scratch.path().join("evil.c"), scratch.path().join("evil"));
            fs::write(&source, text).unwrap();
            let status = std::process::Command::new("cc")
                .args(["-O1", "-pthread", "-o"])
                .args([&made, &source])
                .status()
                .expect("cc is needed (it links Rust programs too)");
            assert!(status.success());
            fs::rename(made, &program).unwrap();
        }
        program
    })
}
