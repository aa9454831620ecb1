"""The columns of an events block, as docs/FORMAT.md describes them."""
from dataclasses import dataclass

import numpy as np

from numbers_and_texts import MASK, Cursor, need, running_sum, unzigzag, unzstd

MISSING = {1: "overwritten", 2: "impossible", 3: "too_large"}
MIB = 1 << 20


@dataclass
class Group:
    """The events of one type in a block: their fields, and the rest of their payloads."""
    type: int
    count: int
    widths: list
    index: np.ndarray = None


class EventsBlock:
    """The events and gaps of one events block. All attributes but `gaps` are arrays with a number for each event."""

    def __init__(self, content, header):
        """Decode the content of a block."""
        cursor = Cursor(content)
        bits, first_time = cursor.varint(), cursor.varint()
        need(bits < 128, "unknown bits in the head of an events block")
        self.id_words = [word for word in range(4) if bits >> word & 1]
        self.going_word = (bits >> 4) - 1
        need(self.going_word < 4 and self.going_word not in self.id_words, "the word that goes with an id is wrong")
        need(self.going_word < 0 or self.id_words, "a word goes with an id, but there are no ids")
        self.count, gaps, groups = cursor.varint(), cursor.varint(), cursor.varint()
        need(self.count + gaps == header.entries, "head and header state different numbers of events and gaps")
        self.groups = []
        for _ in range(groups):
            kind, count, fields = cursor.varint(), cursor.varint(), cursor.varint()
            self.groups.append(Group(kind, count, [cursor.varint() for _ in range(fields)]))
        need(sum(group.count for group in self.groups) == self.count, "groups have another number of events in all")
        need(len({group.type for group in self.groups}) == groups, "two groups have the same type")
        self._read_columns(cursor, header)
        self._read_events(first_time, gaps)
        self._read_ids()
        self._read_payloads()
        # What a search asks before it reads a block.
        self.columns.pop((24, 0), None)
        need(not self.columns, f"unknown columns (code, group): {list(self.columns)}")

    def _read_columns(self, cursor, header):
        """Read the list of columns, and the bytes of each."""
        listed = []
        for _ in range(cursor.varint()):
            code, group, form, parts = (cursor.varint() for _ in range(4))
            sizes = []
            for _ in range(parts):
                size = cursor.varint()
                sizes.append((size >> 1, cursor.varint() if size & 1 else None))
            listed.append((code, group, form, sizes))
        self.columns, total = {}, 0
        for code, group, form, sizes in listed:
            total += sum(size for size, _ in sizes)
            need(total <= 80 * MIB, "the columns of a block are too large")
            data = b"".join(cursor.take(size) if frame is None else unzstd(cursor.take(frame), size)
                            for size, frame in sizes)
            need((code, group) not in self.columns, f"column {code} of group {group} is there twice")
            self.columns[code, group] = form, data
        need(cursor.left() == 0, "bytes after the last column")
        need(total == header.plain, "the columns have another size than the block's header says")

    def _bytes(self, code, group, size):
        """Take a column of bytes; without it, return zeros."""
        if (code, group) not in self.columns:
            return bytes(size)
        form, data = self.columns.pop((code, group))
        need(form == 0 and len(data) == size, f"column {code} has form {form} and {len(data)} bytes, not {size}")
        return data

    def _numbers(self, code, group, count, optional=True):
        """Take a column of numbers; without it, return zeros."""
        if (code, group) not in self.columns:
            need(optional or count == 0, f"column {code} of group {group} is missing")
            return np.zeros(count, np.uint64)
        form, data = self.columns.pop((code, group))
        kind, width, cursor = form & 15, form >> 4, Cursor(data)
        if count == 0:
            need(not data, f"column {code} of group {group} should be empty")
            return np.zeros(0, np.uint64)
        need(1 <= kind <= 5 and width <= 8, f"column {code} has the unknown form {form}")
        need(width == 0 or kind in (3, 4), f"column {code} of the form {form} has planes")
        if kind == 5:
            table = np.array([cursor.varint() for _ in range(cursor.varint())], np.uint64)
            index = np.frombuffer(cursor.take(count), np.uint8)
            need(len(table) <= 256 and index.max() < len(table), f"column {code}: index out of range")
            numbers = table[index]
        else:
            first = cursor.varint()
            if kind == 1:
                numbers = np.full(count, first, np.uint64)
            elif kind == 2:
                step = np.uint64(unzigzag(cursor.varint()))
                numbers = np.arange(count, dtype=np.uint64) * step + np.uint64(first)
            else:
                rows = count if kind == 3 else count - 1
                numbers = np.zeros((rows, 8), np.uint8)
                numbers[:, :width] = np.frombuffer(cursor.take(rows * width), np.uint8).reshape(width, rows).T
                numbers = numbers.view("<u8").reshape(rows)
                numbers = numbers + np.uint64(first) if kind == 3 else running_sum(first, unzigzag(numbers))
        need(cursor.left() == 0, f"column {code} of group {group}: {cursor.left()} bytes too many")
        return numbers

    def _read_events(self, first_time, gaps):
        """Read what all events have, and the gaps."""
        group_of = self._numbers(1, 0, self.count, optional=len(self.groups) <= 1)
        self.seqno = self._numbers(2, 0, self.count, optional=False)
        self.type = np.zeros(self.count, np.uint16)
        self.size, self.time = np.zeros(self.count, np.uint64), np.zeros(self.count, np.uint64)
        self.ext = np.zeros((4, self.count), np.uint64)
        self.codes = np.zeros((4, self.count), np.uint8)
        for number, group in enumerate(self.groups):
            group.index = np.flatnonzero(group_of == number)
            need(len(group.index) == group.count, f"group {number} has another number of events")
            self.type[group.index] = group.type
            self.size[group.index] = self._numbers(32, number, group.count)
            self.time[group.index] = unzigzag(self._numbers(33, number, group.count))
            for word in range(4):
                if word in self.id_words:
                    codes = self._bytes(48 + word, number, group.count)
                    self.codes[word, group.index] = np.frombuffer(codes, np.uint8)
                else:
                    self.ext[word, group.index] = self._numbers(36 + word, number, group.count)
        need(self.count == 0 or self.time[0] == 0, "the first event of a block has a time difference")
        self.time = np.cumsum(self.time, dtype=np.uint64) + np.uint64(first_time)
        why = self._bytes(17, 0, len(self.columns[17, 0][1])) if (17, 0) in self.columns else b""
        places = self._numbers(16, 0, len(why), optional=False)
        need(bool(np.all(places < self.count)) and len(set(places.tolist())) == len(places), "column 16 is impossible")
        self.missing = np.zeros(self.count, np.uint8)
        self.missing[places.astype(np.int64)] = np.frombuffer(why, np.uint8)
        need(set(why) <= set(MISSING), "a payload is missing for an unknown reason")
        before, first, length, cause = (self._numbers(code, 0, gaps, optional=False).tolist() for code in range(20, 24))
        need(all(c <= 5 for c in cause) and all(length), "a gap has an unknown cause, or no seqnos")
        need(before == sorted(before) and all(b <= self.count for b in before), "gaps are not in order")
        self.gaps_before, self.gaps = np.array(before, np.int64), list(zip(first, length, cause))

    def _read_ids(self):
        """Turn the codes of ids into ids, and the word that goes with an id into what it was."""
        flat = self.codes[self.id_words].T.reshape(-1)  # in the order of the events, then of the words
        news = np.cumsum(flat == 255)
        count = int(news[-1]) if len(news) else 0
        places = self._numbers(4, 0, count, optional=False).tolist()
        generations = self._numbers(5, 0, count, optional=False).tolist()
        ids, slots = [], {}
        for place, generation in zip(places, generations):
            need(place < 1 << 24, "the place of an id has more than 24 bits")
            held, last = slots.get(place & 4095, (None, 0))
            generation = (generation + last) & MASK if held == place else generation
            need(generation < 1 << 40, "the generation of an id has more than 40 bits")
            slots[place & 4095] = place, generation
            ids.append(generation << 24 | place)
        ids = np.array(ids, np.uint64)
        index = news - np.where(flat == 255, 1, flat)   # which of the new ids
        named = flat != 0
        need(bool(np.all(index[named] >= 0)), "the code of an id goes back too far")
        values = np.zeros(len(flat), np.uint64)
        values[named] = ids[index[named]]
        self.ext[self.id_words] = values.reshape(self.count, len(self.id_words)).T
        if self.going_word < 0:
            return
        word = self.ext[self.going_word]
        index, named = (a.reshape(self.count, -1)[:, 0] for a in (index, named))    # of the first word with ids
        events = np.flatnonzero(named & (word != 0))
        # Until a word is known, words are written as they are: the known one is the first written one that is not 0.
        first = np.full(count, self.count, np.int64)
        first[index[events[::-1]]] = events[::-1]
        known = np.concatenate((word, np.zeros(1, np.uint64)))[first]
        later = named & (np.arange(self.count) > first[np.where(named, index, 0)]) if count else named
        word[later] ^= known[index[later]]

    def _read_payloads(self):
        """Read the fields and the rest of the payloads of each group, and note where each payload begins."""
        self.heads, self.tails = [], []
        self.where = np.zeros((self.count, 3), np.int64)    # group, row among the heads, offset in the tails
        for number, group in enumerate(self.groups):
            valid = group.index[self.missing[group.index] == 0]
            rows, columns = len(valid), []
            for n, width in enumerate(group.widths):
                if width > 8:
                    column = np.frombuffer(self._bytes(64 + n, number, rows * width), np.uint8).reshape(rows, width)
                else:
                    values = self._numbers(64 + n, number, rows, optional=False)
                    need(width == 8 or not np.any(values >> np.uint64(8 * width)), "a field is wider than stated")
                    column = values.astype("<u8").view(np.uint8).reshape(rows, 8)[:, :width]
                columns.append(column)
            head = np.concatenate(columns, axis=1) if columns else np.zeros((rows, 0), np.uint8)
            sizes = self.size[valid].astype(np.int64) - head.shape[1]
            need(bool(np.all(sizes >= 0)), "a payload is shorter than its fields")
            ends = np.cumsum(sizes)
            total = int(ends[-1]) if rows else 0
            self.tails.append(self._bytes(40, number, total) if total or (40, number) in self.columns else b"")
            self.heads.append((head.tobytes(), head.shape[1]))
            self.where[valid] = np.stack((np.full(rows, number), np.arange(rows), ends - sizes), axis=1)

    def payload(self, event):
        """Return the payload of the event at this place in the block, or the reason why it is missing."""
        return next(self._payloads(range(event, event + 1)))

    def _payloads(self, events):
        """Yield the payloads of these events, or the reasons why they are missing."""
        part = slice(events.start, events.stop)
        for why, size, (group, row, at) in zip(self.missing[part].tolist(), self.size[part].tolist(),
                                               self.where[part].tolist()):
            if why:
                yield MISSING[why]
                continue
            heads, width = self.heads[group]
            yield heads[row * width:(row + 1) * width] + self.tails[group][at:at + size - width]

    def __iter__(self):
        """Yield (seqno, type, time, size, ext words, payload or the reason why it is missing) of each event."""
        return zip(self.seqno.tolist(), self.type.tolist(), self.time.tolist(), self.size.tolist(),
                   self.ext.T.tolist(), self._payloads(range(self.count)))
