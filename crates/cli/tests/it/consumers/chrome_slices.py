"""Reads a Chrome trace with Python's JSON parser, as viewers do with theirs: prints its slices as JSON."""
import json
import sys

with open(sys.argv[1]) as file:
    trace = json.load(file)


def nanos(micros):
    return round(micros * 1000)


base = int(trace["otherData"]["base_epoch_ns"])
slices, open_slices, instants, counters, tracks, flows = [], [], [], 0, {}, {}
for event in trace["traceEvents"]:
    phase = event["ph"]
    if phase == "M":
        tracks[f'{event["pid"]}/{event["tid"]}'] = event["args"]["name"]
        continue
    start = base + nanos(event["ts"])
    if phase in "XB":
        assert event["args"]["data"].items() <= event["args"].items(), "the fields stand under data, too"
        slice = {"name": event["name"], "start": start, "track": f'{event["pid"]}/{event["tid"]}', "args": event["args"]}
        if phase == "X":
            slice["dur"] = nanos(event["dur"])
        (slices if phase == "X" else open_slices).append(slice)
    elif phase == "i":
        instants.append({"name": event["name"], "time": start, "args": event["args"]})
    elif phase == "C":
        counters += 1
    elif phase in "sf":
        flows.setdefault(event["id"], []).append(phase)
    else:
        raise AssertionError(phase)
assert all(phases == ["s", "f"] or phases == ["f", "s"] for phases in flows.values()), "a flow begins and ends once"
json.dump({"slices": slices, "open": open_slices, "instants": instants, "counters": counters, "tracks": tracks}, sys.stdout)
