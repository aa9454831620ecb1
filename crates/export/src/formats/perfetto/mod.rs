//! Traces for Perfetto.
//!
//! | file | idea |
//! |---|---|
//! | `sequence` | packet sequences, each with a track, a clock and interned texts |
//! | `intern` | the interned texts of one sequence |
//! | `colours` | the colours that the UI gives to losses and log records |
//! | `samples` | samples of stacks |
//! | `events` | slices, instants and samples of counters, encoded |
//! | `compress` | the output: packets that contain many compressed packets |
//! | `messages` | rare messages, which `prost` encodes |
//! | `wire`, `fields` | the encoding of frequent messages |

mod colours;
mod compress;
mod events;
mod fields;
mod intern;
mod messages;
mod samples;
mod sequence;
mod wire;

#[cfg(test)]
pub(crate) mod tests;

use self::compress::PacketsOut;
use self::events::Event;
use self::messages::{
    CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_REALTIME, ClockSnapshot, CounterDescriptor, ProcessDescriptor,
    SEQ_INCREMENTAL_STATE_CLEARED, SnapshotClock, TYPE_COUNTER, TYPE_INSTANT, TYPE_SLICE_BEGIN, TYPE_SLICE_END,
    ThreadDescriptor, Trace, TracePacket, TracePacketDefaults, TrackDescriptor,
};
use self::samples::WrittenCode;
use self::sequence::{HEAD_SEQUENCE, Sequences};
use super::trace_writer::{Label, SliceId, StackSample, TraceWriter, Track, TrackId, TrackKind};
use crate::args::Args;
use eventring::schema::perf::FieldValue;
use eventring_capture::CaptureFile;
use prost::Message;
use std::collections::HashMap;
use std::io::{self, Write};

/// The writer of a Perfetto trace.
pub(crate) struct PerfettoWriter<'o> {
    out: PacketsOut<'o>,
    capture: &'o CaptureFile,
    /// The time at which the clocks of all sequences start. Few events happen before it.
    base_nanos: u64,
    sequences: Sequences,
    has_begun: bool,
    /// The process id of each process track.
    pids: HashMap<TrackId, i32>,
    /// A count that goes down by one for each unknown process or thread id. In place of the unknown id, the trace gets
    /// the number `i32::MAX + unknown_ids`.
    unknown_ids: i32,
    code: WrittenCode,
}

impl<'o> PerfettoWriter<'o> {
    /// Makes a writer of a trace whose first event happened at `first_nanos`.
    pub(crate) fn new(out: &'o mut dyn Write, capture: &'o CaptureFile, first_nanos: u64) -> Self {
        Self {
            out: PacketsOut::new(out),
            capture,
            base_nanos: first_nanos.min(capture.started_epoch_nanos()),
            sequences: Sequences::default(),
            has_begun: false,
            pids: HashMap::new(),
            unknown_ids: 0,
            code: WrittenCode::default(),
        }
    }

    fn write(&mut self, packet: TracePacket) -> io::Result<()> {
        if !self.has_begun {
            self.has_begun = true;
            for packet in self.first_packets() {
                self.encode(packet)?;
            }
            self.out.write_plain()?;
        }
        self.encode(TracePacket { trusted_packet_sequence_id: Some(HEAD_SEQUENCE), ..packet })
    }

    fn encode(&mut self, packet: TracePacket) -> io::Result<()> {
        Trace { packet: vec![packet] }.encode(self.out.packet()).map_err(io::Error::other)?;
        self.out.end_packet()
    }

    /// Returns the first packets of the trace. They name the clock of all times that are written in full, and relate it
    /// to the system's other clocks.
    fn first_packets(&self) -> [TracePacket; 2] {
        let since_base = self.capture.started_epoch_nanos() - self.base_nanos;
        // If the system started after the first event, its other clocks had no time then.
        let clock = |clock_id, started_nanos: u64| {
            let timestamp = Some(started_nanos.checked_sub(since_base)?);
            Some(SnapshotClock { clock_id: Some(clock_id), timestamp, is_incremental: None })
        };
        let clocks = [
            clock(CLOCK_REALTIME, self.capture.started_epoch_nanos()),
            clock(CLOCK_BOOTTIME, self.capture.started_boot_nanos()),
            clock(CLOCK_MONOTONIC, self.capture.started_monotonic_nanos()),
        ];
        let snapshot =
            ClockSnapshot { clocks: clocks.into_iter().flatten().collect(), primary_trace_clock: Some(CLOCK_REALTIME) };
        let defaults = TracePacketDefaults { timestamp_clock_id: Some(CLOCK_REALTIME), track_event_defaults: None };
        let packet = TracePacket { trusted_packet_sequence_id: Some(HEAD_SEQUENCE), ..TracePacket::default() };
        [
            TracePacket {
                sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED),
                first_packet_on_sequence: Some(true),
                trace_packet_defaults: Some(defaults),
                ..packet.clone()
            },
            TracePacket {
                clock_snapshot: Some(snapshot),
                timestamp: Some(self.base_nanos),
                timestamp_clock_id: Some(CLOCK_REALTIME),
                ..packet
            },
        ]
    }

    /// Writes an event, and before it what its sequence needs.
    fn event(&mut self, track: TrackId, nanos: u64, event: &Event<'_>) -> io::Result<()> {
        match self.sequences.get(track) {
            None => {
                let (sequence, is_new) = self.sequences.add(track, self.base_nanos);
                if is_new {
                    let packets = [sequence.defaults(true), sequence.clock(self.base_nanos)];
                    packets.into_iter().try_for_each(|packet| self.encode(packet))?;
                }
            }
            Some(sequence) if sequence.names.is_full() => {
                sequence.names.clear();
                let defaults = sequence.defaults(false);
                self.encode(defaults)?;
            }
            Some(_) => {}
        }
        let Some(sequence) = self.sequences.get(track) else { return Ok(()) };
        event.encode(self.out.packet(), sequence, track, nanos);
        self.out.end_packet()
    }

    fn known_or_new(&mut self, id: u32) -> i32 {
        match i32::try_from(id) {
            Ok(id) if id > 0 => id,
            _ => {
                self.unknown_ids -= 1;
                i32::MAX + self.unknown_ids
            }
        }
    }
}

impl TraceWriter for PerfettoWriter<'_> {
    fn track(&mut self, id: TrackId, track: &Track<'_>) -> io::Result<()> {
        let mut descriptor = TrackDescriptor { uuid: Some(id.0), ..TrackDescriptor::default() };
        let name = Some(track.name.to_owned());
        match track.kind {
            TrackKind::Process => {
                let pid = self.known_or_new(track.pid);
                self.pids.insert(id, pid);
                descriptor.process = Some(ProcessDescriptor { pid: Some(pid), process_name: name });
            }
            TrackKind::Thread { process, os_thread_id } => {
                descriptor.parent_uuid = Some(process.0);
                // Viewers group threads by this number, so it must be that of the process, even if it is made up.
                let pid = match self.pids.get(&process) {
                    Some(pid) => *pid,
                    None => self.known_or_new(track.pid),
                };
                let tid = i64::from(self.known_or_new(os_thread_id));
                descriptor.thread = Some(ThreadDescriptor { pid: Some(pid), tid: Some(tid), thread_name: name });
                // Several threads may have had this number, one after the other. So their tracks must not be merged.
                descriptor.disallow_merging_with_system_tracks = Some(true);
            }
            TrackKind::Plain { parent } => (descriptor.parent_uuid, descriptor.name) = (Some(parent.0), name),
            TrackKind::Counter { process } => {
                (descriptor.parent_uuid, descriptor.name) = (Some(process.0), name);
                descriptor.counter = Some(CounterDescriptor {});
            }
        }
        self.write(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })
    }

    fn begin(&mut self, track: TrackId, _: SliceId, nanos: u64, label: Label<'_>, args: &Args) -> io::Result<()> {
        self.event(track, nanos, &Event { r#type: TYPE_SLICE_BEGIN, label: Some(label), args, value: None })
    }

    fn end(&mut self, track: TrackId, _: SliceId, nanos: u64, args: &Args) -> io::Result<()> {
        self.event(track, nanos, &Event { r#type: TYPE_SLICE_END, label: None, args, value: None })
    }

    fn instant(&mut self, track: TrackId, nanos: u64, label: Label<'_>, args: &Args) -> io::Result<()> {
        self.event(track, nanos, &Event { r#type: TYPE_INSTANT, label: Some(label), args, value: None })
    }

    fn counter(&mut self, track: TrackId, nanos: u64, value: &FieldValue) -> io::Result<()> {
        let args = &Args::default();
        self.event(track, nanos, &Event { r#type: TYPE_COUNTER, label: None, args, value: Some(value) })
    }

    fn sample(&mut self, sample: &StackSample<'_>) -> io::Result<()> {
        let packet = self.code.packet(sample);
        self.write(packet)
    }

    fn finish(&mut self) -> io::Result<()> {
        // The first packet that is written also writes the head of the trace. So a capture without events becomes a
        // valid trace, not an empty file.
        if !self.has_begun {
            self.write(TracePacket::default())?;
        }
        self.out.finish()
    }
}
