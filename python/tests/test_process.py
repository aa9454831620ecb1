"""Signals, forks and threads of the process that reads."""

import os
import signal
import subprocess
import sys
import threading

import eventring
import pytest
from conftest import running, stop


@pytest.fixture(scope="session")
def large(tmp_path_factory, place):
    """Returns the paths of captures that take some seconds to read together."""
    from conftest import SERVICE, run

    directory, paths = tmp_path_factory.mktemp("large"), []
    for number in range(4):
        ring = directory / f"shop{number}"
        subprocess.run([SERVICE, "--requests", "6000", "--ring", ring, "--keep"], check=True, capture_output=True)
        run("capture", ring, "-o", f"{ring}.evc", "--json")
        paths.append(f"{ring}.evc")
    return paths


def interrupted(code):
    """Runs code that prints a line, and sends Ctrl-C then. Returns what it writes to stderr."""
    # The shell of a test runner may have told its children to ignore Ctrl-C.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + code
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    os.kill(child.pid, signal.SIGINT)
    return child.communicate(timeout=60)


def test_ctrl_c_ends_the_wait_of_a_tail(tmp_path):
    ring = tmp_path / "idle"
    with running(ring) as service:
        stop(service)
        tail = f"tail = eventring.open({str(ring)!r}).tail(new=True)"
        _, errors = interrupted(f"import eventring; {tail}; print('ready', flush=True); list(tail)")
        assert b"KeyboardInterrupt" in errors


@pytest.mark.parametrize("what", ["read", "snapshot"])
def test_ctrl_c_ends_a_read_before_it_is_whole(large, what):
    work = f"eventring.read(*{large!r})"
    if what == "snapshot":
        work = f"eventring.open(*{[path.removesuffix('.evc') for path in large]!r}).snapshot()"
    code = f"""
import eventring, time
begin = time.monotonic()
{work}
whole, begin = time.monotonic() - begin, time.monotonic()
try:
    print("ready", flush=True)
    {work}
except KeyboardInterrupt:
    print((time.monotonic() - begin) / whole)
"""
    output, _ = interrupted(code)
    assert float(output) < 0.7


def test_other_threads_run_during_a_read(large):
    reader = threading.Thread(target=lambda: eventring.read(*large))
    reader.start()
    turns = 0
    while reader.is_alive():
        reader.join(0.001)
        turns += 1
    assert turns > 20


def in_a_fork(work):
    """Returns the exit code of a forked child that does the work; None if it does not end."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(60)
            work()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_reads_captures_and_rings_although_its_parent_has_read_some(place):
    spans = len(eventring.read(place / "shop.evc").spans)
    rings = eventring.open(place / "shop")

    def work():
        assert len(eventring.read(place / "shop.evc").spans) == spans
        assert len(rings.snapshot().spans) == spans
        assert sum(len(batch["spans"]) for batch in rings.tail()) == spans

    assert in_a_fork(work) == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_tail_says_in_a_forked_child_that_it_belongs_to_the_parent(place):
    tail = eventring.open(place / "shop").tail()

    def work():
        for use in [lambda: next(tail), lambda: tail.account, lambda: tail.problems, tail.close]:
            with pytest.raises(eventring.EventringError, match="forked"):
                use()
        with tail:
            pass

    assert in_a_fork(work) == 0
    assert sum(len(batch["spans"]) for batch in tail) > 1000
