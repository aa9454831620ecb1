"""Rings, live and dead: snapshots, tails and their accounts."""

import json
import os
import signal
import subprocess
import sys
import time

import eventring
import pyarrow
import pytest
from conftest import EVENTRING, SERVICE


def rows(tables, name):
    """Returns the rows of a table in all batches."""
    return [row for batch in tables for row in pyarrow.table(batch[name]).to_pylist()]


def account_of_watch(ring, **options):
    """Returns how many events `watch --json` shows from the oldest on, and how many it says are missing."""
    watch = [EVENTRING, "watch", ring, "--from", "oldest", "--json", "--quiet"]
    return subprocess.Popen(watch, stdout=subprocess.PIPE, **options)


def counts(lines):
    """Returns the counts of events, of lost events and of numbers that were given up, from lines of `watch --json`."""
    read = lost = given_up = 0
    for line in map(json.loads, lines.splitlines()):
        gap = line.get("gap")
        if gap is None:
            read += 1
        elif gap["cause"] == "given_up":
            given_up += gap["count"]
        else:
            lost += gap["count"]
    return read, lost, given_up


def test_a_snapshot_of_a_dead_ring_has_the_rows_of_its_capture(place):
    rings = eventring.open(place / "shop")
    assert rings.is_live == [False]
    snapshot, capture = rings.snapshot(), eventring.read(place / "shop.evc")
    assert pyarrow.table(snapshot.spans).equals(pyarrow.table(capture.spans))
    assert snapshot.account["read"] == capture.account["read"]


def test_a_tail_has_every_span_once(place):
    tail = eventring.open(place / "shop").tail()
    batches = list(tail)
    spans, whole = rows(batches, "spans"), pyarrow.table(eventring.read(place / "shop.evc").spans).to_pylist()
    names = set(spans[0])
    expected = {row["id"]: {name: row[name] for name in names} for row in whole}
    assert {row["id"]: row for row in spans} == expected and len(spans) == len(expected)
    assert tail.account["read"] == eventring.read(place / "shop.evc").account["read"]
    assert list(tail) == []


def test_the_account_of_a_live_tail_is_that_of_watch(tmp_path):
    """Both read the same ring from its first event to its last, and each seqno is in one of their counts."""
    ring = tmp_path / "shop"
    service = subprocess.Popen([SERVICE, "--requests", "6000", "--ring", f"{ring}", "--keep"], stdout=subprocess.DEVNULL)
    while not ring.exists():
        time.sleep(0.01)
    tail = eventring.open(ring).tail(every=0.1)
    watch = account_of_watch(ring)
    batches = list(tail)
    assert service.wait() == 0 and batches
    of_watch = counts(watch.communicate()[0])
    account = tail.account
    for ring in account["rings"]:
        assert ring["read"] + ring["lost"] + ring["given_up"] == ring["last_seqno"]
    all_seqnos = account["read"] + account["lost"] + account["given_up"]
    assert all_seqnos == sum(of_watch), (account, of_watch)
    if of_watch[1] == 0:
        assert account["lost"] == 0


def test_losses_before_the_start_are_counted_as_watch_counts_them(tmp_path):
    """A dead ring has lost the same for everybody."""
    ring = tmp_path / "orders"
    subprocess.run([SERVICE, "--requests", "30000", "--ring", ring, "--keep"], check=True, capture_output=True)
    tail = eventring.open(ring).tail()
    batches = list(tail)
    of_watch = counts(account_of_watch(ring).communicate()[0])
    account = tail.account
    assert batches and account["lost"] > 0
    assert (account["read"], account["lost"], account["given_up"]) == of_watch


def test_a_tail_ends_after_its_timeout_and_when_it_is_closed(place, tmp_path):
    ring = tmp_path / "idle"
    service = subprocess.Popen([SERVICE, "--requests", "100000000", "--ring", ring], stdout=subprocess.DEVNULL)
    try:
        while not ring.exists():
            time.sleep(0.01)
        rings = eventring.open(ring)
        assert rings.is_live == [True]
        service.send_signal(signal.SIGSTOP)
        with rings.tail(new=True, timeout=0.3) as tail:
            begin = time.monotonic()
            list(tail)
            assert 0.2 < time.monotonic() - begin < 20
        service.send_signal(signal.SIGCONT)
        with rings.tail(new=True) as tail:
            assert len(next(tail)) > 3
        assert list(tail) == []
    finally:
        service.kill()
        service.wait()
    with pytest.raises(eventring.EventringError, match="above 0"):
        eventring.open(place / "shop").tail(every=0)


def test_ctrl_c_ends_the_wait_of_a_tail(tmp_path):
    ring = tmp_path / "idle"
    service = subprocess.Popen([SERVICE, "--requests", "100000000", "--ring", ring], stdout=subprocess.DEVNULL)
    try:
        while not ring.exists():
            time.sleep(0.01)
        service.send_signal(signal.SIGSTOP)
        script = f"import eventring; print('ready', flush=True); list(eventring.open({str(ring)!r}).tail(new=True))"
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert child.stdout.readline() == b"ready\n"
        time.sleep(0.5)
        os.kill(child.pid, signal.SIGINT)
        assert b"KeyboardInterrupt" in child.communicate(timeout=20)[1]
    finally:
        service.kill()
        service.wait()
