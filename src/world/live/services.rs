//! Services in the live world: started when a sensor first needs them, ended with the pass.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use regex::Regex;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::LiveWorld;
use crate::mechanism::process::environment::{Audience, scrub};
use crate::mechanism::process::{Command, Ending, Finished, Observer, ProcessError, Stream, Wish};
use crate::mechanism::sensor::{fingerprint, is_served};
use crate::policy::units::show_duration;
use crate::policy::{CommandSpec, ReadingState, Ready, ServiceSpec, cap_feedback};
use crate::world::WorldError;

/// The end of a service's output that is told when it does not come up.
const TOLD: usize = 4 << 10;
/// The longest log of a service.
const LOG_CAP: u64 = 16 << 20;
/// A service runs for a pass; this is only so that nothing runs for ever.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How often it is looked at whether a service is ready.
const LOOK: Duration = Duration::from_millis(50);
/// One look may take this.
const ONE_LOOK: Duration = Duration::from_secs(2);

/// A service that was started.
pub(super) struct Running {
    spec: ServiceSpec,
    port: u16,
    task: JoinHandle<Result<Finished, ProcessError>>,
    ear: Ear,
    /// Ends it, also when nobody is left to do it.
    stop: CancellationToken,
    _stopped_when_dropped: DropGuard,
}

/// The ports of the services that a sensor needs.
pub(super) struct Ports(Vec<(String, u16)>);

impl Ports {
    /// The command with `{port}` and the variable `PORT` of its first service, and `PORT_<ID>` for each.
    pub(super) fn fill(&self, command: &CommandSpec) -> CommandSpec {
        let mut command = command.clone();
        if let Some((_, port)) = self.0.first() {
            command.line = command.line.with_port(*port);
            command.env.entry("PORT".into()).or_insert_with(|| port.to_string());
        }
        for (id, port) in &self.0 {
            let name: String =
                id.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
            command.env.insert(format!("PORT_{name}"), port.to_string());
        }
        command
    }

    /// The text with `{port}` filled in.
    pub(super) fn fill_text(&self, text: &str) -> String {
        match self.0.first() {
            Some((_, port)) => text.replace("{port}", &port.to_string()),
            None => text.to_owned(),
        }
    }
}

/// Hears a service: the end of its output, and whether the line came that says that it is ready.
#[derive(Clone)]
struct Ear(Arc<Mutex<Heard>>);

struct Heard {
    pattern: Option<Regex>,
    line: Vec<u8>,
    tail: Vec<u8>,
    ready: bool,
}

impl Observer for Ear {
    fn output(&mut self, _stream: Stream, bytes: &[u8]) -> Wish {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = &mut *heard;
        heard.tail.extend_from_slice(bytes);
        if heard.tail.len() > 2 * TOLD {
            let over = heard.tail.len() - TOLD;
            heard.tail.drain(..over);
        }
        if let (Some(pattern), false) = (&heard.pattern, heard.ready) {
            for &byte in bytes {
                if byte != b'\n' && heard.line.len() < TOLD {
                    heard.line.push(byte);
                }
                if byte == b'\n' {
                    let line = anstream::adapter::strip_str(&String::from_utf8_lossy(&heard.line)).to_string();
                    heard.ready |= pattern.is_match(line.trim_end());
                    heard.line.clear();
                }
            }
        }
        Wish::GoOn
    }
}

impl Ear {
    fn is_ready(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).ready
    }

    fn tail(&self) -> String {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = anstream::adapter::strip_str(&String::from_utf8_lossy(&heard.tail)).to_string();
        cap_feedback(text.trim(), TOLD, None)
    }
}

impl LiveWorld {
    /// Starts what is not up yet and waits until it is ready. The inner error says why a service did not come up.
    pub(super) async fn start_services(
        &self,
        services: &[ServiceSpec],
        cancel: &CancellationToken,
    ) -> Result<Result<Ports, String>, WorldError> {
        let mut ports = Vec::new();
        if services.is_empty() {
            return Ok(Ok(Ports(ports)));
        }
        // Held while they come up: two sensors that need the same one get the same one.
        let mut running = self.services.lock().await;
        for spec in services {
            if let Some(known) = running.get(&spec.id)
                && !known.task.is_finished()
                && known.spec == *spec
            {
                ports.push((spec.id.clone(), known.port));
                continue;
            }
            if let Some(old) = running.remove(&spec.id) {
                self.end_service(old).await;
            }
            let service = match self.launch_service(spec) {
                Ok(service) => service,
                Err(why) => return Ok(Err(format!("service `{}` cannot be started: {why}", spec.id))),
            };
            match self.wait_until_ready(&service, cancel).await {
                Ok(()) => {
                    ports.push((spec.id.clone(), service.port));
                    running.insert(spec.id.clone(), service);
                }
                Err(why) => {
                    let tail = service.ear.tail();
                    self.end_service(service).await;
                    if cancel.is_cancelled() {
                        return Err(WorldError::Cancelled);
                    }
                    let tail =
                        if tail.is_empty() { "it printed nothing".into() } else { format!("its log ends:\n{tail}") };
                    return Ok(Err(format!("service `{}` is not ready: {why}; {tail}", spec.id)));
                }
            }
        }
        Ok(Ok(Ports(ports)))
    }

    fn launch_service(&self, spec: &ServiceSpec) -> Result<Running, String> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let port = free.map_err(|error| format!("there is no free port: {error}"))?.port();
        let command = Ports(vec![(spec.id.clone(), port)]).fill(&spec.run);
        let pattern = match &spec.ready {
            Ready::Line(pattern) => Some(Regex::new(pattern).map_err(|error| error.to_string())?),
            _ => None,
        };
        let env = scrub(&self.ambient, Audience::Command, &self.rules(&command), &self.run).vars;
        let argv = command.line.argv();
        let (program, args) = argv.split_first().ok_or("a blank command")?;
        let name = &fingerprint(ReadingState::Passed, &spec.id)[..12];
        let mask = self.log_mask();
        let process = Command::new(program, self.folder(&command).map_err(|error| error.to_string())?, env)
            .args(args)
            .wall(LONGEST)
            .keep_output(0, 0)
            .log(self.scratch.join(format!("service-{name}.log")), LOG_CAP)
            .log_filter(move |stream| mask(stream))
            .private_tmp(self.scratch.join(format!("tmp-{}", self.launch())));
        let ear = Ear(Arc::new(Mutex::new(Heard { pattern, line: Vec::new(), tail: Vec::new(), ready: false })));
        let stop = CancellationToken::new();
        let (processes, token, observer) = (self.processes.clone(), stop.clone(), ear.clone());
        let task = self.runtime.spawn(async move { processes.run(process, token, Some(Box::new(observer))).await });
        let _stopped_when_dropped = stop.clone().drop_guard();
        Ok(Running { spec: spec.clone(), port, task, ear, stop, _stopped_when_dropped })
    }

    async fn wait_until_ready(&self, service: &Running, cancel: &CancellationToken) -> Result<(), String> {
        let deadline = tokio::time::Instant::now() + service.spec.ready_within;
        loop {
            if service.task.is_finished() {
                return Err("it ended before it was ready".into());
            }
            let port = service.port;
            let ready = match &service.spec.ready {
                Ready::Line(_) => service.ear.is_ready(),
                Ready::Port => {
                    let address = (Ipv4Addr::LOCALHOST, port).into();
                    let look = move || Ok(TcpStream::connect_timeout(&address, ONE_LOOK).is_ok());
                    self.blocking(look).await.unwrap_or(false)
                }
                Ready::Http(path) => {
                    let path = path.clone();
                    self.blocking(move || Ok(is_served(port, &path, ONE_LOOK))).await.unwrap_or(false)
                }
            };
            // Whoever answers on the port after the service's end is somebody else.
            if ready && !service.task.is_finished() {
                return Ok(());
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(format!("not within {}", show_duration(service.spec.ready_within)));
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = cancel.cancelled() => return Err("it was stopped".into()),
            }
        }
    }

    /// Ends all services; they are gone when it returns.
    pub(super) async fn end_services(&self) {
        let running = std::mem::take(&mut *self.services.lock().await);
        for service in running.into_values() {
            self.end_service(service).await;
        }
    }

    async fn end_service(&self, service: Running) {
        if let Some(stop) = &service.spec.stop
            && !service.task.is_finished()
        {
            let command = Ports(vec![(service.spec.id.clone(), service.port)]).fill(stop);
            let asked = self.run_command(&command, &CancellationToken::new()).await;
            if let Err(error) = asked {
                tracing::warn!(target: "lunation::service", "{}: its stop command failed: {error}", service.spec.id);
            }
        }
        service.stop.cancel();
        match service.task.await {
            Ok(Ok(finished)) if !finished.confirmed_gone => {
                tracing::warn!(target: "lunation::service", "{}: not certain to be gone", service.spec.id);
            }
            Ok(Ok(Finished { ending: Ending::WardenLost, .. })) => {
                tracing::warn!(target: "lunation::service", "{}: its warden was killed", service.spec.id);
            }
            Ok(Err(error)) => tracing::warn!(target: "lunation::service", "{}: {error}", service.spec.id),
            Ok(Ok(_)) | Err(_) => {}
        }
    }
}
