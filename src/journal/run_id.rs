//! Names of runs: sortable by time, and never the same twice.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rand::TryRng;
use rand::rngs::SysRng;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::clock::Clock;
use super::error::JournalError;

/// Name of a run: `20261130-201026-7k` followed by eight random characters.
///
/// Date and time are UTC. The first two characters of the last part count 1/1024 seconds, so that names sort by start
/// also within one second; the other eight are 40 bits of the system's randomness, so that they differ also when two
/// machines start a run in the same moment. The letters are those of base 32 without `i`, `l`, `o` and `u`.
///
/// There is no empty name: nothing that lost its name can be taken for a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(String);

/// A text that names no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of a run: they look like 20261130-201026-7kq2m9x4za")]
pub struct BadRunId(pub String);

const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Letters of the last part: two for the fraction of the second, eight at random.
const TAIL: usize = 10;

impl RunId {
    /// A new name for a run that starts now.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn fresh(clock: &dyn Clock) -> Result<RunId, JournalError> {
        let mut random = [0; 5];
        SysRng.try_fill_bytes(&mut random).map_err(|error| JournalError::NoRandomness { why: error.to_string() })?;
        Ok(RunId::from_parts(clock.wall(), random))
    }

    /// The name that belongs to a time and 40 random bits.
    pub fn from_parts(at: Timestamp, random: [u8; 5]) -> RunId {
        let nanos = at.subsec_nanosecond().max(0) as u64;
        let fraction = nanos * 1024 / 1_000_000_000;
        let bits = random.iter().fold(fraction, |bits, byte| bits << 8 | u64::from(*byte));
        let tail: String =
            (0..TAIL).rev().map(|at| LETTERS[(bits >> (5 * at)) as usize & 31]).map(char::from).collect();
        RunId(format!("{}-{tail}", at.strftime("%Y%m%d-%H%M%S")))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// When the run started, to the second.
    pub fn started(&self) -> Timestamp {
        // Checked when the name was made, so the fallback is never seen.
        parse_time(&self.0).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// The last part, which is enough to name a run to a person.
    pub fn short(&self) -> &str {
        &self.0[self.0.len() - TAIL..]
    }
}

fn parse_time(text: &str) -> Option<Timestamp> {
    let time = DateTime::strptime("%Y%m%d-%H%M%S", text.get(..15)?).ok()?;
    TimeZone::UTC.to_timestamp(time).ok()
}

impl FromStr for RunId {
    type Err = BadRunId;

    fn from_str(text: &str) -> Result<RunId, BadRunId> {
        let right = text.len() == 16 + TAIL
            && text.is_ascii()
            && text.as_bytes()[15] == b'-'
            && text.bytes().take(15).all(|byte| byte.is_ascii_digit() || byte == b'-')
            && text.bytes().skip(16).all(|byte| LETTERS.contains(&byte))
            && parse_time(text).is_some();
        if right { Ok(RunId(text.to_owned())) } else { Err(BadRunId(text.to_owned())) }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RunId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;

    struct Fixed(Timestamp);

    impl Clock for Fixed {
        fn wall(&self) -> Timestamp {
            self.0
        }

        fn awake(&self) -> Duration {
            Duration::ZERO
        }
    }

    #[test]
    fn ten_thousand_runs_that_start_in_the_same_moment_have_different_names() {
        let clock = Fixed("2026-11-30T20:10:26.5Z".parse().unwrap());
        let names: BTreeSet<RunId> = (0..10_000).map(|_| RunId::fresh(&clock).unwrap()).collect();
        assert_eq!(names.len(), 10_000);
    }

    #[test]
    fn names_sort_by_start_also_within_a_second() {
        let early = RunId::from_parts("2026-11-30T20:10:26.100Z".parse().unwrap(), [255; 5]);
        let late = RunId::from_parts("2026-11-30T20:10:26.200Z".parse().unwrap(), [0; 5]);
        let next = RunId::from_parts("2026-11-30T20:10:27Z".parse().unwrap(), [0; 5]);
        assert!(early < late && late < next, "{early} {late} {next}");
        assert_eq!(early.as_str(), "20261130-201026-36zzzzzzzz");
        assert_eq!(early.started().to_string(), "2026-11-30T20:10:26Z");
        assert_eq!(early.short(), "36zzzzzzzz");
    }

    #[test]
    fn names_survive_text_and_json() {
        let id = RunId::from_parts("2026-11-30T20:10:26.9Z".parse().unwrap(), [7, 200, 3, 90, 41]);
        assert_eq!(id.to_string().parse::<RunId>(), Ok(id.clone()));
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<RunId>(&json).unwrap(), id);
    }

    #[test]
    fn what_is_not_a_name_names_nobody() {
        for text in [
            "",
            " ",
            "..",
            "20261130-201026-",
            "20261130-201026-36ZZZZZZZZ",
            "20261130-201026-36zzzzzzzi",
            "20261330-201026-36zzzzzzzz",
            "20261130/201026-36zzzzzzzz",
            "20261130-201026-36zzzzzzzz/",
            "2026113ä-20102-36zzzzzzzz",
        ] {
            assert_eq!(text.parse::<RunId>(), Err(BadRunId(text.into())), "{text}");
        }
        assert!(serde_json::from_str::<RunId>("\"\"").is_err());
    }
}
