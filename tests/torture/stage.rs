//! Where a case is played: on each tier, for each user, with a bystander, and a look at the process table afterwards.

use std::{
    ffi::OsString,
    fs,
    io::Write,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use lunation::mechanism::process::{Command, Finished, Processes, ProcessesConfig, Tier, WardenProgram};
use tokio_util::sync::CancellationToken;

/// The longest that anything here may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(50);
/// From here on there are users that nobody else is, one for each test: it may be told to kill everybody of its user.
const NOBODY_ELSE: u32 = 3_000_000;

const AS_USER: &str = "LUNATION_TORTURE_AS_USER";
const WARDEN: &str = "LUNATION_TORTURE_WARDEN";
const EVIL: &str = "LUNATION_TORTURE_EVIL";

/// The tiers that promise that nobody is left.
pub(crate) const TIERS: [Tier; 3] = [Tier::PidNamespace, Tier::ForkGate, Tier::Subreaper];

/// One case on one tier.
pub(crate) struct Stage {
    pub(crate) tier: Tier,
    pub(crate) processes: Processes,
    pub(crate) marker: String,
    folder: tempfile::TempDir,
    bystander: Bystander,
}

/// Plays a case on every tier, as this user and as another one. The name of the test is that of the closure's function.
pub(crate) fn everywhere<C: AsyncFn(&Stage)>(case: C) {
    let played = play(&case);
    say(&format!("{}: {played} tiers as {}", name_of(&case), nix::unistd::geteuid()));
    if nix::unistd::geteuid().is_root() {
        again_as_another_user(&name_of(&case));
    }
}

/// Only in a process of that other user: there is nobody else whom it could hurt.
pub(crate) fn as_another_user_only<C: AsyncFn(&Stage)>(case: C) {
    if std::env::var_os(AS_USER).is_some() {
        play(&case);
    } else if nix::unistd::geteuid().is_root() {
        again_as_another_user(&name_of(&case));
    } else {
        say(&format!("{}: skipped, only root can make up a user for it", name_of(&case)));
    }
}

fn play<C: AsyncFn(&Stage)>(case: &C) -> usize {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut played = 0;
    for tier in TIERS {
        let mut config = ProcessesConfig::new(WardenProgram::at(warden()));
        config.force_tier = Some(tier);
        match Processes::start(config, runtime.handle().clone()) {
            Err(error) => say(&format!("skipped: {error}")),
            Ok(processes) => {
                let stage = Stage::new(tier, processes);
                runtime.block_on(case(&stage));
                stage.bystander.must_live(tier);
                played += 1;
            }
        }
    }
    assert!(played > 0, "there is no tier at all");
    played
}

impl Stage {
    fn new(tier: Tier, processes: Processes) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let marker = format!("torture-{}-{:08x}", std::process::id(), rand::random::<u32>());
        Stage { tier, processes, marker, folder, bystander: Bystander::start() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The badly behaved program, with the marker in its arguments.
    pub(crate) fn evil(&self, mode: &str, more: &[&str]) -> Command {
        Command::new(evil(), self.path(), self.env()).args([mode, &self.marker]).args(more.iter().copied())
    }

    /// A shell script that finds `$EVIL` and `$MARK` in its environment.
    pub(crate) fn sh(&self, script: &str) -> Command {
        // Behind the gate a shell must restart interrupted calls, or its forks fail; bash does (see `Tier::ForkGate`).
        let bash = self.tier == Tier::ForkGate && fs::exists("/bin/bash").unwrap_or(false);
        Command::new(if bash { "bash" } else { "sh" }, self.path(), self.env()).args(["-c", script])
    }

    /// A Python program with the marker as its argument; `None`, and said, where there is no Python.
    pub(crate) fn python(&self, program: &str) -> Option<Command> {
        let there = ["/usr/bin/python3", "/usr/local/bin/python3"].into_iter().find(|p| fs::exists(p).unwrap_or(false));
        let Some(python) = there else {
            say("skipped: no python3");
            return None;
        };
        Some(Command::new(python, self.path(), self.env()).args(["-c", program, &self.marker]))
    }

    pub(crate) fn env(&self) -> Vec<(OsString, OsString)> {
        [
            ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".into()),
            ("HOME", self.path().into()),
            ("LC_ALL", "C".into()),
        ]
        .into_iter()
        .chain([("EVIL", evil().as_os_str().to_owned()), ("MARK", self.marker.clone().into())])
        .map(|(n, v)| (n.into(), v))
        .collect()
    }

    /// Runs it to its end, which must be confirmed and true.
    pub(crate) async fn run(&self, command: Command) -> Finished {
        self.run_with(command, CancellationToken::new()).await
    }

    /// The same, ended when the program said that it is ready. Gives the time from then to the end.
    pub(crate) async fn run_until_ready(&self, command: Command) -> (Finished, Duration) {
        let cancel = CancellationToken::new();
        let (ready, heard) = tokio::sync::oneshot::channel();
        let observer = WhenReady { text: Vec::new(), ready: Some(ready) };
        let run = self.processes.run(command.term_grace(Duration::ZERO), cancel.clone(), Some(Box::new(observer)));
        let end = async {
            heard.await.expect("it says that it is ready");
            cancel.cancel();
            Instant::now()
        };
        let (done, asked) = tokio::join!(run, end);
        let took = asked.elapsed();
        let done = done.unwrap();
        self.must_be_over(&done);
        (done, took)
    }

    pub(crate) async fn run_with(&self, command: Command, cancel: CancellationToken) -> Finished {
        let done = self.processes.run(command, cancel, None).await.unwrap();
        self.must_be_over(&done);
        done
    }

    #[track_caller]
    fn must_be_over(&self, done: &Finished) {
        assert!(done.confirmed_gone, "{}: {done:?}", self.tier);
        self.nobody_is_left();
    }

    /// What was confirmed gone must be gone now, not soon.
    #[track_caller]
    pub(crate) fn nobody_is_left(&self) {
        let left = with_argument(&self.marker);
        assert!(left.is_empty(), "{}: still alive: {left:?}", self.tier);
    }
}

struct WhenReady {
    text: Vec<u8>,
    ready: Option<tokio::sync::oneshot::Sender<()>>,
}

impl lunation::mechanism::process::Observer for WhenReady {
    fn output(&mut self, _: lunation::mechanism::process::Stream, bytes: &[u8]) -> lunation::mechanism::process::Wish {
        self.text.extend_from_slice(bytes);
        if self.text.windows(5).any(|w| w == b"ready")
            && let Some(ready) = self.ready.take()
        {
            let _ = ready.send(());
        }
        lunation::mechanism::process::Wish::GoOn
    }
}

/// A process of the same user that no tier may touch.
struct Bystander(Child);

impl Bystander {
    fn start() -> Bystander {
        let child = std::process::Command::new(evil()).args(["sleep", "a-bystander-of-the-torture-set"]).spawn();
        Bystander(child.unwrap())
    }

    fn must_live(mut self, tier: Tier) {
        assert!(self.0.try_wait().unwrap().is_none(), "{tier}: the bystander did not live");
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
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
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "did not come: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Past the capture of the test harness, so that a skip is seen.
pub(crate) fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "torture: {what}");
}

/// `torture::daemons::name::{{closure}}` without the first and the last part.
fn name_of<C>(_: &C) -> String {
    let path = std::any::type_name::<C>();
    let path = path.split_once("::").map_or(path, |(_, rest)| rest);
    path.split("::{{").next().unwrap_or(path).to_owned()
}

/// The program that wardens are made from.
pub(crate) fn warden() -> PathBuf {
    std::env::var_os(WARDEN).map_or_else(|| env!("CARGO_BIN_EXE_lunation").into(), PathBuf::from)
}

/// The badly behaved program, in a folder that every user can enter.
pub(crate) fn evil() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| std::env::var_os(EVIL).map_or_else(make_evil, PathBuf::from))
}

fn make_evil() -> PathBuf {
    let text = include_bytes!("../processes/evil.c");
    let hash = text.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
    let folder = std::env::temp_dir().join(format!("lunation-torture-{}", nix::unistd::geteuid()));
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.join(format!("evil-{hash:016x}"));
    if !program.exists() {
        let scratch = tempfile::tempdir_in(&folder).unwrap();
        let (source, made) = (scratch.path().join("evil.c"), scratch.path().join("evil"));
        fs::write(&source, text).unwrap();
        let cc = std::process::Command::new("cc").args(["-O1", "-pthread", "-o"]).args([&made, &source]).status();
        assert!(cc.expect("cc is needed (it links Rust programs too)").success());
        fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(made, &program).unwrap();
    }
    program
}

/// Runs this test of this program again, as a user that nobody else is. The programs are handed over as open files, for
/// the folders that they are in may be closed to that user.
fn again_as_another_user(test: &str) {
    let open = |path: &Path| -> OwnedFd {
        let file = fs::File::open(path).unwrap();
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
        file.into()
    };
    let (me, warden) = (open(&std::env::current_exe().unwrap()), open(&warden()));
    let path = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let of_this_process = (std::process::id() % 10_000) * 100;
    let user = (NOBODY_ELSE + of_this_process + NEXT.fetch_add(1, Ordering::Relaxed)).to_string();
    let mut command = std::process::Command::new("setpriv");
    command
        .args(["--reuid", &user, "--regid", &user, "--clear-groups", "--", &path(&me)])
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env_clear()
        .envs([(AS_USER, "1"), (WARDEN, &path(&warden)), ("PATH", "/usr/bin:/bin"), ("RUST_BACKTRACE", "0")])
        .env(EVIL, evil())
        .current_dir("/")
        .stdin(Stdio::null());
    let output = match command.output() {
        Err(error) => return say(&format!("{test}: not as another user, setpriv can't be started ({error})")),
        Ok(output) => output,
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    for line in text.lines().filter(|line| line.starts_with("torture: ")) {
        say(line.trim_start_matches("torture: "));
    }
    assert!(output.status.success() && text.contains("1 passed"), "as another user: {text}");
}
