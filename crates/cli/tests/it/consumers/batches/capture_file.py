"""Capture files, as docs/FORMAT.md describes them. Every sum, count and order that it promises is checked."""
import struct
from dataclasses import dataclass, field

import numpy as np
import xxhash

from columns import MIB, MISSING, EventsBlock
from numbers_and_texts import Cursor, need, unzstd

RING, EVENTS, TABLES, END, INDEX, PLACE, PRESENT = 1, 2, 3, 4, 5, 6, 7
PERF, EXEC = 3, 2
NO_LOSS = (3, 5)   # given up, filtered
FILE_HEADER = struct.Struct("<8sIIQQQQ")
BLOCK_HEADER = struct.Struct("<4s5I6Q48s")
FOOTER = struct.Struct("<QQQ8s")
END_WORDS = 19


@dataclass
class Ring:
    """What a ring block says, and what was read of the ring."""
    number: int
    process: int
    shard: int
    content_type: int
    shard0: int
    shard_index: int
    schema_hash: bytes
    capacity: int
    payload_bytes: int
    context_bytes: int
    pid: int
    created: int
    first: int
    clock: tuple
    name: str
    type_name: str
    program: str
    schema_text: str
    host: str = None
    process_key: int = None
    filter: str = ""
    sampled_per_million: int = 1_000_000
    blocks: list = field(default_factory=list)
    gaps: list = field(default_factory=list)    # (first seqno, count, cause)
    events: int = 0
    missing: dict = field(default_factory=lambda: {1: 0, 2: 0, 3: 0})
    lost: list = field(default_factory=lambda: [0] * 6)
    errors: int = 0                             # RECORD_ERRORs
    next: int = 0                               # the seqno that must come next
    sort_time: int = 0
    account: tuple = ()                         # the 19 words of the end block

    def identity(self):
        """Return what tells this ring from all others."""
        return self.host, self.name, self.process_key, self.created


@dataclass
class Header:
    """The header of a block."""
    kind: int
    size: int
    plain: int
    entries: int
    ring: int
    times: tuple
    seqnos: tuple
    types: int
    blooms: bytes
    raw: bytes


@dataclass
class Capture:
    """A capture file: its rings with their events, its tables and its account."""
    version: int = 0
    number: int = 0
    begin: int = 0
    rings: list = field(default_factory=list)
    call_sites: dict = field(default_factory=dict)  # (ring of shard 0, id): body
    threads: dict = field(default_factory=dict)     # the same
    exec_blocks: dict = field(default_factory=dict)  # (ring, flow tag): body
    places: list = field(default_factory=list)      # (sequence number, stream)
    presents: list = field(default_factory=list)    # (ring of shard 0, time, ids of open spans)
    reason: int = None
    end_time: int = None
    bytes: int = 0
    undescribed: int = 0                        # ids of call sites and threads without an entry before their use


def read_capture(data):
    """Read a whole capture file, and check everything that the document says about it."""
    data = bytes(data)
    need(len(data) >= 80, "the file is too short")
    magic, version, number, begin, _, _, reserved = FILE_HEADER.unpack_from(data)
    need(magic == b"EVRCAPT1", "this is no capture file")
    need(version == 5, f"the version is {version}, not 5")
    need(reserved == 0, "the reserved word of the file header is not 0")
    index_at, size, zero, magic = FOOTER.unpack_from(data, len(data) - 32)
    need(magic == b"EVRCEND1", "the footer is missing: the file was truncated")
    need(size == len(data) and zero == 0, "the footer is wrong")
    capture = Capture(version, number, begin, bytes=len(data))
    at, headers = FILE_HEADER.size, []
    while at < len(data) - 32:
        header, content = read_block(data, at)
        if header.kind == INDEX:
            need(at == index_at, "the footer names another place of the index")
            need(content == b"".join(headers) and header.entries == len(headers), "the index is wrong")
            need(at + 120 + header.size == len(data) - 32, "the index is not the last block")
        else:
            need(capture.reason is None, "a block after the end block")
            headers.append(struct.pack("<Q", at) + header.raw)
            read = {RING: read_ring, EVENTS: read_events, TABLES: read_tables, END: read_end, PLACE: read_place,
                    PRESENT: read_present}
            need(header.kind in read, f"unknown kind of block {header.kind}")
            read[header.kind](capture, header, content)
        at += 120 + header.size
        last = header.kind
    need(last == INDEX and capture.reason is not None, "the index or the end block is missing")
    return capture


def read_block(data, at):
    """Return the header and the content, decompressed, of the block at this offset."""
    need(at + 120 + 32 <= len(data), "a block does not end before the footer")
    magic, kind, size, plain, entries, ring, *words, blooms = BLOCK_HEADER.unpack_from(data, at)
    raw = data[at:at + 120]
    content = data[at + 120:at + 120 + size]
    need(magic == b"EVRB", f"there is no block at {at}")
    need(size <= 100 * MIB and plain <= 80 * MIB and at + 120 + size <= len(data) - 32, "a block is too large")
    need(xxhash.xxh3_64_intdigest(raw[:56] + bytes(8) + raw[64:] + content) == words[4], f"block at {at}: wrong XXH3")
    header = Header(kind, size, plain, entries, ring, tuple(words[0:2]), tuple(words[2:4]), words[5], blooms, raw)
    if kind == EVENTS:
        need(entries <= 1 << 18, "a block has too many events")
    else:
        has_time = kind == PRESENT
        need(has_time or (ring == 0 and header.times == (0, 0)), "a header has fields of events")
        need(header.seqnos == (0, 0), "a header has seqnos without events")
        if size != plain:
            content = unzstd(content, plain)
    return header, content


def read_ring(capture, _header, content):
    """Read a ring block."""
    cursor = Cursor(content)
    fields = cursor.unpack("IHHII32s6Q")
    clock = cursor.unpack("6Q")
    texts = [cursor.text() for _ in range(4)]
    ring = Ring(len(capture.rings), *fields, clock, *texts)
    if cursor.left():
        ring.host = cursor.text()
        ring.process_key, = cursor.unpack("Q")
        ring.filter = cursor.text()
        ring.sampled_per_million, = cursor.unpack("I")
    need(cursor.left() == 0, "bytes after the texts of a ring block")
    need(ring.shard in (0, 1) and ring.shard0 <= ring.number, "the ring of shard 0 is not there")
    need(ring.shard or (ring.shard0 == ring.number and ring.shard_index == 0), "a ring that is no shard has a shard 0")
    ring.next = ring.first
    capture.rings.append(ring)


def read_events(capture, header, content):
    """Read an events block, and check that it goes on after the last one of its ring."""
    need(header.ring < len(capture.rings), "events of a ring that was not described")
    ring = capture.rings[header.ring]
    block = EventsBlock(content, header)
    firsts = np.insert(block.seqno, block.gaps_before, np.array([g[0] for g in block.gaps], np.uint64))
    counts = np.insert(np.ones(block.count, np.uint64), block.gaps_before,
                       np.array([g[1] for g in block.gaps], np.uint64))
    need(len(firsts) > 0, "an events block without events and gaps")
    after = firsts + counts
    need(bool(np.all(after[:-1] == firsts[1:])), f"{ring.name}: seqnos in a block have a hole or an overlap")
    need(int(firsts[0]) == ring.next, f"{ring.name}: a block begins at seqno {int(firsts[0])}, not {ring.next}")
    ring.next = int(after[-1])
    need(header.seqnos == (int(firsts[0]), ring.next - 1), "a header has wrong seqnos")
    check_header(capture, ring, block, header)
    ring.blocks.append(block)
    ring.gaps += block.gaps
    ring.events += block.count
    ring.errors += int(np.count_nonzero(block.type == 1))
    for why in MISSING:
        ring.missing[why] += int(np.count_nonzero(block.missing == why))
    for _, count, cause in block.gaps:
        ring.lost[cause] += count


def check_header(capture, ring, block, header):
    """Check the sort times, the types and the Bloom filters in the header of an events block."""
    # In a batch, the sort time goes on from the batches before it.
    begins_with_gap = len(block.gaps_before) > 0 and block.gaps_before[0] == 0
    if not ring.blocks and (begins_with_gap or block.count == 0 or header.times[0] > int(block.time[0])):
        ring.sort_time = header.times[0]
    sort = np.maximum.accumulate(np.concatenate((np.array([ring.sort_time], np.uint64), block.time)))
    used = np.concatenate((sort[1:], sort[block.gaps_before])) if block.gaps else sort[1:]
    need(header.times == (int(used.min()), int(used.max())), f"{ring.name}: a header has wrong sort times")
    ring.sort_time = int(sort[-1])
    types = 1 if block.gaps else 0
    for group in block.groups:
        types |= 1 << group.type % 64
    need(types == header.types, "a header has wrong event types")
    filters = bytes(48)
    if ring.content_type == PERF:
        low, high = np.unique(block.ext[2] & np.uint64(0xffffffff)), np.unique(block.ext[2] >> np.uint64(32))
        filters = bloom(low.tolist(), 256) + bloom(high.tolist(), 128)
        for table, ids in ((capture.call_sites, low), (capture.threads, high)):
            lacking = [number for number in ids.tolist() if number and (ring.shard0, number) not in table]
            capture.undescribed += len(lacking)
    need(header.blooms == filters, "a header has wrong Bloom filters")


def bloom(ids, size):
    """Return the Bloom filter of `size` bits of these ids."""
    bits = 0
    for number in ids:
        hashed = number * 0x9e3779b1 & 0xffffffff
        bits |= 1 << (hashed >> 24) % size | 1 << (hashed >> 16 & 255) % size
    return bits.to_bytes(size // 8, "little")


def read_tables(capture, header, content):
    """Read a tables block."""
    cursor, entries = Cursor(content), 0
    while cursor.left():
        ring, kind, number, size = cursor.unpack("4I")
        body = cursor.take(size)
        need(ring < len(capture.rings) and kind in (1, 2, 3), "an entry of a table is impossible")
        need(kind != 3 or (number == 0 and size == 552), "an entry of a block table is impossible")
        table = (capture.call_sites, capture.threads, capture.exec_blocks)[kind - 1]
        key = ring, struct.unpack_from("<Q", body)[0] if kind == 3 else number
        need(table.get(key, body) == body, "an entry of a table is there twice, and differs")
        table[key] = body
        entries += 1
    need(entries == header.entries, f"a tables block has {entries} entries, not {header.entries}")


def read_present(capture, header, content):
    """Read an image of tables of the present."""
    cursor = Cursor(content)
    *_, spans, threads, locks, tasks, further = cursor.unpack("9Q")
    ids = [cursor.unpack("8Q")[0] & (1 << 53) - 1 for _ in range(spans)]
    for words in [8] * (threads + locks) + [16] * tasks:
        cursor.take(8 * words)
    for _ in range(further):
        span, size = cursor.unpack("2Q")
        need(span in ids, "further fields of a span that is not in the image")
        cursor.take(size)
    need(not cursor.left() and header.entries == 1, "an image is longer than it says")
    need(header.times[0] == header.times[1], "an image is of two times")
    need(header.ring < len(capture.rings) and capture.rings[header.ring].shard0 == header.ring, "an image of no recorder")
    capture.presents.append((header.ring, header.times[0], ids))


def read_end(capture, _header, content):
    """Read an end block."""
    cursor = Cursor(content)
    capture.reason, capture.end_time = check_account(capture, cursor)


def read_place(capture, _header, content):
    """Read a place block."""
    cursor = Cursor(content)
    number, _time = cursor.unpack("2Q")
    stream = cursor.text()
    need(not capture.places or number > capture.places[-1][0], "places go back")
    capture.places.append((number, stream))
    check_account(capture, cursor)


def check_account(capture, cursor):
    """Compare an account with what was read until here; return its reason and its time."""
    reason, time, _ = cursor.unpack("3Q")
    need(reason <= 6, "unknown reason of the end")
    for ring in capture.rings:
        words = cursor.unpack(f"{END_WORDS}Q")
        found = (ring.events, *ring.missing.values(), *ring.lost, ring.next - 1)
        need(words[:11] == found, f"{ring.name}: the account says {words[:10]}, the file has {found}")
        need(words[13] == ring.errors, f"{ring.name}: {ring.errors} RECORD_ERRORs, not {words[13]}")
        need(words[12] <= 3, f"{ring.name}: unknown state {words[12]} of the writer")
        if words[12] >= 2:
            after, before = cursor.unpack("2Q")
            need(after <= before, f"{ring.name}: it ended after {after} and before {before}")
        ring.account = words
    need(cursor.left() == 0, "bytes after the account")
    return reason, time


def account(captures, from_begin=True):
    """Check that batches in the order of the stream follow one another; return an account of each ring.

    With `from_begin`, the stream has forgotten nothing, so each ring must begin at seqno 1.
    """
    rings = {}
    for place, capture in enumerate(captures):
        for ring in capture.rings:
            name = f"batch {place + 1}, ring {ring.host}/{ring.name}"
            total = rings.get(ring.identity())
            if total is None:
                need(not from_begin or ring.first == 1, f"{name} begins at seqno {ring.first}, not 1")
                total = rings[ring.identity()] = {
                    "host": ring.host, "name": ring.name, "process_key": ring.process_key, "created": ring.created,
                    "first": ring.first, "last": ring.first - 1, "events": 0, "gaps": [], "lost": 0}
            need(ring.first == total["last"] + 1,
                 f"{name} begins at seqno {ring.first}, but its last batch ended at {total['last']}")
            need(ring.next - 1 == ring.account[10], f"{name} ends at another seqno than its account")
            held = sum(count for _, count, _ in ring.gaps) + ring.events
            need(held == ring.next - ring.first, f"{name} has {held} seqnos, not {ring.next - ring.first}")
            total["last"] = ring.next - 1
            total["events"] += ring.events
            total["gaps"] += [list(gap) for gap in ring.gaps]
            total["lost"] += sum(count for _, count, cause in ring.gaps if cause not in NO_LOSS)
    return list(rings.values())
