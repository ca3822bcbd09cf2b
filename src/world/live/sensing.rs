//! Sensors in the live world, by what they are.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::LiveWorld;
use super::services::Ports;
use crate::mechanism::process::Ending;
use crate::mechanism::process::environment::EnvironmentRules;
use crate::mechanism::sensor::{self, Parsed, SensorRequest};
use crate::policy::{
    CommandSpec, Hint, MetricSpec, Parse, PictureSpec, Reading, ReadingState, ScriptFunction, SensorSource, SensorSpec,
};
use crate::world::{ScriptFunctions, WorldError};

/// The longest log of a sensor before packing.
const LOG_CAP: u64 = 64 << 20;

impl LiveWorld {
    pub(super) fn check_sensor_now(&self, sensor: &SensorSpec) -> Result<(), WorldError> {
        if sensor.offline {
            return Err(WorldError::Sensor(format!(
                "sensor `{}` is to have no network, and the tier of this machine ({}) cannot take it away: leave out \
                 `network = false`, or run where it can",
                sensor.id,
                self.processes.tier().tier.name()
            )));
        }
        match &sensor.source {
            SensorSource::Function(name) => self.sensor_function(name).map(drop),
            SensorSource::Judge(judge) => self.check_agent_now(&judge.agent),
            _ => Ok(()),
        }
    }

    pub(super) async fn read_sensor(
        &self,
        sensor: &SensorSpec,
        cancel: &CancellationToken,
    ) -> Result<Reading, WorldError> {
        self.check_sensor_now(sensor)?;
        let ports = match self.start_services(&sensor.services, cancel).await? {
            Ok(ports) => ports,
            Err(why) => return Ok(self.masked(broken(sensor, &why))),
        };
        let reading = match &sensor.source {
            SensorSource::Command(command) => self.read_command(sensor, &ports.fill(command), cancel).await?,
            SensorSource::Function(name) => self.read_function(sensor, name, cancel).await?,
            SensorSource::Check(function) => self.read_check(sensor, function).await?,
            SensorSource::Judge(judge) => self.read_judge(sensor, judge, cancel).await?,
            SensorSource::Metric(metric) => self.read_metric(sensor, metric, &ports, cancel).await?,
            SensorSource::Picture(picture) => self.read_picture(sensor, picture, &ports, cancel).await?,
        };
        if cancel.is_cancelled() {
            return Err(WorldError::Cancelled);
        }
        Ok(self.masked(self.with_hint(sensor, reading).await))
    }

    fn masked(&self, mut reading: Reading) -> Reading {
        reading.feedback = self.journal.mask(&reading.feedback);
        reading.summary = self.journal.mask(&reading.summary);
        reading.items.iter_mut().for_each(|item| *item = self.journal.mask(item));
        reading.notes.iter_mut().for_each(|note| *note = self.journal.mask(note));
        reading
    }

    fn script_functions(&self) -> Result<Arc<dyn ScriptFunctions>, String> {
        let functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        functions.as_ref().and_then(std::sync::Weak::upgrade).ok_or_else(|| "its script is not running any more".into())
    }

    async fn with_hint(&self, sensor: &SensorSpec, mut reading: Reading) -> Reading {
        if reading.state != ReadingState::Failed {
            return reading;
        }
        match &sensor.hint {
            None => {}
            Some(Hint::Text(text)) => sensor::add_hint(&mut reading, text),
            Some(Hint::Function(function)) => {
                let hint = match self.script_functions() {
                    Ok(functions) => functions.hint(function, &reading).await.map_err(|error| format!("{error:#}")),
                    Err(why) => Err(why),
                };
                match hint {
                    Ok(Some(hint)) => sensor::add_hint(&mut reading, &hint),
                    Ok(None) => {}
                    Err(why) => reading.notes.push(format!("its hint function failed: {why}")),
                }
            }
        }
        reading
    }

    fn request(&self, sensor: &SensorSpec, spec: &CommandSpec, log: PathBuf) -> Result<SensorRequest<'_>, WorldError> {
        let ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(SensorRequest {
            folder: self.folder(spec)?,
            root: self.root.clone(),
            tmp: self.scratch.join(format!("tmp-{}", self.launch())),
            run: self.run.clone(),
            ambient: &self.ambient,
            environment: EnvironmentRules::default(),
            log_file: log,
            log_name: None,
            log_cap: LOG_CAP,
            log_mask: Some(self.log_mask()),
            ran_before: ran.get(&sensor.id).copied(),
        })
    }

    /// One log for each sensor, kept until its next pass, so that the agent can look at what the feedback names.
    fn file_of(&self, sensor: &SensorSpec, ending: &str) -> PathBuf {
        let name = &sensor::fingerprint(ReadingState::Passed, &sensor.id)[..12];
        self.scratch.join(format!("sensor-{name}.{ending}"))
    }

    async fn read_command(
        &self,
        sensor: &SensorSpec,
        spec: &CommandSpec,
        cancel: &CancellationToken,
    ) -> Result<Reading, WorldError> {
        let log = self.file_of(sensor, "log");
        let request = self.request(sensor, spec, log.clone())?;
        let observed = sensor::observe_command(&self.processes, sensor, spec, request, cancel.clone())
            .await
            .map_err(|error| WorldError::Process(error.into()))?;
        if cancel.is_cancelled() {
            return Err(WorldError::Cancelled);
        }
        let parsed = match (&sensor.counting.parse, observed.finished()) {
            (Parse::Function(function), Some(finished)) => match finished.ending {
                Ending::Exited(code) => {
                    let output = self.result(finished, code, false);
                    match self.parse(function, &output).await {
                        Ok(parsed) => Some(parsed),
                        Err(why) => return Ok(broken(sensor, &format!("its parser failed: {why}"))),
                    }
                }
                _ => None,
            },
            _ => None,
        };
        let (of, with) = (sensor.clone(), spec.clone());
        // Report files are read from disk.
        let mut reading = self.blocking(move || Ok(observed.read(&of, &with, parsed))).await?;
        if let Some(total) = reading.total {
            let mut ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
            let most = ran.entry(sensor.id.clone()).or_default();
            *most = (*most).max(total);
        }
        reading.output = self.keep_log(log, false).await?;
        Ok(reading)
    }

    async fn parse(&self, function: &ScriptFunction, output: &crate::world::CommandResult) -> Result<Parsed, String> {
        let functions = self.script_functions()?;
        functions.parse(function, output).await.map_err(|error| format!("{error:#}"))
    }

    async fn read_check(&self, sensor: &SensorSpec, function: &ScriptFunction) -> Result<Reading, WorldError> {
        let started = self.clock.awake();
        let answer = match self.script_functions() {
            Ok(functions) => functions.check(function).await.map_err(|error| format!("{error:#}")),
            Err(why) => Err(why),
        };
        let duration_s = self.clock.awake().saturating_sub(started).as_secs_f64();
        let reading = match answer {
            Ok((holds, reason)) => {
                let state = if holds { ReadingState::Passed } else { ReadingState::Failed };
                let default = if holds { "passed" } else { "it does not hold" };
                let reason = reason.unwrap_or_else(|| default.to_owned());
                let summary: String = reason.lines().next().unwrap_or_default().chars().take(200).collect();
                let print = sensor::fingerprint(state, &reason);
                Reading { feedback: reason, ..Reading::new(&sensor.id, state, summary, print) }
            }
            Err(why) => broken(sensor, &why),
        };
        Ok(Reading { duration_s, ..reading })
    }

    async fn read_metric(
        &self,
        sensor: &SensorSpec,
        spec: &MetricSpec,
        ports: &Ports,
        cancel: &CancellationToken,
    ) -> Result<Reading, WorldError> {
        let token = match &spec.token_env {
            None => None,
            Some(name) => match self.ambient.iter().find(|(known, _)| known.to_str() == Some(name)) {
                Some((_, value)) => Some(value.to_string_lossy().into_owned()),
                None => return Ok(broken(sensor, &format!("its token is missing: there is no variable {name}"))),
            },
        };
        let mut spec = spec.clone();
        spec.url = ports.fill_text(&spec.url);
        let (sensor, token_of_run) = (sensor.clone(), cancel.clone());
        let reading = self.blocking(move || Ok(sensor::read_metric(&sensor, &spec, token.as_deref(), &token_of_run)));
        tokio::select! {
            reading = reading => reading,
            // A question that is under way is left alone; it ends by its own limit.
            () = cancel.cancelled() => Err(WorldError::Cancelled),
        }
    }

    async fn read_picture(
        &self,
        sensor: &SensorSpec,
        spec: &PictureSpec,
        ports: &Ports,
        cancel: &CancellationToken,
    ) -> Result<Reading, WorldError> {
        let started = self.clock.awake();
        let mut output = None;
        if let Some(take) = &spec.take {
            // What was there before is no picture of this tree.
            let old = self.root.join(&spec.actual);
            self.blocking(move || match std::fs::symlink_metadata(&old) {
                Ok(meta) if !meta.is_dir() => {
                    std::fs::remove_file(&old).map_err(|error| WorldError::Other(error.into()))
                }
                _ => Ok(()),
            })
            .await?;
            let taken = self.read_command(sensor, &ports.fill(take), cancel).await?;
            if taken.state != ReadingState::Passed {
                return Ok(Reading { summary: format!("no picture was taken: {}", taken.summary), ..taken });
            }
            output = taken.output;
        }
        let (root, with) = (self.root.clone(), spec.clone());
        let compared = self.blocking(move || Ok(sensor::compare_pictures(&root, &with))).await?;
        let duration_s = self.clock.awake().saturating_sub(started).as_secs_f64();
        let compared = match compared {
            Ok(compared) => compared,
            Err(why) => return Ok(Reading { duration_s, output, ..broken(sensor, &why) }),
        };
        let mut notes = Vec::new();
        let percent = |share: f64| format!("{:.3}%", share * 100.0);
        let (holds, told) = match (compared.sizes, &compared.region) {
            (Some((ours, theirs)), _) => (
                false,
                format!(
                    "{} is {}x{} pixels, and {} is {}x{}",
                    spec.actual, ours.0, ours.1, spec.golden, theirs.0, theirs.1
                ),
            ),
            (None, Some(region)) => (
                compared.share <= spec.threshold,
                format!(
                    "{} of the pixels of {} differ from {} (allowed: {}), in {}",
                    percent(compared.share),
                    spec.actual,
                    spec.golden,
                    percent(spec.threshold),
                    region.show()
                ),
            ),
            (None, None) => (true, "no pixel differs".to_owned()),
        };
        let mut feedback = format!("{told}\n");
        if let Some(png) = compared.difference {
            let file = self.file_of(sensor, "png");
            feedback.push_str(&format!("the difference, in red: {}\n", file.display()));
            let journal = self.journal.clone();
            let blob = self
                .blocking(move || {
                    std::fs::write(&file, &png).map_err(|error| WorldError::Journal(error.into()))?;
                    journal.blob(&png).map_err(super::journal_error)
                })
                .await?;
            notes.push(format!("the difference is blob {blob}"));
            output = Some(blob);
        }
        let state = if holds { ReadingState::Passed } else { ReadingState::Failed };
        let print = sensor::fingerprint(state, &told);
        let summary = if holds { format!("passed: {told}") } else { told };
        Ok(Reading { feedback, duration_s, output, notes, ..Reading::new(&sensor.id, state, summary, print) })
    }

    fn sensor_function(&self, name: &str) -> Result<&Arc<dyn crate::world::SensorFunction>, WorldError> {
        self.sensors.get(name).ok_or_else(|| WorldError::Unknown {
            kind: "sensor",
            name: name.to_owned(),
            known: self.sensors.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }

    async fn read_function(
        &self,
        sensor: &SensorSpec,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Reading, WorldError> {
        const LIMIT: Duration = Duration::from_secs(600);
        let function = Arc::clone(self.sensor_function(name)?);
        let context = self.context(cancel);
        let started = self.clock.awake();
        let mut task = self.runtime.spawn(async move { function.read(context).await });
        let ended = tokio::select! {
            ended = &mut task => Some(ended),
            () = tokio::time::sleep(LIMIT) => None,
            () = cancel.cancelled() => None,
        };
        task.abort();
        let duration_s = self.clock.awake().saturating_sub(started).as_secs_f64();
        let (state, failing, score, feedback) = match ended {
            _ if cancel.is_cancelled() => return Err(WorldError::Cancelled),
            Some(Ok(Ok(answer))) => {
                let state = if answer.failing == 0 { ReadingState::Passed } else { ReadingState::Failed };
                (state, Some(answer.failing), answer.score, answer.feedback)
            }
            Some(Ok(Err(error))) => (ReadingState::Broken, None, None, format!("{error:#}")),
            Some(Err(error)) => (ReadingState::Broken, None, None, format!("the function did not return: {error}")),
            None => (ReadingState::Broken, None, None, "its time ran out".to_owned()),
        };
        let first = feedback.lines().next().unwrap_or_default().to_owned();
        let summary = match (state, failing) {
            (ReadingState::Passed, _) => "passed".to_owned(),
            (ReadingState::Failed, Some(failing)) if first.is_empty() => format!("{failing} failing"),
            _ => first,
        };
        let print = sensor::fingerprint(state, &feedback);
        Ok(Reading { failing, score, feedback, duration_s, ..Reading::new(&sensor.id, state, summary, print) })
    }
}

/// A reading of a sensor that cannot say anything.
pub(super) fn broken(sensor: &SensorSpec, why: &str) -> Reading {
    let first = why.lines().next().unwrap_or_default();
    let print = sensor::fingerprint(ReadingState::Broken, why);
    Reading { feedback: why.to_owned(), ..Reading::new(&sensor.id, ReadingState::Broken, first, print) }
}
