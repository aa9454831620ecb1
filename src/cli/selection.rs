//! The options that select a part of a capture.

use super::saved::parse_duration;
use eventring::capture::{CaptureFile, Selection};
use jiff::Timestamp;
use std::time::Duration;

/// The options that select a part of a capture.
#[derive(clap::Args, Default)]
pub(super) struct SelectionArgs {
    /// Only what was recorded from this time on: 2026-11-22T19:30:00Z (RFC 3339), nanoseconds since the epoch, or the
    /// time since the capture began (+1.5s; -2s is before it began)
    #[arg(long, help_heading = "Selection", value_name = "TIME", value_parser = Time::parse, allow_hyphen_values = true)]
    from: Option<Time>,
    #[command(flatten)]
    rest: SelectionRest,
}

/// The options that select a part of a capture, without `--from`. (`watch` has an option of this name of its own.)
#[derive(clap::Args, Default)]
pub(super) struct SelectionRest {
    /// Only what was recorded up to this time, as for --from
    #[arg(long, help_heading = "Selection", value_name = "TIME", value_parser = Time::parse, allow_hyphen_values = true)]
    to: Option<Time>,
    /// Only what was recorded around this time: +1.5s±200ms, or +1.5s+-200ms
    #[arg(long, help_heading = "Selection", value_name = "TIME±D", value_parser = parse_around, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["from", "to"])]
    around: Option<(Time, Duration)>,
    /// Only spans that last this long at least, with everything in them: 10ms
    #[arg(long, help_heading = "Selection", value_name = "D", value_parser = parse_duration)]
    min_duration: Option<Duration>,
    /// Only what this thread recorded: its name, or its number in the system; may be repeated
    #[arg(long, help_heading = "Selection", value_name = "NAME|ID")]
    thread: Vec<String>,
    /// Only what is in this ring; a recorder's name means all of its shards; may be repeated
    #[arg(long, help_heading = "Selection", value_name = "NAME")]
    ring: Vec<String>,
}

/// The option that selects spans by name.
#[derive(clap::Args, Default)]
pub(super) struct SpanArgs {
    /// Only spans of this name, with everything in them: query, or shop::query with its target; may be repeated
    #[arg(long, help_heading = "Selection", value_name = "NAME")]
    span: Vec<String>,
}

/// A time on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Time {
    EpochNanos(u64),
    /// Nanoseconds since the capture began.
    SinceStart(i64),
}

impl Time {
    /// Parses a time.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let expected = "expected a time like 2026-11-22T19:30:00Z, 1795375800000000000 (nanoseconds since the epoch) or +1.5s (since the \
                        capture began)";
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
        let time: Timestamp = text.parse().map_err(|_| expected.to_owned())?;
        u64::try_from(time.as_nanosecond()).map(Self::EpochNanos).map_err(|_| "expected a time after 1970".to_owned())
    }

    /// Returns the time in this capture, in nanoseconds since the epoch.
    pub(super) fn epoch_nanos(self, capture: &CaptureFile) -> u64 {
        match self {
            Self::EpochNanos(nanos) => nanos,
            Self::SinceStart(nanos) => capture.started_epoch_nanos().saturating_add_signed(nanos),
        }
    }
}

/// Parses a time and the time around it.
fn parse_around(text: &str) -> Result<(Time, Duration), String> {
    let parts = text.split_once('±').or_else(|| text.rsplit_once("+-"));
    let (time, around) = parts.ok_or("expected a time and what is around it, like +1.5s±200ms or +1.5s+-200ms")?;
    Ok((Time::parse(time)?, parse_duration(around)?))
}

impl SelectionArgs {
    /// Returns the selection that the options make in this capture.
    pub(super) fn selection(&self, spans: &SpanArgs, capture: &CaptureFile) -> Selection {
        self.rest.selection(self.from, &spans.span, capture)
    }
}

impl SelectionRest {
    /// Returns the first of these options that is used.
    pub(super) fn used(&self) -> Option<&'static str> {
        let used = [
            (self.to.is_some(), "--to"),
            (self.around.is_some(), "--around"),
            (self.min_duration.is_some(), "--min-duration"),
            (!self.thread.is_empty(), "--thread"),
            (!self.ring.is_empty(), "--ring"),
        ];
        used.into_iter().find_map(|(is_used, name)| is_used.then_some(name))
    }

    /// Returns the selection that the options make in this capture.
    pub(super) fn selection(&self, from: Option<Time>, spans: &[String], capture: &CaptureFile) -> Selection {
        let mut selection = Selection::new();
        if let Some(from) = from {
            selection = selection.from_epoch_nanos(from.epoch_nanos(capture));
        }
        if let Some(to) = self.to {
            selection = selection.to_epoch_nanos(to.epoch_nanos(capture));
        }
        if let Some((time, around)) = self.around {
            let (time, around) = (time.epoch_nanos(capture), u64::try_from(around.as_nanos()).unwrap_or(u64::MAX));
            selection = selection.from_epoch_nanos(time.saturating_sub(around));
            selection = selection.to_epoch_nanos(time.saturating_add(around));
        }
        if let Some(duration) = self.min_duration {
            selection = selection.min_duration(duration);
        }
        selection = spans.iter().fold(selection, Selection::span);
        selection = self.thread.iter().fold(selection, Selection::thread);
        self.ring.iter().fold(selection, Selection::ring)
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
        assert_eq!(Time::parse("+1.5s"), Ok(Time::SinceStart(1_500_000_000)));
        assert_eq!(Time::parse("-20ms"), Ok(Time::SinceStart(-20_000_000)));
        for wrong in ["", "+", "soon", "1969-12-31T00:00:00Z", "1.5", "+-2s", "2026-11-22T19:30:00", "+99999999999999s"]
        {
            assert!(Time::parse(wrong).is_err(), "{wrong}");
        }
        let around = Ok((Time::SinceStart(1_500_000_000), Duration::from_millis(200)));
        assert_eq!(parse_around("+1.5s±200ms"), around);
        assert_eq!(parse_around("+1.5s+-200ms"), around);
        assert_eq!(parse_around("+1.5s+-0.2"), around);
        assert!(parse_around("+1.5s").is_err() && parse_around("+1.5s±").is_err() && parse_around("±1s").is_err());
    }
}
