//! One pass over the sensors: what is known already, what is read now, what has to be confirmed.
//!
//! Owns patience with broken sensors, the confirmation of results that matter, and the memory of results by tree.
//! Guarantees that a result which does not come again on the same tree neither rolls work back nor completes a loop, and
//! that sensors leave tree and git folder as they found them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::{Session, shorten};
use crate::engine::error::EngineError;
use crate::journal::Event;
use crate::policy::{Attribution, Reading, ReadingState, Sense, SensorSpec};
use crate::world::{Point, World, WorldError};

/// How often a broken sensor is read again before it is believed to be broken.
const BROKEN_RETRIES: u32 = 2;
/// Pause before a broken sensor is read again.
const BROKEN_PAUSE: Duration = Duration::from_millis(500);
/// How many results are remembered.
const REMEMBERED: usize = 256;

/// Results by tree and sensor.
#[derive(Debug, Default)]
pub(super) struct Memory {
    results: VecDeque<(String, SensorSpec, Reading)>,
}

impl Memory {
    fn find(&self, tree: &str, sensor: &SensorSpec) -> Option<Reading> {
        let known = self.results.iter().find(|(of, spec, _)| of == tree && spec == sensor && sensor.cache);
        known.map(|(.., reading)| {
            let mut reading = reading.clone();
            reading.notes = vec!["known from the same tree".into()];
            reading.duration_s = 0.0;
            reading
        })
    }

    fn keep(&mut self, tree: &str, sensor: &SensorSpec, reading: &Reading) {
        if reading.flaky || reading.state == ReadingState::Broken || self.find(tree, sensor).is_some() {
            return;
        }
        if self.results.len() == REMEMBERED {
            self.results.pop_front();
        }
        self.results.push_back((tree.to_owned(), sensor.clone(), reading.clone()));
    }
}

impl Session {
    /// Reads all sensors on a tree; what they did to it and to the git folder is undone.
    pub(super) async fn pass(
        &mut self,
        sensors: &[SensorSpec],
        tree: &str,
        since: &Point,
    ) -> Result<Sense, EngineError> {
        let known: Vec<Option<Reading>> = sensors.iter().map(|sensor| self.memory.find(tree, sensor)).collect();
        let mut readings = self.read_unknown(sensors, &known).await?;
        self.clean_up(tree, since, &mut readings).await?;
        let doubtful = self.doubtful(sensors, &known, &readings);
        for at in doubtful {
            self.confirm(&sensors[at], &mut readings[at]).await?;
            self.clean_up(tree, since, &mut readings[at..=at]).await?;
        }
        for (sensor, reading) in sensors.iter().zip(&mut readings) {
            reading.attribution =
                self.governor.baseline_of(&sensor.id).and_then(|before| Attribution::of(before, reading));
            self.memory.keep(tree, sensor, reading);
        }
        Ok(Sense::combine(tree.to_owned(), readings, self.sensing.strategy, self.sensing.feedback_bytes))
    }

    async fn read_unknown(
        &mut self,
        sensors: &[SensorSpec],
        known: &[Option<Reading>],
    ) -> Result<Vec<Reading>, EngineError> {
        let (world, now) = (&self.world, self.interrupts.now());
        // Made before the first wait: a closure over borrowed sensors that lives across one is not `Send`.
        let reads: Vec<_> = sensors
            .iter()
            .zip(known)
            .map(|(sensor, known)| read_patiently(world, sensor, known.clone(), now))
            .collect();
        let results: Vec<Result<Reading, WorldError>> =
            futures_util::stream::iter(reads).buffered(self.sensing.jobs.max(1)).collect().await;
        let readings = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        self.governor.add_sensor_time(readings.iter().map(|reading| reading.duration_s).sum());
        Ok(readings)
    }

    /// Results that would roll work back, or complete the loop, and that were read just once.
    fn doubtful(&self, sensors: &[SensorSpec], known: &[Option<Reading>], readings: &[Reading]) -> Vec<usize> {
        let Some(before) = self.governor.last_sense().or(self.governor.best_sense()) else { return Vec::new() };
        let completes = self.sensing.strategy.judge(readings) == Some(true) && !before.ok;
        let matters = |at: &usize| {
            let now = &readings[*at];
            let Some(old) = before.readings.iter().find(|old| old.id == now.id) else { return false };
            let worse = now.state == ReadingState::Failed && now.failing > old.failing;
            let turned_green = completes && now.ok() && !old.ok();
            sensors[*at].confirm > 1 && known[*at].is_none() && (worse || turned_green)
        };
        (0..sensors.len()).filter(matters).collect()
    }

    /// Reads a sensor again on the same tree. When it does not say the same, it says nothing.
    async fn confirm(&mut self, sensor: &SensorSpec, reading: &mut Reading) -> Result<(), EngineError> {
        for attempt in 1..sensor.confirm {
            if self.interrupts.now().is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            let again = self.world.read(sensor, attempt, self.interrupts.now()).await?;
            self.governor.add_sensor_time(again.duration_s);
            if (again.state, again.failing) == (reading.state, reading.failing) {
                continue;
            }
            let text = format!("{}, then {} on the same tree", words(reading), words(&again));
            self.record(&Event::Noted { level: "warn".into(), text: format!("{} is flaky: {text}", sensor.id) })?;
            // The last number that could be relied on stands, so that it weighs nothing in a comparison.
            let reliable = self.governor.last_sense().or(self.governor.best_sense());
            let reliable = reliable.and_then(|sense| sense.readings.iter().find(|old| old.id == sensor.id));
            reading.failing = reliable.and_then(|old| old.failing);
            reading.state = ReadingState::Failed;
            reading.flaky = true;
            reading.summary = format!("flaky: {text}");
            reading.feedback = format!("{} is flaky, {text}: nothing to fix is known.", sensor.id);
            reading.fingerprint = format!("flaky {}", sensor.id);
            return Ok(());
        }
        Ok(())
    }

    /// Sensors look; what they wrote into the tree is undone and noted.
    async fn clean_up(&self, tree: &str, since: &Point, readings: &mut [Reading]) -> Result<(), EngineError> {
        let undone = self.world.guard(since).await?;
        if !undone.is_empty() {
            let text = format!("the sensors changed the git folder, which was undone: {}", shorten(&undone));
            self.record(&Event::Noted { level: "warn".into(), text })?;
        }
        let undone = self.world.undo(tree).await?;
        if !undone.is_empty() {
            let note = format!("the sensors changed the tree, which was undone: {}", shorten(&undone));
            self.record(&Event::Noted { level: "warn".into(), text: note.clone() })?;
            for reading in readings {
                reading.notes.push(note.clone());
            }
        }
        Ok(())
    }
}

fn words(reading: &Reading) -> String {
    match (reading.state, reading.failing) {
        (ReadingState::Passed, _) => "passed".into(),
        (ReadingState::Broken, _) => "no verdict".into(),
        (ReadingState::Failed, Some(failing)) => format!("{failing} failing"),
        (ReadingState::Failed, None) => "failed".into(),
    }
}

/// Reads a sensor that is not known yet; a broken one again after a pause, a few times.
async fn read_patiently(
    world: &Arc<dyn World>,
    sensor: &SensorSpec,
    known: Option<Reading>,
    now: &CancellationToken,
) -> Result<Reading, WorldError> {
    if let Some(known) = known {
        return Ok(known);
    }
    let mut reading = world.read(sensor, 0, now).await?;
    for attempt in 1..=BROKEN_RETRIES {
        if reading.state != ReadingState::Broken || now.is_cancelled() {
            break;
        }
        world.wait(BROKEN_PAUSE, now).await;
        reading = world.read(sensor, attempt, now).await?;
    }
    Ok(reading)
}
