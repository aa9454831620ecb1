"""A reader of process and thread contexts of OpenTelemetry, written from the proposals 4719 and 4947 alone.

Arguments: the number of stops, a directory, and the command of the program, which is started with this process's
environment. The program writes the files `spans` (a line for each span: its `traceparent`) and `threads` (a line for
each thread: its id, and the address of a word that says in which span the thread is: the number of the span before and
after the present step, 0 for none). Stops the threads in turn, reads their contexts, and compares. Prints the counts.
"""

import ctypes
import json
import os
import random
import struct
import subprocess
import sys
import time

SEIZE, INTERRUPT, CONTINUE, GETREGS = 0x4206, 0x4207, 7, 12
WALL = 0x40000000
FS_BASE = 21
TLS, PT_TLS = 6, 7

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def read(pid, *places):
    """Reads several (address, length) of the process in one call."""
    total = sum(length for _, length in places)
    buffer = ctypes.create_string_buffer(total)
    remote = (Vector * len(places))(*(Vector(*place) for place in places))
    done = libc.process_vm_readv(pid, ctypes.byref(Vector(ctypes.addressof(buffer), total)), 1, remote, len(places), 0)
    assert done == total, os.strerror(ctypes.get_errno())
    parts, at = [], 0
    for _, length in places:
        parts.append(buffer.raw[at:at + length])
        at += length
    return parts


def ptrace(request, thread, data=None):
    assert libc.ptrace(request, thread, None, data) == 0, os.strerror(ctypes.get_errno())


def fields(message):
    """Decodes the length-delimited fields of a message of Protocol Buffers."""
    at = 0

    def varint():
        nonlocal at
        number, shift = 0, 0
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    while at < len(message):
        key = varint()
        assert key & 7 == 2, "only texts and messages are expected"
        length = varint()
        yield key >> 3, message[at:at + length]
        at += length
        assert at <= len(message)


def attribute(message):
    key, value = (bytes for _, bytes in fields(message))
    [(kind, content)] = fields(value)
    return key.decode(), content.decode() if kind == 1 else [text.decode() for _, text in fields(content)]


def process_context(pid):
    with open(f"/proc/{pid}/maps") as maps:
        lines = [line for line in maps if "OTEL_CTX" in line]
    assert len(lines) == 1, lines
    name = lines[0].split(maxsplit=5)[5]
    assert name.startswith(("[anon_shmem:OTEL_CTX]", "/memfd:OTEL_CTX")), name
    start = int(lines[0].split("-")[0], 16)
    header, = read(pid, (start, 32))
    signature, version, size, published, payload = struct.unpack("=8sIIQQ", header)
    assert (signature, version) == (b"OTEL_CTX", 2) and published != 0, header
    content, = read(pid, (payload, size))
    assert read(pid, (start, 32)) == [header]
    parts = list(fields(content))
    resource = [attributes for field, attributes in parts if field == 1]
    assert len(resource) == 1
    return dict(attribute(of) for _, of in fields(resource[0])), dict(attribute(of) for field, of in parts if field == 2)


def thread_offset(pid):
    """Returns the offset of `otel_thread_ctx_v1` from the thread pointer. The executable has it, in its `.dynsym`."""
    with open(f"/proc/{pid}/exe", "rb") as file:
        elf = file.read()
    assert elf[:6] == b"\x7fELF\x02\x01"
    headers, sections = struct.unpack_from("<QQ", elf, 32)
    header_size, header_count, section_size, section_count = struct.unpack_from("<HHHH", elf, 54)
    tls = None
    for at in range(headers, headers + header_size * header_count, header_size):
        kind, _, _, _, _, _, memory, alignment = struct.unpack_from("<IIQQQQQQ", elf, at)
        if kind == PT_TLS:
            tls = (memory + alignment - 1) // alignment * alignment
    all = [struct.unpack_from("<IIQQQQIIQQ", elf, sections + section_size * at) for at in range(section_count)]
    for _, kind, _, _, offset, size, link, _, _, entry in all:
        if kind != 11:
            continue
        names = all[link][4]
        for at in range(offset, offset + size, entry):
            name, info, _, _, value, length = struct.unpack_from("<IBBHQQ", elf, at)
            end = elf.index(b"\0", names + name)
            if elf[names + name:end] == b"otel_thread_ctx_v1":
                assert (info & 15, length) == (TLS, 8)
                return value - tls
    raise AssertionError("the symbol is not in .dynsym")


class Thread:
    def __init__(self, id, truth, offset):
        self.id, self.truth = id, truth
        ptrace(SEIZE, id)
        self.stop()
        registers = (ctypes.c_uint64 * 27)()
        ptrace(GETREGS, id, ctypes.addressof(registers))
        self.slot = registers[FS_BASE] + offset
        ptrace(CONTINUE, id)

    def stop(self):
        ptrace(INTERRUPT, self.id)
        _, status = os.waitpid(self.id, WALL)
        assert os.WIFSTOPPED(status)


def shown(pid, pointer):
    """Returns the context as `traceparent` has it; `None` if there is none."""
    if pointer == 0:
        return None
    record, = read(pid, (pointer, 28))
    trace, span, valid, flags, attributes = struct.unpack("=16s8sBBH", record)
    assert valid in (0, 1) and attributes == 0, record
    return f"00-{trace.hex()}-{span.hex()}-{flags:02x}" if valid == 1 else None


def main():
    stops, place = int(sys.argv[1]), sys.argv[2]
    program = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        while not os.path.exists(place + "/ready"):
            assert program.poll() is None
            time.sleep(0.01)
        resource, more = process_context(program.pid)
        offset = thread_offset(program.pid)
        spans = [None] + open(place + "/spans").read().split()
        lines = (line.split() for line in open(place + "/threads"))
        threads = [Thread(int(id), int(truth), offset) for id, truth in lines]
        counts = {"stops": stops, "threads": len(threads), "in_spans": 0, "outside": 0, "changing": 0, "wrong": 0,
                  "control": 0, "resource": resource, "more": more}
        seen, examples = set(), []
        for number in range(stops):
            thread = threads[number % len(threads)]
            if number % 16 == 0:
                time.sleep(random.random() / 10000)
            thread.stop()
            pointer, truth = (struct.unpack("=Q", part)[0] for part in read(program.pid, (thread.slot, 8), (thread.truth, 8)))
            context = shown(program.pid, pointer)
            ptrace(CONTINUE, thread.id)
            before, after = truth >> 32, truth & 0xFFFFFFFF
            seen.add(context)
            if before != after:
                counts["changing"] += 1
                # While a record changes, it is not valid.
                expected = {spans[before], spans[after], None}
            else:
                counts["outside" if after == 0 else "in_spans"] += 1
                expected = {spans[after]}
            if context not in expected:
                counts["wrong"] += 1
                examples.append([context, before, after])
            # The control: with the numbers of other spans, almost every stop is wrong.
            counts["control"] += context not in {spans[(of + 1) % len(spans)] for of in (before, after)}
        counts["seen"], counts["spans"], counts["examples"] = len(seen), len(spans) - 1, examples[:5]
        print(json.dumps(counts))
    finally:
        program.kill()


if __name__ == "__main__":
    main()
