//! The conversion of the capture, or of its last part if a browser cannot show all of it.

use super::args::ViewArgs;
use super::session::SharedSession;
use super::trace::ShownTrace;
use crate::exit::Exit;
use crate::input::saved::Saved;
use crate::text::format::{bytes, grouped};
use crate::text::paint::WARNING;
use eventring_capture::{CaptureFile, CapturedContent};
use eventring_export::ExportOptions;

/// The most bytes of a trace by default. The trace is compressed: 100 MB are 4.7 million slices, for which a browser
/// takes 1.7 GB of memory.
const BYTES_MAX: u64 = 256 << 20;
/// The most times of events that are kept in memory.
const TIMES_MAX: usize = 1 << 20;
/// The most attempts to make a trace small enough.
const ATTEMPTS: u32 = 6;

/// Converts the capture. If it has more events than the options allow, or makes too large a trace, converts its last
/// part and says so.
pub(super) fn convert(args: &ViewArgs, saved: &mut Saved, session: &SharedSession) -> anyhow::Result<ShownTrace> {
    let is_limited = args.max_events > 0;
    let [events_max, bytes_max] = if is_limited { [args.max_events, BYTES_MAX] } else { [u64::MAX; 2] };
    let bytes_max = args.max_size.unwrap_or(bytes_max);
    let all = saved.capture.end().map_or(u64::MAX, |end| end.stats.events());
    let mut keep = (all > events_max).then_some(events_max);
    session.lock().begin("The capture is being converted", 2);
    let (mut times, mut shown, mut too_large) = (None, None, None);
    for _ in 0..ATTEMPTS {
        if let Some(keep) = keep {
            let times = times.get_or_insert_with(|| Times::read(&saved.capture, session));
            session.lock().begin("The last part of the capture is being converted", 2);
            if let Some(from) = times.last(keep) {
                shown = Some((keep, times.events, from));
                saved.capture.leave_out_before(from)?;
            }
        }
        let trace = ShownTrace::of(&saved.capture, ExportOptions::from(args.view).names(args.span_names))?;
        if trace.bytes <= bytes_max {
            saved.reading.end();
            if let Some((kept, events, from)) = shown {
                warn(kept, events, from, too_large.map(|bytes| (bytes, bytes_max)));
            }
            return Ok(trace);
        }
        too_large.get_or_insert(trace.bytes);
        let times = times.get_or_insert_with(|| Times::read(&saved.capture, session));
        let events = times.events.min(keep.unwrap_or(events_max));
        // A little less than in proportion, because events differ in size.
        keep = Some((events as f64 * 0.8 * bytes_max as f64 / trace.bytes as f64) as u64);
    }
    let message = "even a small part of the capture makes a trace that is too large for a browser; choose a shorter time by \
                   --from and --to, or show more by --max-size";
    Exit::Failed.fail(message)
}

/// Says that of `events` events, the last `kept` are shown. `too_large` is the size of the trace of all events and the
/// limit, if that was the reason.
fn warn(kept: u64, events: u64, from: u64, too_large: Option<(u64, u64)>) {
    let time = jiff::Timestamp::from_nanosecond(from.into()).unwrap_or_default();
    let size = too_large.map_or_else(String::new, |(trace_bytes, bytes_max)| {
        format!(" (a trace of {}, more than {})", bytes(trace_bytes), bytes(bytes_max))
    });
    say!(
        "{WARNING}warning:{WARNING:#} the capture is too large for a browser{size}: of its {} events, the last {} are \
         shown, from {time} on; choose another part by --from, --to, --around, --span or --min-duration, or show \
         everything by --max-events 0",
        grouped(events),
        grouped(kept.min(events)),
    );
}

/// The times of every `stride`th event of what was selected, in the order of the capture.
struct Times {
    nanos: Vec<u64>,
    stride: u64,
    events: u64,
}

impl Times {
    fn read(capture: &CaptureFile, session: &SharedSession) -> Self {
        session.lock().begin("The capture is too large for a browser, so its last part will be shown", 1);
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
