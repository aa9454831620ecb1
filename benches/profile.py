#!/usr/bin/env python3
"""What `eventring profile` costs the example http_service.

    benches/profile.py [ROUNDS]        11 rounds unless said; as root; `cargo build --release` comes first:
    cargo build --release -p eventring-cli -p eventring-http-service --bin eventring --example http_service

The service handles its own requests without an end. The cases take turns, and each is measured for two seconds in its middle,
without its beginning and end: the events that the service records in a second, and the time on processors that it needs for
an event, in the kernel and in itself, and that of eventring. The second figure is good on a busy machine, too. EVENTRING and SERVICE name other programs.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TARGET = pathlib.Path(__file__).parent.parent / "target/release"
EVENTRING = os.environ.get("EVENTRING", str(TARGET / "eventring"))
SERVICE = os.environ.get("SERVICE", str(TARGET / "examples/http_service"))
RING = "shop"
CASES = {
    "nothing": None,
    "capture": ["capture"],
    "--sched": ["profile", "--sched"],
    "--stacks --hz 997": ["profile", "--stacks", "--hz", "997"],
    "--sched --stacks": ["profile", "--sched", "--stacks"],
}


def seconds_on_processors(process: int) -> float:
    """Of all threads of a process, by the scheduler's own account."""
    paths = pathlib.Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in paths) / 1e9


def events() -> int:
    ring = json.loads(subprocess.check_output([EVENTRING, "info", RING, "--json"]))
    return sum(shard["last_seqno"] for shard in ring.get("shards") or [ring])


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    figures = {case: [] for case in CASES}
    # Not among the rings of the user.
    rings = tempfile.TemporaryDirectory(dir="/dev/shm")
    os.environ["EVENTRING_DIR"] = rings.name
    service = subprocess.Popen([SERVICE, "--requests", str(10**12), "--ring", RING], stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as place:
        try:
            time.sleep(1)
            for _ in range(rounds):
                for case, words in CASES.items():
                    options = [RING, "-d", "5s", "-f", "-o", f"{place}/file.evc", "--json"]
                    looks = words and subprocess.Popen(
                        [EVENTRING, words[0], *options, *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                    )
                    time.sleep(1.7)
                    of_looks = lambda: seconds_on_processors(looks.pid) if looks else 0
                    begin = (events(), seconds_on_processors(service.pid), time.monotonic(), of_looks())
                    time.sleep(2)
                    end = (events(), seconds_on_processors(service.pid), time.monotonic(), of_looks())
                    said = json.loads(looks.communicate()[0]) if looks else {}
                    count, used, passed, own = (after - before for before, after in zip(begin, end))
                    figures[case].append((count / passed, used / count * 1e9, said, own / passed))
        finally:
            service.kill()
            service.wait()
            rings.cleanup()
    for case, runs in figures.items():
        rate, nanos = (statistics.median(run[at] for run in runs) for at in (0, 1))
        less, more = (
            100 * (statistics.median(run[at] / other[at] for run, other in zip(runs, figures["capture"])) - 1) for at in (0, 1)
        )
        own = statistics.median(run[3] for run in runs)
        lost = sum(run[2].get("kernel_lost", 0) for run in runs)
        print(
            f"{case:18} {rate:9.0f} events/s ({less:+5.1f} % against capture), {nanos:6.0f} ns of the service an event"
            f" ({more:+5.1f} %), {100 * own:3.0f} % of a processor for eventring itself, {lost} records lost by the kernel"
        )


if __name__ == "__main__":
    main()
