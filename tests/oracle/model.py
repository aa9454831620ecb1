"""What perf events mean: the tree of spans with their slices, fields and ends, log records, and tasks."""

import math
import struct
from collections import namedtuple
from types import SimpleNamespace

from perf import (CLOSES, COUNTER, ENTERS, EVENT, MARKER, SCOPE, SPAN_CLOSE, SPAN_ENTER, SPAN_EXIT,
                  SPAN_FOLLOWS_FROM, SPAN_NEW, SPAN_RECORD, THREAD_SWITCHED, THREAD_TIME, WITH_PARENT, Names, Thread,
                  fields_json, read_fields)
from rings import NO_LOSS, Event, Gap
from times import NAMES, Clock, shorten

Record = namedtuple("Record", "event span site thread fields")

def new_slice(thread, start, clock):
    return SimpleNamespace(thread=thread, start=start, end=None, missing=False, lost=False, clock=clock,
                           off=list(clock.off), times=None, merged=clock.merged, exact=True)

class Span:
    def __init__(self, process, key, head):
        self.process, self.id, self.head, self.site, self.parent = process, key, head, None, None
        self.begin, self.end, self.own, self.last, self.slices, self.fields = None, None, None, 0, [], {}
        self.scope, self.with_parent, self.state, self.losses = False, False, None, False
        self.follows, self.children, self.closer, self.maker = [], [], None, None

def percentile(ordered, share):
    """The smallest duration that so many of the spans do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * share / 100) - 1)] if ordered else 0

def union(intervals):
    total, reach = 0, None
    for begin, end in sorted(intervals):
        if reach is None or begin > reach:
            total, reach = total + end - begin, end
        elif end > reach:
            total, reach = total + end - reach, end
    return total

class Model:
    """`upto` ends the model at a time, `since` begins it there: windows cut events, not spans."""
    def __init__(self, recording, since=0, upto=2**64, only=None, keep=None):
        self.recording, self.names = recording, Names(recording)
        self.spans, self.records, self.typed, self.gaps = {}, [], [], []
        # Of each process: its last sign of life, and the end of its last loss. Of each span: the first event about it.
        self.last, self.unsure, self.first = {}, {}, {}
        self.clocks, self.inside, self.lost = {}, {}, {}
        self.whole = since == 0 and upto == 2**64 and only is None and keep is None
        waiting, latest = {}, None
        for item in recording.merged():
            if only is not None and item.ring.index not in only:
                continue
            if isinstance(item, Gap):
                waiting.setdefault(item.ring.index, []).append(item)
                item.seen = latest
                if item.sort <= upto:
                    self.gaps.append(item)
                continue
            process = item.ring.process
            for gap in waiting.pop(item.ring.index, []):
                # A gap ends with the next event of its ring.
                if item.sort < since:
                    self.gaps.remove(gap)
                elif gap.cause not in NO_LOSS and gap.sort <= upto:
                    self.lost[item.ring.index] = max(self.lost.get(item.ring.index, 0), item.sort)
                    self.unsure[process] = max(self.unsure.get(process, 0), item.sort)
            if not since <= item.time <= upto or keep and not keep(item):
                continue
            self.last[process] = max(self.last.get(process, 0), item.time)
            latest = item.time
            (self.take if item.ring.content == 3 else self.typed.append)(item)
        for index, gaps in waiting.items():
            if any(gap.cause not in NO_LOSS and gap.sort <= upto for gap in gaps):
                self.unsure[recording.rings[index].process] = 2**64
        for ring in recording.rings if self.whole else []:
            # Somebody may have seen that the program lived after its last event in the file.
            self.last[ring.process] = max(self.last.get(ring.process, 0), ring.ended_after or 0)
        self.finish()
    def take(self, event):
        code, thread, flags = event.code, event.ext[2] >> 32, event.ext[3] & 0xffff
        clock = self.clocks.get((event.ring.head, thread))
        clock = clock or self.clocks.setdefault((event.ring.head, thread), Clock(self.names.thread(event).measures))
        clock.rings.add(event.ring.index)
        stack = self.inside.setdefault((event.ring.head, thread), [])
        if code in (THREAD_SWITCHED, THREAD_TIME, EVENT, COUNTER, MARKER) and stack and stack[-1][0] == event.ext[0]:
            clock.looked = max(clock.looked, event.time)
        if code == THREAD_SWITCHED:
            clock.switched(event.time)
        if code == THREAD_TIME and event.payload:
            clock.measure(event.time, event.payload, flags, [piece for _, piece in stack])
        if code in (EVENT, COUNTER, MARKER):
            site = self.names.site(event)
            fields = read_fields(event.payload or b"", site) if code == EVENT else {}
            self.first.setdefault((event.ring.process, event.ext[0]), event.time)
            self.records.append(Record(event, event.ext[0], site, self.names.thread(event), fields))
            return
        if not SPAN_NEW <= code <= SPAN_FOLLOWS_FROM:
            return
        process, key = event.ring.process, event.ext[0]
        span = self.spans.setdefault((process, key), Span(process, key, event.ring.head))
        span.site = span.site or self.names.site(event)
        span.last, span.own = max(span.last, event.time), span.own or event.time
        for key in event.ext[:2] if code in (SPAN_NEW, SPAN_FOLLOWS_FROM) else event.ext[:1]:
            # A span that another event names was there.
            self.first.setdefault((event.ring.process, key), event.time)
        if code in (SPAN_NEW, SPAN_RECORD):
            # A field that is recorded again has its new value in its old place.
            span.fields.update(read_fields(event.payload or b"", span.site))
        if code == SPAN_NEW:
            span.begin, span.parent, span.scope = event.time, event.ext[1] or None, bool(flags & SCOPE)
            span.maker = thread
        if code == SPAN_ENTER or code == SPAN_NEW and flags & ENTERS:
            clock.see(event.time)
            stack.append((span.id, new_slice(thread, event.time, clock)))
            span.slices.append(stack[-1][1])
        if code == SPAN_EXIT:
            inside = [piece for piece in span.slices if piece.thread == thread and piece.end is None]
            clock.see(event.time)
            if not inside:
                inside = [new_slice(thread, None, clock)]
                span.slices += inside
            piece = inside[-1]
            piece.end = event.time
            if piece.start is not None:
                end = min(event.time, span.end or event.time)
                if piece.times is None:
                    piece.times = clock.of(piece, event.time, self.lost_until(clock))
                shorten(piece.times, sum(piece.times) - max(0, end - piece.start))
                stack[:] = [entry for entry in stack if entry[1] is not piece]
            span.scope = span.scope or bool(flags & CLOSES)
        if code == SPAN_CLOSE or code == SPAN_EXIT and flags & CLOSES:
            span.end, span.with_parent, span.closer = event.time, bool(flags & WITH_PARENT), thread
            for piece in span.slices:
                if piece.end is None and piece.times is None and piece.start is not None:
                    piece.times = piece.clock.of_open(piece, event.time, self.lost_until(piece.clock))
                    for entries in self.inside.values():
                        entries[:] = [entry for entry in entries if entry[1] is not piece]
        if code == SPAN_FOLLOWS_FROM:
            span.follows.append(event.ext[1])
    def finish(self):
        """What became of each span, by its events and by the last image of the present."""
        self.tables = {}
        for image in self.recording.presents if self.whole else []:
            process = self.recording.rings[image.head].process
            # An image tells of the end only if no event of the recorder is later.
            if image.time is None or image.time >= self.last.get(process, 0):
                self.tables[process] = image
            for key, words in image.spans.items():
                if (process, key) in self.spans or process in self.tables and not self.recording.rotated:
                    self.adopt(process, image, key, words)
        for span in self.spans.values():
            image, unsure = self.tables.get(span.process), self.unsure.get(span.process, 0)
            if span.end is not None:
                span.state, span.losses = "closed", span.begin is None
            elif image and not image.lost and not self.recording.rotated:
                # (A file that the next one of its row goes on with does not have all closes.)
                span.state = "open" if span.id in image.spans else "end_lost"
            else:
                span.state = "end_lost" if span.last < unsure else "open"
            if span.state != "closed":
                span.losses = span.state == "end_lost" or span.begin is None or span.begin < unsure
            for piece in span.slices:
                if piece.end is None and span.state != "open":
                    piece.end, piece.missing, piece.lost = span.end or span.last, span.end is not None, not span.end
            if (span.process, span.parent) in self.spans:
                self.spans[span.process, span.parent].children.append(span)
    def adopt(self, process, image, key, words):
        """What the image knows of a span whose creation is not among the events."""
        span = self.spans.setdefault((process, key), Span(process, key, image.head))
        if span.begin is None:
            span.site = span.site or self.names.sites.get((image.head, words[4] & 0xffffffff))
            span.begin, span.parent, span.scope = words[2], words[1] or None, bool(words[4] >> 32 & SCOPE)
            data = b"".join(word.to_bytes(8, "little") for word in words[6:8])[:words[4] >> 56]
            span.fields = {**read_fields(image.fields.get(key, data), span.site), **span.fields}
            span.last = max(span.last, words[2])
    def busy(self, span):
        """The time of threads in the span; what several slices of one thread have in common counts once."""
        threads = {}
        for piece in span.slices:
            if piece.start is not None:
                end = max(piece.start, piece.end or self.last[span.process])
                threads.setdefault(piece.thread, []).append((piece.start, end))
        return sum(union(pieces) for pieces in threads.values())
    def lost_until(self, clock):
        return max((self.lost.get(index, 0) for index in clock.rings), default=0)
    def times(self, span):
        """The parts of the busy time; nothing if none is known. A slice within one of the same thread is part of it."""
        total = [0, 0, 0, 0]
        for piece in span.slices:
            around = [other for other in span.slices if other is not piece and other.thread == piece.thread
                      and other.start is not None and piece.start is not None and other.start <= piece.start
                      and (other.end or 2**64) >= (piece.end or 2**64) and span.slices.index(other) < span.slices.index(piece)]
            if piece.start is None or around:
                continue
            parts = piece.times
            if parts is None:
                parts = piece.clock.of_open(piece, self.last[span.process], self.lost_until(piece.clock))
            total = [a + b for a, b in zip(total, parts)]
        return dict(zip(NAMES, total)) if any(total[:3]) else {}
    def own_time(self, span):
        """The duration without that of children, where these overlap without their common time counted twice."""
        inside = [(max(child.begin or 0, span.begin), min(child.end or span.end, span.end)) for child in span.children]
        return span.end - span.begin - union([piece for piece in inside if piece[0] < piece[1]])
    def summary(self, chosen):
        """The list `spans` of `summary`, as a dictionary by target, name and kind."""
        rows = {}
        for span in map(self.spans.get, chosen):
            site = span.site
            key = (site.target if site else None, site.name if site else None, "scope" if span.scope else "span")
            row = rows.setdefault(key, {"durations": [], "total_ns": 0, "self_ns": 0, "busy_ns": 0, "times": [], "open": 0,
                                        "end_lost": 0, "incomplete": 0, "ended_with_parent": 0})
            if span.state != "closed" or span.begin is None:
                row["incomplete" if span.state == "closed" else span.state] += 1
            else:
                row["durations"].append(span.end - span.begin)
                row["self_ns"] += self.own_time(span)
                row["busy_ns"] += self.busy(span)
                times = self.times(span) or {"unmeasured_ns": self.busy(span)}
                row["times"].append({**times, "exact": all(piece.exact for piece in span.slices)})
                row["ended_with_parent"] += span.with_parent
        for row in rows.values():
            ordered = sorted(row.pop("durations"))
            row.update({"p%d_ns" % share: percentile(ordered, share) for share in (50, 90, 99)})
            sums = {name: sum(one.get(name, 0) for one in row["times"]) for name in NAMES}
            sums["exact"] = all(one["exact"] for one in row["times"])
            del row["times"]
            if any(sums[name] for name in NAMES[:3]):
                row["times"] = sums
            row.update(count=len(ordered), total_ns=sum(ordered), max_ns=ordered[-1] if ordered else 0)
        return rows
    def thread_json(self, span, key):
        return (self.names.threads.get((span.head, key)) or Thread(key)).json()
    def span_json(self, span):
        """A span's line of `jsonl`, without the ids of traces, which are a hash that no page describes."""
        unsure = span.state != "closed" and span.losses
        slices = [{"thread": self.thread_json(span, piece.thread), "start_ns": piece.start, "end_ns": piece.end,
                   **flags(exit_missing=piece.missing, end_lost=piece.lost)} for piece in span.slices]
        return {"process": span.process, "id": span.id, "parent": span.parent, **site_json(span.site),
                "thread": None if span.begin is None else self.thread_json(span, span.maker), "start_ns": span.begin, "end_ns": span.end,
                "duration_ns": span.end - span.begin if span.begin and span.end else None,
                "busy_ns": None if unsure else self.busy(span), **({} if unsure else self.times(span)),
                "open": span.state == "open",
                "end_lost": span.state == "end_lost", "may_have_losses": span.losses,
                "last_seen_ns": span.last if span.state == "end_lost" else None, "follows_from": span.follows,
                "slices": slices, "fields": fields_json(span.fields),
                **flags(scope=span.scope, ended_with_parent=span.with_parent)}
    def record_json(self, record):
        site, event = record.site, record.event
        line = {"process": event.ring.process, "time_ns": event.time, "thread": record.thread.json(),
                "span": record.span or None, "name": site.name if site else None}
        if event.code == EVENT:
            return {**line, **site_json(site), "fields": fields_json(record.fields)}
        if event.code == MARKER:
            return {**line, "text": (event.payload or b"").decode("utf-8", "replace")}
        kind = {1: "<q", 5: "<d"}.get(event.ext[3] >> 48 & 255, "<Q")
        return {**line, "value": struct.unpack(kind, struct.pack("<Q", event.ext[1]))[0]}

def flags(**known):
    return {key: True for key, holds in known.items() if holds}

def site_json(site):
    return {key: getattr(site, key) if site else None for key in ("name", "target", "level", "file", "line")}

def tasks(model):
    """Tasks are the spans that the crate for tokio makes; a poll is an enter, a wake an event `woken`."""
    result, wakes = {}, {}
    for record in model.records:
        if record.site and record.site.target == "eventring::task" and record.site.name == "woken":
            key = record.event.ring.process, record.span
            wakes[key] = wakes.get(key, 0) + 1
    for key, span in model.spans.items():
        if not span.site or (span.site.target, span.site.name) != ("eventring::task", "task"):
            continue
        fields, unsure = fields_json(span.fields), model.unsure.get(span.process, 0)
        polls = [piece for piece in span.slices if piece.start is not None]
        times = [(piece.end or model.last[span.process]) - piece.start for piece in polls
                 if piece.end is not None or piece.start >= unsure]
        row = {"id": span.id, "polls": len(polls), "wakes": wakes.get(key, 0), "busy_ns": sum(times),
               "longest_poll_ns": max(times, default=0),
               **{name: fields.get(name, "") for name in ("name", "spawned_at", "kind")}}
        image = model.tables.get(span.process)
        cell = image.tasks.get(span.id) if image else None
        if span.state == "closed":
            row["state"] = fields.get("outcome", "ended")
        elif image and span.id not in image.spans:
            row["state"] = "ended"
        else:
            row["state"] = "unknown" if span.state == "end_lost" else "alive"
            if cell:
                # What the rings have forgotten, the table has counted.
                row["polls"], row["wakes"], inside = cell[5] >> 32, cell[4], image.spans[span.id][3] >> 47 & 1
                row["state"] = "running" if inside else "woken" if cell[1] > cell[6] or not cell[6] else "idle"
        result[key] = row
    return result
