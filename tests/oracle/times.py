"""How threads spent the time in spans (FORMAT.md, "Thread time")."""

import struct

from perf import NO_QUEUE

CPU, QUEUE, SLEEP, UNMEASURED = range(4)
NAMES = "cpu_ns", "queue_ns", "sleep_ns", "unmeasured_ns"

def share(parts, part, whole):
    return [value * part // max(whole, 1) for value in parts]

class Clock:
    """What a thread was off so far: queue, sleep, and gaps that are not measured."""
    def __init__(self, measures):
        self.off, self.known, self.measured, self.seen, self.before = [0, 0, 0], 0 if measures else None, 0, 0, 0
        self.merged, self.looked = 0, 0
        self.rings = set()
    def see(self, time):
        self.seen = max(self.seen, time)
        self.looked = max(self.looked, time)
    def switched(self, time):
        if self.seen:
            self.off[2] += max(0, time - self.seen)
        self.merged += 1
        self.see(time)
    def measure(self, time, payload, flags, inside):
        since, cpu, queue = struct.unpack_from("<QQQ", payload)
        slices, merged, voluntary, involuntary = struct.unpack_from("<IIII", payload, 24)
        self.merged += merged > 0
        if since > self.measured:
            self.known = since
        off = max(0, max(0, time - since) - cpu)
        queue = min(queue, off) if voluntary or slices and not involuntary else off
        parts = [0, 0, off] if flags & NO_QUEUE else [queue, off - queue, 0]
        gaps = self.off[2] - self.before
        of_gaps = share(parts, gaps, gaps + max(0, time - self.seen))
        for piece in inside if gaps else []:
            earlier = max(0, piece.off[2] - self.before)
            if earlier:
                piece.off[2] -= earlier
                piece.off = [a + b for a, b in zip(piece.off, share(of_gaps, earlier, gaps))]
        self.off = [self.off[0] + parts[0], self.off[1] + parts[1], (self.before if gaps else self.off[2]) + parts[2]]
        self.before, self.measured = self.off[2], max(self.measured, time)
        self.see(time)
    def of(self, piece, end, lost):
        """The parts of a slice until `end`. Events of the thread may be lost until `lost`."""
        rest = max(0, end - piece.start)
        if self.known is None or self.known > piece.start or lost > max(self.measured, piece.start):
            return [0, 0, 0, rest]
        result = [0, 0, 0, 0]
        piece.exact = self.merged == piece.merged
        for part, index in ((SLEEP, 1), (QUEUE, 0), (UNMEASURED, 2)):
            result[part] = min(rest, max(0, self.off[index] - piece.off[index]))
            rest -= result[part]
        result[CPU] = rest
        return result
    def of_open(self, piece, now, lost):
        until = min(self.looked, now)
        result = self.of(piece, until, lost)
        result[UNMEASURED] += max(0, now - max(until, piece.start))
        return result

def shorten(parts, nanos):
    for part in (CPU, UNMEASURED, SLEEP, QUEUE):
        taken = min(nanos, parts[part])
        parts[part] -= taken
        nanos -= taken
