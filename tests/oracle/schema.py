"""Schema texts (FORMAT.md, "Schema text"), and payloads of typed events as the JSON values that CLI.md describes."""

import math
import struct

INTEGERS = {"%s%d" % (sign, bits): (bits // 8, sign == "i") for sign in "ui" for bits in (8, 16, 32, 64, 128)}
EXEC_WORDS = {0: ("block", "seqno"), 1: ("txn", "index"), 2: ("account_index", None), 3: ("span", None)}
ERROR_TYPES = {1: "OVERFLOW_4GB", 2: "OVERFLOW_EXPIRE", 3: "MISSING_EVENT"}

class Big(int):
    """An integer of a type of more than 64 bits, however small it is."""

def shortest(value):
    """A float of 32 bits is the decimal number with which it is shown."""
    shorter = (float("%.*g" % (digits, value)) for digits in range(1, 10))
    return next((one for one in shorter if struct.pack("<f", one) == struct.pack("<f", value)), value)

class Schema:
    def __init__(self, text, content):
        self.enums, self.structs, self.events, current = {}, {}, {}, None
        self.words = dict(EXEC_WORDS) if content == 2 else {}
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
        if kind in self.enums:
            return self.size(self.enums[kind][0])
        known = {"u256": 32, "f32": 4, "f64": 8, "bool": 1, "utf8": 1, **{k: v[0] for k, v in self.structs.items()}}
        return known[kind] if kind in known else INTEGERS[kind][0] if kind in INTEGERS else int(kind[5:])
    def value(self, kind, data):
        """One value as Python has it: floats stay floats, whatever JSON makes of them."""
        if kind.endswith("]"):
            inner = kind.rsplit("[", 1)[0]
            return data.rstrip(b"\0").decode("utf-8", "replace") if inner == "utf8" else self.array(inner, data)
        if kind in INTEGERS:
            return (Big if len(data) > 8 else int)(int.from_bytes(data, "little", signed=INTEGERS[kind][1]))
        if kind in self.enums:
            number = self.value(self.enums[kind][0], data)
            return self.enums[kind][1].get(number, number)
        if kind in self.structs:
            return {name: self.value(inner, data[at:at + size]) for name, inner, at, size in self.structs[kind][1]}
        if kind == "u256":
            return Big(int.from_bytes(data, "little"))
        if kind in ("f32", "f64"):
            return shortest(struct.unpack("<f", data)[0]) if kind == "f32" else struct.unpack("<d", data)[0]
        return data != b"\0" if kind == "bool" else "0x" + data.hex()
    def array(self, inner, data):
        size = self.size(inner)
        return [self.value(inner, data[at:at + size]) for at in range(0, len(data), size)]
    def decode(self, code, data):
        """The payload's fields and arrays, or None if the schema does not know the event."""
        if code not in self.events or code == 1 and not data:
            return {} if code in self.events else None
        _, fixed, trailing = self.events[code]
        size = self.structs[fixed][0] if fixed else 0
        result = self.value(fixed, data[:size]) if fixed else {}
        for name, kind, path in trailing:
            count = (len(data) - size) // self.size(kind)
            if path != "*":
                count = result
                for part in path.split("."):
                    count = count[part]
            piece = data[size:size + int(count) * self.size(kind)]
            size += int(count) * self.size(kind)
            result[name] = (piece.decode("utf-8", "replace") if kind == "utf8" else
                            "0x" + piece.hex() if kind == "u8" else self.array(kind, piece))
        if size != len(data):
            raise ValueError("the payload does not fit")
        if code == 1:
            result["error_type"] = ERROR_TYPES.get(result["error_type"], result["error_type"])
            result["dropped_event_type"] = self.name(result["dropped_event_type"]) or result["dropped_event_type"]
        return result
    def named_words(self, ext):
        """Keys of extension words as CLI.md names them: NAME, or NAME_KIND."""
        result = {}
        for index, (name, kind) in sorted(self.words.items()):
            value = ext[index] - (kind == "index")
            result[name + "_" + kind if kind else name] = (
                None if value < 0 or name == "span" and not value else value)
        return result

def plain(value):
    """What JSON has of a payload's value: NaN and infinities are null, integers of more than 64 bits are text."""
    if isinstance(value, Big):
        return str(value)
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
