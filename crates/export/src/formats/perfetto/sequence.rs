//! Packet sequences. A sequence has a default track, interned texts and an incremental clock. So a packet holds only
//! the time since the packet before, and names its track only if this track is not the default one.

use super::fields;
use super::intern::Interner;
use super::messages::{
    CLOCK_REALTIME, ClockSnapshot, SEQ_INCREMENTAL_STATE_CLEARED, SnapshotClock, TracePacket, TracePacketDefaults,
    TrackEventDefaults,
};
use super::wire::uint;
use crate::formats::trace_writer::TrackId;

/// The id of the sequence of all packets that are no events.
pub(super) const HEAD_SEQUENCE: u32 = 1;

/// The largest number of sequences of events. This bounds the memory for interned texts. The ids of all sequences have
/// one byte in the trace.
const SEQUENCES_MAX: usize = 64;

/// A clock whose times are the differences from the time before, in nanoseconds. Each sequence has its own.
const INCREMENTAL_CLOCK: u32 = 64;

/// A sequence of events.
pub(super) struct Sequence {
    id: u32,
    /// The track of packets that name no track.
    track: TrackId,
    last_nanos: u64,
    pub(super) names: Interner,
}

/// The sequences, by track.
#[derive(Default)]
pub(super) struct Sequences {
    all: Vec<Sequence>,
    /// The index of each track's sequence. The numbers of tracks are counted from 1.
    of_track: Vec<Option<u8>>,
}

impl Sequences {
    /// Returns the sequence of a track, if the track has one already.
    pub(super) fn get(&mut self, track: TrackId) -> Option<&mut Sequence> {
        let index = (*self.of_track.get(track.0 as usize)?)?;
        self.all.get_mut(usize::from(index))
    }

    /// Gives a sequence to a track. Returns the sequence, and true if it is new. Once there are as many sequences as
    /// there may be, further tracks use the sequences of earlier tracks.
    pub(super) fn add(&mut self, track: TrackId, base_nanos: u64) -> (&mut Sequence, bool) {
        let count = self.all.len();
        let is_new = count < SEQUENCES_MAX;
        let index = if is_new { count } else { track.0 as usize % SEQUENCES_MAX };
        if is_new {
            let id = HEAD_SEQUENCE + 1 + index as u32;
            self.all.push(Sequence { id, track, last_nanos: base_nanos, names: Interner::new() });
        }
        if self.of_track.len() <= track.0 as usize {
            self.of_track.resize(track.0 as usize + 1, None);
        }
        self.of_track[track.0 as usize] = Some(index as u8);
        (&mut self.all[index], is_new)
    }
}

impl Sequence {
    /// Returns the packet with which the sequence begins, or begins anew: what later packets do not say again.
    pub(super) fn defaults(&self, is_first: bool) -> TracePacket {
        TracePacket {
            trusted_packet_sequence_id: Some(self.id),
            sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED),
            first_packet_on_sequence: is_first.then_some(true),
            trace_packet_defaults: Some(TracePacketDefaults {
                track_event_defaults: Some(TrackEventDefaults { track_uuid: Some(self.track.0) }),
                timestamp_clock_id: Some(INCREMENTAL_CLOCK),
            }),
            ..TracePacket::default()
        }
    }

    /// Returns the packet that starts the sequence's clock at a time of the wall clock.
    pub(super) fn clock(&self, base_nanos: u64) -> TracePacket {
        let clock =
            |id, is_incremental| SnapshotClock { clock_id: Some(id), timestamp: Some(base_nanos), is_incremental };
        TracePacket {
            trusted_packet_sequence_id: Some(self.id),
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![clock(CLOCK_REALTIME, None), clock(INCREMENTAL_CLOCK, Some(true))],
                primary_trace_clock: None,
            }),
            ..TracePacket::default()
        }
    }

    /// Appends the sequence and the time of a packet. A time before that of the last packet is written in full, because
    /// an incremental clock does not go back.
    pub(super) fn stamp(&mut self, out: &mut Vec<u8>, nanos: u64) {
        uint(out, fields::SEQUENCE_ID, self.id.into());
        if nanos >= self.last_nanos && i64::try_from(nanos).is_ok() {
            uint(out, fields::TIMESTAMP, nanos - self.last_nanos);
            self.last_nanos = nanos;
        } else {
            uint(out, fields::TIMESTAMP, nanos);
            uint(out, fields::TIMESTAMP_CLOCK_ID, CLOCK_REALTIME.into());
        }
    }

    /// Appends the track of an event, unless it is that of the sequence.
    pub(super) fn name_track(&self, out: &mut Vec<u8>, track: TrackId) {
        if track != self.track {
            uint(out, fields::TRACK_UUID, track.0);
        }
    }
}
