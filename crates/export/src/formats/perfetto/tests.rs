//! The traces that the writer writes, decoded with `prost`.

use super::*;
use crate::args::ArgValue;
use crate::formats::trace_writer::{FlowEnds, FlowId};
use eventring_capture::fixtures::CaptureFixture;
use std::io::Read as _;

#[derive(Clone, PartialEq, Message)]
struct DecodedTrace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(message, optional, tag = "6")]
    clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, tag = "10")]
    sequence: u32,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    interned_data: Option<InternedData>,
    #[prost(uint32, tag = "13")]
    sequence_flags: u32,
    #[prost(bytes, tag = "50")]
    compressed_packets: Vec<u8>,
    #[prost(uint32, optional, tag = "58")]
    timestamp_clock_id: Option<u32>,
    #[prost(message, optional, tag = "59")]
    defaults: Option<TracePacketDefaults>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    annotations: Vec<Annotation>,
    #[prost(uint32, tag = "9")]
    r#type: u32,
    #[prost(uint64, tag = "10")]
    name_iid: u64,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, tag = "23")]
    name: String,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Annotation {
    #[prost(string, tag = "6")]
    string_value: String,
    #[prost(uint64, tag = "17")]
    string_value_iid: u64,
}

#[derive(Clone, PartialEq, Message)]
struct InternedData {
    #[prost(message, repeated, tag = "2")]
    event_names: Vec<Interned>,
    #[prost(message, repeated, tag = "29")]
    values: Vec<Interned>,
}

#[derive(Clone, PartialEq, Message)]
struct Interned {
    #[prost(uint64, tag = "1")]
    iid: u64,
    #[prost(string, tag = "2")]
    text: String,
}

/// An event of a trace: its track, time, name, and the text of its argument.
type Decoded = (u64, u64, String, String);

/// The state of a packet sequence.
#[derive(Default)]
struct State {
    defaults: TracePacketDefaults,
    names: HashMap<u64, String>,
    values: HashMap<u64, String>,
}

/// Returns a trace in which no packets are compressed.
pub(crate) fn decompressed(trace: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    for packet in DecodedTrace::decode(trace).unwrap().packet {
        if packet.compressed_packets.is_empty() {
            DecodedTrace { packet: vec![packet] }.encode(&mut plain).unwrap();
        } else {
            flate2::read::ZlibDecoder::new(&packet.compressed_packets[..]).read_to_end(&mut plain).unwrap();
        }
    }
    plain
}

/// Returns the events of a trace, and the number of times that a sequence began anew.
fn decode(trace: &DecodedTrace) -> (Vec<Decoded>, usize) {
    let (mut states, mut clocks) = (HashMap::<u32, State>::new(), HashMap::new());
    let (mut events, mut begun) = (Vec::new(), 0);
    for packet in &trace.packet {
        let state = states.entry(packet.sequence).or_default();
        if packet.sequence_flags & SEQ_INCREMENTAL_STATE_CLEARED != 0 {
            *state = State { defaults: packet.defaults.clone().unwrap(), ..State::default() };
            begun += 1;
        }
        for clock in packet.clock_snapshot.iter().flat_map(|snapshot| &snapshot.clocks) {
            if clock.is_incremental == Some(true) {
                clocks.insert((packet.sequence, clock.clock_id), clock.timestamp.unwrap());
            }
        }
        let Some(event) = &packet.track_event else { continue };
        let new = packet.interned_data.clone().unwrap_or_default();
        for (known, new) in [(&mut state.names, new.event_names), (&mut state.values, new.values)] {
            new.into_iter().for_each(|Interned { iid, text }| assert_eq!(known.insert(iid, text), None));
        }
        let clock = packet.timestamp_clock_id.or(state.defaults.timestamp_clock_id);
        let nanos = match clocks.get_mut(&(packet.sequence, clock)) {
            Some(nanos) => {
                *nanos += packet.timestamp.unwrap();
                *nanos
            }
            None => packet.timestamp.unwrap(),
        };
        let track = event.track_uuid.or(state.defaults.track_event_defaults.clone().unwrap().track_uuid).unwrap();
        let text = |iid: u64, text: &str, known: &HashMap<u64, String>| match iid {
            0 => text.to_owned(),
            iid => known[&iid].clone(),
        };
        let annotation = event.annotations.first();
        let value = annotation.map_or_else(String::new, |a| text(a.string_value_iid, &a.string_value, &state.values));
        events.push((track, nanos, text(event.name_iid, &event.name, &state.names), value));
    }
    (events, begun)
}

/// Writes instants: for each its track, time, name, and the text of its argument. Returns the trace.
fn written(first_nanos: u64, events: &[Decoded]) -> DecodedTrace {
    let (capture, mut out) = (CaptureFixture::new().open(), Vec::new());
    let mut writer = PerfettoWriter::new(&mut out, &capture, first_nanos);
    for (track, nanos, name, text) in events {
        let mut args = Args::default();
        args.push("text", ArgValue::Text(text.clone().into()));
        writer.instant(TrackId(*track), *nanos, Label { name, ..Label::default() }, &args).unwrap();
    }
    writer.finish().unwrap();
    DecodedTrace::decode(&decompressed(&out)[..]).unwrap()
}

fn instant(track: u64, nanos: u64, name: impl Into<String>, text: impl Into<String>) -> Decoded {
    (track, nanos, name.into(), text.into())
}

#[test]
fn times_in_any_order_and_of_any_size_come_back() {
    let times = [500, 500, 1_000, 400, 1_001, 3, u64::MAX, 1_002, i64::MAX as u64, i64::MAX as u64 + 1, 0];
    let events: Vec<Decoded> = times.iter().map(|nanos| instant(1 + nanos % 2, *nanos, "event", "")).collect();
    for first_nanos in [0, 400, u64::MAX] {
        assert_eq!(decode(&written(first_nanos, &events)).0, events, "{first_nanos}");
    }
}

#[test]
fn tracks_that_have_no_sequence_of_their_own_name_their_track() {
    let events: Vec<Decoded> = (0..1000).map(|n| instant(1 + n % 300, 1000 + n, format!("{}", n % 7), "")).collect();
    let (decoded, begun) = decode(&written(1000, &events));
    assert_eq!(decoded, events);
    assert_eq!(begun, 1 + 64);
}

#[test]
fn a_text_that_repeats_is_written_twice_and_one_that_is_long_or_occurs_once_is_never_interned() {
    let long = "x".repeat(10_000);
    let mut events = vec![instant(1, 1000, &long, &long); 4];
    events.extend((0..100).map(|n| instant(1, 2000, "often", if n % 2 == 0 { "odd".into() } else { format!("{n}") })));
    let trace = written(1000, &events);
    assert_eq!(decode(&trace).0, events);
    let interned: Vec<_> = trace.packet.iter().filter_map(|packet| packet.interned_data.as_ref()).collect();
    let texts: Vec<&str> =
        interned.iter().flat_map(|d| d.event_names.iter().chain(&d.values)).map(|i| &*i.text).collect();
    assert_eq!(texts, ["often", "odd"]);
}

#[test]
fn a_sequence_whose_table_is_full_begins_anew() {
    let events: Vec<Decoded> =
        (0..30_000).map(|n| instant(1, 1000 + n, format!("{}", n / 2), format!("{n}"))).collect();
    let (decoded, begun) = decode(&written(1000, &events));
    assert_eq!(decoded, events);
    // 15,000 names repeat, and a table has 4096 texts.
    assert_eq!(begun, 2 + 15_000 / 4096);
    let long = |n: u64| format!("{:0200}", n / 2);
    let events: Vec<Decoded> = (0..6_000).map(|n| instant(1, 1000 + n, long(n), "")).collect();
    let (decoded, begun) = decode(&written(1000, &events));
    assert_eq!((decoded, begun), (events, 2 + 3_000 * 200 / (1 << 18)));
}

#[test]
fn a_process_without_a_known_id_and_its_threads_have_one_made_up_id() {
    let (capture, mut out) = (CaptureFixture::new().open(), Vec::new());
    let mut writer = PerfettoWriter::new(&mut out, &capture, 0);
    for process in [1, 10] {
        writer.track(TrackId(process), &Track { kind: TrackKind::Process, name: "", pid: 0 }).unwrap();
        for thread in 1..3 {
            let kind = TrackKind::Thread { process: TrackId(process), os_thread_id: 0 };
            writer.track(TrackId(process + thread), &Track { kind, name: "", pid: 0 }).unwrap();
        }
    }
    writer.finish().unwrap();
    let trace = DecodedTrace::decode(&decompressed(&out)[..]).unwrap();
    let tracks = trace.packet.iter().filter_map(|packet| packet.track_descriptor.as_ref());
    let pids: Vec<i32> = tracks
        .map(|track| track.process.as_ref().map_or_else(|| track.thread.as_ref().unwrap().pid, |p| p.pid).unwrap())
        .collect();
    assert!(pids[0] == pids[1] && pids[1] == pids[2] && pids[3] == pids[4] && pids[3] == pids[5], "{pids:?}");
    assert_ne!(pids[0], pids[3]);
}

#[test]
fn flows_begin_and_end_at_the_events_that_name_them() {
    let (capture, mut out) = (CaptureFixture::new().open(), Vec::new());
    let mut writer = PerfettoWriter::new(&mut out, &capture, 0);
    let (begins, ends) = ([FlowId(1), FlowId(u64::MAX)], [FlowId(7)]);
    let label = Label { name: "a", flows: FlowEnds { begins: &begins, ends: &ends }, ..Label::default() };
    writer.begin(TrackId(1), SliceId(1), 5, label, &Args::default()).unwrap();
    writer.finish().unwrap();
    let trace = DecodedTrace::decode(&decompressed(&out)[..]).unwrap();
    let event = trace.packet.iter().find_map(|packet| packet.track_event.as_ref()).unwrap();
    assert_eq!((&event.flow_ids[..], &event.terminating_flow_ids[..]), (&[1, u64::MAX][..], &[7][..]));
}

#[test]
fn a_trace_begins_with_a_packet_that_is_not_compressed() {
    let (capture, mut out) = (CaptureFixture::new().open(), Vec::new());
    let mut writer = PerfettoWriter::new(&mut out, &capture, 0);
    writer.track(TrackId(1), &Track { kind: TrackKind::Process, name: "", pid: 0 }).unwrap();
    writer.finish().unwrap();
    let packets = DecodedTrace::decode(&out[..]).unwrap().packet;
    assert!(packets.len() == 3 && packets[1].clock_snapshot.is_some(), "{packets:?}");
    assert!(!packets[2].compressed_packets.is_empty());
}
