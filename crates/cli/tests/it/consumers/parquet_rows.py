"""Reads Parquet files with DuckDB, pyarrow and polars, and compares each row with the JSON line that it stands for.

Called with the directory of the files and the JSON lines of the same capture. Prints a JSON object: the number of rows
and of row groups of each file, and the differences.
"""

import json
import math
import os
import re
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
    if text is None:
        return False
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


SITE = ["name", "target", "level", "file", "line"]
THREAD = ["thread", "thread_id", "tid"]
MEASURED = ["cpu_ns", "queue_ns", "sleep_ns", "unmeasured_ns"]
MEASURED += ["allocations", "allocated_bytes", "frees", "freed_bytes"]
FIELDS = ["fields", "fields_cut", "missing_fields", "fields_problem"]
SAMPLE = ["process", "time_ns", *THREAD, "span", "name", "value", "text"]
COLUMNS = {
    "spans": ["process", "id", "parent", "trace_id", "span_id", "parent_span_id", *SITE, *THREAD]
    + ["start_ns", "end_ns", "duration_ns", "busy_ns", "instructions", "self_instructions"]
    + MEASURED
    + ["scope", "ended_with_parent", "open", "end_lost", "last_seen_ns", "may_have_losses", "follows_from", *FIELDS],
    "logs": ["process", "time_ns", *THREAD, "span", *SITE, "message", "instructions", *FIELDS],
    "losses": ["process", "ring", "first_seqno", "count", "cause", "seen_ns"],
    "rings": ["name", "process", "pid", "program", "content_type", "content_name", "shard", "first_seqno", "created_ns"]
    + ["host", "filter", "sampled_per_million"],
    "counters": SAMPLE,
    "markers": SAMPLE,
    "not_recorded": SAMPLE,
    "unknown": SAMPLE,
}
FIELD_COLUMNS_MAX = 256


def column_of(name, columns):
    """The column of a field. No two names differ by case only, so some have `field.` twice."""
    plain = re.sub("[\x00-\x1f\x7f-\x9f]", "_", name)
    candidates = [f"field.{plain}", f"field.field.{plain}"] + [f"field.field.{plain}_{number}" for number in range(2, 9)]
    return next((candidate for candidate in candidates if candidate in columns), None)


def check_columns(name, columns, lines):
    """Whether a file has the columns that it should have, and no others. `lines` are those of its rows."""
    fixed = [column for column in columns if not column.startswith("field.")]
    if fixed != COLUMNS[name]:
        differ(f"{name}: columns", fixed, COLUMNS[name])
    names = {field for line in lines for field in line.get("fields", {})}
    if name == "logs":
        names = {field for field in names if field != "message" and not field.startswith("log.")}
    expected = min(len(names), FIELD_COLUMNS_MAX)
    found = {column_of(field, columns) for field in names} - {None}
    if len(found) != expected or len(columns) != len(fixed) + expected:
        differ(f"{name}: columns of fields", columns[len(fixed):], sorted(names))


def check_fields(what, row, line):
    fields, cut = row["fields"], row["fields_cut"]
    if list(fields) != list(line["fields"]) and sorted(fields) != sorted(line["fields"]):
        differ(f"{what}.fields", list(fields), list(line["fields"]))
    with_value = {column for column in row if column.startswith("field.") and row[column] is not None}
    for name, value in line["fields"].items():
        if not text_is(fields.get(name), value):
            differ(f"{what}.fields[{name}]", fields.get(name), value)
        column = column_of(name, row)
        if column is None:  # `check_columns` has looked whether it should be there.
            continue
        with_value.discard(column)
        found = row[column]
        if isinstance(found, str):
            if not text_is(found, value):
                differ(f"{what}.{column}", found, value)
        elif found is None:
            # Bytes that do not fit their type are text in a line, and nothing in a column of another type.
            if not (isinstance(value, str) and value.startswith("0x")):
                differ(f"{what}.{column}", found, value)
        elif not same_number(found, value):
            differ(f"{what}.{column}", found, value)
    if with_value:
        differ(f"{what}: fields", sorted(with_value), sorted(line["fields"]))
    expected = {name: None if why is None else str(why) for name, why in line.get("cut", {}).items()}
    if cut != expected:
        differ(f"{what}.fields_cut", cut, expected)
    if (row["missing_fields"], row["fields_problem"]) != (line.get("missing_fields", 0), line.get("problem")):
        differ(f"{what}.missing_fields", (row["missing_fields"], row["fields_problem"]), line)


def thread_of(line):
    return (line["name"], line["id"], line["tid"])


def check_thread(what, row, thread):
    check(what, row, dict(zip(THREAD, thread_of(thread))))


def site(line):
    return {key: line[key] or None for key in SITE}


def check_span(what, row, line):
    same = ("id", "parent", "trace_id", "span_id", "parent_span_id", "start_ns", "end_ns", "duration_ns", "busy_ns", "open", "end_lost", "last_seen_ns")
    expected = {key: line[key] for key in same + ("may_have_losses", "follows_from", "process")}
    expected |= {"instructions": line.get("instructions"), "self_instructions": line.get("self_instructions")}
    expected |= {name: line.get(name) for name in MEASURED}
    expected |= {name: line.get(name, False) for name in ("scope", "ended_with_parent")}
    expected |= site(line) if line["target"] is not None else dict.fromkeys(SITE)
    check(what, row, expected)
    # A line has the threads that worked on the span. The one that created it is among those of the process.
    thread = tuple(row[column] for column in THREAD)
    is_created = line["start_ns"] is not None
    if (line["process"], thread) not in threads if is_created else thread != (None, None, None):
        differ(f"{what}.thread", thread, "a thread of the process" if is_created else None)
    check_fields(what, row, line)


def check_log(what, row, line):
    expected = site(line) | {key: line[key] for key in ("process", "time_ns", "span")}
    check(what, row, expected | {"instructions": line.get("instructions")})
    check_thread(what, row, line["thread"])
    message = line["fields"].get("message")
    if not (row["message"] is None if message is None else text_is(row["message"], message)):
        differ(f"{what}.message", row["message"], message)
    check_fields(what, row, line)


def check_typed(what, row, line):
    is_of_any_type = "name" in row and "name" not in (line["payload"] or {})
    known = {"type", "payload", "content_ext"} | (set() if is_of_any_type else {"name"})
    plain = {key: value for key, value in line.items() if key not in known}
    if is_of_any_type:  # Its extension words have no names.
        plain = {key: value for key, value in plain.items() if key in row}
    check(what, row, plain)
    for index, word in enumerate(line.get("content_ext", [])):
        if f"content_ext{index}" in row and row[f"content_ext{index}"] != word:
            differ(f"{what}.content_ext{index}", row[f"content_ext{index}"], word)
    payload, problem = line["payload"], row["payload_problem"]
    others = {name for name in row if name not in plain and not name.startswith("content_ext")} - {"payload_problem"}
    if "payload" in row:
        found = row["payload"] and json.loads(row["payload"])
        if found != payload or others != {"payload"}:
            differ(f"{what}.payload", (found, others), payload)
    elif payload is None or is_broken(payload):
        # A payload that does not fit is in the column for problems, whole.
        found = json.loads(problem) if payload is not None else None
        if problem is None or found != payload:
            differ(f"{what}.payload_problem", problem, payload)
    else:
        if problem is not None:
            differ(f"{what}.payload_problem", problem, None)
        columns = {name: name if f"payload.{name}" not in row else f"payload.{name}" for name in payload}
        if others != set(columns.values()):
            differ(f"{what}: columns", sorted(others), sorted(columns.values()))
        for name, value in payload.items():
            if not payload_is(row[columns[name]], value):
                differ(f"{what}.{name}", row[columns[name]], value)


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
    # The lines do not say when each record of a span came. Without spans, they say when the last event came.
    seen, last = row["seen_ns"], line["last_time_ns"]
    if seen != last if not threads else not (seen is None or last is None or seen >= started):
        differ(f"{what}.seen_ns", seen, last)


def check_rings(rows, rings):
    """Compares the rings with those of the first line, where they stand in the order of the capture."""
    names = [name for name in COLUMNS["rings"] if name != "created_ns"]
    found = sorted(([row[name] for name in names] for row in rows), key=repr)
    expected = sorted(([ring.get(name) for name in names] for ring in rings), key=repr)
    if found != expected or not all(isinstance(row["created_ns"], int) for row in rows):
        differ("rings", found, expected)


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


def values_of(column, values):
    return list(map(as_dict, values)) if column in ("fields", "fields_cut") else values


def rows_of(name, path):
    """The rows of a file. All readers must find the same values, column by column."""
    table = pyarrow.parquet.read_table(path)
    of_polars, of_duck = polars.read_parquet(path), duckdb.sql(f"select * from '{path}'")
    found = {"polars": of_polars.columns, "duckdb": of_duck.columns}
    for reader, columns in found.items():
        if columns != table.column_names:
            differ(f"{name}: columns of {reader}", columns, table.column_names)
    columns = {}
    for index, column in enumerate(table.column_names):
        columns[column] = values_of(column, table.column(index).to_pylist())
        quoted = column.replace('"', '""')
        found = {
            "polars": of_polars.to_series(index).to_list(),
            "duckdb": [value for (value,) in duckdb.sql(f"select \"{quoted}\" from '{path}'").fetchall()],
        }
        for reader, values in found.items():
            if repr(values_of(column, values)) != repr(columns[column]):
                differ(f"{name}.{column} of {reader}", "other values", "those of pyarrow")
    rows = [dict(zip(columns, values)) for values in zip(*columns.values())]
    check_row_groups(name, pyarrow.parquet.ParquetFile(path), rows)
    return table.column_names, rows


TIMES = {"spans": "start_ns", "losses": "seen_ns", "rings": "created_ns"}


def check_row_groups(name, file, rows):
    """Whether each row group is sorted by time as it says, and has statistics that are true."""
    time, start = TIMES.get(name, "time_ns"), 0
    time_index = file.schema_arrow.names.index(time)
    for number in range(file.metadata.num_row_groups):
        group, what = file.metadata.row_group(number), f"{name}: row group {number}"
        times = [row[time] for row in rows[start : start + group.num_rows]]
        start += group.num_rows
        known = [nanos for nanos in times if nanos is not None]
        if times[len(times) - len(known) :] != sorted(known):
            differ(f"{what}: order", times[:9], "sorted, nulls first")
        sorting = [(by.column_index, by.descending, by.nulls_first) for by in group.sorting_columns]
        # Structs and lists come after the column with the time, so it has the same index among all columns.
        if sorting != [(time_index, False, True)]:
            differ(f"{what}: sorting columns", sorting, time_index)
        without = [group.column(index).path_in_schema for index in range(group.num_columns)]
        without = [path for index, path in enumerate(without) if not group.column(index).is_stats_set]
        if without:
            differ(f"{what}: columns without statistics", without, [])
        of_time = group.column(time_index).statistics
        nulls = len(times) - len(known)
        if of_time.null_count != nulls or (known and (of_time.min, of_time.max) != (min(known), max(known))):
            differ(f"{what}: statistics", of_time, (known[:1], known[-1:], nulls))
    if start != len(rows):
        differ(f"{name}: rows of all row groups", start, len(rows))
    row_groups[name] = file.metadata.num_row_groups


def note_threads(line):
    """Notes the threads that a line names."""
    slices = line["slices"] if line["type"] == "span" else []
    for place in [line, *slices]:
        if "thread" in place:
            threads.add((line["process"], thread_of(place["thread"])))


# The threads that the lines name, the time at which the capture began, and the numbers of row groups.
threads = set()
started = 0
row_groups = {}


def main():
    global started
    directory, lines_path = sys.argv[1:]
    lines, last_time = {}, None
    with open(lines_path, encoding="utf-8") as file:
        for text in file:
            line = json.loads(text)
            lines.setdefault(line["type"], []).append(line)
            note_threads(line)
            if line["type"] == "loss":
                line["last_time_ns"] = last_time
            last_time = line.get("time_ns", last_time)
    names = [name.removesuffix(".parquet") for name in sorted(os.listdir(directory))]
    # Blocks have tables of their own, which parquet_blocks.py reads.
    if "blocks" in names:
        chain = {"blocks", "transactions", "txn_logs" if "log_records" not in names else "logs", "call_frames", "accesses"}
        names = [name for name in names if name not in chain]
    paths = {"logs" if name == "log_records" else name: f"{directory}/{name}.parquet" for name in names}
    files = {name: rows_of(name, path) for name, path in paths.items()}
    columns, rings = files["rings"]
    check_columns("rings", columns, [])
    check_rings(rings, lines["capture"][0]["rings"])
    started = min(ring["created_ns"] for ring in rings)
    for kind, (name, key_of_line, key_of_row, compare) in FILES.items():
        of_kind = lines.get(kind, [])
        columns, rows = files.get(name, (COLUMNS[name], []))
        check_columns(name, columns, of_kind)
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
    for name, (_, rows) in files.items():
        if name.startswith("events-"):
            for row in rows:
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
    rows = {name: len(rows) for name, (_, rows) in files.items()}
    print(json.dumps({"rows": rows, "row_groups": row_groups, "differences": differences}))


main()
