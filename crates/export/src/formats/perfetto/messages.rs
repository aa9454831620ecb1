//! The messages of a Perfetto trace that `prost` encodes, with only the fields that eventring writes. The field numbers
//! are those of `perfetto/trace/trace_packet.proto` and its imports.

use prost::Message;

/// `Trace`. Several of these in a row are a trace, too.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub(super) packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(message, optional, tag = "6")]
    pub(super) clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(super) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "12")]
    pub(super) interned_data: Option<InternedCode>,
    #[prost(uint32, optional, tag = "13")]
    pub(super) sequence_flags: Option<u32>,
    #[prost(uint32, optional, tag = "58")]
    pub(super) timestamp_clock_id: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub(super) trace_packet_defaults: Option<TracePacketDefaults>,
    #[prost(message, optional, tag = "60")]
    pub(super) track_descriptor: Option<TrackDescriptor>,
    #[prost(message, optional, tag = "66")]
    pub(super) perf_sample: Option<PerfSample>,
    #[prost(bool, optional, tag = "87")]
    pub(super) first_packet_on_sequence: Option<bool>,
}

/// `TracePacket.SequenceFlags`.
pub(super) const SEQ_INCREMENTAL_STATE_CLEARED: u32 = 1;

/// `BuiltinClock`.
pub(super) const CLOCK_REALTIME: u32 = 1;
pub(super) const CLOCK_MONOTONIC: u32 = 3;
pub(super) const CLOCK_BOOTTIME: u32 = 6;

#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacketDefaults {
    #[prost(message, optional, tag = "11")]
    pub(super) track_event_defaults: Option<TrackEventDefaults>,
    #[prost(uint32, optional, tag = "58")]
    pub(super) timestamp_clock_id: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEventDefaults {
    #[prost(uint64, optional, tag = "11")]
    pub(super) track_uuid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(super) clocks: Vec<SnapshotClock>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) primary_trace_clock: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SnapshotClock {
    #[prost(uint32, optional, tag = "1")]
    pub(super) clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) timestamp: Option<u64>,
    #[prost(bool, optional, tag = "3")]
    pub(super) is_incremental: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(super) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub(super) process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    pub(super) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub(super) counter: Option<CounterDescriptor>,
    #[prost(bool, optional, tag = "9")]
    pub(super) disallow_merging_with_system_tracks: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    pub(super) process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(int64, optional, tag = "2")]
    pub(super) tid: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub(super) thread_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CounterDescriptor {}

/// `TrackEvent.Type`.
pub(super) const TYPE_SLICE_BEGIN: u32 = 1;
pub(super) const TYPE_SLICE_END: u32 = 2;
pub(super) const TYPE_INSTANT: u32 = 3;
pub(super) const TYPE_COUNTER: u32 = 4;

/// What `InternedData` has for samples.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedCode {
    #[prost(message, repeated, tag = "5")]
    pub(super) function_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "6")]
    pub(super) frames: Vec<Frame>,
    #[prost(message, repeated, tag = "7")]
    pub(super) callstacks: Vec<Callstack>,
    #[prost(message, repeated, tag = "17")]
    pub(super) mapping_paths: Vec<InternedString>,
    #[prost(message, repeated, tag = "19")]
    pub(super) mappings: Vec<Mapping>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedString {
    #[prost(uint64, optional, tag = "1")]
    pub(super) iid: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) str: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Frame {
    #[prost(uint64, optional, tag = "1")]
    pub(super) iid: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) function_name_id: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) mapping_id: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(super) rel_pc: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Callstack {
    #[prost(uint64, optional, tag = "1")]
    pub(super) iid: Option<u64>,
    /// The outermost frame first.
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub(super) frame_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Mapping {
    #[prost(uint64, optional, tag = "1")]
    pub(super) iid: Option<u64>,
    #[prost(uint64, repeated, packed = "false", tag = "7")]
    pub(super) path_string_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PerfSample {
    #[prost(uint32, optional, tag = "1")]
    pub(super) cpu: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) pid: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub(super) tid: Option<u32>,
    #[prost(uint64, optional, tag = "4")]
    pub(super) callstack_iid: Option<u64>,
    #[prost(uint32, optional, tag = "5")]
    pub(super) cpu_mode: Option<u32>,
}

/// `Profiling.CpuMode`.
pub(super) const MODE_KERNEL: u32 = 1;
pub(super) const MODE_USER: u32 = 2;
