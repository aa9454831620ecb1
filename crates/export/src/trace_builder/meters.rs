//! Counters that are computed from all events: events, the rate at which they fill their rings, open spans, and
//! executed instructions. Only traces of threads and spans (`View::Both`) have these counters.

use super::{TraceBuilder, TrackKey};
use eventring::reader::Descriptor;
use eventring::schema::perf::FieldValue;
use eventring::tracing::{SpanReplay, SpanStep};
use eventring_capture::CapturedRing;
use eventring_capture::recording::CaptureRecording;
use eventring_capture::recording::RecordingEntry;
use std::io;

/// The number of samples of a counter, if something happened all the time.
const SAMPLES: u64 = 1000;
/// The shortest and the longest time between two samples.
const GRAIN_NANOS_MIN: u64 = 1_000_000;
const GRAIN_NANOS_MAX: u64 = 1_000_000_000;

/// The counts of all processes in the present grain, a piece of time.
pub(super) struct Meters {
    grain_nanos: u64,
    pub(super) grain_start_nanos: u64,
    processes: Vec<ProcessMeter>,
    rings: Vec<RingMeter>,
}

/// The counts of a process in a grain.
#[derive(Clone, Default)]
struct ProcessMeter {
    events: u64,
    instructions: u64,
    /// The laps of the ring that was written fastest.
    laps: f64,
    open_spans: u64,
    /// True if the process has had spans.
    has_spans: bool,
    has_instructions: bool,
    /// True if the last samples were all zero.
    is_quiet: bool,
}

/// The laps of a ring. A ring whose events take a tenth of a lap in a second holds the last ten seconds.
#[derive(Clone)]
struct RingMeter {
    slots: f64,
    payload_buf_bytes: f64,
    /// The newest seqno, and the end of the payload that lies last in the buffer. `None` before the first event.
    newest: Option<(u64, u64)>,
    /// The laps in the grain that began at `grain_start_nanos`: of the descriptors, and of the payload buffer.
    laps: [f64; 2],
    grain_start_nanos: u64,
}

impl RingMeter {
    fn new(ring: &CapturedRing) -> Self {
        let [slots, payload_buf_bytes] = [ring.descriptor_capacity, ring.payload_buf_bytes].map(|n| n.max(1) as f64);
        Self { slots, payload_buf_bytes, newest: None, laps: [0.0; 2], grain_start_nanos: 0 }
    }

    /// Counts an event. Returns the laps in the grain so far: those of the part of the ring that was written faster.
    /// An event that follows a loss counts with the events that were lost, because they took the ring's room as well.
    fn count(&mut self, descriptor: &Descriptor, grain_start_nanos: u64) -> f64 {
        if self.grain_start_nanos != grain_start_nanos {
            (self.grain_start_nanos, self.laps) = (grain_start_nanos, [0.0; 2]);
        }
        let payload_end = descriptor.payload_buf_offset.saturating_add(descriptor.payload_size.into());
        let (seqno, end) = self.newest.unwrap_or((descriptor.seqno, payload_end));
        // Threads fill runs of chunks side by side, so a later payload may lie before an earlier one.
        self.laps[0] += descriptor.seqno.saturating_sub(seqno) as f64 / self.slots;
        self.laps[1] += payload_end.saturating_sub(end) as f64 / self.payload_buf_bytes;
        self.newest = Some((descriptor.seqno.max(seqno), payload_end.max(end)));
        self.laps[0].max(self.laps[1])
    }
}

impl Meters {
    pub(super) fn new(first_nanos: u64, last_nanos: u64, recording: &CaptureRecording<'_>) -> Self {
        let grain_nanos = (last_nanos.saturating_sub(first_nanos) / SAMPLES).clamp(GRAIN_NANOS_MIN, GRAIN_NANOS_MAX);
        let processes = vec![ProcessMeter::default(); recording.processes().len()];
        let rings = recording.capture.rings().iter().map(RingMeter::new).collect();
        Self { grain_nanos, grain_start_nanos: first_nanos, processes, rings }
    }

    pub(super) fn count(
        &mut self,
        entry: &RecordingEntry<'_>,
        descriptor: &Descriptor,
        step: &SpanStep,
        replay: &SpanReplay,
    ) {
        let meter = &mut self.processes[entry.process_index];
        meter.events += u64::from(entry.is_next_event());
        meter.laps = meter.laps.max(self.rings[entry.ring as usize].count(descriptor, self.grain_start_nanos));
        meter.open_spans = replay.open_count() as u64;
        meter.has_spans |= meter.open_spans > 0;
        if let SpanStep::SliceEnded(taken) = step
            && let Some(counted) = taken.instructions
        {
            meter.instructions = meter.instructions.saturating_add(counted.own);
            meter.has_instructions = true;
        }
    }
}

impl TraceBuilder<'_> {
    /// Draws the samples of the grains that are over at this time.
    pub(super) fn sample_meters(&mut self, nanos: u64) -> io::Result<()> {
        let Some(Meters { grain_nanos, grain_start_nanos, .. }) = self.meters else { return Ok(()) };
        let end_nanos = grain_start_nanos.saturating_add(grain_nanos);
        if nanos < end_nanos {
            return Ok(());
        }
        self.sample_grain(grain_start_nanos)?;
        if nanos >= end_nanos.saturating_add(grain_nanos) {
            // Nothing happened for some grains. One sample shows all of them.
            self.sample_grain(end_nanos)?;
        }
        if let Some(meters) = &mut self.meters {
            meters.grain_start_nanos = nanos - (nanos - grain_start_nanos) % grain_nanos;
        }
        Ok(())
    }

    /// Draws the counts of a grain that began at this time.
    pub(super) fn sample_grain(&mut self, nanos: u64) -> io::Result<()> {
        let Some(Meters { grain_nanos, processes, .. }) = &mut self.meters else { return Ok(()) };
        let a_second = |count: f64| FieldValue::F64(count * 1e9 / *grain_nanos as f64);
        let mut samples: Vec<(usize, &str, FieldValue)> = Vec::new();
        for (index, meter) in processes.iter_mut().enumerate() {
            let is_quiet = meter.events == 0;
            if is_quiet && meter.is_quiet {
                continue;
            }
            meter.is_quiet = is_quiet;
            samples.push((index, "events a second", a_second(meter.events as f64)));
            samples.push((index, "ring laps a second", a_second(meter.laps)));
            if meter.has_spans {
                samples.push((index, "open spans", FieldValue::U64(meter.open_spans)));
            }
            if meter.has_instructions {
                samples.push((index, "instructions a second", a_second(meter.instructions as f64)));
            }
            (meter.events, meter.instructions, meter.laps) = (0, 0, 0.0);
        }
        for (process, name, value) in samples {
            let process = self.recording.processes()[process];
            let track = self.track(TrackKey::Counter { process, name: name.to_owned() }, None)?;
            self.writer.counter(track, nanos, &value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::options::View;
    use crate::tests::chrome_events as drawn;
    use eventring::schema::perf::PerfEvent;
    use eventring_capture::CaptureFile;
    use eventring_capture::fixtures::CaptureFixture;
    use serde_json::Value;

    const MILLI: u64 = 1_000_000;

    /// Records a span each millisecond for 20 ms, one that lasts from 5 ms to 500 ms, and one more at 800 ms.
    fn recorded() -> CaptureFile {
        let mut made = CaptureFixture::new();
        let mut spans: Vec<(u64, u64)> = (0..20).map(|n| (n * MILLI + 1000, n * MILLI + 2000)).collect();
        spans.extend([(5 * MILLI + 5000, 500 * MILLI), (800 * MILLI, 800 * MILLI + 1000)]);
        let mut records: Vec<(u64, PerfEvent, u64)> = Vec::new();
        for ((begin, end), id) in spans.into_iter().zip(1..) {
            records.extend([(begin, PerfEvent::SpanNew, id), (end, PerfEvent::SpanClose, id)]);
            if id != 21 {
                records.extend([(begin + 100, PerfEvent::SpanEnter, id), (begin + 200, PerfEvent::SpanExit, id)]);
            }
        }
        records.sort_unstable_by_key(|(nanos, ..)| *nanos);
        for (nanos, event, id) in records {
            match event {
                PerfEvent::SpanNew => made.span_new(nanos, 1, (id, 0), 0, &[]),
                event => made.span(event, nanos, 1, id, 0),
            }
        }
        made.open()
    }

    fn slices(events: &[Value]) -> Vec<(&str, f64, f64)> {
        let slices = events.iter().filter(|event| event["ph"] == "X");
        let number = |value: &Value| value.as_f64().unwrap();
        let slices = slices.map(|it| (it["name"].as_str().unwrap(), number(&it["ts"]), number(&it["dur"])));
        let mut slices: Vec<_> = slices.collect();
        slices.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap());
        slices
    }

    #[test]
    fn a_trace_with_both_views_has_the_slices_of_each_and_no_others() {
        let capture = recorded();
        let (threads, spans) = (drawn(&capture, View::Thread), drawn(&capture, View::Span));
        let mut each = [slices(&threads), slices(&spans)].concat();
        each.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap());
        assert_eq!(each.len(), 21 + 22);
        assert_eq!(slices(&drawn(&capture, View::Both)), each);
        assert!(!threads.iter().chain(&spans).any(|event| event["ph"] == "C"));
    }

    #[test]
    fn counters_say_how_many_events_there_were_and_how_many_spans_were_open() {
        let both = drawn(&recorded(), View::Both);
        let samples = |name: &str| -> Vec<(u64, f64)> {
            let of_name = both.iter().filter(|event| event["ph"] == "C" && event["name"] == name);
            let sample =
                |event: &Value| (event["ts"].as_f64().unwrap() as u64 / 1000, event["args"]["value"].as_f64().unwrap());
            of_name.map(sample).collect()
        };
        let mut events = samples("events a second");
        assert_eq!(events.iter().map(|(_, rate)| rate / 1000.0).sum::<f64>(), 21.0 * 4.0 + 2.0);
        // The last span ends at the beginning of a grain.
        let times: Vec<u64> = (0..21).chain([499, 500, 799, 800]).collect();
        assert_eq!(events.iter().map(|(at, _)| *at).collect::<Vec<_>>(), times);
        events.retain(|(_, rate)| *rate == 0.0);
        assert_eq!(events.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [20, 500]);
        // The ring has 2^16 slots. The laps begin with the second event.
        let laps = samples("ring laps a second").iter().map(|(_, rate)| rate / 1000.0).sum::<f64>();
        assert!((laps * 65_536.0 - (21.0 * 4.0 + 2.0 - 1.0)).abs() < 1e-6, "{laps}");
        let open = samples("open spans");
        assert_eq!(open.iter().map(|(_, open)| *open).collect::<Vec<_>>()[..8], [0., 0., 0., 0., 0., 1., 1., 1.]);
        assert_eq!(open.last().map(|(_, open)| *open), Some(0.0));
        assert!(samples("instructions a second").is_empty());
    }
}
