//! One look at every descriptor of a ring.

use eventring::reader::{Next, Reader, Seek};
use std::collections::BTreeMap;

/// What is in a ring at one moment.
#[derive(Default)]
pub(super) struct Survey {
    /// Seqno of the first event that is there; 0 if there is none.
    pub oldest_seqno: u64,
    /// Seqno of the last event that is there; 0 if there is none.
    pub newest_seqno: u64,
    /// Events that are there.
    pub count: u64,
    /// Sequence numbers up to the newest that are not there.
    pub lost: u64,
    /// Those whose events are being written: handed out, and neither committed nor given up.
    pub being_written: u64,
    /// Events whose payload has been overwritten.
    pub expired_payloads: u64,
    /// Events that name a payload which the ring cannot hold.
    pub malformed_payloads: u64,
    /// Earliest and latest time of recording, nanoseconds since the epoch.
    pub times: Option<(u64, u64)>,
    pub by_type: BTreeMap<u16, OfType>,
}

/// The events of one type.
#[derive(Default)]
pub(super) struct OfType {
    pub count: u64,
    pub payload_bytes: u64,
}

impl Survey {
    /// Looks at every event from the oldest to the one that is the newest now. A live writer may overtake: what it overwrites
    /// meanwhile is not there.
    pub(super) fn of(reader: &Reader) -> Self {
        // Behind the very last number no cursor can go; only a damaged header comes near.
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
                    let of_type = survey.by_type.entry(event.event_type).or_default();
                    of_type.count += 1;
                    of_type.payload_bytes += u64::from(event.payload_size);
                }
                Next::Gap(_) => {}
                // The header says by now that so many were never handed out: it is damaged.
                Next::NotReady if cursor.lag() == 0 => break,
                Next::NotReady => survey.being_written += cursor.pass_unready(last_seqno),
            }
        }
        survey.lost = last_seqno.saturating_sub(survey.count + survey.being_written);
        survey
    }

    /// Adds what is in another shard; its sequence numbers are its own.
    pub(super) fn add(&mut self, other: &Self) {
        let counts = [
            (&mut self.count, other.count),
            (&mut self.lost, other.lost),
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
        for (code, of_type) in &other.by_type {
            let sum = self.by_type.entry(*code).or_default();
            sum.count = sum.count.saturating_add(of_type.count);
            sum.payload_bytes = sum.payload_bytes.saturating_add(of_type.payload_bytes);
        }
    }

    fn add_times(&mut self, (first, last): (u64, u64)) {
        let (earliest, latest) = self.times.unwrap_or((first, last));
        self.times = Some((earliest.min(first), latest.max(last)));
    }
}
