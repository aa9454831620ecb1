//! A survey reads every descriptor of a ring once.

use eventring::reader::{GapCause, Next, Reader, RingEnd, Seek};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The events of a ring at one moment, counted.
#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct Survey {
    /// Seqno of the first event in the ring; 0 if the ring is empty.
    pub oldest_seqno: u64,
    /// Seqno of the last event in the ring; 0 if the ring is empty.
    pub newest_seqno: u64,
    /// Events in the ring.
    pub count: u64,
    /// The number of seqnos, up to the last one handed out, that have no event in the ring and are not being written.
    pub lost: u64,
    /// Those of `lost` that came before all that the ring still holds, and were overwritten.
    pub overwritten_before: u64,
    /// The number of events that are being written: their seqnos were handed out, but neither committed nor skipped.
    pub being_written: u64,
    /// Events whose payload has been overwritten.
    pub expired_payloads: u64,
    /// Events that name a payload which the ring cannot hold.
    pub malformed_payloads: u64,
    /// The earliest and the latest time of an event, in nanoseconds since the epoch. `None` if there is no event.
    #[serde(skip)]
    pub times: Option<(u64, u64)>,
    #[serde(skip)]
    pub by_type: BTreeMap<u16, TypeCounts>,
}

/// The events of one type, counted.
#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct TypeCounts {
    pub count: u64,
    pub payload_bytes: u64,
}

impl Survey {
    /// Adds the newest event to an end, as a sign of life.
    pub(crate) fn seen_until(&self, end: RingEnd) -> RingEnd {
        end.seen_at(self.times.map_or(0, |times| times.1))
    }

    /// Reads every event that the ring holds now, from the oldest to the newest. Events that a live writer overwrites
    /// before they are read count as lost.
    pub(crate) fn read(reader: &Reader) -> Self {
        let info = reader.info();
        let last_seqno = info.last_seqno;
        let mut cursor = reader.cursor();
        cursor.seek(Seek::Oldest);
        let mut survey = Self::default();
        while cursor.next_seqno() <= last_seqno {
            match cursor.next() {
                Next::Event(event) => {
                    if survey.count == 0 {
                        survey.oldest_seqno = event.seqno;
                    }
                    survey.newest_seqno = event.seqno;
                    survey.count += 1;
                    if u64::from(event.payload_size) > info.geometry.payload_buf_bytes() {
                        survey.malformed_payloads += 1;
                    } else if !cursor.payload_is_valid(&event) {
                        survey.expired_payloads += 1;
                    }
                    survey.add_times((event.record_epoch_nanos, event.record_epoch_nanos));
                    let counts = survey.by_type.entry(event.event_type).or_default();
                    counts.count += 1;
                    counts.payload_bytes += u64::from(event.payload_size);
                }
                Next::Gap(gap) if gap.cause == GapCause::OverwrittenBefore => survey.overwritten_before += gap.count,
                Next::Gap(_) => {}
                // The cursor has reached the end of the ring, but this end is below `last_seqno`. So the last seqno in
                // the header has become smaller since it was read. This happens only in a damaged file.
                Next::NotReady if cursor.lag() == 0 => break,
                Next::NotReady => survey.being_written += cursor.pass_unready(last_seqno),
            }
        }
        survey.lost = last_seqno.saturating_sub(survey.count + survey.being_written);
        survey
    }

    /// Adds the counts of another shard. The oldest and newest seqno stay as they are, because each shard numbers its
    /// own events.
    pub(crate) fn add(&mut self, other: &Self) {
        let counts = [
            (&mut self.count, other.count),
            (&mut self.lost, other.lost),
            (&mut self.overwritten_before, other.overwritten_before),
            (&mut self.being_written, other.being_written),
            (&mut self.expired_payloads, other.expired_payloads),
            (&mut self.malformed_payloads, other.malformed_payloads),
        ];
        for (sum, count) in counts {
            *sum = sum.saturating_add(count);
        }
        if let Some(times) = other.times {
            self.add_times(times);
        }
        for (code, counts) in &other.by_type {
            let sum = self.by_type.entry(*code).or_default();
            sum.count = sum.count.saturating_add(counts.count);
            sum.payload_bytes = sum.payload_bytes.saturating_add(counts.payload_bytes);
        }
    }

    fn add_times(&mut self, (first, last): (u64, u64)) {
        let (earliest, latest) = self.times.unwrap_or((first, last));
        self.times = Some((earliest.min(first), latest.max(last)));
    }
}
