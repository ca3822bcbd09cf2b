//! Durations and sizes as people write them: `"90s"`, `"20m"`, `"4KiB"`.

use std::time::Duration;

/// A duration or size that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Not a duration; holds the text as written.
    #[error("`{0}` is not a duration: write a number of seconds, or \"500ms\", \"90s\", \"20m\", \"2h\", \"1d\"")]
    Duration(String),
    /// Not a size; holds the text as written.
    #[error("`{0}` is not a size: write a number of bytes, or \"64B\", \"4KiB\", \"2MiB\", \"1GiB\"")]
    Bytes(String),
}

/// Reads a duration: a number with one unit of `ms`, `s`, `m`, `h`, `d`, or several such parts (`"1h30m"`).
/// A bare number is seconds. Spaces and long unit names are refused, so that a typo is never guessed at.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let wrong = || UnitError::Duration(text.to_owned());
    if let Ok(seconds) = text.parse::<f64>() {
        return seconds_to_duration(seconds).ok_or_else(wrong);
    }
    let mut rest = text;
    let mut total = 0.0_f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|&at| at > 0).ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        let after = &rest[digits..];
        let unit_len = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let factor = match &after[..unit_len] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(wrong()),
        };
        total += number * factor;
        rest = &after[unit_len..];
    }
    if text.is_empty() {
        return Err(wrong());
    }
    seconds_to_duration(total).ok_or_else(wrong)
}

/// Seconds as a duration; `None` when negative, not finite, or longer than ten years.
pub fn seconds_to_duration(seconds: f64) -> Option<Duration> {
    const TEN_YEARS: f64 = 10.0 * 366.0 * 86_400.0;
    (seconds.is_finite() && (0.0..=TEN_YEARS).contains(&seconds)).then(|| Duration::from_secs_f64(seconds))
}

/// Reads a size: a whole number with one unit of `B`, `KB`, `KiB`, `MB`, `MiB`, `GB`, `GiB`; a bare number is bytes.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let wrong = || UnitError::Bytes(text.to_owned());
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let factor = match &text[digits..] {
        "" | "B" => 1,
        "KB" => 1_000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(factor).ok_or_else(wrong)
}

/// A duration for people: `850ms`, `1.2s`, `3m05s`, `2h00m`.
pub fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{:.1}s", duration.as_secs_f64()),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Serde for durations as seconds, the unit of every journal and of every script.
pub mod seconds {
    use super::{Duration, seconds_to_duration};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes the duration as a number of seconds.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    /// Reads a number of seconds; refuses negative and endless ones.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let number = f64::deserialize(deserializer)?;
        seconds_to_duration(number).ok_or_else(|| D::Error::custom("not a number of seconds"))
    }
}

/// Serde for optional durations as seconds or null.
pub mod optional_seconds {
    use super::{Duration, seconds_to_duration};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes seconds, or null when there is none.
    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => serializer.serialize_some(&duration.as_secs_f64()),
            None => serializer.serialize_none(),
        }
    }

    /// Reads seconds or null.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Option::<f64>::deserialize(deserializer)?
            .map(|number| seconds_to_duration(number).ok_or_else(|| D::Error::custom("not a number of seconds")))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_units() {
        for (text, seconds) in
            [("90s", 90.0), ("20m", 1200.0), ("1h30m", 5400.0), ("250ms", 0.25), ("45", 45.0), ("1.5", 1.5)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_duration_is_refused_with_an_example() {
        for text in ["", "1 hour", "h", "10x", "-5", "1h-", "inf", "NaN", "1e300"] {
            assert_eq!(parse_duration(text), Err(UnitError::Duration(text.into())), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        for (text, bytes) in [("4KiB", 4096), ("10", 10), ("1MB", 1_000_000), ("1GiB", 1 << 30)] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "4 KiB", "KiB", "4kb", "1.5MiB", "99999999999GiB"] {
            assert_eq!(parse_bytes(text), Err(UnitError::Bytes(text.into())), "{text}");
        }
    }

    #[test]
    fn durations_are_shown_short() {
        for (millis, text) in [(850, "850ms"), (1200, "1.2s"), (185_000, "3m05s"), (7_200_000, "2h00m")] {
            assert_eq!(show_duration(Duration::from_millis(millis)), text);
        }
    }
}
