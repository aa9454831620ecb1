//! The trace that is shown: the capture, or its last part if a browser cannot show all of it.

use super::conversion::{Conversion, ConversionStep};
use crate::exit::{Exit, Failure};
use crate::format::{bytes, grouped};
use crate::formats::{Format, export};
use crate::paint::WARNING;
use crate::saved::{Saved, SavedArgs};
use eventring::shm::nameless_file;
use eventring_capture::{CaptureFile, CapturedContent};
use eventring_export::{ExportOptions, ExportSummary};
use std::fs::File;
use std::io::BufWriter;

/// The most times of events that are kept in memory.
const TIMES_MAX: usize = 1 << 20;
/// The most attempts to make a trace small enough.
const ATTEMPTS: u32 = 6;

/// A trace in a file that has no name.
pub(super) struct ShownTrace {
    pub(super) file: File,
    pub(super) bytes: u64,
    pub(super) summary: ExportSummary,
}

/// The limits of a trace that a browser can show.
#[derive(Clone, Copy)]
pub(super) struct TraceLimits {
    pub(super) events_max: u64,
    pub(super) bytes_max: u64,
}

/// Converts the capture. If it has more events than the limits allow, or makes too large a trace, converts its last
/// part and says so.
pub(super) fn convert(
    args: &SavedArgs,
    saved: &mut Saved,
    options: ExportOptions,
    TraceLimits { events_max, bytes_max }: TraceLimits,
    conversion: &Conversion,
) -> anyhow::Result<ShownTrace> {
    conversion.begin(ConversionStep::Converting);
    let mut keep = events_max;
    let all = saved.capture.end().map_or(u64::MAX, |end| end.stats.events());
    let mut last_part = LastPart::default();
    if all > events_max {
        last_part.keep(args, saved, keep, conversion)?;
    }
    let mut too_large = None;
    for _ in 0..ATTEMPTS {
        let trace = write(&saved.capture, options)?;
        if trace.bytes <= bytes_max {
            saved.reading.end();
            last_part.report(too_large.map(|bytes| (bytes, bytes_max)));
            return Ok(trace);
        }
        too_large.get_or_insert(trace.bytes);
        let events = last_part.times(&saved.capture, conversion).events.min(keep);
        // A little less than in proportion, because events differ in size.
        keep = (events as f64 * 0.8 * bytes_max as f64 / trace.bytes as f64) as u64;
        last_part.keep(args, saved, keep, conversion)?;
    }
    let message = "even a small part of the capture makes a trace that is too large for a browser; choose a shorter time by \
                   --from and --to, or show more by --max-size";
    Err(Failure::new(Exit::Failed, message).into())
}

/// Converts what is selected of the capture.
fn write(capture: &CaptureFile, options: ExportOptions) -> anyhow::Result<ShownTrace> {
    let directory = std::env::temp_dir();
    let no_file = |error: &std::io::Error| {
        let remedy = "name a directory with room in TMPDIR";
        Failure::io(format!("cannot keep the trace in {}", directory.display()), error).and(remedy)
    };
    let file = nameless_file(&directory).map_err(|error| no_file(&error))?;
    let mut out = BufWriter::with_capacity(1 << 20, &file);
    let summary = export(capture, Format::Perfetto, options, &mut out).map_err(|error| match error.io_error() {
        Some(io) => no_file(io).into(),
        None => anyhow::Error::new(error),
    })?;
    out.into_inner().map_err(|error| no_file(error.error()))?;
    let bytes = file.metadata().map_err(|error| no_file(&error))?.len();
    Ok(ShownTrace { file, bytes, summary })
}

/// The times of every `stride`th event of what was selected, in the order of the capture.
struct Times {
    nanos: Vec<u64>,
    stride: u64,
    events: u64,
}

impl Times {
    fn of(capture: &CaptureFile) -> Self {
        let mut times = Self { nanos: Vec::new(), stride: 1, events: 0 };
        for record in capture.events() {
            if let CapturedContent::Event { descriptor, .. } = record.content {
                times.add(descriptor.record_epoch_nanos, TIMES_MAX);
            }
        }
        times
    }

    /// Adds the next event. If there are `times_max` times then, every second one is forgotten.
    fn add(&mut self, nanos: u64, times_max: usize) {
        if self.events.is_multiple_of(self.stride) {
            self.nanos.push(nanos);
        }
        self.events += 1;
        if self.nanos.len() == times_max {
            self.nanos = self.nanos.iter().step_by(2).copied().collect();
            self.stride *= 2;
        }
    }

    /// Returns the time from which on there are `keep` events, or a few less. Returns `None` if there are not more.
    fn last(&self, keep: u64) -> Option<u64> {
        let first = self.events.checked_sub(keep).filter(|left_out| *left_out > 0)?.div_ceil(self.stride);
        self.nanos.get(usize::try_from(first).ok()?).or(self.nanos.last()).copied()
    }
}

/// The last part of a capture that is too large.
#[derive(Default)]
struct LastPart {
    times: Option<Times>,
    /// The number of the last events that are kept, and the time of the first of them. `None` if all are kept.
    kept: Option<(u64, u64)>,
}

impl LastPart {
    fn times(&mut self, capture: &CaptureFile, conversion: &Conversion) -> &Times {
        self.times.get_or_insert_with(|| {
            conversion.begin(ConversionStep::FindingLastPart);
            Times::of(capture)
        })
    }

    /// Narrows the selection to the last `keep` events.
    fn keep(&mut self, args: &SavedArgs, saved: &mut Saved, keep: u64, on: &Conversion) -> anyhow::Result<()> {
        let from = self.times(&saved.capture, on).last(keep);
        on.begin(ConversionStep::ConvertingLastPart);
        let Some(from) = from else { return Ok(()) };
        self.kept = Some((keep, from));
        saved.select(&args.names, &args.selection(&saved.capture).from_epoch_nanos(from))
    }

    /// Says how much is shown, and of how much. `too_large` is the size of the trace of all events and the limit, if
    /// that was the reason.
    fn report(&self, too_large: Option<(u64, u64)>) {
        let (Some((keep, from)), Some(times)) = (self.kept, &self.times) else { return };
        let time = jiff::Timestamp::from_nanosecond(i128::from(from))
            .map_or_else(|_| from.to_string(), |time| time.to_string());
        let size = too_large.map_or_else(String::new, |(trace_bytes, bytes_max)| {
            format!(" (a trace of {}, more than {})", bytes(trace_bytes), bytes(bytes_max))
        });
        anstream::eprintln!(
            "{WARNING}warning:{WARNING:#} the capture is too large for a browser{size}: of its {} events, the last {} are \
             shown, from {time} on; choose another part by --from, --to, --around, --span or --min-duration, or show \
             everything by --max-events 0",
            grouped(times.events),
            grouped(keep.min(times.events)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_events_are_found_however_many_times_are_kept() {
        for times_max in [4, 16, 2_000] {
            let mut times = Times { nanos: Vec::new(), stride: 1, events: 0 };
            (0..1_000).for_each(|number| times.add(number * 10, times_max));
            assert_eq!(times.last(1_000), None);
            assert_eq!(times.last(2_000), None);
            let kept = 1_000 - times.last(600).unwrap() / 10;
            assert!(kept <= 600 && 600 - kept < times.stride, "{times_max}: {kept}");
        }
    }
}
