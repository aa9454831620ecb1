"""Compares what the program says of files with what the oracle reads from them: `compare.py FILE|RING...`.

Each argument is one input: a capture, a ring's path or a snapshot; files joined by commas are one input together.
EVENTRING names the program, and ORACLE_SELECTIONS about how many conditions are tried (0: no selections). Every value of every answer counts; a difference is printed, and the exit code is 1.
Programs that make inputs call compare(paths).
"""

import struct
import json
import os
import subprocess
import sys

import captures
import choose
import perf
import rings
import schema
from model import Model, Span, percentile, tasks
from rings import NO_LOSS, Event, Gap

PROGRAM = os.environ.get("EVENTRING", "eventring")
TIME_FIELDS = ("since_ns", "cpu_ns", "queue_ns", "slices", "merged", "voluntary_switches", "involuntary_switches",
               "minor_faults", "major_faults")
# Events of consensus lie in no block, and name their block in the payload: QC, FINALIZED, VERIFIED.
BLOCK_NUMBER = {7: 32, 8: 32, 9: 0}
# Ids of traces are a hash that no page describes.
SITE = ("name", "target", "level", "file", "line")
HASHES = {"trace_id", "span_id", "parent_span_id", "type"}

class Report:
    """Counts what was compared. Of each answer, `limit` differences are printed."""
    def __init__(self, limit=5):
        self.values, self.answers, self.differences, self.limit, self.shown = 0, 0, 0, limit, {}
    def equal(self, where, path, theirs, mine):
        """Both values, to the last leaf. What is the same text as a whole counts as one value."""
        if type(theirs) is type(mine) is dict and theirs == mine and repr(theirs) == repr({key: mine[key] for key in theirs}):
            self.values += 1
        elif isinstance(theirs, dict) and isinstance(mine, dict):
            for key in list(theirs) + [key for key in mine if key not in theirs]:
                self.equal(where, "%s.%s" % (path, key), theirs.get(key, "(none)"), mine.get(key, "(none)"))
        elif isinstance(theirs, list) and isinstance(mine, list) and len(theirs) == len(mine):
            for place, pair in enumerate(zip(theirs, mine)):
                self.equal(where, "%s[%d]" % (path, place), *pair)
        else:
            self.values += 1
            if theirs != mine or type(theirs) is not type(mine):
                self.differences += 1
                self.shown[where] = self.shown.get(where, 0) + 1
                if self.shown[where] <= self.limit:
                    print("DIFFERENT %s at %s: program %.300s, oracle %.300s" % (where, path, show(theirs), show(mine)))

def show(value):
    return json.dumps(value, ensure_ascii=False, default=str)

def counted(gaps):
    return {"lost": sum(gap.count for gap in gaps if gap.cause not in NO_LOSS),
            "overwritten_before": sum(gap.count for gap in gaps if gap.cause == "overwritten_before")}

def records_of(records):
    return {name: sum(one.event.code == code for one in records) for name, code in (
        ("events", perf.EVENT), ("counters", perf.COUNTER), ("markers", perf.MARKER))}

class Input:
    """One input, its recording and the model of all of it."""
    def __init__(self, paths, report):
        self.paths, self.report = paths, report
        with open(paths[0], "rb") as file:
            load = captures.read_captures if file.read(8) == b"EVRCAPT1" else rings.read_rings
        self.recording = load(paths)
        self.schemas = [schema.Schema(ring.schema, ring.content) for ring in self.recording.rings]
        self.model = Model(self.recording)
        self.pids = {ring.process: ring.pid for ring in self.recording.rings}
        self.know_blocks(self.model)
    def know_blocks(self, model):
        """Numbers of blocks by flow tags: of block tables, and of the starts among the events that were read."""
        starts = [(ring, tag, start[16:]) for ring in self.recording.rings for tag, start in ring.blocks.items()]
        starts += [(event.ring, event.seqno, event.payload) for event in model.typed
                   if event.ring.content == 2 and event.code == 2 and event.payload]
        self.block_numbers = {(ring.index, tag): int.from_bytes(payload[32:40], "little")
                              for ring, tag, payload in starts}
    def ask(self, verb, *options, code=0):
        """Runs the program. `code` is the exit code of a whole file: damage decides."""
        where = " ".join([verb] + list(options) + self.paths)
        done = subprocess.run([PROGRAM, verb] + list(options) + self.paths, capture_output=True)
        self.report.answers += 1
        expected = 7 if self.recording.damaged else 6 if self.recording.truncated else code
        self.report.equal(where, "exit code", done.returncode, expected)
        return where, [json.loads(line) for line in done.stdout.decode().splitlines() if line.strip()]
    def words(self, event):
        """The named words of a typed event, and its block's number."""
        known = self.schemas[event.ring.index].named_words(event.ext)
        if event.ring.content == 2:
            own = BLOCK_NUMBER.get(event.code)
            known["block_number"] = (self.block_numbers.get((event.ring.index, event.ext[0])) if own is None
                                     else int.from_bytes(event.payload[own:own + 8], "little"))
        return known
    def payload(self, event):
        decode = self.schemas[event.ring.index].decode
        return None if event.missing else schema.plain(decode(event.code, event.payload))
    def typed_json(self, event):
        known = self.schemas[event.ring.index]
        line = {"process": event.ring.process, "ring": event.ring.name, "seqno": event.seqno, "time_ns": event.time,
                "name": known.name(event.code), "code": event.code, "payload": self.payload(event), "span": None}
        line.update(self.words(event))
        return line if len(known.words) == 4 else {**line, "content_ext": list(event.ext)}
    def export(self, model, selected, options=(), code=0):
        where, answer = self.ask("export", "--format", "jsonl", "-o", "-", *options, code=code)
        theirs, mine, end, (chosen, records, typed) = {}, {}, {}, selected
        for line in answer:
            kind, line = line["type"], {key: value for key, value in line.items() if key not in HASHES}
            if kind == "span":
                theirs[kind, line["process"], line["id"]] = line
            elif kind in ("event", "counter", "marker"):
                theirs.setdefault((line["time_ns"], line["thread"]["id"]), []).append(line)
            elif kind in ("typed_event", "loss"):
                theirs[kind, line["ring"], line.get("seqno", line.get("first_seqno"))] = line
            end = line
        if not answer:
            return self.report.equal(where, "empty", True, not any(selected))
        mine = {("span",) + key: model.span_json(model.spans[key]) for key in chosen}
        for line in map(model.record_json, records):
            mine.setdefault((line["time_ns"], line["thread"]["id"]), []).append(line)
        mine.update({("typed_event", event.ring.name, event.seqno): self.typed_json(event) for event in typed})
        mine.update({("loss", gap.ring.name, gap.first): {
            "process": gap.ring.process, "ring": gap.ring.name, "first_seqno": gap.first, "count": gap.count,
            "cause": gap.cause, "seen_ns": gap.seen} for gap in model.gaps if gap.cause not in NO_LOSS})
        self.report.equal(where, "", theirs, mine)
        states = [model.spans[key].state for key in chosen]
        counts = {"spans": len(chosen), "open_spans": states.count("open"), "lost_ends": states.count("end_lost"),
                  "typed_events": len(typed), **records_of(records), **counted(model.gaps)}
        return self.report.equal(where, "end", {key: end.get(key) for key in counts}, counts)
    def summary(self, model, selected, options=(), code=0):
        where, answer = self.ask("summary", "--json", *options, code=code)
        if not answer:
            return self.report.equal(where, "empty", True, not any(selected))
        answer, (chosen, records, typed) = answer[0], selected
        theirs = {(row.pop("target"), row.pop("name"), row.pop("kind")): row for row in answer["spans"]}
        self.report.equal(where, "", theirs, model.summary(chosen))
        sizes = {}
        for event in typed:
            key = self.schemas[event.ring.index].name(event.code), event.ring.content_name, event.code
            sizes.setdefault(key, []).append(event.size)
        self.report.equal(where, "", {(row["name"], row["content"], row["code"]): [row["count"], row["payload_bytes"]]
                          for row in answer["events"]}, {key: [len(many), sum(many)] for key, many in sizes.items()})
        counts = {"log_records": records_of(records)["events"], **counted(model.gaps)}
        if model is self.model:
            counts["filtered"] = sum(gap.count for gap in model.gaps if gap.cause == "filtered")
            counts["removed"] = sum(ring.removed for ring in self.recording.rings)
        return self.report.equal(where, "counts", {key: answer.get(key) for key in counts}, counts)
    def perf_payload(self, event):
        names, code = self.model.names, event.code
        site, payload = names.site(event), {"thread": names.thread(event).json(), "span": event.ext[0] or None}
        said = {perf.THREAD_STARTED: (), perf.THREAD_ENDED: (), perf.SPAN_FOLLOWS_FROM: (),
                perf.EVENT: SITE, perf.CALL_SITE: SITE}.get(code, SITE[:3])
        payload.update((key, getattr(site, key) if site else None) for key in said)
        flags = event.ext[3] & 0xffff
        if code == perf.SPAN_NEW and flags & perf.SCOPE or code == perf.SPAN_EXIT and flags & perf.CLOSES:
            payload["kind"] = "scope"
        if code == perf.SPAN_EXIT and flags & perf.WITH_PARENT:
            payload["ended"] = "with its parent"
        if code in (perf.SPAN_NEW, perf.SPAN_FOLLOWS_FROM):
            payload["parent" if code == perf.SPAN_NEW else "follows"] = event.ext[1] or None
        if code in (perf.SPAN_NEW, perf.SPAN_RECORD, perf.EVENT):
            payload["fields"] = perf.fields_json(perf.read_fields(event.payload or b"", site))
        if code == perf.THREAD_TIME:
            numbers = struct.unpack("<QQQ6I", event.payload)
            payload.update(zip(TIME_FIELDS, numbers))
            if event.ext[3] & perf.NO_QUEUE:
                payload["queue_ns"] = None
        return payload
    # `watch` leaves out the times of threads, unless somebody asks for them.
    def is_watched(self, item):
        return isinstance(item, Gap) or item.ring.content != 3 or item.code not in (perf.THREAD_SWITCHED, perf.THREAD_TIME)
    def watch_json(self, item):
        ring = {"ring": item.ring.path} if len(self.recording.rings) > 1 else {}
        if isinstance(item, Gap):
            return {"gap": {"first_seqno": item.first, "count": item.count, "cause": item.cause}, **ring}
        if item.ring.content == 3 and item.code > 1:
            known = {"payload": self.perf_payload(item)}
        else:
            known = {**self.words(item), "payload": self.payload(item)}
        return {"seqno": item.seqno, "type": item.code, "name": self.schemas[item.ring.index].name(item.code),
                "ts_ns": item.time, "size": item.size, "ext": list(item.ext), **known, **ring,
                **({item.missing: True} if item.missing else {})}
    def watch(self):
        where, answer = self.ask("watch", "--json", "-q")
        mine = [item for item in self.recording.merged() if isinstance(item, Event) or item.cause != "given_up"]
        mine = list(filter(self.is_watched, mine))
        self.report.equal(where, "lines", len(answer), len(mine))
        for place, (theirs, item) in enumerate(zip(answer, mine)):
            self.report.equal(where, str(place), theirs, self.watch_json(item))
    def tasks(self):
        where, (answer,) = self.ask("tasks", "--json")
        theirs = {(task["pid"], task["id"]): task for task in answer["tasks"]}
        mine = {(self.pids[process], key): row for (process, key), row in tasks(self.model).items()}
        for key in theirs.keys() | mine.keys():
            other, row = theirs.get(key), mine.get(key)
            if other and row and row["state"] == "alive":
                # Without tables, the oracle does not say what a task does that has not ended.
                row["state"] = other["state"] if other["state"] in ("idle", "running", "woken") else "alive"
            self.report.equal(where, str(key), other and {name: other[name] for name in row or other}, row)
        states = [row["state"] for row in mine.values()]
        counts = {"tasks": len(mine), **{kind: sum(row[kind] for row in mine.values()) for kind in ("polls", "wakes")},
                  **{state: states.count(state) for state in ("done", "cancelled", "panicked", "ended", "unknown")}}
        self.report.equal(where, "counts", {key: answer["counts"][key] for key in counts}, counts)
        self.report.equal(where, "lost", answer["lost"], counted(self.model.gaps)["lost"])
    def open(self):
        where, (answer,) = self.ask("open", "--json", "--perhaps")
        model, mine = self.model, {}
        for (process, key), span in model.spans.items():
            image = model.tables.get(process)
            perhaps = span.state == "end_lost" and not image
            if not (key in image.spans if image else perhaps or span.state == "open"):
                continue
            row, parents, one = model.span_json(span), [], span
            inside = [piece.thread for piece in span.slices if piece.end is None
                      and piece.start >= model.unsure.get(process, 0)]
            if image:
                # The tables know the thread that entered first, events of the file perhaps others.
                word = image.spans[key][3]
                first = [thread for thread in image.threads if thread & 0xffff == word >> 48]
                inside = first + [thread for thread in inside if thread not in first] if word >> 47 & 1 else []
            while one and one.parent and (one.state == "open" or perhaps):
                parents.append(one.parent)
                one = model.spans.get((process, one.parent))
            begin = span.begin if span.begin is not None else model.first[process, key]
            mine[self.pids[process], key] = {
                **{name: row[name] for name in ("id", "name", "target", "level", "fields")}, "parents": parents,
                "age_ns": model.last[process] - begin, "may_have_closed": perhaps, "pid": self.pids[process],
                "threads": [model.thread_json(span, thread) for thread in inside],
                "opened_before_window": span.begin is None}
        theirs = {(row["pid"], row["id"]): row for row in answer["spans"]}
        theirs = {key: {name: row[name] for name in mine.get(key, row)} for key, row in theirs.items()}
        self.report.equal(where, "", theirs, mine)
        gaps = counted(model.gaps)
        self.report.equal(where, "lost", answer["lost"], gaps["lost"] - gaps["overwritten_before"])
    def info(self):
        where, (answer,) = self.ask("info", "--json")
        ring, sizes = self.recording.rings[0], {}
        items = [item for one in self.recording.rings for item in one.items if isinstance(item, Event)]
        for item in items:
            sizes.setdefault(item.code, []).append(item.size)
        by_type = {str(code): {"name": self.schemas[0].name(code), "count": len(many), "payload_bytes": sum(many)}
                   for code, many in sizes.items()}
        events = {"count": len(items), "by_type": by_type, "first_ts_ns": min(item.time for item in items),
                  "last_ts_ns": max(item.time for item in items), "lost": counted(self.model.gaps)["lost"],
                  **{kind + "_payloads": sum(item.missing == kind for item in items) for kind in (
                      "expired", "malformed")}}
        self.report.equal(where, "events", {key: answer["events"][key] for key in events}, events)
        names = ("schema_hash", "descriptor_capacity", "payload_buf_size", "context_area_size", "last_seqno",
                 "next_payload_byte", "buffer_window_start")
        known = [ring.header[name] for name in ("hash", "capacity", "payload", "context", "last", "next", "window")]
        self.report.equal(where, "header", [answer[key] for key in names], known)
        names = ("refused_claims", "lapped_claims", "skipped_chunks", "record_errors", "table_overflows")
        counters = [answer["extension"]["counters"][name] for name in names]
        self.report.equal(where, "counters", counters, list(ring.header["counters"][:5]))
    def fulfil(self, condition):
        """How many spans, records and typed events fulfil a condition: so often it fires."""
        subjects, model, holds = choose.Subjects(self.model, self.schemas), self.model, choose.Condition(condition).holds
        return sum(map(holds, [*map(subjects.span, model.spans.values()), *map(subjects.record, model.records),
                               *map(subjects.typed, model.typed)]))
    def find(self, condition):
        subjects, tree = choose.Subjects(self.model, self.schemas, alone=True), choose.Condition(condition, True)
        records, mine = {id(record.event): record for record in self.model.records}, []
        for item in (item for item in self.recording.merged() if isinstance(item, Event)):
            if id(item) in records:
                subject = subjects.record(records[id(item)])
            elif item.ring.content != 3:
                subject = subjects.typed(item)
            elif item.code in (perf.SPAN_NEW, perf.SPAN_RECORD):
                span = Span(item.ring.process, item.ext[0], item.ring.head)
                span.site, span.closer = self.model.names.site(item), item.ext[2] >> 32
                span.fields = perf.read_fields(item.payload or b"", span.site)
                subject = subjects.span(span)
            else:
                continue
            if tree.holds(subject):
                mine.append([item.ring.name, item.seqno])
        where, answer = self.ask("find", "--json", condition, code=0 if mine else 19)
        hits = [[line["ring"], line["seqno"]] for line in answer[:-1]]
        # The files of a row are searched one after the other, and their times overlap.
        several = len(self.paths) > 1
        self.report.equal(where, "hits", sorted(hits) if several else hits, sorted(mine) if several else mine)
    def select(self, options, window=None, **selection):
        """A selection by the same words for the program and for the oracle."""
        model = Model(self.recording, **window) if window else self.model
        self.know_blocks(model)
        selected, where = choose.choose(model, self.schemas, **selection), selection.get("where")
        # A `--where` that nothing fulfils is a mistake; that two options have nothing in common is none.
        code = 2 if where and not any(choose.choose(model, self.schemas, where=where)) else 0
        self.summary(model, selected, options, code)
        self.export(model, selected, options, code)
    def options(self):
        """Each option of selection, with values that say something about this input."""
        model, names = self.model, sorted({(s.site.target, s.site.name) for s in self.model.spans.values() if s.site})
        lengths = sorted(choose.lasts(model, span) for span in model.spans.values())
        times = sorted(item.time for ring in self.recording.rings for item in ring.items if isinstance(item, Event))
        low, high = times[len(times) // 3], times[len(times) * 2 // 3]
        self.select(["--from", str(low), "--to", str(high)], {"since": low, "upto": high})
        self.select(["--from", str(high)], {"since": high})
        for ring in self.recording.rings[1:][-1:]:
            self.select(["--ring", ring.name], {"only": {ring.index}})
        for target, name in names:
            self.select(["--span", "%s::%s" % (target, name)], spans=["%s::%s" % (target, name)])
            self.select(["--span", name, "--where", "span=" + names[0][1]], spans=[name], where="span=" + names[0][1])
        for middle in lengths[len(lengths) // 2:][:1]:
            self.select(["--min-duration", "%dns" % middle], min_duration="%dns" % middle)
        for name in sorted({record.thread.name or "" for record in model.records} - {""})[:1]:
            keep = lambda event: event.ring.content == 3 and model.names.thread(event).name == name
            self.select(["--thread", name], {"keep": keep})

def conditions(one, limit):
    """Conditions that say something about this input: of its own names, values and durations."""
    result, values, spans = [], {}, [span for span in one.model.spans.values() if span.site]
    for target, name in sorted({(span.site.target, span.site.name) for span in spans}):
        ends = sorted(span.end - span.begin for span in spans if span.site.name == name and span.end and span.begin)
        result += ['span="%s"' % name, 'span="%s::%s" dur>=%dns' % (target, name, percentile(ends, 50)),
                   'span=%s* and not target="x"' % name[:1], 'span="%s" level>=INFO' % name,
                   'target="%s" and (level<=WARN or not span="%s")' % (target, name)]
    known = [choose.keyed(item.fields) for item in spans + one.model.records]
    for event in one.model.typed[::len(one.model.typed) // 10 + 1]:
        known.append(list(choose.typed_fields(one.schemas[event.ring.index], event)))
        result += ['event=%s field."%s">=%s' % (one.schemas[event.ring.index].name(event.code), key, show(value))
                   for key, value in known[-1] if isinstance(value, (int, str, float))]
    for key, value in (pair for pairs in known for pair in pairs if isinstance(pair[1], (int, str, float))):
        values.setdefault(key, []).append(value)
    for key, many in sorted(values.items()):
        value = show(many[len(many) // 2])
        result += ['field."%s"%s%s' % (key, operator, value) for operator in ("=", "!=", ">=")]
    return result if limit is None else result[::max(1, len(result) // limit)]

def compare(paths, report=None, limit=12):
    """The entry for one input: all verbs, each option of selection, and about `limit` conditions (None: all)."""
    report = report or Report()
    one = Input(paths, report)
    everything = set(one.model.spans), one.model.records, one.model.typed
    one.summary(one.model, everything)
    one.export(one.model, everything)
    one.watch()
    if any(ring.content == 3 for ring in one.recording.rings):
        one.tasks()
        one.open()
    if not one.recording.is_capture:
        one.info()
    if limit != 0:
        one.options()
        for condition in conditions(one, limit):
            one.select(["--where", condition], where=condition)
            if one.recording.is_capture and "dur" not in condition and "level" not in condition:
                one.find(condition)
    return report

if __name__ == "__main__":
    if "ORACLE_CONDITION" in os.environ:
        print(Input(sys.argv[1].split(","), Report()).fulfil(os.environ["ORACLE_CONDITION"]))
        sys.exit()
    total = Report()
    for argument in sys.argv[1:]:
        compare(argument.split(","), total, int(os.environ.get("ORACLE_SELECTIONS", 12)))
    print("%d answers, %d values, %d differences" % (total.answers, total.values, total.differences))
    sys.exit(1 if total.differences else 0)
