"""Rings as bytes: ring files with their shards, snapshots, and the tables of the present (FORMAT.md).

A recording is what every other part of the oracle works on: rings whose items are events and gaps in the order of
their seqnos, tables of names, and images of the present. captures.py makes the same of capture files.
"""

import mmap
import os
import struct

import zstandard

CAUSES = ["overwritten_before", "overwritten", "never_committed", "given_up", "never_opened", "filtered"]
NO_LOSS = ("given_up", "filtered")
MASK = 2**64 - 1

class Event:
    __slots__ = ("ring", "seqno", "code", "time", "size", "ext", "payload", "missing", "sort")
    def __init__(self, ring, seqno, code, time, size, ext, payload, missing=None):
        self.ring, self.seqno, self.code, self.time, self.size = ring, seqno, code, time, size
        # `missing` says why there is no payload: expired, malformed or omitted.
        self.ext, self.payload, self.missing, self.sort = ext, payload, missing, time

class Gap:
    __slots__ = ("ring", "first", "count", "cause", "sort", "seen")
    def __init__(self, ring, first, count, cause):
        self.ring, self.first, self.count, self.cause, self.sort = ring, first, count, cause, 0

class Ring:
    """One ring. `head` is the index of the ring that is shard 0 of the same recorder (of other rings: its own)."""
    def __init__(self, index, name):
        self.index, self.name, self.path, self.head, self.process, self.pid = index, name, name, index, 0, 0
        self.content, self.content_name, self.schema, self.created, self.removed = 0, "", "", 0, 0
        self.items, self.blocks, self.sites, self.threads, self.header, self.ended_after = [], {}, {}, {}, {}, 0

class Present:
    """The tables of the present, or an image of them: cells by span id and thread id. `lost`: spans without a cell."""
    def __init__(self, time, head):
        self.time, self.head, self.lost = time, head, 0
        self.spans, self.threads, self.tasks, self.fields = {}, {}, {}, {}
    def add(self, kind, words):
        word = words[0]
        if kind == "threads" and word >> 32 & 3:
            self.threads[word & 0xffffffff] = words
        elif kind == "spans" and word and not word >> 63 or kind == "tasks" and word >> 63:
            getattr(self, kind)[word & 2**53 - 1] = words

class Bytes:
    """Takes numbers, texts and blobs from the front of some bytes."""
    def __init__(self, data):
        self.data, self.at = data, 0
    def take(self, count):
        if self.at + count > len(self.data):
            raise ValueError("a block or a field ends too early")
        self.at += count
        return self.data[self.at - count:self.at]
    def number(self, size):
        return int.from_bytes(self.take(size), "little")
    def varint(self):
        value = shift = 0
        while shift % 7 == 0:
            byte = self.number(1)
            value, shift = value | (byte & 127) << shift, shift + (7 if byte > 127 else 1)
        return value
    def text(self, size=4):
        return self.take(self.number(size)).decode("utf-8", "replace")

class Recording:
    is_capture = truncated = damaged = rotated = False
    def __init__(self):
        self.rings, self.presents = [], []
    def merged(self):
        """All events and gaps in the order of their sort times, and of their rings where these are equal."""
        for ring in self.rings:
            latest = 0
            for item in ring.items:
                latest = item.sort = max(latest, item.time) if isinstance(item, Event) else latest
        return sorted((item for ring in self.rings for item in ring.items), key=lambda item: item.sort)

def words_of(data, offset, count):
    return struct.unpack_from("<%dQ" % count, data, offset)

def read_header(data):
    magic, content = struct.unpack_from("<6sH", data)
    if magic != b"RING01":
        raise ValueError("not a ring")
    header = {"content": content, "hash": bytes(data[8:40]).hex(), "window": words_of(data, 128, 1)[0]}
    header.update(zip(("capacity", "payload", "context", "last", "next"), words_of(data, 40, 5)))
    if data[0x100:0x108] == b"EVRINGX1" and data[0x10a] == 1:
        names = {"pid": 0x110, "created": 0x138, "text": 0x158, "text_bytes": 0x160, "limit": 0x170, "shards": 0x178,
                 "group": 0x188, "wide": 0x190}
        header.update((name, words_of(data, at, 1)[0]) for name, at in names.items())
        header["counters"] = words_of(data, 0x280, 7)
        header["content_name"] = bytes(data[0x380:0x3c0]).split(b"\0")[0].decode()
    return header

def is_hole(data, header, seqno):
    if not header.get("wide"):
        return "wide" in header and seqno in words_of(data, 0x1000 + seqno % 64 * 64, 8)
    slot = (seqno - 1) % header["capacity"]
    row = (slot // 2048) * 0x9E3779B97F4A7C15 & MASK
    begin = (row ^ row >> 32) * 0x9E3779B97F4A7C15 & MASK
    return seqno in words_of(data, header["wide"] + (slot + (begin >> 32)) % 2048 * 256, 32)

def append_gap(ring, first, count, cause):
    """Seqnos one after the other that are missing for one cause are one gap."""
    last = ring.items[-1] if ring.items else None
    if isinstance(last, Gap) and last.cause == cause:
        last.count += count
    elif count:
        ring.items.append(Gap(ring, first, count, cause))

def fill_ring(ring, data):
    """Reads what a ring without a writer holds."""
    header = ring.header = read_header(data)
    capacity, size = header["capacity"], header["payload"]
    descriptors, buffer = 2**21, 2**21 + capacity * 64
    ring.content = header["content"]
    if "pid" in header:
        ring.pid, ring.content_name, ring.created = header["pid"], header["content_name"], header["created"]
        ring.schema = bytes(data[header["text"]:header["text"] + header["text_bytes"]]).decode("utf-8")
    oldest = max(1, header["last"] - capacity + 1)
    append_gap(ring, 1, oldest - 1, "overwritten_before")
    for seqno in range(oldest, header["last"] + 1):
        at = descriptors + (seqno - 1) % capacity * 64
        found, code, _, length, time, offset, *ext = struct.unpack_from("<QHHIQQ4Q", data, at)
        if found != seqno:
            append_gap(ring, seqno, 1, "given_up" if is_hole(data, header, seqno) else "never_committed")
            continue
        begin, missing, payload = offset % size, None, None
        if length and offset < header["window"]:
            missing = "expired"
        elif length and offset + length > header["next"]:
            missing = "malformed"
        else:
            payload = bytes(data[buffer + begin:buffer + min(size, begin + length)])
            payload += bytes(data[buffer:buffer + length - len(payload)])
        ring.items.append(Event(ring, seqno, code, time, length, tuple(ext), payload, missing))
    context = data[buffer + size:buffer + size + header["context"]]
    if context[:8] == b"EVRTABL1":
        for at, table in ((0x40, ring.sites), (0x80, ring.threads)):
            begin, room, used = words_of(context, at, 3)
            source = Bytes(context[begin:begin + min(room, used)])
            while source.at + 8 <= len(source.data):
                length, key = source.number(4), source.number(4)
                table[key] = source.take(length)
                source.take(-length % 8)
    if context[:8] == b"EVRBLOK1":
        for tag, at in zip(words_of(context, 0x1000, 4096), range(0x9000, 2**24, 576)):
            if tag:
                ring.blocks[tag] = bytes(context[at:at + 16] + context[at + 32:at + 560])

def read_present(path, head):
    """The file NAME.now, if it belongs to the recorder."""
    data, present = ring_bytes(path)[0], Present(None, head.index)
    if data[:8] == b"EVRNOW02" and words_of(data, 8, 1)[0] == head.header["group"]:
        cells, spans, tasks, present.lost = words_of(data, 0x18, 4)
        for kind, begin, count, size in (("threads", 0x1000, 4096, 8), ("spans", 0x400000, spans, 8),
                                         ("tasks", 0x400000 + 64 * cells, tasks, 16)):
            for at in range(begin, begin + count * size * 8, size * 8):
                present.add(kind, words_of(data, at, size))
        return [present]
    return []

def ring_bytes(path):
    """A ring's image: of a file as it is, of a snapshot its zstd frames."""
    file = open(path, "rb")
    if file.read(4) != b"\x28\xb5\x2f\xfd":
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), False
    file.seek(0)
    image = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    header = read_header(image)
    whole = 2**21 + header["capacity"] * 64 + header["payload"] + header["context"]
    if len(image) > whole or len(image) + 15 < whole:
        raise ValueError("the image has not the length that its header says")
    return image + bytes(whole - len(image)), True

def read_rings(paths):
    """Rings of dead programs, or snapshots: each path with the shards beside it, as one recording."""
    recording, groups = Recording(), {}
    for path in paths:
        data, snapshot = ring_bytes(path)
        header, head = read_header(data), len(recording.rings)
        for shard in range(header["shards"] if header.get("limit") and not snapshot else 1):
            name = path if shard == 0 else "%s.%d" % (path, shard)
            ring = Ring(len(recording.rings), os.path.basename(name))
            ring.path, ring.head = name, head
            recording.rings.append(ring)
            fill_ring(ring, ring_bytes(name)[0])
            ring.process = groups.setdefault(ring.pid, len(groups))
            ring.ended_after = max((item.time for item in ring.items if isinstance(item, Event)), default=0)
        if os.path.exists(path + ".now"):
            recording.presents += read_present(path + ".now", recording.rings[head])
    return recording
