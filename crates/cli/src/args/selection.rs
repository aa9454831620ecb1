//! The options that select a part of a capture.

use crate::args::amounts::parse_duration;
use crate::text::format::TimeFormat;
use crate::text::losses::report_problem;
use eventring::schema::perf::CallSiteLevel;
use eventring_capture::condition::Condition;
use eventring_capture::{CaptureFile, EventSelection, Selection};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, civil};
use std::time::Duration;

/// The options that select rings and times of a capture.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct WindowArgs {
    /// Only what was recorded from this time on: 2026-11-22T19:30:00Z (RFC 3339), nanoseconds since the epoch, or the
    /// time since the capture began (+1.5s; -2s is before it began). In rings and snapshots, +1.5s is after their first
    /// event, and -2s before their last one, or before now if they are live
    #[arg(long, help_heading = "Selection", value_name = "TIME", value_parser = Time::parse, allow_hyphen_values = true)]
    from: Option<Time>,
    #[command(flatten)]
    rest: WindowRest,
}

/// The options that select rings and times of a capture, without `--from`. (`watch` has an option of this name of its own.)
#[derive(clap::Args, Clone, Default)]
pub(crate) struct WindowRest {
    /// Only what was recorded up to this time, as for --from
    #[arg(long, help_heading = "Selection", value_name = "TIME", value_parser = Time::parse, allow_hyphen_values = true)]
    to: Option<Time>,
    /// Only what was recorded around this time: +1.5s±200ms, or +1.5s+-200ms
    #[arg(long, help_heading = "Selection", value_name = "TIME±D", value_parser = parse_around, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["from", "to"])]
    around: Option<(Time, Duration)>,
    /// Only what is in this ring; a recorder's name means all of its shards; may be repeated
    #[arg(long, help_heading = "Selection", value_name = "NAME")]
    ring: Vec<String>,
}

/// The options that select events by what they are about. They are the same in all verbs. If several are given, all must
/// hold.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct EventArgs {
    /// Only events of this type: a name (TXN_LOG, or TxnLog as in the source) or a code (18); may be repeated
    #[arg(long = "type", help_heading = "Selection", value_name = "NAME|CODE", value_delimiter = ',')]
    pub(crate) types: Vec<String>,
    /// Only spans of this name, with everything in them: query, or shop::query with its target; `*` stands for any
    /// characters. May be repeated. `watch` also takes the id of a span: then its own events, and typed events in it
    #[arg(long, help_heading = "Selection", value_name = "NAME")]
    pub(crate) span: Vec<String>,
    /// Only spans that last this long at least, with everything in them: 10ms
    #[arg(long, help_heading = "Selection", value_name = "D", value_parser = parse_duration)]
    pub(crate) min_duration: Option<Duration>,
    /// Only what this thread recorded: its name, or its number in the system; may be repeated
    #[arg(long, help_heading = "Selection", value_name = "NAME|ID")]
    pub(crate) thread: Vec<String>,
    /// Only spans and log records of this target; `*` stands for any characters. May be repeated
    #[arg(long, help_heading = "Selection", value_name = "TARGET")]
    pub(crate) target: Vec<String>,
    /// Only spans and log records of at most this level: error, warn, info, debug, trace
    #[arg(long, help_heading = "Selection", value_name = "LEVEL", value_parser = parse_level)]
    pub(crate) max_level: Option<CallSiteLevel>,
    /// Only what fulfils this condition, as in `capture --on`: 'span=db.* dur>50ms', 'event=ORDER_* field.price>100'. A
    /// span that fulfils it is selected with everything in it
    #[arg(long = "where", help_heading = "Selection", value_name = "CONDITION", value_parser = Condition::for_events)]
    pub(crate) condition: Option<Condition>,
}

impl EventArgs {
    /// Returns what the options select.
    pub(crate) fn selection(&self) -> EventSelection {
        EventSelection {
            types: self.types.clone(),
            spans: self.span.clone(),
            min_nanos: self.min_duration.map_or(0, |least| u64::try_from(least.as_nanos()).unwrap_or(u64::MAX)),
            threads: self.thread.clone(),
            targets: self.target.clone(),
            level: self.max_level,
            condition: self.condition.clone(),
        }
    }
}

/// A time on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Time {
    EpochNanos(u64),
    /// Nanoseconds since the capture began.
    SinceStart(i64),
    /// A time of a day of the capture, in UTC or in local time.
    OfDay {
        time: civil::Time,
        is_utc: bool,
    },
}

impl Time {
    /// Parses a time.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let expected = "expected a time like 2026-11-22T19:30:00Z, 19:30:00 (on the day of the capture), 1795375800000000000 (nanoseconds \
                        since the epoch) or +1.5s (since the capture began)";
        let since_start = |text: &str| {
            let nanos = parse_duration(text).ok().and_then(|time| i64::try_from(time.as_nanos()).ok());
            nanos.ok_or_else(|| expected.to_owned())
        };
        if let Some(after) = text.strip_prefix('+') {
            return since_start(after).map(Self::SinceStart);
        }
        if let Some(before) = text.strip_prefix('-') {
            return since_start(before).map(|nanos| Self::SinceStart(-nanos));
        }
        if let Ok(nanos) = text.parse() {
            return Ok(Self::EpochNanos(nanos));
        }
        if let Some(of_day) = Self::of_day(text) {
            return Ok(of_day);
        }
        let time: Timestamp = text.parse().map_err(|_| expected.to_owned())?;
        u64::try_from(time.as_nanosecond()).map(Self::EpochNanos).map_err(|_| "expected a time after 1970".to_owned())
    }

    /// Parses a time of a day: `19:30:00.25`, or the same with a `Z` for UTC.
    fn of_day(text: &str) -> Option<Self> {
        let (time, is_utc) = text.strip_suffix('Z').map_or((text, false), |time| (time, true));
        let is_of_day = time.contains(':') && time.chars().all(|c| c.is_ascii_digit() || matches!(c, ':' | '.'));
        let time = time.parse().ok().filter(|_| is_of_day)?;
        Some(Self::OfDay { time, is_utc })
    }

    /// Returns the same time for a user who sees times in UTC if `is_utc` is true.
    pub(crate) fn as_seen(self, is_utc: bool) -> Self {
        match self {
            Self::OfDay { time, is_utc: has_z } => Self::OfDay { time, is_utc: is_utc || has_z },
            other => other,
        }
    }

    /// Returns the time in this capture, in nanoseconds since the epoch.
    pub(crate) fn epoch_nanos(self, capture: &CaptureFile) -> u64 {
        match self {
            Self::EpochNanos(nanos) => nanos,
            Self::SinceStart(nanos) => capture.relative_nanos(nanos),
            Self::OfDay { time, is_utc } => {
                let zone = if is_utc { TimeZone::UTC } else { TimeZone::system() };
                let (started, ended) = capture.bounds_nanos();
                on_day_of(time, &zone, started, ended)
            }
        }
    }

    /// Returns the time at which a capture is looked at. Warns of a time at which it has nothing.
    pub(crate) fn look_nanos(self, capture: &CaptureFile) -> u64 {
        let (at, (started, ended)) = (self.epoch_nanos(capture), capture.bounds_nanos());
        // What the rings held before the capture began is part of it.
        let from = if at < started { capture.first_nanos().unwrap_or(started).min(started) } else { started };
        let to = capture.last_nanos().map_or(ended, |last| last.max(ended));
        if !(from..=to).contains(&at) {
            let [at, from, to] = [at, from, to].map(|nanos| TimeFormat::new(false).date_and_time(nanos));
            report_problem(false, &format!("--at is {at}, and the capture lasts from {from} to {to}"));
        }
        at
    }
}

/// Returns the first moment between these two that has this time of day. If there is none, returns the one that is
/// nearest to the first.
fn on_day_of(time: civil::Time, zone: &TimeZone, from: u64, to: u64) -> u64 {
    let on_day = |days: i64| {
        let day = Timestamp::from_nanosecond(from.into()).ok()?.to_zoned(zone.clone()).date();
        let day = day.checked_add(days.days()).ok()?;
        u64::try_from(day.to_datetime(time).to_zoned(zone.clone()).ok()?.timestamp().as_nanosecond()).ok()
    };
    let moments: Vec<u64> = (-1..=1).filter_map(on_day).collect();
    let within = moments.iter().find(|moment| (from..=to).contains(moment));
    let nearest = || moments.iter().min_by_key(|moment| moment.abs_diff(from));
    within.or_else(nearest).copied().unwrap_or(from)
}

/// Parses the name of a level.
pub(crate) fn parse_level(text: &str) -> Result<CallSiteLevel, &'static str> {
    use CallSiteLevel::{Debug, Error, Info, Trace, Warn};
    let named = |level: &CallSiteLevel| level.name().is_some_and(|name| name.eq_ignore_ascii_case(text));
    [Error, Warn, Info, Debug, Trace].into_iter().find(named).ok_or("expected error, warn, info, debug or trace")
}

/// Parses a time and the time around it.
fn parse_around(text: &str) -> Result<(Time, Duration), String> {
    let parts = text.split_once('±').or_else(|| text.rsplit_once("+-"));
    let (time, around) = parts.ok_or("expected a time and what is around it, like +1.5s±200ms or +1.5s+-200ms")?;
    Ok((Time::parse(time)?, parse_duration(around)?))
}

impl WindowArgs {
    /// Returns the selection that the options make in this capture.
    pub(crate) fn selection(&self, events: &EventArgs, capture: &CaptureFile) -> Selection {
        self.rest.selection(self.from, events.selection(), capture, false)
    }
}

impl WindowRest {
    /// Returns the first of the options that is used and has a meaning for captures only.
    pub(crate) fn used_of_captures(&self) -> Option<&'static str> {
        let used =
            [(self.to.is_some(), "--to"), (self.around.is_some(), "--around"), (!self.ring.is_empty(), "--ring")];
        used.into_iter().find_map(|(is_used, name)| is_used.then_some(name))
    }

    /// Returns the selection that the options make in this capture, for a user who sees times in UTC if `is_utc` is
    /// true.
    pub(crate) fn selection(
        &self,
        from: Option<Time>,
        events: EventSelection,
        capture: &CaptureFile,
        is_utc: bool,
    ) -> Selection {
        let epoch_nanos = |time: Time| time.as_seen(is_utc).epoch_nanos(capture);
        let selection = from.into_iter().map(epoch_nanos).fold(Selection::new(), Selection::from_epoch_nanos);
        let mut selection = self.to.into_iter().map(epoch_nanos).fold(selection, Selection::to_epoch_nanos);
        if let Some((time, around)) = self.around {
            let (time, around) = (epoch_nanos(time), u64::try_from(around.as_nanos()).unwrap_or(u64::MAX));
            selection = selection.from_epoch_nanos(time.saturating_sub(around));
            selection = selection.to_epoch_nanos(time.saturating_add(around));
        }
        self.ring.iter().fold(selection, Selection::ring).events(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let second = 1_000_000_000;
        assert_eq!(Time::parse("17"), Ok(Time::EpochNanos(17)));
        assert_eq!(Time::parse("1970-01-01T00:00:01.5Z"), Ok(Time::EpochNanos(second + second / 2)));
        assert_eq!(Time::parse("1970-01-01T02:00:01+02:00"), Ok(Time::EpochNanos(second)));
        let of_day = |is_utc| Ok(Time::OfDay { time: civil::time(8, 31, 25, 250_000_000), is_utc });
        assert_eq!((Time::parse("08:31:25.25"), Time::parse("08:31:25.25Z")), (of_day(false), of_day(true)));
        assert_eq!(Time::parse("08:31:25.25").map(|time| time.as_seen(true)), of_day(true));
        assert_eq!(Time::parse("+1.5s"), Ok(Time::SinceStart(1_500_000_000)));
        assert_eq!(Time::parse("-20ms"), Ok(Time::SinceStart(-20_000_000)));
        for wrong in [
            "",
            "+",
            "soon",
            "1969-12-31T00:00:00Z",
            "1.5",
            "+-2s",
            "2026-11-22T19:30:00",
            "+99999999999999s",
            "8:31:99",
            "25:00:00",
            ":",
            "T08:31:25",
        ] {
            assert!(Time::parse(wrong).is_err(), "{wrong}");
        }
        let around = Ok((Time::SinceStart(1_500_000_000), Duration::from_millis(200)));
        assert_eq!(parse_around("+1.5s±200ms"), around);
        assert_eq!(parse_around("+1.5s+-200ms"), around);
        assert_eq!(parse_around("+1.5s+-0.2"), around);
        assert!(parse_around("+1.5s").is_err() && parse_around("+1.5s±").is_err() && parse_around("±1s").is_err());
    }

    #[test]
    fn a_time_of_day_is_the_one_in_the_capture_or_else_the_nearest_one() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap().as_nanosecond() as u64;
        let found = |time: &str, zone: &str, from: &str, to: &str| {
            let zone = jiff::tz::TimeZone::posix(zone).unwrap();
            on_day_of(time.parse().unwrap(), &zone, at(from), at(to))
        };
        let (from, to) = ("2026-11-22T20:00:00Z", "2026-11-23T10:00:00Z");
        assert_eq!(found("20:30:00", "UTC0", from, to), at("2026-11-22T20:30:00Z"));
        assert_eq!(found("08:30:00", "UTC0", from, to), at("2026-11-23T08:30:00Z"));
        assert_eq!(found("03:30:00", "EST5", from, to), at("2026-11-23T08:30:00Z"));
        // Before the start, and after the end: the nearest ones.
        assert_eq!(found("19:59:00", "UTC0", from, to), at("2026-11-22T19:59:00Z"));
        assert_eq!(
            found("23:59:00", "UTC0", "2026-11-22T00:01:00Z", "2026-11-22T00:02:00Z"),
            at("2026-11-21T23:59:00Z")
        );
    }
}
