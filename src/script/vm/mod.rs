//! One Lua VM for each script, on a thread of its own.
//!
//! Owns the thread, the sandbox and the limits. Must not know what the bindings do. Guarantees that a script which does
//! not come back never holds its host: whoever waits for the VM is answered, at the latest with
//! [`ErrorKind::Stuck`](super::ErrorKind::Stuck), and what the script started is ended by others.
//!
//! Work comes in as jobs; a job that waits for an effect lets the next one in. Whoever waits for a job also watches the
//! clock: a thread that is busy for long is first told to end (the hook sees it after 1,000 instructions), then given up.

mod chunk;
mod limits;
mod names;
mod options;
pub(super) mod place;
mod sandbox;
mod shared;
pub(super) mod show;
mod sort;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use mlua::{Lua, MultiValue};
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;
use tokio_util::sync::CancellationToken;

pub(super) use chunk::embedded;
pub use options::{HostFunction, HostFuture, LogSink, VmOptions};
pub(super) use sandbox::{call, inside};
pub(super) use shared::{Phase, Shared};

use super::error::{ErrorKind, Raised, ScriptError, from_mlua};
use super::loaded::{self, Loaded};
use super::source::{Reader, Source};
use crate::engine::{Request, Run, RunResult, Urgency};
use crate::policy::Reason;

type JobFuture = Pin<Box<dyn Future<Output = ()>>>;
/// A run whose future was dropped must not go on unattended: futures inside of Lua are not always dropped with it.
struct EndedWhenLeft {
    shared: Arc<Shared>,
    armed: bool,
}

impl Drop for EndedWhenLeft {
    fn drop(&mut self) {
        if self.armed {
            self.shared.limits.cancel.cancel();
            self.shared.limits.order_end(limits::Limits::cancelled());
        }
    }
}

type Job = Box<dyn FnOnce(Lua) -> JobFuture + Send>;

/// How often whoever waits looks at the clock.
const LOOK: Duration = Duration::from_millis(100);
/// Stack of the VM's thread; only what is used is taken.
const STACK: usize = 16 << 20;

/// A handle of one VM; cheap to clone. The last one that is dropped ends the VM.
#[derive(Debug, Clone)]
pub struct Vm {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    jobs: mpsc::UnboundedSender<Job>,
    shared: Arc<Shared>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.limits.cancel.cancel();
        self.shared.limits.order_end(limits::Limits::cancelled());
    }
}

impl Vm {
    /// Starts the thread and makes the VM in it. Takes a fraction of a millisecond.
    ///
    /// # Errors
    /// `Runtime` when there is no thread to be had, or an embedder's function has a name that is taken.
    pub fn start(options: VmOptions) -> Result<Vm, ScriptError> {
        let shared = Arc::new(Shared::new(options));
        let (jobs, inbox) = mpsc::unbounded_channel();
        let (ready, started) = std::sync::mpsc::channel();
        let own = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("lunation-vm".into())
            .stack_size(STACK)
            .spawn(move || run_thread(&own, inbox, &ready))
            .map_err(|error| ScriptError::new(ErrorKind::Runtime, format!("no thread for the script: {error}")))?;
        match started.recv() {
            Ok(Ok(())) => Ok(Vm { inner: Arc::new(Inner { jobs, shared }) }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(gone()),
        }
    }

    /// Loads a script: compiles it, runs its top level without any effect, and checks what it returns. A VM loads one
    /// script. Blocks for as long as that takes, bounded by the options `stuck_after` and `stuck_grace` together.
    ///
    /// # Errors
    /// Whatever is wrong with the script, with its place.
    pub fn load(&self, source: &Source) -> Result<Loaded, ScriptError> {
        let source = source.clone();
        let shared = Arc::clone(&self.inner.shared);
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        self.send(Box::new(move |lua| {
            Box::pin(async move {
                // Nobody listens any more when the caller has given up on a stuck VM.
                let _ = reply.send(load(&lua, &shared, &source).await);
            })
        }))?;
        loop {
            match answer.recv_timeout(LOOK) {
                Ok(result) => return result,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => self.inner.shared.limits.watch()?,
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Err(gone()),
            }
        }
    }

    /// Runs what was loaded to its end. Must be called within a tokio runtime: effects are carried out there. A request
    /// to the run's [`Interrupts`](crate::engine::Interrupts) to end now ends Lua too, without its consent.
    ///
    /// # Errors
    /// What the script raised, or `Stuck` or `Cancelled`. The open iteration is left to the run's owner to roll back.
    /// Dropping the future ends the script and its effects.
    pub async fn run(&self, loaded: &Loaded, run: Run) -> Result<RunResult, ScriptError> {
        let mut left = EndedWhenLeft { shared: Arc::clone(&self.inner.shared), armed: true };
        let now = run.interrupts().now().clone();
        let running = loaded::run(self, loaded, run);
        tokio::pin!(running);
        let result = tokio::select! {
            result = &mut running => result,
            () = now.cancelled() => {
                // Lua is told to end at once; what waits for an effect waits until that has ended in good order.
                self.inner.shared.limits.order_end(limits::Limits::cancelled());
                running.await
            }
        };
        left.armed = false;
        result
    }

    /// Ends the script. First its effects are asked to end; after `grace` the calls that wait fail; after another
    /// `grace` all Lua fails at its next instructions; after a third one the VM is given up.
    ///
    /// # Errors
    /// `Stuck` when Lua did not come back. The thread is left behind then; it cannot reach anything any more.
    pub async fn cancel(&self, grace: Duration) -> Result<(), ScriptError> {
        let limits = &self.inner.shared.limits;
        if let Phase::Running(run) | Phase::Asking { run, .. } = self.inner.shared.phase() {
            run.interrupts().ask(Request {
                urgency: Urgency::Now,
                reason: Reason::Interrupted,
                by: "the host".into(),
                signal: None,
            });
            if self.idle_within(grace).await {
                return Ok(());
            }
        }
        limits.cancel.cancel();
        if self.idle_within(grace).await {
            return Ok(());
        }
        limits.order_end(limits::Limits::cancelled());
        if self.idle_within(grace).await { Ok(()) } else { Err(limits::stuck()) }
    }

    async fn idle_within(&self, grace: Duration) -> bool {
        let limits = &self.inner.shared.limits;
        let idle = async {
            while limits.jobs.load(Ordering::Acquire) > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(grace, idle).await.is_ok()
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    /// Has a piece of work done in the VM and waits for it, with an eye on the clock.
    pub(super) async fn ask<T, W, F>(&self, work: W) -> Result<T, ScriptError>
    where
        T: Send + 'static,
        W: FnOnce(Lua) -> F + Send + 'static,
        F: Future<Output = Result<T, ScriptError>> + 'static,
    {
        let (reply, mut answer) = oneshot::channel();
        self.send(Box::new(move |lua| {
            Box::pin(async move {
                let _ = reply.send(work(lua).await);
            })
        }))?;
        let mut look = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                result = &mut answer => return result.unwrap_or_else(|_| Err(gone())),
                _ = look.tick() => self.inner.shared.limits.watch()?,
            }
        }
    }

    fn send(&self, job: Job) -> Result<(), ScriptError> {
        self.inner.shared.limits.begin();
        self.inner.shared.limits.jobs.fetch_add(1, Ordering::AcqRel);
        self.inner.jobs.send(job).map_err(|_| gone())
    }
}

fn gone() -> ScriptError {
    ScriptError::new(ErrorKind::Runtime, "the VM of the script failed inside the host, which is a bug")
}

fn run_thread(
    shared: &Arc<Shared>,
    mut inbox: mpsc::UnboundedReceiver<Job>,
    ready: &std::sync::mpsc::Sender<Result<(), ScriptError>>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = ready.send(Err(ScriptError::new(ErrorKind::Runtime, format!("no event loop: {error}"))));
            return;
        }
    };
    let lua = match sandbox::build(shared) {
        Ok(lua) => lua,
        Err(error) => {
            let _ = ready.send(Err(from_mlua(&error)));
            return;
        }
    };
    if ready.send(Ok(())).is_err() {
        return;
    }
    LocalSet::new().block_on(&runtime, async {
        while let Some(job) = inbox.recv().await {
            tokio::task::spawn_local(Watched { job: job(lua.clone()), shared: Arc::clone(shared) });
        }
    });
}

/// A job whose time inside Lua is on the watchdog's clock.
struct Watched {
    job: JobFuture,
    shared: Arc<Shared>,
}

impl Future for Watched {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.shared.limits.enter();
        let polled = self.job.as_mut().poll(context);
        self.shared.limits.leave();
        polled
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.shared.limits.jobs.fetch_sub(1, Ordering::AcqRel);
    }
}

async fn load(lua: &Lua, shared: &Arc<Shared>, source: &Source) -> Result<Loaded, ScriptError> {
    {
        let mut reader = shared.reader();
        if reader.is_some() {
            return Err(ScriptError::new(ErrorKind::Runtime, "a VM loads one script: start another VM"));
        }
        *reader = Some(Reader::new(source));
    }
    shared.set_phase(Phase::Loading);
    let result = load_text(lua, shared, source).await;
    shared.set_phase(Phase::Idle);
    result
}

async fn load_text(lua: &Lua, shared: &Arc<Shared>, source: &Source) -> Result<Loaded, ScriptError> {
    let function = chunk::compile(lua, shared, &source.name, &source.text)?;
    let mut returned: MultiValue = call(lua, shared, &function, ()).await?;
    let value = returned.pop_front().unwrap_or(mlua::Value::Nil);
    loaded::from_returned(shared, source, value)
}

/// Carries out one effect: on the host's runtime, ended when the script is, with a new instruction budget after it.
pub(super) async fn effect<T, F>(lua: &Lua, work: F) -> mlua::Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T, crate::engine::EngineError>> + Send + 'static,
{
    let shared = Shared::of(lua);
    // Every effect waits once, however fast it is: where Lua cannot wait, that is an error each time or never.
    tokio::task::yield_now().await;
    let mut task = Aborted(match &shared.runtime() {
        Some(runtime) => runtime.spawn(until_cancelled(shared.limits.cancel.clone(), work)),
        None => return Err(mlua::Error::runtime("no run is on")),
    });
    let result = tokio::select! {
        biased;
        () = shared.limits.cancel.cancelled() => {
            shared.limits.order_end(limits::Limits::cancelled());
            return Err(limits::Limits::cancelled().into_lua());
        }
        result = &mut task.0 => result,
    };
    shared.limits.refill();
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) if error.is_cancelled() => {
            shared.limits.order_end(limits::Limits::cancelled());
            Err(limits::Limits::cancelled().into_lua())
        }
        Ok(Err(error)) => {
            let mut raised = Raised::new(ErrorKind::Runtime, None, error.to_string());
            raised.reason = Some(error.reason());
            Err(raised.into_lua())
        }
        Err(error) => {
            // A bug of ours or of the embedder is no error for the script to catch.
            let message = format!("an effect failed inside the host, which is a bug: {error}");
            shared.limits.order_end(Raised::new(ErrorKind::Runtime, None, message.clone()));
            Err(Raised::new(ErrorKind::Runtime, None, message).into_lua())
        }
    }
}

/// The effect itself ends with the script, also where nobody polls who waits for it.
async fn until_cancelled<T>(
    cancel: CancellationToken,
    work: impl Future<Output = Result<T, crate::engine::EngineError>>,
) -> Result<T, crate::engine::EngineError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(crate::engine::EngineError::Cancelled),
        result = work => result,
    }
}

/// A task that does not outlive whoever waits for it.
struct Aborted<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for Aborted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
