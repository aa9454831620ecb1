"""Checks a profile against speedscope's JSON schema, opens and closes its frames as speedscope does, and prints the
durations of the slices as JSON."""
import json
import pathlib
import sys

import jsonschema

with open(sys.argv[1]) as file:
    trace = json.load(file)
schema = pathlib.Path(__file__).parents[2] / "assets/speedscope/file-format-schema.json"
jsonschema.validate(trace, json.loads(schema.read_text()))

durations = []
for profile in trace["profiles"]:
    stack, last = [], profile["startValue"]
    for event in profile["events"]:
        assert event["at"] >= last, "times never fall"
        last = event["at"]
        if event["type"] == "O":
            stack.append(event)
        else:
            opened = stack.pop()
            assert opened["frame"] == event["frame"], "the innermost frame closes first"
            durations.append(event["at"] - opened["at"])
    assert not stack, "every frame is closed"
    assert last <= profile["endValue"]
json.dump({"durations": sorted(durations)}, sys.stdout)
