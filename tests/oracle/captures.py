"""Capture files (FORMAT.md, "Capture file"): blocks, columns, and what the end of a file says."""

import struct

import zstandard

from rings import CAUSES, MASK, Bytes, Event, Gap, Present, Recording, Ring

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743"
    "248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7"
    "c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16"
    "be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5, Q1, Q2, Q3 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5, 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D

def u64(data, at):
    return int.from_bytes(data[at:at + 8], "little")

def fold(a, b):
    return (a * b ^ a * b >> 64) & MASK

def avalanche(h):
    h = ((h ^ h >> 37) & MASK) * 0x165667919E3779F9 & MASK
    return h ^ h >> 32

def mix16(data, at, secret):
    return fold(u64(data, at) ^ u64(SECRET, secret), u64(data, at + 8) ^ u64(SECRET, secret + 8))

def xxh3(data):
    """XXH3 of 64 bits with seed 0, of more than 16 bytes: a block's header alone has 120."""
    n = len(data)
    if n <= 128:
        return avalanche(n * P1 + sum(mix16(data, 16 * i, 32 * i) + mix16(data, n - 16 * i - 16, 32 * i + 16)
                                      for i in range((n - 1) // 32 + 1)) & MASK)
    if n <= 240:
        h = avalanche(n * P1 + sum(mix16(data, 16 * i, 16 * i) for i in range(8)) & MASK)
        h += sum(mix16(data, 16 * i, 16 * i - 125) for i in range(8, n // 16)) + mix16(data, n - 16, 119)
        return avalanche(h & MASK)
    lanes = [Q3, P1, P2, P3, P4, Q2, P5, Q1]
    keys = [struct.unpack_from("<8Q", SECRET, at) for at in list(range(0, 128, 8)) + [121]]
    stripes = [(number * 64, keys[number % 16]) for number in range((n - 1) // 64)] + [(n - 64, keys[16])]
    for number, (at, key) in enumerate(stripes):
        values = struct.unpack_from("<8Q", data, at)
        for i in range(8):
            mixed = values[i] ^ key[i]
            lanes[i ^ 1] += values[i]
            lanes[i] = lanes[i] + (mixed & 0xffffffff) * (mixed >> 32) & MASK
        if number % 16 == 15 and number + 1 < len(stripes):
            lanes = [(lane ^ (lane & MASK) >> 47 ^ u64(SECRET, 128 + 8 * i)) * Q1 & MASK
                     for i, lane in enumerate(lanes)]
    keyed = [(lane & MASK) ^ u64(SECRET, 11 + 8 * i) for i, lane in enumerate(lanes)]
    return avalanche(n * P1 + sum(map(fold, keyed[::2], keyed[1::2])) & MASK)

def unzigzag(value):
    return value >> 1 ^ -(value & 1)

def unpack(frame, size):
    return zstandard.ZstdDecompressor().decompress(frame, max_output_size=max(size, 1))

def planes(data, width, count):
    parts = [data[i * count:(i + 1) * count] for i in range(width)] or [bytes(count)]
    return [int.from_bytes(bytes(number), "little") for number in zip(*parts)]

def numbers(form, data, count):
    """A column of numbers (FORMAT.md, "Columns")."""
    if count == 0:
        return []
    kind, width, source = form & 15, form >> 4, Bytes(data)
    if kind == 1:
        return [source.varint()] * count
    if kind == 2:
        first, step = source.varint(), unzigzag(source.varint())
        return [first + i * step & MASK for i in range(count)]
    if kind in (3, 4):
        result = [source.varint()]
        if kind == 3:
            return [result[0] + number & MASK for number in planes(data[source.at:], width, count)]
        for step in planes(data[source.at:], width, count - 1):
            result.append(result[-1] + unzigzag(step) & MASK)
        return result
    known = [source.varint() for _ in range(source.varint())]
    return [known[index] for index in source.take(count)]

def read_columns(ring, content):
    """Events and gaps of one block."""
    head = Bytes(content)
    bits, previous, count, gap_count, group_count = (head.varint() for _ in range(5))
    groups = [(head.varint(), head.varint(), [head.varint() for _ in range(head.varint())])
              for _ in range(group_count)]
    listed, columns = [], {}
    for _ in range(head.varint()):
        listed.append((head.varint(), head.varint(), head.varint(), []))
        for _ in range(head.varint()):
            size = head.varint()
            listed[-1][3].append((size >> 1, head.varint() if size & 1 else None))
    for code, group, form, parts in listed:
        columns[code, group] = form, b"".join(
            head.take(size) if frame is None else unpack(head.take(frame), size) for size, frame in parts)
    def column(code, group, count):
        return numbers(*columns[code, group], count) if (code, group) in columns else [0] * count

    group_of, whys = column(1, 0, count), columns.get((17, 0), (0, b""))[1]
    lost = dict(zip(column(16, 0, len(whys)), whys))
    members = [[] for _ in groups]
    for place in range(count):
        members[group_of[place]].append(place)
    times, sizes, words, payloads = [0] * count, [0] * count, [[0] * 4 for _ in range(count)], [None] * count
    for group, (code, size, widths) in enumerate(groups):
        places = members[group]
        for place, time, length in zip(places, column(33, group, size), column(32, group, size)):
            times[place], sizes[place] = time, length
        for word in range(4):
            is_id = bits >> word & 1
            values = columns.get((48 + word, group), (0, bytes(size)))[1] if is_id else column(36 + word, group, size)
            for place, value in zip(places, values):
                words[place][word] = value
        valid = [place for place in places if place not in lost]
        pieces = [[] for _ in valid]
        for number, width in enumerate(widths):
            form, data = columns[64 + number, group]
            values = ([data[i * width:(i + 1) * width] for i in range(len(valid))] if width > 8 else
                      [value.to_bytes(8, "little")[:width] for value in numbers(form, data, len(valid))])
            for piece, value in zip(pieces, values):
                piece.append(value)
        rest = Bytes(columns.get((40, group), (0, b""))[1])
        for place, piece in zip(valid, pieces):
            payloads[place] = b"".join(piece) + rest.take(sizes[place] - sum(widths))
    resolve_ids(bits, columns, words, count)
    events = []
    for place, seqno in enumerate(column(2, 0, count)):
        previous = previous + unzigzag(times[place]) & MASK
        why = {1: "expired", 2: "malformed", 3: "omitted"}.get(lost.get(place))
        events.append(Event(ring, seqno, groups[group_of[place]][0], previous, sizes[place], tuple(words[place]),
                            payloads[place], why))
    return events, list(zip(*(column(code, 0, gap_count) for code in (20, 21, 22, 23))))

def resolve_ids(bits, columns, words, count):
    """Codes become ids, and the word that goes with an id gets back what was taken out of it."""
    id_words = [word for word in range(4) if bits >> word & 1]
    partner = (bits >> 4 & 7) - 1
    fresh = sum(words[place][word] == 255 for place in range(count) for word in id_words)
    places, generations = (numbers(*columns[code, 0], fresh) if fresh else [] for code in (4, 5))
    slots, recent, known, taken = {}, [], {}, 0
    for place in range(count):
        for word in id_words:
            code = words[place][word]
            if code == 255:
                number, generation, taken = places[taken], generations[taken], taken + 1
                before = slots.get(number % 4096, (None, 0))
                generation = generation + before[1] * (before[0] == number) & MASK
                slots[number % 4096] = number, generation
                recent.append(number | generation << 24)
                known[recent[-1]] = 0
            if code:
                words[place][word] = recent[-1 if code == 255 else -code]
        if id_words and partner >= 0:
            key = words[place][id_words[0]]
            words[place][partner] ^= known.get(key, 0) if key else 0
            if key and not known.get(key):
                known[key] = words[place][partner]

def read_image(time, head, content):
    source = Bytes(content)
    image = Present(time, head)
    image.lost, _, _, _ = (source.number(8) for _ in range(4))
    spans, threads, locks, tasks, further = (source.number(8) for _ in range(5))
    for kind, count, size in (("spans", spans, 8), ("threads", threads, 8), ("locks", locks, 8), ("tasks", tasks, 16)):
        for _ in range(count):
            image.add(kind, [source.number(8) for _ in range(size)])
    for _ in range(further):
        span = source.number(8)
        image.fields[span] = source.take(source.number(8))
    return image

def read_capture(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:9] != b"EVRCAPT1\5" or len(data) < 48:
        raise ValueError("not a capture of version 5")
    recording = Recording()
    recording.is_capture, recording.truncated = True, data[-8:] != b"EVRCEND1"
    at, end = 48, len(data) - (0 if recording.truncated else 32)
    while at + 120 <= end:
        magic, kind, size, whole, entries, index = struct.unpack_from("<4s5I", data, at)
        low, _, first, last, checksum = struct.unpack_from("<5Q", data, at + 24)
        if magic != b"EVRB" or at + 120 + size > end:
            break
        header = data[at:at + 56] + bytes(8) + data[at + 64:at + 120]
        content = data[at + 120:at + 120 + size]
        if xxh3(header + content) != checksum:
            recording.damaged = True
            if kind == 2 and index < len(recording.rings) and last >= first:
                ring = recording.rings[index]
                ring.items.append(Gap(ring, first, last - first + 1, "damaged"))
        else:
            read_block(recording, kind, index, low, unpack(content, whole) if kind != 2 and size != whole else content)
        at += 120 + size
    for ring in recording.rings:
        if not ring.schema and ring.head != ring.index:
            ring.schema = recording.rings[ring.head].schema
    return recording

def read_block(recording, kind, index, time, content):
    source = Bytes(content)
    if kind == 1:
        ring = Ring(len(recording.rings), "")
        ring.process, _, ring.content, ring.head, _ = (source.number(n) for n in (4, 2, 2, 4, 4))
        source.take(32 + 24)
        ring.pid, ring.created, _ = (source.number(8) for _ in range(3))
        source.take(48)
        ring.name, ring.content_name, _, ring.schema = (source.text() for _ in range(4))
        ring.path = ring.name
        recording.rings.append(ring)
    elif kind == 2:
        ring, done = recording.rings[index], 0
        events, gaps = read_columns(ring, content)
        for before, first, count, cause in gaps:
            ring.items += events[done:before] + [Gap(ring, first, count, CAUSES[cause])]
            done = before
        ring.items += events[done:]
    elif kind == 3:
        while source.at < len(content):
            head, what, key, size = (source.number(4) for _ in range(4))
            body, ring = source.take(size), recording.rings[head]
            if what == 3:
                ring.blocks[u64(body, 0)] = body[8:]
            else:
                (ring.sites if what == 1 else ring.threads)[key] = body
    elif kind == 4:
        recording.rotated = source.number(8) == 4
        source.take(16)
        for ring in recording.rings:
            words = [source.number(8) for _ in range(19)]
            ring.removed = words[18]
            if words[12] in (2, 3):
                ring.ended_after, _ = source.number(8), source.number(8)
    elif kind == 7:
        recording.presents.append(read_image(time, index, content))

def read_captures(paths):
    """The files of a row, or of several captures: rings of one name and creation go on in the next file."""
    whole = read_capture(paths[0])
    for path in paths[1:]:
        part, known, places = read_capture(path), {(r.name, r.created): r for r in whole.rings}, {}
        for ring in part.rings:
            old = known.get((ring.name, ring.created), ring)
            places[ring.index] = len(whole.rings) if old is ring else old.index
            if old is ring:
                ring.head, ring.index = places[ring.head], len(whole.rings)
                whole.rings.append(ring)
                continue
            for item in ring.items:
                item.ring = old
            old.items += ring.items
            for table in ("sites", "threads", "blocks"):
                getattr(old, table).update(getattr(ring, table))
            old.ended_after = ring.ended_after
        for image in part.presents:
            image.head = places[image.head]
            whole.presents.append(image)
        whole.rotated = part.rotated
        whole.truncated, whole.damaged = whole.truncated or part.truncated, whole.damaged or part.damaged
    return whole
