"""Compares what the program says of files with what the oracle reads from them: `compare.py FILE|RING...`.

Each argument is one input: a capture, a ring's path or a snapshot; files joined by commas are one input together.
EVENTRING names the program. Every value of every answer counts; a difference is printed, and the exit code is 1.
"""

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
# Events of consensus lie in no block, and name their block in the payload: QC, FINALIZED, VERIFIED.
BLOCK_NUMBER = {7: 32, 8: 32, 9: 0}
UNSURE = {"trace_id", "span_id", "parent_span_id"}


class Report:
    def __init__(self, limit=5):
        self.values, self.answers, self.differences, self.limit = 0, 0, 0, limit

    def differ(self, where, path, theirs, mine):
        self.differences += 1
        self.shown = getattr(self, "shown", {})
        self.shown[where] = self.shown.get(where, 0) + 1
        if self.shown[where] <= self.limit:
            print("DIFFERENT %s at %s: program %.300s, oracle %.300s" % (where, path, show(theirs), show(mine)))

    def equal(self, where, path, theirs, mine):
        """Both values, to the last leaf."""
        if isinstance(theirs, dict) and isinstance(mine, dict):
            for key in list(theirs) + [key for key in mine if key not in theirs]:
                self.equal(where, path + "." + str(key), theirs.get(key, "(none)"), mine.get(key, "(none)"))
        elif isinstance(theirs, list) and isinstance(mine, list) and len(theirs) == len(mine):
            for place, pair in enumerate(zip(theirs, mine)):
                self.equal(where, "%s[%d]" % (path, place), *pair)
        else:
            self.values += 1
            if theirs != mine or type(theirs) is not type(mine):
                self.differ(where, path, theirs, mine)


def show(value):
    return json.dumps(value, ensure_ascii=False, default=str)


def run(arguments):
    done = subprocess.run([PROGRAM] + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return [json.loads(line) for line in done.stdout.decode().splitlines() if line.strip()], done


def load(paths):
    with open(paths[0], "rb") as file:
        if file.read(8) != b"EVRCAPT1":
            return rings.read_rings(paths)
    return captures.read_captures(paths)


def counted(gaps):
    lost = sum(gap.count for gap in gaps if gap.cause not in NO_LOSS)
    return {"lost": lost, "overwritten_before": sum(gap.count for gap in gaps if gap.cause == "overwritten_before")}


class Input:
    """One input, its recording and the model of all of it."""

    def __init__(self, paths, report):
        self.paths, self.report, self.recording = paths, report, load(paths)
        self.schemas = [schema.Schema(ring.schema, ring.content) for ring in self.recording.rings]
        self.model = Model(self.recording)
        self.has_spans = any(ring.content == 3 for ring in self.recording.rings)

    def ask(self, verb, *options, nothing=0):
        """`nothing` is the exit code if nothing is selected, unless damage decides."""
        where = " ".join([verb] + list(options) + self.paths)
        answer, done = run([verb] + list(options) + self.paths)
        self.report.answers += 1
        expected = 7 if self.recording.damaged else 6 if self.recording.truncated else nothing
        self.report.equal(where, "exit code", done.returncode, expected)
        return where, answer

    def nothing(self, options):
        """A `--where` that nothing fulfils is a mistake; that two options have nothing in common is none."""
        where = options[options.index("--where") + 1] if "--where" in options else None
        return 2 if where and not any(choose.choose(self.model, self.schemas, where=where)) else 0

    def typed_json(self, event):
        known = self.schemas[event.ring.index]
        line = {"process": event.ring.process, "ring": event.ring.name, "seqno": event.seqno, "time_ns": event.time,
                "name": known.name(event.code), "code": event.code,
                "payload": schema.plain(known.decode(event.code, event.payload)), "span": None}
        line.update(known.named_words(event.ext))
        self.add_block(event, line)
        if len(known.words) < 4:
            line["content_ext"] = list(event.ext)
        return line

    def add_block(self, event, line):
        if event.ring.content == 2:
            start, own = event.ring.blocks.get(event.ext[0]), BLOCK_NUMBER.get(event.code)
            if own is not None and event.payload:
                line["block_number"] = int.from_bytes(event.payload[own:own + 8], "little")
            else:
                line["block_number"] = (int.from_bytes(start[48:56], "little") if start
                                        else self.numbers().get(event.ext[0]))

    def numbers(self):
        if not hasattr(self, "known_numbers"):
            self.known_numbers = {event.seqno: int.from_bytes(event.payload[32:40], "little")
                                  for event in self.model.typed if event.code == 2 and event.payload}
        return self.known_numbers

    def export(self, model, selected, options=()):
        where, answer = self.ask("export", "--format", "jsonl", "-o", "-", *options,
                                 nothing=self.nothing(options))
        if not answer:
            return self.report.equal(where, "empty", True, not any(selected))
        theirs, mine = {}, {}
        for line in answer:
            kind = line.pop("type")
            if kind == "span":
                theirs["span", line["process"], line["id"]] = {k: v for k, v in line.items() if k not in UNSURE}
            elif kind in ("event", "counter", "marker", "typed_event"):
                about = line.get("seqno") if kind == "typed_event" else line["thread"]["id"]
                theirs.setdefault((kind, line["time_ns"], about, line.get("ring")), []).append(line)
            elif kind == "loss":
                theirs["loss", line["ring"], line["first_seqno"]] = line
            elif kind == "end":
                end = line
        chosen, records, typed = selected
        mine = {("span",) + key: model.span_json(model.spans[key]) for key in chosen}
        for line in map(model.record_json, records):
            kind = line.pop("type")
            mine.setdefault((kind, line["time_ns"], line["thread"]["id"], None), []).append(line)
        for event in typed:
            mine["typed_event", event.time, event.seqno, event.ring.name] = [self.typed_json(event)]
        for gap in model.gaps:
            if gap.cause not in NO_LOSS:
                mine["loss", gap.ring.name, gap.first] = {"process": gap.ring.process, "ring": gap.ring.name,
                    "first_seqno": gap.first, "count": gap.count, "cause": gap.cause}
        self.same_keys(where, theirs, mine)
        states = [model.spans[key].state for key in chosen]
        counts = {"spans": len(chosen), "open_spans": states.count("open"), "lost_ends": states.count("end_lost"),
                  "typed_events": len(typed), "events": sum(one.event.code == perf.EVENT for one in records),
                  "counters": sum(one.event.code == perf.COUNTER for one in records),
                  "markers": sum(one.event.code == perf.MARKER for one in records), **counted(model.gaps)}
        self.report.equal(where, "end", {key: end.get(key) for key in counts}, counts)

    def same_keys(self, where, theirs, mine):
        for key in theirs.keys() | mine.keys():
            self.report.equal(where, str(key), theirs.get(key, "(none)"), mine.get(key, "(none)"))

    def summary(self, model, selected, options=()):
        where, answer = self.ask("summary", "--json", *options,
                                 nothing=self.nothing(options))
        if not answer:
            return self.report.equal(where, "empty", True, not any(selected))
        answer, (chosen, records, typed) = answer[0], selected
        mine = model.summary(chosen)
        theirs = {(row.pop("target"), row.pop("name"), row.pop("kind")): row for row in answer["spans"]}
        self.same_keys(where, theirs, mine)
        events, rows = {}, {}
        for event in typed:
            known = self.schemas[event.ring.index].name(event.code)
            row = events.setdefault((known, event.ring.content_name, event.code), {"count": 0, "payload_bytes": 0})
            row["count"] += 1
            row["payload_bytes"] += event.size
        for row in answer["events"]:
            rows[row["name"], row["content"], row["code"]] = {key: row[key] for key in ("count", "payload_bytes")}
        self.same_keys(where, rows, events)
        counts = {"log_records": sum(one.event.code == perf.EVENT for one in records), **counted(model.gaps)}
        if model is self.model:
            gaps = model.gaps
            counts["filtered"] = sum(gap.count for gap in gaps if gap.cause == "filtered")
            counts["removed"] = sum(ring.removed for ring in self.recording.rings)
        self.report.equal(where, "counts", {key: answer.get(key) for key in counts}, counts)

    def perf_payload(self, event):
        model, site, code = self.model, self.model.names.site(event), event.code
        payload = {"thread": model.names.thread(event).json(), "span": event.ext[0] or None}
        if code == perf.SPAN_FOLLOWS_FROM:
            payload["follows"] = event.ext[1]
        elif code not in (perf.THREAD_STARTED, perf.THREAD_ENDED):
            payload.update(name=site and site.name, target=site and site.target, level=site and site.level)
            if code == perf.SPAN_NEW:
                payload["parent"] = event.ext[1] or None
            if code in (perf.EVENT, perf.CALL_SITE):
                payload.update(file=site and site.file, line=site and site.line)
            if code in (perf.SPAN_NEW, perf.SPAN_RECORD, perf.EVENT):
                payload["fields"] = perf.fields_json(perf.read_fields(event.payload or b"", site))
        return payload

    def watch_json(self, item):
        several, ring = len(self.recording.rings) > 1, item.ring
        if isinstance(item, Gap):
            line = {"gap": {"first_seqno": item.first, "count": item.count, "cause": item.cause}}
        else:
            known = self.schemas[ring.index]
            line = {"seqno": item.seqno, "type": item.code, "name": known.name(item.code), "ts_ns": item.time,
                    "size": item.size, "ext": list(item.ext)}
            if ring.content == 3 and item.code > 1:
                line["payload"] = self.perf_payload(item)
            else:
                line.update(known.named_words(item.ext))
                self.add_block(item, line)
                line["payload"] = None if item.missing else schema.plain(known.decode(item.code, item.payload))
            if item.missing:
                line[item.missing] = True
        if several:
            line["ring"] = ring.path
        return line

    def watch(self):
        where, answer = self.ask("watch", "--json", "-q")
        mine = [item for item in self.recording.merged() if isinstance(item, Event) or item.cause != "given_up"]
        self.report.equal(where, "lines", len(answer), len(mine))
        for place, (theirs, item) in enumerate(zip(answer, mine)):
            self.report.equal(where, str(place), theirs, self.watch_json(item))

    def tasks(self):
        where, (answer,) = self.ask("tasks", "--json")
        mine, model = tasks(self.model), self.model
        theirs = {(task["pid"], task["id"]): task for task in answer["tasks"]}
        pids = {ring.process: ring.pid for ring in self.recording.rings}
        for (process, key), row in mine.items():
            other = theirs.pop((pids[process], key), None)
            if other and row["state"] == "alive" and other["state"] in ("idle", "running", "woken"):
                row["state"] = other["state"]
            self.report.equal(where, str(key), other and {name: other[name] for name in row}, row)
        for key in theirs:
            self.report.equal(where, str(key), "listed", "(none)")
        states = [row["state"] for row in mine.values()]
        counts = {"tasks": len(mine), "polls": sum(row["polls"] for row in mine.values()),
                  "wakes": sum(row["wakes"] for row in mine.values())}
        counts.update({state: states.count(state) for state in ("done", "cancelled", "panicked", "ended", "unknown")})
        self.report.equal(where, "counts", {key: answer["counts"][key] for key in counts}, counts)
        self.report.equal(where, "lost", answer["lost"], counted(model.gaps)["lost"])

    def open(self):
        where, (answer,) = self.ask("open", "--json", "--perhaps")
        model, pids = self.model, {ring.process: ring.pid for ring in self.recording.rings}
        theirs = {(row["pid"], row["id"]): row for row in answer["spans"]}
        mine = {}
        for (process, key), span in model.spans.items():
            image = model.tables.get(process)
            perhaps = span.state == "end_lost" and not image
            if key in image.spans if image else perhaps or span.state == "open":
                row, inside = model.span_json(span), [piece.thread for piece in span.slices if piece.end is None]
                if image:
                    # The tables know the thread that entered first, events of the file perhaps others.
                    word = image.spans[key][3]
                    first = [one for one in image.threads if one & 0xffff == word >> 48]
                    inside = first + [one for one in inside if one not in first] if word >> 47 & 1 else []
                parents, one = [], span
                while one and one.parent and (one.state == "open" or perhaps):
                    parents.append(one.parent)
                    one = model.spans.get((process, one.parent))
                begin = span.begin if span.begin is not None else model.first[process, key]
                mine[pids[process], key] = {
                    "id": key, "name": row["name"], "target": row["target"], "level": row["level"],
                    "age_ns": model.last[process] - begin, "fields": row["fields"], "parents": parents,
                    "threads": [model.thread_json(span, thread) for thread in inside],
                    "opened_before_window": span.begin is None, "may_have_closed": perhaps, "pid": pids[process]}
        for key in theirs.keys() | mine.keys():
            row = mine.get(key, {})
            other = {name: theirs[key].get(name) for name in row or theirs[key]} if key in theirs else "(none)"
            self.report.equal(where, str(key), other, row)
        gaps = counted(model.gaps)
        self.report.equal(where, "lost", answer["lost"], gaps["lost"] - gaps["overwritten_before"])

    def info(self):
        ring = self.recording.rings[0]
        where, (answer,) = self.ask("info", "--json")
        header, events = ring.header, {"count": 0, "expired_payloads": 0, "malformed_payloads": 0}
        by_type, times = {}, []
        for one in self.recording.rings:
            for item in one.items:
                if isinstance(item, Event):
                    row = by_type.setdefault(str(item.code), {"name": self.schemas[0].name(item.code), "count": 0,
                                                              "payload_bytes": 0})
                    row["count"] += 1
                    row["payload_bytes"] += item.size
                    times.append(item.time)
                    events["count"] += 1
                    events["expired_payloads"] += item.missing == "expired"
                    events["malformed_payloads"] += item.missing == "malformed"
        events.update(by_type=by_type, first_ts_ns=min(times), last_ts_ns=max(times),
                      lost=counted(self.model.gaps)["lost"])
        self.report.equal(where, "events", {key: answer["events"][key] for key in events}, events)
        mine = {"schema_hash": header["hash"], "descriptor_capacity": header["capacity"], "magic": "RING01",
                "payload_buf_size": header["payload"], "context_area_size": header["context"],
                "last_seqno": header["last"], "next_payload_byte": header["next"],
                "buffer_window_start": header["window"],
                "content_type": {"code": ring.content, "name": ring.content_name}}
        self.report.equal(where, "header", {key: answer[key] for key in mine}, mine)
        counters = answer["extension"]["counters"]
        names = ("refused_claims", "lapped_claims", "skipped_chunks", "record_errors", "table_overflows")
        self.report.equal(where, "counters", [counters[name] for name in names], list(header["counters"][:5]))

    def find(self, condition):
        done = run(["find", condition, "--json"] + self.paths)
        where, answer = "find %s %s" % (condition, " ".join(self.paths)), done[0]
        self.report.answers += 1
        tester, tree = choose.Tester(self.model, self.schemas, alone=True), choose.Condition(condition, True)
        records = {id(record.event): record for record in self.model.records}
        mine = []
        for item in self.recording.merged():
            if isinstance(item, Gap):
                continue
            if id(item) in records:
                holds = tester.record(records[id(item)], tree)
            elif item.ring.content != 3:
                holds = tester.typed(item, tree)
            elif item.code in (perf.SPAN_NEW, perf.SPAN_RECORD):
                span = Span(item.ring.process, item.ext[0], item.ring.head)
                span.site, span.closer = self.model.names.site(item), item.ext[2] >> 32
                span.fields = perf.read_fields(item.payload or b"", span.site)
                holds = tester.span(span, tree)
            else:
                continue
            if holds:
                mine.append([item.ring.name, item.seqno])
        self.report.equal(where, "hits", [[line["ring"], line["seqno"]] for line in answer[:-1]], mine)
        self.report.equal(where, "exit code", done[1].returncode,
                          0 if mine else 7 if self.recording.damaged else 6 if self.recording.truncated else 19)

    def select(self, options, window=None, **selection):
        """A selection by the same words for the program and for the oracle."""
        model = Model(self.recording, **window) if window else self.model
        selected = choose.choose(model, self.schemas, **selection)
        self.summary(model, selected, options)
        self.export(model, selected, options)

    def options(self):
        """Each option of selection once, with a value that says something about this input."""
        model, names = self.model, sorted({(span.site.target, span.site.name) for span in self.model.spans.values()})
        lengths = sorted(choose.lasts(model, span) for span in model.spans.values())
        times = sorted(item.time for ring in self.recording.rings for item in ring.items if isinstance(item, Event))
        low, high = times[len(times) // 3], times[len(times) * 2 // 3]
        self.select(["--from", str(low), "--to", str(high)], {"since": low, "upto": high})
        self.select(["--from", str(high)], {"since": high})
        if len(self.recording.rings) > 1:
            ring = self.recording.rings[-1]
            self.select(["--ring", ring.name], {"only": {ring.index}})
        for target, name in names:
            self.select(["--span", target + "::" + name], spans=[target + "::" + name])
            self.select(["--span", name, "--where", "span=" + names[0][1]], spans=[name], where="span=" + names[0][1])
        if lengths:
            middle = "%dns" % lengths[len(lengths) // 2]
            self.select(["--min-duration", middle], min_duration=middle)
            thread = sorted({model.names.thread(record.event).name or "" for record in model.records} - {""})[:1]
            for name in thread:
                keep = lambda event: event.ring.content == 3 and model.names.thread(event).name == name
                self.select(["--thread", name], {"keep": keep})


def conditions(model, limit):
    """Conditions that say something about this input: of its own names, values and durations."""
    result, values = [], {}
    names = sorted({(span.site.target, span.site.name) for span in model.spans.values() if span.site})
    for target, name in names:
        ends = sorted(span.end - span.begin for span in model.spans.values() if span.site and span.site.name == name
                      and span.end is not None and span.begin is not None)
        result += ['span="%s"' % name, 'span="%s::%s" dur>=%dns' % (target, name, percentile(ends, 50)),
                   'span=%s* and not target="x"' % name[:1], 'span="%s" level>=INFO' % name,
                   'target="%s" and (level<=WARN or not span="%s")' % (target, name)]
    for span in list(model.spans.values()) + model.records:
        for key, value in choose.keyed(span.fields):
            values.setdefault(key, []).append(value)
    for key, many in sorted(values.items()):
        value = many[len(many) // 2]
        if isinstance(value, str):
            result.append('field."%s"=%s' % (key, show(value)))
        else:
            result += ['field."%s"=%s' % (key, show(value)), 'field."%s">=%s' % (key, show(value)),
                       'field."%s"!=%s' % (key, show(value))]
    return result if limit is None else result[::max(1, len(result) // limit)]


def compare(paths, report=None, limit=12):
    """The entry for one input: all verbs, and selections that fit it. `limit` is about how many conditions are tried."""
    report = report or Report()
    one = Input(paths, report)
    everything = (set(one.model.spans), one.model.records, one.model.typed)
    one.summary(one.model, everything)
    one.export(one.model, everything)
    one.watch()
    if one.has_spans:
        one.tasks()
        one.open()
    if not one.recording.is_capture:
        one.info()
    if limit != 0:
        one.options()
        for condition in conditions(one.model, limit):
            one.select(["--where", condition], where=condition)
            if one.recording.is_capture and "dur" not in condition and "level" not in condition:
                one.find(condition)
    return report


if __name__ == "__main__":
    total = Report()
    for argument in sys.argv[1:]:
        compare(argument.split(","), total)
    print("%d answers, %d values, %d differences" % (total.answers, total.values, total.differences))
    sys.exit(1 if total.differences else 0)
