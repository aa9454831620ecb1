"""Reads a Perfetto trace with PyPI's protobuf classes, as trace_processor does: prints what is on its tracks as JSON."""
import json
import sys

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())

state = {}
tracks = {}
events = []
clocks = {}
for packet in trace.packet:
    sequence = packet.trusted_packet_sequence_id
    assert sequence, "every packet is of a sequence"
    if packet.sequence_flags & TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
        state[sequence] = {"names": {}, "categories": {}, "annotations": {}, "clock": packet.trace_packet_defaults.timestamp_clock_id}
    if packet.HasField("clock_snapshot"):
        clocks = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid not in tracks, "a track is described once"
        assert not track.parent_uuid or track.parent_uuid in tracks, "a parent is described first"
        tracks[track.uuid] = track
    if packet.HasField("track_event"):
        assert packet.sequence_flags & TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        interned = state[sequence]
        for entry in packet.interned_data.event_names:
            assert entry.iid not in interned["names"]
            interned["names"][entry.iid] = entry.name
        for entry in packet.interned_data.event_categories:
            interned["categories"][entry.iid] = entry.name
        for entry in packet.interned_data.debug_annotation_names:
            interned["annotations"][entry.iid] = entry.name
        assert interned["clock"] in clocks, "the clock of the packets is in the snapshot"
        assert packet.track_event.track_uuid in tracks, "a track is described before it is used"
        events.append((packet.timestamp, len(events), packet.track_event, interned))


def named(annotations, interned):
    out = {}
    for annotation in annotations:
        name = interned["annotations"][annotation.name_iid]
        value = annotation.WhichOneof("value")
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
        name = interned["names"][event.name_iid]
        stack.append({"name": name, "start": nanos, "track": event.track_uuid, "depth": len(stack), "args": args(event, interned)})
    elif event.type == TrackEvent.TYPE_SLICE_END:
        slice = stack.pop()
        slice["dur"] = nanos - slice["start"]
        slice["args"].update(args(event, interned))
        slices.append(slice)
    elif event.type == TrackEvent.TYPE_INSTANT:
        # The slices in which it lies, from the outside in.
        inside = [slice["args"].get("span_id") for slice in stack]
        instants.append({"name": interned["names"][event.name_iid], "time": nanos, "track": event.track_uuid, "inside": inside, "args": args(event, interned)})
    elif event.type == TrackEvent.TYPE_COUNTER:
        counters += 1

open_slices = [slice for stack in stacks.values() for slice in stack]
names = {uuid: track.thread.thread_name or track.process.process_name or track.name for uuid, track in tracks.items()}
json.dump({"slices": slices, "open": open_slices, "instants": instants, "counters": counters, "tracks": names}, sys.stdout)
