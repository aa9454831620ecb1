"""Reads Parquet files with DuckDB, pyarrow and polars, and compares each row with the JSON line that it stands for.

Called with the directory of the files and the JSON lines of the same capture. Prints a JSON object: the number of rows
of each file, and the differences.
"""

import json
import math
import os
import sys

import duckdb
import polars
import pyarrow.parquet

MAX_SHOWN = 20

differences = []


def differ(what, found, expected):
    if len(differences) < MAX_SHOWN:
        differences.append(f"{what}: {found!r}, expected {expected!r}")
    elif len(differences) == MAX_SHOWN:
        differences.append("and more")


def same_number(found, expected):
    if isinstance(expected, str):  # JSON has no NaN and no infinities.
        expected = float(expected)
    if isinstance(found, float) and math.isnan(found):
        return math.isnan(expected)
    return found == expected


def text_is(text, value):
    """Whether a text in a file is that of a value in a line."""
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, float):
        return same_number(float(text), value)
    return text == str(value)


def payload_is(found, value):
    """Whether a value of a payload column is that of the line."""
    if isinstance(value, dict):
        return found is not None and list(found) == list(value) and all(payload_is(found[key], value[key]) for key in value)
    if isinstance(value, list):
        return found is not None and len(found) == len(value) and all(map(payload_is, found, value))
    if value is None:  # A redacted value, or a float that JSON does not have.
        return found is None or (isinstance(found, float) and not math.isfinite(found))
    if isinstance(found, str):
        return text_is(found, value)
    return found == value and isinstance(found, bool) == isinstance(value, bool)


def is_broken(value):
    """Whether a part of a payload in a line does not fit the schema."""
    if isinstance(value, dict):
        return "malformed" in value or any(map(is_broken, value.values()))
    return isinstance(value, list) and any(map(is_broken, value))


def check(what, row, expected):
    for name, value in expected.items():
        if row[name] != value:
            differ(f"{what}.{name}", row[name], value)


def check_fields(what, row, line):
    fields, cut = row["fields"], row["fields_cut"]
    if list(fields) != list(line["fields"]) and sorted(fields) != sorted(line["fields"]):
        differ(f"{what}.fields", list(fields), list(line["fields"]))
    for name, value in line["fields"].items():
        if not text_is(fields.get(name), value):
            differ(f"{what}.fields[{name}]", fields.get(name), value)
        column = row.get(f"field.{name}")
        if f"field.{name}" not in row:
            continue
        if isinstance(column, str):
            if not text_is(column, value):
                differ(f"{what}.field.{name}", column, value)
        elif column is None:
            # The value has another type than the column, or is too large for it.
            if not isinstance(value, str) and abs(value) < 2**63:
                differ(f"{what}.field.{name}", column, value)
        elif not same_number(column, value):
            differ(f"{what}.field.{name}", column, value)
    for name in row:
        if name.startswith("field.") and row[name] is not None and name[6:] not in line["fields"]:
            differ(f"{what}.{name}", row[name], None)
    expected = {name: None if why is None else str(why) for name, why in line.get("cut", {}).items()}
    if cut != expected:
        differ(f"{what}.fields_cut", cut, expected)
    if (row["missing_fields"], row["fields_problem"]) != (line.get("missing_fields", 0), line.get("problem")):
        differ(f"{what}.missing_fields", (row["missing_fields"], row["fields_problem"]), line)


def check_thread(what, row, thread):
    check(what, row, {"thread": thread["name"], "thread_id": thread["id"], "tid": thread["tid"]})


def site(line):
    return {key: line[key] or None for key in ("name", "target", "level", "file", "line")}


def check_span(what, row, line):
    same = ("id", "parent", "start_ns", "end_ns", "duration_ns", "busy_ns", "open", "end_lost", "last_seen_ns")
    expected = {key: line[key] for key in same + ("may_have_losses", "follows_from", "process")}
    expected |= {"instructions": line.get("instructions"), "self_instructions": line.get("self_instructions")}
    if line["target"] is not None:
        expected |= site(line)
    check(what, row, expected)
    check_fields(what, row, line)


def check_log(what, row, line):
    expected = site(line) | {key: line[key] for key in ("process", "time_ns", "span")}
    check(what, row, expected | {"instructions": line.get("instructions")})
    check_thread(what, row, line["thread"])
    message = line["fields"].get("message")
    if message is not None and not text_is(row["message"], message):
        differ(f"{what}.message", row["message"], message)
    check_fields(what, row, line)


def check_typed(what, row, line):
    known = {"type", "name", "payload", "content_ext"}
    check(what, row, {key: value for key, value in line.items() if key not in known and key in row})
    for index, word in enumerate(line.get("content_ext", [])):
        if f"content_ext{index}" in row and row[f"content_ext{index}"] != word:
            differ(f"{what}.content_ext{index}", row[f"content_ext{index}"], word)
    payload, problem = line["payload"], row["payload_problem"]
    if "payload" in row:
        found = row["payload"] and json.loads(row["payload"])
        if found != payload:
            differ(f"{what}.payload", found, payload)
    elif payload is None or is_broken(payload):
        # A payload that does not fit is in the column for problems, whole.
        found = json.loads(problem) if payload is not None else None
        if problem is None or found != payload:
            differ(f"{what}.payload_problem", problem, payload)
    else:
        if problem is not None:
            differ(f"{what}.payload_problem", problem, None)
        for name, value in payload.items():
            column = row[name] if f"payload.{name}" not in row else row[f"payload.{name}"]
            if not payload_is(column, value):
                differ(f"{what}.{name}", column, value)


def check_sample(what, row, line):
    check(what, row, {key: line[key] for key in ("process", "time_ns")})
    check_thread(what, row, line["thread"])
    if line["type"] == "unknown":
        return check(what, row, {"value": line["code"]})
    check(what, row, {"span": line["span"], "name": line.get("name")})
    text = line.get("value", line.get("text", line.get("why")))
    if not (row["text"] is None if text is None else text_is(row["text"], text)):
        differ(f"{what}.text", row["text"], text)


def check_loss(what, row, line):
    check(what, row, {key: line[key] for key in ("process", "ring", "first_seqno", "count", "cause")})


FILES = {
    "span": ("spans", lambda line: (line["process"], line["id"]), lambda row: (row["process"], row["id"]), check_span),
    "event": ("logs", None, None, check_log),
    "loss": (
        "losses",
        lambda line: (line["ring"], line["first_seqno"]),
        lambda row: (row["ring"], row["first_seqno"]),
        check_loss,
    ),
    "counter": ("counters", None, None, check_sample),
    "marker": ("markers", None, None, check_sample),
    "not_recorded": ("not_recorded", None, None, check_sample),
    "unknown": ("unknown", None, None, check_sample),
}


def as_dict(entries):
    """A map, which some readers show as pairs, and some as structs."""
    if isinstance(entries, dict):
        return entries
    return dict(entry.values() if isinstance(entry, dict) else entry for entry in entries)


def rows_of(path):
    """The rows of a file, as each reader sees them."""
    of_duck = duckdb.sql(f"select * from '{path}'")
    names = of_duck.columns
    readers = {
        "pyarrow": pyarrow.parquet.read_table(path).to_pylist(),
        "duckdb": [dict(zip(names, row)) for row in of_duck.fetchall()],
        "polars": polars.read_parquet(path).to_dicts(),
    }
    for rows in readers.values():
        for row in rows:
            for name in ("fields", "fields_cut"):
                if name in row:
                    row[name] = as_dict(row[name])
    return readers


def is_same_row(one, other):
    return repr(one) == repr(other)


def main():
    directory, lines_path = sys.argv[1:]
    lines = {}
    with open(lines_path, encoding="utf-8") as file:
        for text in file:
            line = json.loads(text)
            lines.setdefault(line["type"], []).append(line)
    files = {name.removesuffix(".parquet"): rows_of(f"{directory}/{name}") for name in sorted(os.listdir(directory))}
    for name, readers in files.items():
        for reader in ("duckdb", "polars"):
            if len(readers[reader]) != len(readers["pyarrow"]):
                differ(f"{name}: rows of {reader}", len(readers[reader]), len(readers["pyarrow"]))
            for index, (one, other) in enumerate(zip(readers[reader], readers["pyarrow"])):
                if not is_same_row(one, other):
                    differ(f"{name}[{index}] of {reader}", one, other)
                    break
    for kind, (name, key_of_line, key_of_row, compare) in FILES.items():
        of_kind = lines.get(kind, [])
        rows = files.get(name, {"pyarrow": []})["pyarrow"]
        if len(rows) != len(of_kind):
            differ(f"{name}: rows", len(rows), len(of_kind))
            continue
        if key_of_line is None:
            # Both are in the order of time.
            pairs = zip(rows, of_kind)
        else:
            by_key = {key_of_row(row): row for row in rows}
            pairs = ((by_key.get(key_of_line(line)), line) for line in of_kind)
        for index, (row, line) in enumerate(pairs):
            if row is None:
                differ(f"{name}[{index}]", None, line)
            else:
                compare(f"{name}[{index}]", row, line)
    typed = {}
    for name, readers in files.items():
        if name.startswith("events-"):
            for row in readers["pyarrow"]:
                typed[(row["process"], row["ring"], row["seqno"])] = row
    of_lines = lines.get("typed_event", [])
    if len(typed) != len(of_lines):
        differ("typed events", len(typed), len(of_lines))
    for line in of_lines:
        key = (line["process"], line["ring"], line["seqno"])
        if key in typed:
            check_typed(f"{line['name']} {line['seqno']}", typed[key], line)
        else:
            differ(f"{line['name']} {line['seqno']}", None, line)
    rows = {name: len(readers["pyarrow"]) for name, readers in files.items()}
    print(json.dumps({"rows": rows, "differences": differences}))


main()
