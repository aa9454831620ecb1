"""The content of perf rings (FORMAT.md, "Perf schema"): call sites, threads, fields and formatted texts."""

import math
import re
import struct

RECORD_ERROR, THREAD_STARTED, THREAD_ENDED, CALL_SITE, SPAN_NEW, SPAN_RECORD, SPAN_ENTER, SPAN_EXIT, SPAN_CLOSE, \
    SPAN_FOLLOWS_FROM, EVENT, COUNTER, MARKER = range(1, 14)
NAMES = ["", "RECORD_ERROR", "THREAD_STARTED", "THREAD_ENDED", "CALL_SITE", "SPAN_NEW", "SPAN_RECORD", "SPAN_ENTER",
         "SPAN_EXIT", "SPAN_CLOSE", "SPAN_FOLLOWS_FROM", "EVENT", "COUNTER", "MARKER"]
LEVELS = [None, "ERROR", "WARN", "INFO", "DEBUG", "TRACE"]
SCOPE, ENTERS, CLOSES, WITH_PARENT = 32, 64, 128, 256
NOT_FORMATTED = {1: "formatting is switched off", 2: "nested too deep", 3: "not recorded"}


class Site:
    def __init__(self, body):
        kind, level, _, line, name, target, module, file, names = struct.unpack_from("<BBHIHHHHI", body)
        at, parts = 20, []
        for size in (name, target, module, file, names):
            parts.append(body[at:at + size].decode("utf-8", "replace"))
            at += size
        self.kind, self.level, self.line = kind, LEVELS[level] if level < 6 else None, line or None
        self.name, _, self.format = parts[0].partition("\0")
        self.target, self.file, self.fields = parts[1], parts[3] or None, parts[4].split("\n")[:-1]
        seen, self.keys = {}, []
        for field in self.fields:
            seen[field] = seen.get(field, 0) + 1
            self.keys.append(field if seen[field] == 1 else "%s#%d" % (field, seen[field]))


class Thread:
    def __init__(self, key, body=None):
        self.id, self.tid, self.name = key, None, None
        if body is not None:
            _, self.tid, size = struct.unpack_from("<QII", body)
            self.name = body[16:16 + size].decode("utf-8", "replace")

    def json(self):
        return {"id": self.id, "tid": self.tid, "name": self.name}


class Names:
    """Call sites and threads of a recording: of the tables, and of the events where a table had no room."""

    def __init__(self, recording):
        self.sites, self.threads = {}, {}
        for ring in recording.rings:
            for key, body in ring.sites.items():
                self.sites[ring.index, key] = Site(body)
            for key, body in ring.threads.items():
                self.threads[ring.index, key] = Thread(key, body)
            if ring.content != 3:
                continue
            for item in ring.items:
                code = getattr(item, "code", 0)
                if code == CALL_SITE and item.payload:
                    self.sites.setdefault((ring.head, item.ext[2] & 0xffffffff), Site(item.payload))
                elif code == THREAD_STARTED and item.payload:
                    key = item.ext[2] >> 32
                    self.threads.setdefault((ring.head, key), Thread(key, item.payload))

    def site(self, event):
        return self.sites.get((event.ring.head, event.ext[2] & 0xffffffff))

    def thread(self, event):
        key = event.ext[2] >> 32
        return self.threads.get((event.ring.head, key)) or Thread(key)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        if self.at + size > len(self.data):
            raise ValueError("an argument ends too early")
        self.at += size
        return self.data[self.at - size:self.at]

    def argument(self):
        kind = self.take(1)[0]
        if 1 <= kind <= 10:
            return kind, int.from_bytes(self.take(2 ** ((kind - 1) % 5)), "little", signed=kind < 6)
        if kind in (11, 12):
            return kind, struct.unpack("<f" if kind == 11 else "<d", self.take(4 if kind == 11 else 8))[0]
        if kind in (13, 14):
            return kind, self.take(1)[0] != 0 if kind == 13 else chr(int.from_bytes(self.take(4), "little"))
        if kind in (15, 16):
            return kind, self.take(int.from_bytes(self.take(2), "little")).decode("utf-8", "replace")
        if kind == 17:
            return kind, None
        if kind == 18:
            return kind, self.argument()
        if kind == 19:
            return kind, [self.argument() for _ in range(int.from_bytes(self.take(2), "little"))]
        raise ValueError("an argument of kind %d" % kind)


def float_text(kind, value, precision, debug):
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if precision is not None:
        return "%.*f" % (precision, value)
    from decimal import Decimal
    from schema import shortest
    shown = repr(shortest(value) if kind == 11 else value)
    if debug and value and not 1e-5 <= abs(value) < 1e16:
        sign, digits, exponent = Decimal(shown).normalize().as_tuple()
        digits = "".join(map(str, digits))
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return "%s%se%d" % ("-" if sign else "", mantissa, exponent + len(digits) - 1)
    plain = format(Decimal(shown), "f")
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return plain + ".0" if debug and "." not in plain else plain


def escaped(text, quote):
    known = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", "\\": "\\\\", quote: "\\" + quote}
    return quote + "".join(known.get(c) or (c if c.isprintable() else "\\u{%x}" % ord(c)) for c in text) + quote


def pad(text, fill, align, width, default):
    room = (width or 0) - len(text)
    if room <= 0:
        return text
    left = {"<": 0, ">": room, "^": room // 2}[align or default]
    return fill * left + text + fill * (room - left)


def show(argument, spec, width, precision):
    """One placeholder of Rust's `format!`."""
    kind, value = argument
    fill, align, plus, alternate, zero, debug = spec
    if kind == 16:
        return value
    if kind in (17, 18, 19):
        inner = lambda one: show(one, ("", None, plus, False, zero, "?"), width, precision)
        if kind == 17:
            return pad("None", fill or " ", align, width, "<")
        return "Some(%s)" % inner(value) if kind == 18 else "[%s]" % ", ".join(map(inner, value))
    if kind in (13, 14, 15):
        text = str(value).lower() if kind == 13 else value
        if debug == "?" and kind != 13:
            text = escaped(value, "'" if kind == 14 else '"')
            precision = None if kind == 14 else precision
        if precision is not None and kind != 14 and not (debug == "?" and kind == 15):
            text = text[:precision]
        return pad(text, fill or " ", align, width, "<")
    if 1 <= kind <= 10:
        if debug in ("x", "X", "b", "o"):
            bits = 8 * 2 ** ((kind - 1) % 5)
            text = format(value & (2**bits - 1), debug)
            prefix = {"x": "0x", "X": "0x", "b": "0b", "o": "0o"}[debug] if alternate else ""
        else:
            text, prefix = str(abs(value)), "-" if value < 0 else "+" if plus else ""
    else:
        text, prefix = float_text(kind, value, precision, debug == "?"), "+" if plus and value >= 0 else ""
        if text.startswith("-"):
            text, prefix = text[1:], "-"
        zero = zero and math.isfinite(value)
    if zero and width:
        return prefix + text.rjust(width - len(prefix), "0")
    return pad(prefix + text, fill or " ", align, width, ">")


PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}:]*)(?::(?:(.)?([<^>]))?([+-])?(#)?(0(?!\$))?(?:(\d+|[^{}.?$*]*\$))?"
                         r"(?:\.(\d+|\*|[^{}?$]*\$))?([?xXboeE]?))?\}", re.S)


def format_text(template, data):
    source = Reader(data)

    def one(match):
        if match.group(0) in ("{{", "}}"):
            return match.group(0)[0]
        _, fill, align, plus, alternate, zero, width, precision, kind = match.groups()
        width = source.argument()[1] if width and width.endswith("$") else int(width) if width else None
        taken = precision is not None and not precision.isdigit()
        precision = source.argument()[1] if taken else int(precision) if precision else None
        return show(source.argument(), (fill, align, plus == "+", alternate, zero, kind or ""), width, precision)

    return PLACEHOLDER.sub(one, template)


def read_fields(data, site):
    """Fields in their order: (key, type, value, why it is not whole). The value of type 11 is a reason's number."""
    result, at = [], 0
    while at + 4 <= len(data):
        index, kind, size = struct.unpack_from("<BBH", data, at)
        value, whole = data[at + 4:at + 4 + size], None
        at += 4 + size
        if kind & 128:
            whole, value = struct.unpack("<I", value[-4:])[0], value[:-4]
        kind &= 127
        if site and index < len(site.keys):
            key = site.keys[index]
        else:
            key = {254: "eventring.traceparent", 255: "eventring.tracestate"}.get(index, "#%d" % index)
        if kind in (1, 2, 3, 4):
            value = int.from_bytes(value, "little", signed=kind in (1, 3))
        elif kind == 5:
            value = struct.unpack("<d", value)[0]
        elif kind == 6:
            value = value != b"\0"
        elif kind in (7, 9, 10):
            value = value.decode("utf-8", "replace")
        elif kind == 8:
            value = "0x" + value.hex()
        elif kind == 11:
            value = value[0]
        elif kind == 12:
            value = format_text(site.format if site else "", value)
        else:
            continue
        result.append((key, kind, value, whole))
    return result


def field_json(kind, value):
    if kind in (3, 4):
        return str(value)
    if kind == 5 and not math.isfinite(value):
        return float_text(12, value, None, False)
    return NOT_FORMATTED.get(value, value) if kind == 11 else value


def fields_json(fields):
    return {key: field_json(kind, value) for key, kind, value, _ in fields}
