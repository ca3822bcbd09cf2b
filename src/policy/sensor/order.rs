//! In what order sensors are read.

use super::SensorSpec;

/// Sensors that cannot be put into an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// `after` names nobody.
    #[error("`{sensor}` comes after `{after}`, and there is no sensor of that name; there are: {known}")]
    Unknown {
        /// Its place in the list, from 0.
        at: usize,
        /// The sensor.
        sensor: String,
        /// The name that nobody has.
        after: String,
        /// Those that exist.
        known: String,
    },
    /// Each waits for the other.
    #[error("these sensors come after each other, so none can be first: {sensors}")]
    Circle {
        /// The place of the first of them, from 0.
        at: usize,
        /// Their names.
        sensors: String,
    },
}

impl OrderError {
    /// The place of the sensor that is wrong, from 0.
    pub fn at(&self) -> usize {
        match self {
            OrderError::Unknown { at, .. } | OrderError::Circle { at, .. } => *at,
        }
    }
}

/// Waves of places in the list: those of one wave may be read at a time, in the order of the list; a sensor that writes
/// into the tree is a wave of its own.
///
/// # Errors
/// When `after` names nobody, or itself in a circle.
pub fn sensor_waves(sensors: &[SensorSpec]) -> Result<Vec<Vec<usize>>, OrderError> {
    for (at, sensor) in sensors.iter().enumerate() {
        if let Some(after) = sensor.after.iter().find(|after| !sensors.iter().any(|other| other.id == **after)) {
            let known = sensors.iter().map(|other| other.id.as_str()).collect::<Vec<_>>().join(", ");
            return Err(OrderError::Unknown { at, sensor: sensor.id.clone(), after: after.clone(), known });
        }
    }
    let mut left: Vec<usize> = (0..sensors.len()).collect();
    let mut waves = Vec::new();
    while !left.is_empty() {
        let waits = |at: &usize| sensors[*at].after.iter().any(|after| left.iter().any(|l| sensors[*l].id == *after));
        let ready: Vec<usize> = left.iter().copied().filter(|at| !waits(at)).collect();
        if ready.is_empty() {
            let names = left.iter().map(|at| sensors[*at].id.as_str()).collect::<Vec<_>>().join(", ");
            return Err(OrderError::Circle { at: left[0], sensors: names });
        }
        left.retain(|at| !ready.contains(at));
        let (alone, together): (Vec<usize>, Vec<usize>) = ready.into_iter().partition(|at| sensors[*at].scratch);
        if !together.is_empty() {
            waves.push(together);
        }
        waves.extend(alone.into_iter().map(|at| vec![at]));
    }
    Ok(waves)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sensor(id: &str, after: &[&str], scratch: bool) -> SensorSpec {
        let after = after.iter().map(|name| (*name).to_owned()).collect();
        SensorSpec { after, scratch, ..SensorSpec::shell(id) }
    }

    #[test]
    fn what_comes_after_is_read_after() {
        let sensors = [
            sensor("test", &["build"], false),
            sensor("build", &[], false),
            sensor("lint", &[], false),
            sensor("e2e", &["test", "lint"], false),
        ];
        assert_eq!(sensor_waves(&sensors).unwrap(), [vec![1, 2], vec![0], vec![3]]);
        assert!(sensor_waves(&[]).unwrap().is_empty());
    }

    #[test]
    fn what_writes_into_the_tree_is_read_alone() {
        let sensors = [sensor("a", &[], false), sensor("b", &[], true), sensor("c", &[], false)];
        assert_eq!(sensor_waves(&sensors).unwrap(), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn circles_and_unknown_names_are_told() {
        let circle = [sensor("x", &[], false), sensor("a", &["b"], false), sensor("b", &["a"], false)];
        let error = sensor_waves(&circle).unwrap_err();
        assert_eq!((error.at(), error.to_string().contains("a, b")), (1, true));
        let error = sensor_waves(&[sensor("a", &["bild"], false)]).unwrap_err();
        assert!(error.to_string().contains("no sensor of that name; there are: a"), "{error}");
    }
}
