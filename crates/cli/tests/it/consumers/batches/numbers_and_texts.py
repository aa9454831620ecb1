"""Numbers and texts of capture files, as docs/FORMAT.md describes them."""
import struct

import numpy as np
import zstandard

MASK = (1 << 64) - 1


class FormatError(Exception):
    """Says what in a file or stream contradicts the documents."""


def need(condition, message):
    """Raise FormatError with this message unless the condition holds."""
    if not condition:
        raise FormatError(message)


class Cursor:
    """Reads numbers and texts from bytes, one after the other."""

    def __init__(self, data, at=0):
        """Begin at the byte `at`."""
        self.data, self.at = bytes(data), at

    def left(self):
        """Count the bytes that were not read yet."""
        return len(self.data) - self.at

    def take(self, size):
        """Return the next bytes."""
        need(size <= self.left(), "content ends too early")
        self.at += size
        return self.data[self.at - size:self.at]

    def unpack(self, layout):
        """Return the next numbers, as `struct` describes them."""
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))

    def text(self):
        """Return the next text: its length (u32) and UTF-8."""
        return self.take(self.unpack("I")[0]).decode("utf-8")

    def varint(self):
        """Return the next varint."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                need(value <= MASK, "a varint has more than 64 bits")
                return value


def unzigzag(number):
    """Return the signed number, modulo 2^64, of a zigzag number or of an array of them."""
    if isinstance(number, int):
        return (number >> 1) ^ (MASK if number & 1 else 0)
    one = np.uint64(1)
    return (number >> one) ^ (np.uint64(0) - (number & one))


def unzstd(data, size):
    """Return what one zstd frame holds, which must have `size` bytes."""
    try:
        plain = zstandard.ZstdDecompressor().decompress(data, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise FormatError(f"a zstd frame is damaged: {error}") from error
    need(len(plain) == size, "a zstd frame has another size than stated")
    return plain


def running_sum(first, steps):
    """Return first, first + steps[0], first + steps[0] + steps[1] and so on, modulo 2^64."""
    return np.cumsum(np.concatenate((np.array([first], np.uint64), steps)), dtype=np.uint64)
