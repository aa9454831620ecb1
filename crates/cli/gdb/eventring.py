"""Shows the rings of the program that gdb debugs, live or from a core file.

(gdb) source eventring.py
(gdb) eventring open              # the spans that are open
(gdb) eventring watch             # the last 20 events, or as many as a number says

The commands copy the memory of the rings into a small core file and call the program `eventring` on it. It must be in
the PATH, or at $EVENTRING.
"""

import os
import re
import struct
import subprocess
import tempfile

import gdb

MAPPING = re.compile(r"^\s*(0x[0-9a-f]+)\s+(0x[0-9a-f]+)\s+0x[0-9a-f]+\s+(0x[0-9a-f]+)\s+(?:[-rwxps]{4}\s+)?(.*)$")
PAGE = 4096
LAST = 20


def mappings():
    """Returns (start, end, offset in the file, path) of each mapping."""
    lines = gdb.execute("info proc mappings", to_string=True).splitlines()
    found = (MAPPING.match(line) for line in lines)
    return [(*(int(it[n], 16) for n in (1, 2, 3)), it[4].strip()) for it in found if it]


def ring_mappings():
    """Returns the mappings of all rings: what follows a header in memory, and is of the same file."""
    all_of_them, rings, path = sorted(mappings()), [], None
    for mapping in all_of_them:
        start, end, offset, name = mapping
        if offset == 0:
            try:
                magic = bytes(gdb.selected_inferior().read_memory(start, 6))
            except gdb.MemoryError:
                magic = b""
            path = name if magic == b"RING01" else None
        elif not rings or rings[-1][1] != start or rings[-1][3] != name:
            path = None
        if path is not None:
            rings.append(mapping)
    return rings


def write_core(path, rings):
    """Writes a core file with these mappings and no others."""
    table = struct.pack("<QQ", len(rings), PAGE)
    table += b"".join(struct.pack("<QQQ", start, end, offset // PAGE) for start, end, offset, _ in rings)
    table += b"".join(name.encode() + b"\0" for *_, name in rings)
    note = struct.pack("<III8s", 5, len(table), 0x46494C45, b"CORE") + table + bytes(-len(table) % 4)
    begin = 64 + 56 * (len(rings) + 1)
    place = (begin + len(note) + PAGE - 1) // PAGE * PAGE
    headers = struct.pack("<IIQQQQQQ", 4, 4, begin, 0, 0, len(note), 0, 4)
    for start, end, _, _ in rings:
        headers += struct.pack("<IIQQQQQQ", 1, 4, place, start, 0, end - start, end - start, PAGE)
        place += end - start
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    elf = ident + struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, len(rings) + 1, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(elf + headers + note)
        file.write(bytes(-file.tell() % PAGE))
    for start, end, _, _ in rings:
        gdb.execute(f"append binary memory {path} {start:#x} {end:#x}", to_string=True)


class Eventring(gdb.Command):
    """Shows the rings of this program: `eventring open`, with its arguments, or `eventring watch [N]`."""

    def __init__(self):
        super().__init__("eventring", gdb.COMMAND_DATA)

    def invoke(self, text, from_tty):
        verb, *arguments = gdb.string_to_argv(text) or ["open"]
        if verb not in ("open", "watch"):
            raise gdb.GdbError("eventring: expected `open` or `watch`")
        last = None
        if verb == "watch":
            last = int(arguments[0]) if arguments else LAST
            arguments = ["--quiet"]
        program = os.environ.get("EVENTRING", "eventring")
        rings = ring_mappings()
        if not rings:
            raise gdb.GdbError("eventring: no ring is in the memory that gdb sees")
        with tempfile.TemporaryDirectory(prefix="eventring-gdb-") as directory:
            core, capture = (os.path.join(directory, name) for name in ("core", "program.evc"))
            write_core(core, rings)
            made = subprocess.run([program, "core", core, "-o", capture], capture_output=True, text=True)
            if not os.path.exists(capture):
                raise gdb.GdbError(made.stderr.strip())
            shown = subprocess.run([program, verb, capture, *arguments], capture_output=True, text=True)
            lines = shown.stdout.splitlines(keepends=True)
            gdb.write("".join(lines if last is None else lines[-last:]) + shown.stderr)


Eventring()
