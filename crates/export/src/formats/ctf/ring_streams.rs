//! The streams of a ring.
//!
//! The times in a stream never decrease. The times in a ring may decrease: if threads share the ring, an event with an
//! earlier time may get a later seqno. This event is written to another stream. Readers merge the streams by time.
//!
//! A ring has at most 16 streams. If a damaged ring needs more, an event that fits no stream gets a later time: the
//! earliest last time of the streams. An event after the year 2262 gets an earlier time.

use super::stream::{PacketHead, Stream};
use crate::formats::files::ExportFiles;
use std::io;

/// The largest number of streams of a ring. A ring needs one for each thread that is late at the same time, so only a
/// damaged ring needs more.
const STREAMS_MAX: usize = 16;
/// The last time that readers can represent.
const NANOS_MAX: u64 = i64::MAX as u64 - 1;

/// The streams of a ring that are being written.
pub(super) struct RingStreams {
    ring: u32,
    /// What each packet of the ring begins with. Each stream has another number.
    head: PacketHead,
    created_nanos: u64,
    /// The first stream has the losses of the ring.
    streams: Vec<Stream>,
    /// The events that have another time in the trace than in the ring.
    moved: u64,
}

impl RingStreams {
    pub(super) fn new(ring: u32, head: PacketHead, created_nanos: u64) -> Self {
        Self { ring, head, created_nanos, streams: Vec::new(), moved: 0 }
    }

    /// Returns the number that the class of these streams has in the metadata.
    pub(super) fn class_id(&self) -> u32 {
        self.head.class_id
    }

    /// Returns true if the ring has a stream.
    pub(super) fn is_begun(&self) -> bool {
        !self.streams.is_empty()
    }

    pub(super) fn event(
        &mut self,
        files: &mut dyn ExportFiles,
        nanos: u64,
        event_class: u32,
        content: &[u8],
    ) -> io::Result<()> {
        let mut shown_nanos = nanos.min(NANOS_MAX);
        let place = match self.streams.iter().position(|stream| stream.last_nanos() <= shown_nanos) {
            Some(place) => place,
            None if self.streams.len() < STREAMS_MAX => self.begin(files)?,
            None => {
                let earliest = self.streams.iter().enumerate().min_by_key(|(_, stream)| stream.last_nanos());
                let (place, last_nanos) = earliest.map_or((0, 0), |(place, stream)| (place, stream.last_nanos()));
                shown_nanos = last_nanos;
                place
            }
        };
        self.moved += u64::from(shown_nanos != nanos);
        self.streams[place].event(shown_nanos, event_class, content)
    }

    pub(super) fn lose(&mut self, files: &mut dyn ExportFiles, count: u64) -> io::Result<()> {
        if self.streams.is_empty() {
            self.begin(files)?;
        }
        self.streams[0].lose(count);
        Ok(())
    }

    /// Writes what is not written yet. Returns the number of events that have another time in the trace than in the
    /// ring.
    pub(super) fn finish(&mut self, last_nanos: u64) -> io::Result<u64> {
        for stream in &mut self.streams {
            stream.finish(last_nanos.min(NANOS_MAX))?;
        }
        Ok(self.moved)
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.streams.iter().map(Stream::kept_bytes).sum()
    }

    /// Begins a stream, and returns its index.
    fn begin(&mut self, files: &mut dyn ExportFiles) -> io::Result<usize> {
        let index = self.streams.len();
        let name = match index {
            0 => format!("stream_{}", self.ring),
            _ => format!("stream_{}_{index}", self.ring),
        };
        let head = PacketHead { stream_id: (index as u64) << 32 | u64::from(self.ring), ..self.head.clone() };
        self.streams.push(Stream::new(files.create(&name)?, head, self.created_nanos.min(NANOS_MAX)));
        Ok(index)
    }
}
