//! When a limit is over, read from what an agent says about it.
//!
//! Owns the wordings: relative times, Unix seconds, ISO times, clock times with a zone or without. Knows no clock: the
//! moment and the zone of the machine are given. What is not told clearly is `None`, never a guess.

use std::sync::LazyLock;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, ToSpan, ZonedDateTime};
use regex::{Captures, Regex};

/// A clock time that went by this short a time ago is meant, not the one a day later.
const JUST_NOW: SignedDuration = SignedDuration::from_mins(10);

/// Nothing resets later than this.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 370);

/// The zones that come with the program: what a zone's name means must not depend on the machine or its environment.
fn zones() -> &'static TimeZoneDatabase {
    static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    &ZONES
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a pattern of this file")
}

static UNIX: LazyLock<Regex> = LazyLock::new(|| regex(r"\|\s*(\d{10}(?:\d{3})?)\b"));

static ISO: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?\s?(?:Z|[+-]\d\d:?\d\d)"));

static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?xi)
        \b(?:resets?|again|available|until|renews?)\s+(?:(?:at|on|until)\s+)?
        (?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+
           (?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{4}))?,?\s+(?:at\s+)?)?
        (?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::\d\d)?
        (?:\s*(?P<half>[ap])\.?m\b\.?)?
        (?:\s*\((?P<zone>[A-Za-z][A-Za-z0-9_+/-]*)\)|\s*(?P<utc>UTC|GMT|Z)\b)?",
    )
});

static RELATIVE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?xi)\b(?:in|after)\s+(?:about\s+|approximately\s+|~\s*)?
        (?P<parts>(?:\d+(?:\.\d+)?\s*
            (?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)\b
            (?:,?\s+(?:and\s+)?)?)+)",
    )
});

static PART: LazyLock<Regex> = LazyLock::new(|| regex(r"(?i)(\d+(?:\.\d+)?)\s*(milli|ms|s|m|h|d)"));

/// Unix seconds of the moment that `message` names, as seen at `now` on a machine in `zone`.
pub(super) fn reset_at(message: &str, now: Timestamp, zone: &TimeZone) -> Option<i64> {
    let moment = unix(message)
        .or_else(|| iso(message))
        .or_else(|| CLOCK.captures_iter(message).find_map(|found| clock(&found, now, zone)))
        .or_else(|| now.checked_add(SignedDuration::try_from_secs_f64(relative(message)?).ok()?).ok())?;
    (now.duration_until(moment) < LONGEST && now.duration_since(moment) < LONGEST).then(|| moment.as_second())
}

/// Seconds that `message` says to wait, as seen at `now`.
pub(super) fn retry_after(message: &str, now: Timestamp, zone: &TimeZone) -> Option<f64> {
    relative(message).or_else(|| Some((reset_at(message, now, zone)? - now.as_second()).max(0) as f64))
}

fn unix(message: &str) -> Option<Timestamp> {
    let number: i64 = UNIX.captures(message)?[1].parse().ok()?;
    if number >= 100_000_000_000 {
        Timestamp::from_millisecond(number).ok()
    } else {
        Timestamp::from_second(number).ok()
    }
}

fn iso(message: &str) -> Option<Timestamp> {
    ISO.find(message)?.as_str().parse().ok()
}

/// "in 20s", "in 1h 30m", "after 3 days 4 hours"; at most ten years.
fn relative(message: &str) -> Option<f64> {
    let found = RELATIVE.captures(message)?;
    let seconds: f64 = PART
        .captures_iter(&found["parts"])
        .filter_map(|part| {
            let number: f64 = part[1].parse().ok()?;
            let factor = match part[2].to_ascii_lowercase().as_str() {
                "milli" | "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => 86_400.0,
            };
            Some(number * factor)
        })
        .sum();
    (seconds < 10.0 * 366.0 * 86_400.0).then_some(seconds)
}

fn clock(found: &Captures<'_>, now: Timestamp, machine: &TimeZone) -> Option<Timestamp> {
    let number = |name: &str| found.name(name).and_then(|part| part.as_str().parse::<i16>().ok());
    let half = found.name("half").map(|half| half.as_str().to_ascii_lowercase());
    // "resets 3" is no time of day; "resets 3pm" and "resets 15:00" are.
    if half.is_none() && found.name("minute").is_none() {
        return None;
    }
    let hour = match (number("hour")?, half.as_deref()) {
        (1..=12, Some("a")) => number("hour")? % 12,
        (1..=12, Some(_)) => number("hour")? % 12 + 12,
        (hour, None) => hour,
        _ => return None,
    };
    let time = Time::new(hour.try_into().ok()?, number("minute").unwrap_or(0).try_into().ok()?, 0, 0).ok()?;
    let zone = match (found.name("zone"), found.name("utc")) {
        (Some(name), _) => zones().get(name.as_str()).ok()?,
        (None, Some(_)) => TimeZone::UTC,
        (None, None) => machine.clone(),
    };
    let here = now.to_zoned_datetime(zone.clone());
    let at = |date: Date| Some(DateTime::from_parts(date, time).to_zoned_datetime(zone.clone()).ok()?.timestamp());
    match found.name("month") {
        Some(month) => dated(month.as_str(), number("day")?, number("year"), &here, now, at),
        None => {
            let today = at(here.date())?;
            if now.duration_since(today) > JUST_NOW { at(here.date().checked_add(1.day()).ok()?) } else { Some(today) }
        }
    }
}

fn dated(
    month: &str,
    day: i16,
    year: Option<i16>,
    here: &ZonedDateTime,
    now: Timestamp,
    at: impl Fn(Date) -> Option<Timestamp>,
) -> Option<Timestamp> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let short = month.get(..3)?.to_ascii_lowercase();
    let month = i8::try_from(MONTHS.iter().position(|name| *name == short)? + 1).ok()?;
    let on = |year: i16| at(Date::new(year, month, day.try_into().ok()?).ok()?);
    match year {
        Some(year) => on(year),
        // Without a year: the next such day, or one that is just over.
        None => {
            let this_year = on(here.year())?;
            let long_ago = SignedDuration::from_hours(24 * 30);
            if now.duration_since(this_year) > long_ago { on(here.year() + 1) } else { Some(this_year) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Monday, 30 November 2026, 18:30 in Berlin.
    const NOW: &str = "2026-11-30T17:30:00Z";

    fn reset(message: &str) -> Option<String> {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let at = reset_at(message, NOW.parse().unwrap(), &zone)?;
        Some(Timestamp::from_second(at).unwrap().to_string())
    }

    #[test]
    fn every_wording_that_was_seen_is_read() {
        for (message, at) in [
            ("Claude AI usage limit reached|1796155200", "2026-12-01T20:00:00Z"),
            ("Your limit will reset at 5pm (Europe/Warsaw).", "2026-12-01T16:00:00Z"),
            ("You've hit your limit · resets 3:30am (Asia/Calcutta)", "2026-11-30T22:00:00Z"),
            ("You've hit your limit · resets 11:30pm (Europe/Berlin)", "2026-11-30T22:30:00Z"),
            ("You've hit your weekly limit · resets Dec 3, 9am (America/New_York)", "2026-12-03T14:00:00Z"),
            ("visit x or try again at 7:11 PM.", "2026-11-30T18:11:00Z"),
            ("try again at 7:11\u{202f}PM.", "2026-11-30T18:11:00Z"),
            ("try again at Dec 3rd, 2026 7:11 PM.", "2026-12-03T18:11:00Z"),
            ("resets at 17:00 UTC", "2026-12-01T17:00:00Z"),
            ("resets at 2026-12-01T08:00:00Z", "2026-12-01T08:00:00Z"),
            ("resets on 2026-12-01 08:00:00+01:00", "2026-12-01T07:00:00Z"),
            ("Please try again in 20s.", "2026-11-30T17:30:20Z"),
            ("try again in 1h 30m", "2026-11-30T19:00:00Z"),
            ("try again in 3 days 4 hours 2 minutes", "2026-12-03T21:32:00Z"),
            ("resets Jan 2 at 12am", "2027-01-01T23:00:00Z"),
        ] {
            assert_eq!(reset(message).as_deref(), Some(at), "{message}");
        }
    }

    #[test]
    fn what_is_not_told_clearly_is_unknown() {
        for message in [
            "You've hit your limit",
            "resets 3",
            "resets 25:00",
            "resets 13pm",
            "resets 5pm (Atlantis/Capital)",
            "try again 3 times",
            "resets Feb 30, 5pm",
            "limit|12345",
            "try again in 999999999 days",
            "resets at 2199-01-01T00:00:00Z",
        ] {
            assert_eq!(reset(message), None, "{message}");
        }
    }

    #[test]
    fn a_time_that_has_just_passed_is_not_tomorrow() {
        assert_eq!(reset("resets 6:25pm").as_deref(), Some("2026-11-30T17:25:00Z"));
        assert_eq!(reset("resets 6:15pm").as_deref(), Some("2026-12-01T17:15:00Z"));
    }

    #[test]
    fn a_clock_time_in_a_gap_of_summer_time_is_still_a_moment() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let now: Timestamp = "2026-03-29T00:00:00Z".parse().unwrap();
        let at = reset_at("resets 2:30am", now, &zone).unwrap();
        assert_eq!(Timestamp::from_second(at).unwrap().to_string(), "2026-03-29T01:30:00Z");
    }

    proptest! {
        #[test]
        fn no_message_can_break_it(message in "\\PC*", day in 0i64..99, hour in 0i64..99, minute in 0i64..99) {
            let now: Timestamp = NOW.parse().unwrap();
            for text in [
                message.clone(),
                format!("resets {hour}:{minute} ({message})"),
                format!("try again at Feb {day}, {hour}{minute} {hour}pm"),
                format!("resets Dec {day}, {hour}am"),
                format!("limit reached|{day}{hour}{minute}{day}{hour}{minute}"),
                format!("in {day}{hour} days {minute} h {message}"),
            ] {
                if let Some(at) = reset_at(&text, now, &TimeZone::UTC) {
                    prop_assert!((at - now.as_second()).abs() <= 24 * 370 * 3600, "{}", text);
                }
            }
        }
    }

    #[test]
    fn waits_are_seconds() {
        let zone = TimeZone::UTC;
        let now = NOW.parse().unwrap();
        for (message, seconds) in [
            ("Please try again in 1s.", Some(1.0)),
            ("retry after 250ms", Some(0.25)),
            ("Retrying in about 2.5 seconds", Some(2.5)),
            ("try again at 5:31 PM", Some(60.0)),
            ("slow down", None),
        ] {
            assert_eq!(retry_after(message, now, &zone), seconds, "{message}");
        }
    }
}
