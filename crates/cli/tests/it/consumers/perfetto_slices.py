"""Reads a Perfetto trace with PyPI's protobuf classes, as trace_processor does: prints what is on its tracks as JSON."""
import json
import sys
import zlib

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())

state = {}
tracks = {}
events = []
clocks = {}
# The times of the incremental clocks, by sequence. A packet has the difference from the time before.
incremental = {}
KINDS = {"event_names": "name", "event_categories": "name", "debug_annotation_names": "name", "debug_annotation_string_values": "str", "source_locations": "file_name"}


def time_of(packet, defaults):
    clock = packet.timestamp_clock_id or defaults.timestamp_clock_id
    if (packet.trusted_packet_sequence_id, clock) in incremental:
        incremental[packet.trusted_packet_sequence_id, clock] += packet.timestamp
        return incremental[packet.trusted_packet_sequence_id, clock]
    assert clock in clocks, "the clock of the packet is in a snapshot"
    return packet.timestamp



def packets():
    for packet in trace.packet:
        if packet.HasField("compressed_packets"):
            yield from Trace.FromString(zlib.decompress(packet.compressed_packets)).packet
        else:
            yield packet


for packet in packets():
    sequence = packet.trusted_packet_sequence_id
    assert sequence, "every packet is of a sequence"
    if packet.sequence_flags & TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
        state[sequence] = {kind: {} for kind in KINDS} | {"defaults": packet.trace_packet_defaults}
    for clock in packet.clock_snapshot.clocks:
        if clock.is_incremental:
            incremental[sequence, clock.clock_id] = clock.timestamp
        else:
            clocks[clock.clock_id] = clock.timestamp
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid not in tracks, "a track is described once"
        assert not track.parent_uuid or track.parent_uuid in tracks, "a parent is described first"
        if track.HasField("thread"):
            assert track.thread.pid == tracks[track.parent_uuid].process.pid, "a thread lies in its process"
        tracks[track.uuid] = track
    if packet.HasField("track_event"):
        interned = state[sequence]
        for kind, text in KINDS.items():
            for entry in getattr(packet.interned_data, kind):
                assert entry.iid not in interned[kind], "a number has one meaning"
                value = getattr(entry, text)
                interned[kind][entry.iid] = value.decode() if isinstance(value, bytes) else value
        event = packet.track_event
        if not event.HasField("track_uuid"):
            event.track_uuid = interned["defaults"].track_event_defaults.track_uuid
        assert event.track_uuid in tracks, "a track is described before it is used"
        events.append((time_of(packet, interned["defaults"]), len(events), event, interned))


def text(message, interned, kind, field):
    iid = getattr(message, field + "_iid")
    return interned[kind][iid] if iid else getattr(message, field)


def named(annotations, interned):
    out = {}
    for annotation in annotations:
        name = text(annotation, interned, "debug_annotation_names", "name")
        value = annotation.WhichOneof("value")
        if value == "string_value_iid":
            out[name] = interned["debug_annotation_string_values"][annotation.string_value_iid]
        else:
            out[name] = getattr(annotation, value) if value else named(annotation.dict_entries, interned)
    return out


def args(event, interned):
    return named(event.debug_annotations, interned)


# trace_processor sorts by time, and keeps the order of the file among equals.
events.sort(key=lambda event: event[:2])
stacks = {}
slices = []
instants = []
counters = 0
for nanos, _, event, interned in events:
    stack = stacks.setdefault(event.track_uuid, [])
    if event.type == TrackEvent.TYPE_SLICE_BEGIN:
        name = text(event, interned, "event_names", "name")
        stack.append({"name": name, "start": nanos, "track": event.track_uuid, "depth": len(stack), "args": args(event, interned)})
    elif event.type == TrackEvent.TYPE_SLICE_END:
        slice = stack.pop()
        slice["dur"] = nanos - slice["start"]
        slice["args"].update(args(event, interned))
        slices.append(slice)
    elif event.type == TrackEvent.TYPE_INSTANT:
        # The slices in which it lies, from the outside in.
        inside = [slice["args"].get("span_id") for slice in stack]
        instants.append({"name": text(event, interned, "event_names", "name"), "time": nanos, "track": event.track_uuid, "inside": inside, "args": args(event, interned)})
    elif event.type == TrackEvent.TYPE_COUNTER:
        counters += 1

open_slices = [slice for stack in stacks.values() for slice in stack]
names = {uuid: track.thread.thread_name or track.process.process_name or track.name for uuid, track in tracks.items()}
json.dump({"slices": slices, "open": open_slices, "instants": instants, "counters": counters, "tracks": names}, sys.stdout)
