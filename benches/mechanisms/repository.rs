//! The repository: an iteration without agent and sensors, the first look, rollback, the guard, and what git takes for
//! the same. In a generated repository of 100,000 files; `LUNATION_BENCH_FILES` makes it another number.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use lunation::mechanism::repo::{Checkpoint, Repository, RepositoryOptions, Workspace, WorkspaceOptions, state_folder};
use lunation::policy::Scope;

use super::table::{Row, median, ratio, say};

#[path = "../../tests/differential/ignore_files.rs"]
mod ignore_files;

const FILES_A_FOLDER: usize = 12;
const IGNORED: usize = 50_000;
const ROUNDS: usize = 9;
const RACE: Duration = Duration::from_secs(8);
const JUDGED: u64 = 700;

/// A repository in a temporary folder, and how it is opened.
struct Field {
    folder: tempfile::TempDir,
    files: usize,
}

impl Field {
    fn make() -> anyhow::Result<Field> {
        let files = std::env::var("LUNATION_BENCH_FILES").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
        let field = Field { folder: tempfile::tempdir()?, files };
        std::fs::create_dir_all(field.root())?;
        std::fs::create_dir(field.home())?;
        for n in 0..files {
            let path = field.path(n);
            if n % FILES_A_FOLDER == 0 {
                std::fs::create_dir_all(path.parent().context("a parent")?)?;
            }
            std::fs::write(path, text(n, 0))?;
        }
        field.git(&["init", "-q", "-b", "main"])?;
        Ok(field)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn path(&self, n: usize) -> PathBuf {
        let folder = n / FILES_A_FOLDER;
        self.root().join(format!("part{}/mod{}/file{n}.txt", folder / 40, folder))
    }

    fn git_with(&self, args: &[&str], more: &[(&str, &Path)]) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let status = Command::new("git")
            .args(["-c", "user.name=Bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0"])
            .args(args)
            .current_dir(self.root())
            .env_clear()
            .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("GIT_CONFIG_NOSYSTEM", "1")])
            .env("HOME", self.home())
            .envs(more.iter().copied())
            .stdout(Stdio::null())
            .status()?;
        anyhow::ensure!(status.success(), "git {args:?} failed");
        Ok(started.elapsed())
    }

    fn git(&self, args: &[&str]) -> anyhow::Result<Duration> {
        self.git_with(args, &[])
    }

    fn workspace(&self, state: &str) -> anyhow::Result<Workspace> {
        let options =
            RepositoryOptions { home: Some(self.home()), system_config: None, ..RepositoryOptions::default() };
        let repository = Repository::discover(&self.root(), &options)?;
        let state = state_folder(&self.folder.path().join(state), &repository)?;
        Ok(Workspace::open(repository, &state, WorkspaceOptions::default())?)
    }

    /// Edits some files, spread over the tree: half in place with equal length, half by writing a new one over it.
    fn edit(&self, changed: usize, round: usize) -> anyhow::Result<()> {
        let step = (self.files / changed.max(1)).max(1);
        for n in 0..changed {
            let at = (n * step + round * 7) % self.files;
            let path = self.path(at);
            let content = text(at, round + 1);
            if n % 2 == 0 {
                std::fs::write(path, content)?;
            } else {
                let new = path.with_extension("new");
                std::fs::write(&new, content)?;
                std::fs::rename(new, path)?;
            }
        }
        Ok(())
    }
}

/// About 2 KB in the middle, much more at times; of equal length in every version.
fn text(n: usize, version: usize) -> String {
    let lines = 1 + (n * 7_919) % 120;
    format!("file {n:07} version {version:05} {:08x}\n", n.wrapping_mul(2_654_435_761) & 0xffff_ffff).repeat(lines)
}

/// One iteration without its agent: all that is done before the turn, and all after it.
fn before_turn(workspace: &mut Workspace) -> anyhow::Result<(Checkpoint, Duration)> {
    let started = Instant::now();
    let checkpoint = workspace.checkpoint()?;
    workspace.begin_intent("bench", "iteration", &checkpoint)?;
    Ok((checkpoint, started.elapsed()))
}

fn after_turn(workspace: &mut Workspace, checkpoint: &Checkpoint, changed: usize) -> anyhow::Result<Duration> {
    let started = Instant::now();
    workspace.guard(checkpoint)?;
    workspace.fence(checkpoint, &Scope::everything())?;
    let changes = workspace.changes_after_fence(checkpoint)?;
    anyhow::ensure!(changes.paths.len() == changed, "{} changes of {changed} were seen", changes.paths.len());
    if changed > 0 {
        workspace.diff(&changes.before, &changes.tree)?;
    }
    workspace.finish_intent()?;
    Ok(started.elapsed())
}

struct Iteration {
    ours: Duration,
    status: Duration,
    add: Duration,
}

fn iteration(field: &Field, workspace: &mut Workspace, changed: usize, add: bool) -> anyhow::Result<Iteration> {
    let index = field.folder.path().join("index");
    if !index.exists() {
        std::fs::copy(field.root().join(".git/index"), &index)?;
    }
    let (mut ours, mut status, mut adds) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS + 1 {
        let (checkpoint, before) = before_turn(workspace)?;
        field.edit(changed, round * 31 + changed)?;
        // files that were written just now are read again by everybody; a turn takes longer than that
        std::thread::sleep(Duration::from_millis(120));
        let ours_now = before + after_turn(workspace, &checkpoint, changed)?;
        let optional = [("GIT_OPTIONAL_LOCKS", Path::new("0"))];
        let status_now = field.git_with(&["status", "--porcelain"], &optional)?;
        let private = [("GIT_INDEX_FILE", index.as_path())];
        let add_now = match add {
            true => field.git_with(&["add", "-A"], &private)? + field.git_with(&["write-tree"], &private)?,
            false => Duration::ZERO,
        };
        // the first round warms all of them up
        if round > 0 {
            ours.push(ours_now);
            status.push(status_now);
            adds.push(add_now);
        }
        field.git(&["checkout-index", "-q", "-f", "-a"])?;
        field.git(&["update-index", "-q", "--refresh"])?;
    }
    Ok(Iteration { ours: median(ours), status: median(status), add: median(adds) })
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

/// All figures of this part.
pub(crate) fn run() -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    say("making the repository");
    let field = Field::make()?;
    let files = field.files;
    rows.push(first_look(&field)?);
    field.git(&["commit", "-qm", "start"])?;
    field.git(&["gc", "-q"])?;
    field.git(&["status"])?;
    let mut workspace = field.workspace("state")?;
    workspace.checkpoint()?;
    let mut whole_status = Duration::ZERO;
    for (changed, limit) in [(0, 0.7), (10, 0.7), (1_000, 1.0)] {
        let changed = changed.min(files / 4);
        let Iteration { ours, status, add } = iteration(&field, &mut workspace, changed, true)?;
        whole_status = whole_status.max(status);
        let of = format!("{} of {}", milliseconds(ours), milliseconds(status));
        let name = format!("iteration without agent, {files} files, {changed} changed, against git status");
        rows.push(Row::at_most_times(&name, limit, ratio(ours, status), &of));
        let of = format!("{} of {}", milliseconds(ours), milliseconds(add));
        let name = format!("the same, {changed} changed, against git add -A and write-tree");
        rows.push(Row::at_most_times(&name, 0.5, ratio(ours, add), &of));
    }
    rows.push(guard(&mut workspace, whole_status)?);
    rows.extend(rollback(&field, &mut workspace)?);
    for n in 0..IGNORED.min(files) {
        let folder = field.root().join(format!("ignored/part{}", n / 100));
        if n % 100 == 0 {
            std::fs::create_dir_all(&folder)?;
        }
        std::fs::write(folder.join(format!("{n}.o")), "object\n")?;
    }
    std::fs::write(field.root().join(".git/info/exclude"), "ignored/\n")?;
    let Iteration { ours, status, .. } = iteration(&field, &mut workspace, 10, false)?;
    let of = format!("{} of {}", milliseconds(ours), milliseconds(status));
    rows.push(Row::at_most_times("the same with 50,000 ignored files beside", 0.9, ratio(ours, status), &of));
    rows.push(escapes()?);
    rows.push(ignore_rules());
    Ok(rows)
}

/// Everything is read and kept for the first time, by both.
fn first_look(field: &Field) -> anyhow::Result<Row> {
    let mut ours = Vec::new();
    for round in 0..3 {
        let state = format!("first{round}");
        let mut workspace = field.workspace(&state)?;
        let started = Instant::now();
        workspace.checkpoint()?;
        ours.push(started.elapsed());
        drop(workspace);
        std::fs::remove_dir_all(field.folder.path().join(state))?;
    }
    let add = field.git(&["add", "-A"])?;
    let ours = median(ours);
    let of = format!("{} of {}", milliseconds(ours), milliseconds(add));
    Ok(Row::at_most_times("first snapshot, against git add -A from nothing", 0.5, ratio(ours, add), &of))
}

fn guard(workspace: &mut Workspace, status: Duration) -> anyhow::Result<Row> {
    let checkpoint = workspace.checkpoint()?;
    let mut samples = Vec::new();
    for _ in 0..51 {
        let started = Instant::now();
        // the look before the turn is the same work as the one after it
        workspace.guard(&checkpoint)?;
        workspace.guard(&checkpoint)?;
        samples.push(started.elapsed());
    }
    let ours = median(samples);
    let of = format!("{} of {}", milliseconds(ours), milliseconds(status));
    Ok(Row::at_most_times("guard before and after, against git status", 0.03, ratio(ours, status), &of))
}

fn rollback(field: &Field, workspace: &mut Workspace) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (changed, limit) in [(10, 0.5), (1_000, 0.8)] {
        let (mut ours, mut gits) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let checkpoint = workspace.checkpoint()?;
            field.edit(changed, 1_000 + round)?;
            // the look of the turn that is rolled back was taken already
            workspace.fence(&checkpoint, &Scope::everything())?;
            let started = Instant::now();
            let report = workspace.restore(&checkpoint)?;
            ours.push(started.elapsed());
            anyhow::ensure!(report.exact, "the rollback was not exact: {report:?}");
            field.git(&["update-index", "-q", "--refresh"])?;
            field.edit(changed, 2_000 + round)?;
            gits.push(field.git(&["checkout-index", "-q", "-f", "-a"])?);
            field.git(&["update-index", "-q", "--refresh"])?;
        }
        let (ours, gits) = (median(ours), median(gits));
        let of = format!("{} of {}", milliseconds(ours), milliseconds(gits));
        let name = format!("rollback of {changed} files, verified, against git checkout-index -f -a");
        rows.push(Row::at_most_times(&name, limit, ratio(ours, gits), &of));
    }
    Ok(rows)
}

/// A folder and a link to outside change places all the time, while one file in it is put back.
fn escapes() -> anyhow::Result<Row> {
    let ours = race(|workspace, checkpoint, _| {
        // a capture may fail under such an agent; what counts is what is written elsewhere
        let _ = workspace.restore(checkpoint);
    })?;
    let libgit2 = race(|_, _, root| {
        let checkout = || -> Result<(), git2::Error> {
            let repository = git2::Repository::open(root)?;
            repository.checkout_head(Some(git2::build::CheckoutBuilder::new().force()))
        };
        let _ = checkout();
    })?;
    let measured = format!("{} in {} rounds; libgit2's checkout: {} in {}", ours.0, ours.1, libgit2.0, libgit2.1);
    Ok(Row::new("folder swapped for a link during rollback, 8 s: escapes", "0".into(), measured, ours.0 == 0))
}

fn race(mut put_back: impl FnMut(&mut Workspace, &Checkpoint, &Path)) -> anyhow::Result<(u64, u64)> {
    let folder = tempfile::tempdir()?;
    let field = Field { folder, files: 0 };
    let (root, outside) = (field.root(), field.folder.path().join("outside"));
    for path in [root.join("in"), outside.clone(), field.home()] {
        std::fs::create_dir_all(path)?;
    }
    std::fs::write(root.join("in/file"), "as it was\n")?;
    field.git(&["init", "-q"])?;
    field.git(&["add", "-A"])?;
    field.git(&["commit", "-qm", "start"])?;
    let mut workspace = field.workspace("state")?;
    let checkpoint = workspace.checkpoint()?;
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let (inside, aside, link) = (root.join("in"), field.folder.path().join("aside"), field.folder.path().join("link"));
    symlink(&outside, &link)?;
    let (mut escaped, mut rounds) = (0, 0);
    std::thread::scope(|scope| -> anyhow::Result<()> {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // some fail when the other side was faster, which is what a race is
                let _ = std::fs::rename(&inside, &aside).and_then(|()| std::fs::rename(&link, &inside));
                let _ = std::fs::rename(&inside, &link).and_then(|()| std::fs::rename(&aside, &inside));
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let started = Instant::now();
        while started.elapsed() < RACE {
            std::fs::write(outside.join("file"), "outside\n")?;
            let _ = std::fs::write(inside.join("file"), format!("changed {rounds}\n"));
            std::fs::write(outside.join("file"), "outside\n")?;
            put_back(&mut workspace, &checkpoint, &root);
            rounds += 1;
            escaped += u64::from(std::fs::read(outside.join("file")).ok().as_deref() != Some(b"outside\n"));
        }
        stop.store(true, Ordering::Relaxed);
        Ok(())
    })?;
    Ok((escaped, rounds))
}

fn ignore_rules() -> Row {
    let wrong = (0..JUDGED).filter(|seed| {
        let judged = ignore_files::judge(*seed);
        let differs = judged.ours != judged.gits;
        if differs {
            say(&format!("seed {seed}: git and we differ on\n{}", judged.rules));
        }
        differs
    });
    let wrong = wrong.count();
    let name = format!("ignore rules against git ls-files -o --exclude-standard, {JUDGED} random repositories");
    Row::new(&name, "0 differences".into(), format!("{wrong} differences"), wrong == 0)
}
