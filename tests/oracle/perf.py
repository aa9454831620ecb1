"""The content of perf rings (FORMAT.md, "Perf schema"): call sites, threads, fields and formatted texts."""

import math
import re
import struct
from decimal import Decimal

from rings import Bytes, Event
from schema import shortest

RECORD_ERROR, THREAD_STARTED, THREAD_ENDED, CALL_SITE, SPAN_NEW, SPAN_RECORD, SPAN_ENTER, SPAN_EXIT, SPAN_CLOSE, \
    SPAN_FOLLOWS_FROM, EVENT, COUNTER, MARKER, THREAD_SWITCHED, THREAD_TIME = range(1, 16)
LEVELS = [None, "ERROR", "WARN", "INFO", "DEBUG", "TRACE"]
SCOPE, ENTERS, CLOSES, WITH_PARENT, NO_QUEUE = 32, 64, 128, 256, 512
CONTEXT = {254: "eventring.traceparent", 255: "eventring.tracestate"}
NOT_FORMATTED = {1: "formatting is switched off", 2: "nested too deep", 3: "not recorded"}

class Site:
    def __init__(self, body):
        _, level, _, line, name, target, module, file, names = struct.unpack_from("<BBHIHHHHI", body)
        source, self.level, self.line = Bytes(body[20:]), LEVELS[level], line or None
        text, self.target, _, file, fields = (source.take(size).decode("utf-8", "replace") for size in (
            name, target, module, file, names))
        self.name, _, self.format = text.partition("\0")
        self.file, fields = file or None, fields.split("\n")[:-1]
        # The second field of one name is NAME#2.
        counts = [fields[:place].count(field) for place, field in enumerate(fields)]
        self.keys = ["%s#%d" % (field, count + 1) if count else field for field, count in zip(fields, counts)]

class Thread:
    def __init__(self, key, body=None):
        self.id, self.tid, self.name, self.measures = key, None, None, 0
        if body is not None:
            _, self.tid, size, self.measures = struct.unpack_from("<QIHH", body)
            self.name = body[16:16 + size].decode("utf-8", "replace")
    def json(self):
        return {"id": self.id, "tid": self.tid, "name": self.name}

class Names:
    """Call sites and threads of a recording: of the tables, and of the events where a table had no room."""
    def __init__(self, recording):
        self.sites, self.threads = {}, {}
        for ring in recording.rings:
            self.sites.update({(ring.index, key): Site(body) for key, body in ring.sites.items()})
            self.threads.update({(ring.index, key): Thread(key, body) for key, body in ring.threads.items()})
            for item in ring.items if ring.content == 3 else []:
                if isinstance(item, Event) and item.payload and item.code == CALL_SITE:
                    self.sites.setdefault((ring.head, item.ext[2] & 0xffffffff), Site(item.payload))
                elif isinstance(item, Event) and item.payload and item.code == THREAD_STARTED:
                    thread = Thread(item.ext[2] >> 32, item.payload)
                    self.threads.setdefault((ring.head, thread.id), thread)
    def site(self, event):
        return self.sites.get((event.ring.head, event.ext[2] & 0xffffffff))
    def thread(self, event):
        key = event.ext[2] >> 32
        return self.threads.get((event.ring.head, key)) or Thread(key)

def argument(source):
    kind = source.number(1)
    if kind <= 10:
        return kind, int.from_bytes(source.take(2 ** ((kind - 1) % 5)), "little", signed=kind < 6)
    if kind in (11, 12):
        return kind, struct.unpack("<f" if kind == 11 else "<d", source.take(4 if kind == 11 else 8))[0]
    if kind in (13, 14):
        return kind, source.number(1) != 0 if kind == 13 else chr(source.number(4))
    if kind in (15, 16):
        return kind, source.text(2)
    if kind == 19:
        return kind, [argument(source) for _ in range(source.number(2))]
    return kind, argument(source) if kind == 18 else None

def float_text(kind, value, precision=None, debug=False):
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if precision is not None:
        return "%.*f" % (precision, value)
    number = Decimal(repr(shortest(value) if kind == 11 else value))
    if debug and value and not 1e-5 <= abs(value) < 1e16:
        sign, digits, exponent = number.normalize().as_tuple()
        digits, exponent = "".join(map(str, digits)), exponent + len(digits) - 1
        return "%s%s%se%d" % ("-" * sign, digits[0], "." + digits[1:] if digits[1:] else "", exponent)
    plain = format(number, "f")
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return plain + ".0" if debug and "." not in plain else plain

def escaped(text, quote):
    known = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", "\\": "\\\\", quote: "\\" + quote}
    return quote + "".join(known.get(c) or (c if c.isprintable() else "\\u{%x}" % ord(c)) for c in text) + quote

def show(argument, spec, width, precision):
    """One placeholder of Rust's `format!`."""
    (kind, value), (fill, align, plus, alternate, zero, debug), default, prefix = argument, spec, "<", ""
    if kind == 16:
        return value
    if kind in (18, 19):
        parts = [show(one, (fill, align, plus, False, zero, "?"), width, precision)
                 for one in (value if kind == 19 else [value])]
        return "[%s]" % ", ".join(parts) if kind == 19 else "Some(%s)" % parts[0]
    if kind == 17:
        text = "None"
    elif kind == 13:
        text = str(value).lower()[:precision]
    elif kind in (14, 15):
        text = value if kind == 14 else value[:precision]
        if debug == "?":
            text = escaped(value, "'" if kind == 14 else '"')
    else:
        default = ">"
        if kind > 10:
            text = float_text(kind, value, precision, debug == "?")
        elif debug in ("x", "X", "b", "o"):
            text = format(value & (2 ** (8 * 2 ** ((kind - 1) % 5)) - 1), debug)
            prefix = "0" + debug.lower() if alternate else ""
        else:
            text = str(value)
        if text.startswith("-") or plus:
            text, prefix = text.lstrip("-"), "-" if text.startswith("-") else "+"
        if zero and (kind <= 10 or math.isfinite(value)):
            return prefix + text.rjust((width or 0) - len(prefix), "0")
    text = prefix + text
    room = max(0, (width or 0) - len(text))
    left = {"<": 0, ">": room, "^": room // 2}[align or default]
    return (fill or " ") * left + text + (fill or " ") * (room - left)

PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}:]*)(?::(?:(.)?([<^>]))?([+-])?(#)?(0(?!\$))?(?:(\d+|[^{}.?$*]*\$))?"
                         r"(?:\.(\d+|\*|[^{}?$]*\$))?([?xXboeE]?))?\}", re.S)

def format_text(template, data):
    source = Bytes(data)
    def one(match):
        if match.group(0) in ("{{", "}}"):
            return match.group(0)[0]
        _, fill, align, plus, alternate, zero, width, precision, kind = match.groups()
        width = argument(source)[1] if width and width.endswith("$") else int(width) if width else None
        taken = precision is not None and not precision.isdigit()
        precision = argument(source)[1] if taken else int(precision) if precision else None
        return show(argument(source), (fill, align, plus == "+", alternate, zero, kind or ""), width, precision)

    return PLACEHOLDER.sub(one, template)

def read_fields(data, site):
    """Fields in their order: key to type and value. The value of type 11 is the number of a reason."""
    result, at = {}, 0
    while at + 4 <= len(data):
        index, kind, size = struct.unpack_from("<BBH", data, at)
        # What is not whole has its whole length in the last four bytes.
        value = data[at + 4:at + size] if kind & 128 else data[at + 4:at + 4 + size]
        at, kind = at + 4 + size, kind & 127
        key = site.keys[index] if site and index < len(site.keys) else CONTEXT.get(index, "#%d" % index)
        if 1 <= kind <= 4:
            value = int.from_bytes(value, "little", signed=kind in (1, 3))
        elif kind == 5:
            value = struct.unpack("<d", value)[0]
        elif kind in (7, 9, 10):
            value = value.decode("utf-8", "replace")
        elif kind == 12:
            value = format_text(site.format if site else "", value)
        elif kind in (6, 8, 11):
            value = value != b"\0" if kind == 6 else "0x" + value.hex() if kind == 8 else value[0]
        if kind <= 12:
            result[key] = kind, value
    return result

def field_json(kind, value):
    if kind in (3, 4):
        return str(value)
    if kind == 5 and not math.isfinite(value):
        return float_text(12, value)
    return NOT_FORMATTED.get(value, value) if kind == 11 else value

def fields_json(fields):
    return {key: field_json(kind, value) for key, (kind, value) in fields.items()}
