//! Recording the events of a capture once more, into rings of this process.

use crate::exit::Exit;
use crate::interrupt::Interrupt;
use eventring::files::CONTENT_TYPE_EXEC;
use eventring::internal::ring_with_tables;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::ExecEvent;
use eventring::tracing::Catalog;
use eventring_capture::{CaptureFile, CapturedContent, CapturedPayload, CapturedRing, RingRole};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The longest sleep between two looks for Ctrl-C.
const PAUSE: Duration = Duration::from_millis(50);
/// The largest descriptor shift and payload shift of the rings: 4 million events, 1 GiB.
const SHIFTS_MAX: (u32, u32) = (22, 30);
/// The number of block starts that are remembered for each ring.
const BLOCKS_MAX: usize = 4096;

/// The speed of a replay: a multiple of the speed at which the events were recorded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Speed {
    Times(f64),
    Max,
}

impl Speed {
    /// Parses `1x`, `2.5x` or `max`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let expected = || "expected a speed like 1x, 2.5x or max".to_owned();
        if text == "max" {
            return Ok(Self::Max);
        }
        let times: f64 = text.strip_suffix('x').unwrap_or(text).parse().map_err(|_| expected())?;
        if times > 0.0 && times.is_finite() { Ok(Self::Times(times)) } else { Err(expected()) }
    }
}

/// A ring into which events are recorded once more. All shards of a recorder go into one ring.
struct ReplayedRing {
    recorder: Recorder,
    /// The new seqnos of BLOCK_START events, by the old ones. Events of a block name its BLOCK_START by its seqno.
    blocks: HashMap<u64, u64>,
}

/// The replay of a capture.
pub(super) struct Replay {
    capture: CaptureFile,
    /// For each ring of the capture, the index of its ring in `rings`.
    places: Vec<usize>,
    rings: Vec<ReplayedRing>,
}

impl Replay {
    /// Makes the rings. The server of the process serves them from now on.
    pub(super) fn new(capture: CaptureFile) -> anyhow::Result<Self> {
        let (mut places, mut rings) = (Vec::new(), Vec::new());
        let mut recorders = HashMap::new();
        let events = capture.end().map(|end| end.stats.rings.clone()).unwrap_or_default();
        for (ring, index) in capture.rings().iter().zip(0..) {
            let recorder = match ring.role {
                RingRole::Shard { recorder, .. } => recorder,
                RingRole::Single => index,
            };
            if let Some(place) = recorders.get(&recorder) {
                places.push(*place);
                continue;
            }
            let is_its = |(_, other): &(usize, &CapturedRing)| match other.role {
                RingRole::Shard { recorder: of, .. } => of == recorder,
                RingRole::Single => false,
            };
            let shards = capture.rings().iter().enumerate().filter(is_its).map(|(index, _)| index);
            let own = shards.chain([index as usize]).map(|index| events.get(index).map_or(0, |ring| ring.events));
            let made = make(ring, own.sum(), &capture.catalog(recorder))?;
            rings.push(ReplayedRing { recorder: made, blocks: HashMap::new() });
            recorders.insert(recorder, rings.len() - 1);
            places.push(rings.len() - 1);
        }
        Ok(Self { capture, places, rings })
    }

    /// Records all events. Returns false if the user has stopped it.
    pub(super) fn run(&mut self, speed: Speed, interrupt: &Interrupt) -> anyhow::Result<bool> {
        let begun = Instant::now();
        let mut first_nanos = None;
        for record in self.capture.events() {
            let CapturedContent::Event { descriptor, payload } = record.content else { continue };
            let first_nanos = *first_nanos.get_or_insert(descriptor.record_epoch_nanos);
            if let Speed::Times(times) = speed {
                let since = descriptor.record_epoch_nanos.saturating_sub(first_nanos) as f64 / times;
                let due = Duration::from_nanos(since as u64);
                while let Some(left) = due.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
                    if interrupt.came() {
                        return Ok(false);
                    }
                    std::thread::sleep(left.min(PAUSE));
                }
            }
            let Some(place) = self.places.get(record.ring as usize) else { continue };
            // An event without its payload would not be the event that was recorded.
            if let CapturedPayload::Valid(payload) = payload {
                self.rings[*place].record(descriptor.seqno, descriptor.event_type, descriptor.content_ext, &payload);
            }
        }
        Ok(true)
    }
}

impl ReplayedRing {
    /// Records an event. An event of a block names its BLOCK_START by its seqno, which is another one in this ring.
    fn record(&mut self, old_seqno: u64, event_type: u16, mut content_ext: [u64; 4], payload: &[u8]) {
        if self.recorder.description().content_type() == CONTENT_TYPE_EXEC {
            if event_type == ExecEvent::BlockStart as u16 {
                if self.blocks.len() >= BLOCKS_MAX {
                    self.blocks.clear();
                }
                // Only this thread records into the ring.
                self.blocks.insert(old_seqno, self.recorder.stats().last_seqno + 1);
            }
            content_ext[0] = self.blocks.get(&content_ext[0]).copied().unwrap_or(content_ext[0]);
        }
        self.recorder.record(event_type, content_ext, payload);
    }
}

/// Makes a ring with room for all events, if they are not too many.
fn make(ring: &CapturedRing, events: u64, catalog: &Catalog) -> anyhow::Result<Recorder> {
    let shift = |wanted: u64, min: u32, max: u32| wanted.max(1).next_power_of_two().trailing_zeros().clamp(min, max);
    let descriptors = shift(ring.descriptor_capacity.max(events), 16, SHIFTS_MAX.0);
    let payloads = shift(ring.payload_buf_bytes, 27, SHIFTS_MAX.1);
    let description = ContentDescription::new(ring.content_type, ring.content_name.clone())
        .schema_hash(ring.schema_hash)
        .schema_text(ring.schema_text.clone());
    let builder = Recorder::builder(description).anonymous().shifts(descriptors, payloads).prefault(false);
    let builder = builder.served_name(ring.name.rsplit('/').next().unwrap_or_default());
    let made = if ring.is_perf() { ring_with_tables(builder, catalog) } else { builder.build() };
    made.map_err(|error| Exit::Failed.failure(format!("cannot make a ring for {}: {error}", ring.name)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read_as_people_write_them() {
        assert_eq!(Speed::parse("1x"), Ok(Speed::Times(1.0)));
        assert_eq!(Speed::parse("0.5x"), Ok(Speed::Times(0.5)));
        assert_eq!(Speed::parse("10"), Ok(Speed::Times(10.0)));
        assert_eq!(Speed::parse("max"), Ok(Speed::Max));
        assert!(["0x", "-1x", "x", "fast", "infx"].iter().all(|text| Speed::parse(text).is_err()));
    }
}
