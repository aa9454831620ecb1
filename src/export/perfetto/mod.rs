//! Traces for Perfetto.

mod intern;
mod messages;

use self::intern::Interner;
use self::messages::{
    CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_REALTIME, ClockSnapshot, CounterDescriptor, DebugAnnotation,
    ProcessDescriptor, SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE, SnapshotClock, TYPE_COUNTER,
    TYPE_INSTANT, TYPE_SLICE_BEGIN, TYPE_SLICE_END, ThreadDescriptor, Trace, TracePacket, TracePacketDefaults,
    TrackDescriptor, TrackEvent,
};
use super::args::{Arg, ArgValue, Args, CUT};
use super::trace_writer::{Label, SliceId, TraceWriter, Track, TrackId, TrackKind};
use crate::capture::CaptureFile;
use crate::schema::perf::FieldValue;
use prost::Message;
use std::io::{self, Write};

/// The id of the trace's only packet sequence. Names are interned for each sequence, so with one sequence each name is
/// written once.
const SEQUENCE: u32 = 1;

/// The writer of a Perfetto trace. It writes every packet immediately.
pub(super) struct PerfettoWriter<'o> {
    out: &'o mut dyn Write,
    capture: &'o CaptureFile,
    names: Interner,
    has_begun: bool,
    buffer: Vec<u8>,
    /// A count that goes down by one for each unknown process or thread id. In place of the unknown id, the trace gets
    /// the number `i32::MAX + unknown_ids`.
    unknown_ids: i32,
}

impl<'o> PerfettoWriter<'o> {
    pub(super) fn new(out: &'o mut dyn Write, capture: &'o CaptureFile) -> Self {
        Self { out, capture, names: Interner::default(), has_begun: false, buffer: Vec::new(), unknown_ids: 0 }
    }

    fn write(&mut self, packet: TracePacket) -> io::Result<()> {
        if !self.has_begun {
            self.has_begun = true;
            for packet in self.first_packets() {
                self.encode(packet)?;
            }
        }
        self.encode(packet)
    }

    fn encode(&mut self, packet: TracePacket) -> io::Result<()> {
        self.buffer.clear();
        let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        Trace { packet: vec![packet] }.encode(&mut self.buffer).map_err(io::Error::other)?;
        self.out.write_all(&self.buffer)
    }

    /// Returns the first packets of the trace. They name the clock of all packets, and relate it to the system's other
    /// clocks.
    fn first_packets(&self) -> [TracePacket; 2] {
        let clock = |id, nanos| SnapshotClock { clock_id: Some(id), timestamp: Some(nanos) };
        let snapshot = ClockSnapshot {
            clocks: vec![
                clock(CLOCK_REALTIME, self.capture.started_epoch_nanos()),
                clock(CLOCK_BOOTTIME, self.capture.started_boot_nanos()),
                clock(CLOCK_MONOTONIC, self.capture.started_monotonic_nanos()),
            ],
            primary_trace_clock: Some(CLOCK_REALTIME),
        };
        let defaults = TracePacketDefaults { timestamp_clock_id: Some(CLOCK_REALTIME) };
        [
            TracePacket {
                sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED),
                first_packet_on_sequence: Some(true),
                trace_packet_defaults: Some(defaults),
                ..TracePacket::default()
            },
            TracePacket {
                clock_snapshot: Some(snapshot),
                timestamp: Some(self.capture.started_epoch_nanos()),
                timestamp_clock_id: Some(CLOCK_REALTIME),
                ..TracePacket::default()
            },
        ]
    }

    fn event(&mut self, nanos: u64, event: TrackEvent) -> io::Result<()> {
        let interned_data = self.names.take();
        self.write(TracePacket {
            timestamp: Some(nanos),
            track_event: Some(event),
            interned_data,
            sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE),
            ..TracePacket::default()
        })
    }

    fn labelled(&mut self, label: Label<'_>, args: Args) -> TrackEvent {
        let category_iids =
            if label.category.is_empty() { Vec::new() } else { vec![self.names.category(label.category)] };
        TrackEvent {
            category_iids,
            name_iid: Some(self.names.event(label.name)),
            source_location_iid: label.source.map(|(file, line)| self.names.source(file, line)),
            debug_annotations: self.annotations(args),
            ..TrackEvent::default()
        }
    }

    fn annotations(&mut self, args: Args) -> Vec<DebugAnnotation> {
        let mut annotation = |name: &str, value: ArgValue| {
            let mut annotation =
                DebugAnnotation { name_iid: Some(self.names.annotation(name)), ..DebugAnnotation::default() };
            match value {
                ArgValue::Int(value) => annotation.int_value = Some(value),
                ArgValue::Uint(value) => annotation.uint_value = Some(value),
                ArgValue::Float(value) => annotation.double_value = Some(value),
                ArgValue::Bool(value) => annotation.bool_value = Some(value),
                ArgValue::Text(text) => annotation.string_value = Some(text),
                ArgValue::Unknown => annotation.string_value = Some("unknown".into()),
            }
            annotation
        };
        let (mut annotations, mut cuts) = (Vec::new(), Vec::new());
        for Arg { name, value, cut } in args.0 {
            annotations.push(annotation(&name, value));
            cuts.extend(cut.map(|cut| annotation(&name, cut)));
        }
        if !cuts.is_empty() {
            let name_iid = Some(self.names.annotation(CUT));
            annotations.push(DebugAnnotation { name_iid, dict_entries: cuts, ..DebugAnnotation::default() });
        }
        annotations
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
                descriptor.process = Some(ProcessDescriptor { pid: Some(pid), process_name: name });
            }
            TrackKind::Thread { process, os_thread_id } => {
                descriptor.parent_uuid = Some(process.0);
                let pid = self.known_or_new(track.pid);
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

    fn begin(&mut self, track: TrackId, _: SliceId, nanos: u64, label: Label<'_>, args: Args) -> io::Result<()> {
        let event = self.labelled(label, args);
        let event = TrackEvent { r#type: Some(TYPE_SLICE_BEGIN), track_uuid: Some(track.0), ..event };
        self.event(nanos, event)
    }

    fn end(&mut self, track: TrackId, _: SliceId, nanos: u64, args: Args) -> io::Result<()> {
        let event = TrackEvent {
            r#type: Some(TYPE_SLICE_END),
            track_uuid: Some(track.0),
            debug_annotations: self.annotations(args),
            ..TrackEvent::default()
        };
        self.event(nanos, event)
    }

    fn instant(&mut self, track: TrackId, nanos: u64, label: Label<'_>, args: Args) -> io::Result<()> {
        let event = self.labelled(label, args);
        let event = TrackEvent { r#type: Some(TYPE_INSTANT), track_uuid: Some(track.0), ..event };
        self.event(nanos, event)
    }

    fn counter(&mut self, track: TrackId, nanos: u64, value: &FieldValue) -> io::Result<()> {
        let integer = match value {
            FieldValue::I64(value) => Some(*value),
            FieldValue::U64(value) => i64::try_from(*value).ok(),
            _ => None,
        };
        let event = TrackEvent {
            r#type: Some(TYPE_COUNTER),
            track_uuid: Some(track.0),
            counter_value: integer,
            double_counter_value: if integer.is_none() { value.as_f64() } else { None },
            ..TrackEvent::default()
        };
        self.event(nanos, event)
    }

    fn finish(&mut self) -> io::Result<()> {
        // The first packet that is written also writes the head of the trace. So a capture without events becomes a
        // valid trace, not an empty file.
        if !self.has_begun {
            self.write(TracePacket::default())?;
        }
        Ok(())
    }
}
