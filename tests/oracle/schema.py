"""Schema texts (FORMAT.md, "Schema text"), and payloads of typed events as the JSON values that CLI.md describes."""

import math
import struct

INTEGERS = {"%s%d" % (sign, bits): (bits // 8, sign == "i") for sign in "ui" for bits in (8, 16, 32, 64, 128)}
EXEC_WORDS = {0: ("block", "seqno"), 1: ("txn", "index"), 2: ("account_index", None), 3: ("span", None)}
ERROR_TYPES = {1: "OVERFLOW_4GB", 2: "OVERFLOW_EXPIRE", 3: "MISSING_EVENT"}


class Misfit(Exception):
    """The payload has not the length that its schema asks for."""


def number_value(value, size):
    return str(value) if size > 8 else value


def shortest(value):
    """A float of 32 bits is the decimal number with which it is shown."""
    if math.isnan(value) or math.isinf(value):
        return value
    for digits in range(1, 10):
        text = "%.*g" % (digits, value)
        if struct.pack("<f", float(text)) == struct.pack("<f", value):
            return float(text)
    return value


class Schema:
    def __init__(self, text, content):
        self.enums, self.structs, self.events, self.words, self.redacted = {}, {}, {}, {}, set()
        if content == 2:
            self.words = dict(EXEC_WORDS)
        current = None
        for line in text.split("\n"):
            words = line.split(" ")
            if words[0] == "#ext" and (content >= 256 or words[2:] == ["span"]):
                names = {name for name, _ in self.words.values()}
                if len(words) in (3, 4) and words[2] not in names and int(words[1]) not in self.words:
                    self.words[int(words[1])] = (words[2], words[3] if len(words) == 4 else None)
            elif words[0] == "enum":
                current = self.enums[words[1]] = (words[2], {})
            elif words[0] == "value":
                current[1][int(words[1])] = words[2]
            elif words[0] == "struct":
                current = self.structs[words[1]] = (int(words[2]), [])
            elif words[0] == "field":
                current[1].append((words[1], words[2], int(words[3]), int(words[4])))
            elif words[0] == "event":
                fixed = words[3] if len(words) > 3 and words[3] != "domain" else None
                current = self.events[int(words[1])] = (words[2], fixed, [])
            elif words[0] == "trailing":
                current[2].append((words[1], words[2], words[3]))

    def name(self, code):
        return self.events[code][0] if code in self.events else None

    def size(self, kind):
        if kind.endswith("]"):
            inner, count = kind[:-1].rsplit("[", 1)
            return self.size(inner) * int(count)
        if kind in INTEGERS:
            return INTEGERS[kind][0]
        if kind in self.enums:
            return self.size(self.enums[kind][0])
        if kind in self.structs:
            return self.structs[kind][0]
        if kind.startswith("bytes"):
            return int(kind[5:])
        return {"u256": 32, "f32": 4, "f64": 8, "bool": 1, "utf8": 1}[kind]

    def value(self, kind, data):
        """One value as Python has it: floats stay floats, whatever JSON makes of them."""
        if kind.endswith("]"):
            inner, count = kind[:-1].rsplit("[", 1)
            if inner == "utf8":
                return data.rstrip(b"\0").decode("utf-8", "replace")
            return self.array(inner, data)
        if kind in INTEGERS:
            return number_value(int.from_bytes(data, "little", signed=INTEGERS[kind][1]), len(data))
        if kind in self.enums:
            number = self.value(self.enums[kind][0], data)
            return self.enums[kind][1].get(number, number)
        if kind in self.structs:
            return {name: self.value(inner, data[at:at + size]) for name, inner, at, size in self.structs[kind][1]}
        if kind == "u256":
            return str(int.from_bytes(data, "little"))
        if kind == "f64":
            return struct.unpack("<d", data)[0]
        if kind == "f32":
            return shortest(struct.unpack("<f", data)[0])
        if kind == "bool":
            return data != b"\0"
        return "0x" + data.hex()

    def array(self, inner, data):
        size = self.size(inner)
        return [self.value(inner, data[at:at + size]) for at in range(0, len(data), size)]

    def decode(self, code, data):
        """The payload's fields and arrays, or None if the schema does not know the event."""
        if code not in self.events:
            return None
        _, fixed, trailing = self.events[code]
        if code == 1 and not data:
            return {}
        size = self.structs[fixed][0] if fixed else 0
        if len(data) < size:
            raise Misfit()
        result = self.value(fixed, data[:size]) if fixed else {}
        counts = dict(result)
        for name, kind, count in trailing:
            if count == "*":
                length = (len(data) - size) // self.size(kind) * self.size(kind)
            else:
                value = counts
                for part in count.split("."):
                    value = value[part]
                length = int(value) * self.size(kind)
            if size + length > len(data):
                raise Misfit()
            piece = data[size:size + length]
            size += length
            if kind == "utf8":
                result[name] = piece.decode("utf-8", "replace")
            else:
                result[name] = "0x" + piece.hex() if kind == "u8" else self.array(kind, piece)
        if size != len(data):
            raise Misfit()
        if code == 1:
            result["error_type"] = ERROR_TYPES.get(result["error_type"], result["error_type"])
            result["dropped_event_type"] = self.name(result["dropped_event_type"]) or result["dropped_event_type"]
        return result

    def named_words(self, ext):
        """Keys of extension words as CLI.md names them: NAME, or NAME_KIND."""
        result = {}
        for index, (name, kind) in sorted(self.words.items()):
            key = name + "_" + kind if kind else name
            if kind == "index":
                result[key] = ext[index] - 1 if ext[index] else None
            elif name == "span":
                result[key] = ext[index] or None
            else:
                result[key] = ext[index]
        return result


def plain(value):
    """What JSON has of a payload's value: NaN and infinities are null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value
