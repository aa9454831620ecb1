"""Rings, live and dead: snapshots, tails and their accounts."""

import json
import signal
import subprocess
import threading
import time

import eventring
import pyarrow
import pytest
from conftest import SERVICE, assert_each_seqno_is_counted_once, run, running, stop


def rows(tables, name):
    """Returns the rows of a table in all batches."""
    return [row for batch in tables for row in pyarrow.table(batch[name]).to_pylist()]


def counts(lines):
    """Returns the counts of events, of lost events and of numbers that were skipped, from lines of `watch --json`."""
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
    assert list(tail) == [] and tail.problems == []


def assert_has_every_closed_span_once(batches, ring):
    """Checks the batches of a tail of a program that stands still, against what its ring still holds."""
    closed = [row["id"] for row in rows(batches, "spans") if not row["open"]]
    assert len(closed) == len(set(closed))
    now = pyarrow.table(eventring.open(ring).snapshot().spans).to_pylist()
    expected = {row["id"] for row in now if not row["open"] and not row["may_have_losses"]}
    assert len(expected) > 10 and expected - set(closed) == set()


def test_a_tail_of_an_idle_program_shows_each_closed_span_before_it_ends(tmp_path):
    ring = tmp_path / "idle"
    # Soon all customers wait for a slow request.
    with running(ring, "--slow-every", 20, "--slow-ms", 600000):
        rings, read = eventring.open(ring), 0
        while (now := rings.snapshot()).account["read"] != read:
            read = now.account["read"]
            time.sleep(0.5)
        expected = {row["id"] for row in pyarrow.table(now.spans).to_pylist() if not row["open"]}
        tail, closed = rings.tail(every=0.1, timeout=20), []
        for batch in tail:
            spans = pyarrow.table(batch["spans"]).to_pylist()
            # Only the last batch has open spans.
            assert not any(row["open"] for row in spans)
            closed += [row["id"] for row in spans]
            if expected <= set(closed):
                break
        assert len(expected) > 10 and sorted(closed) == sorted(expected)
        tail.close()
        last = list(tail)
        assert len(last) == 1 and all(row["open"] for row in rows(last, "spans"))


@pytest.mark.parametrize("end", ["timeout", "close"])
def test_a_tail_that_ends_has_each_closed_span_once(tmp_path, end):
    ring = tmp_path / "stopped"
    with running(ring) as service:
        tail = eventring.open(ring).tail(every=0.1, timeout=1 if end == "timeout" else None)
        batches = [next(tail), next(tail)]
        stop(service)
        if end == "close":
            tail.close()
        batches += tail
        assert_has_every_closed_span_once(batches, ring)
        assert_each_seqno_is_counted_once(tail.account)
        assert list(tail) == []


def test_the_timeout_counts_from_the_last_event_even_if_batches_are_rare(tmp_path):
    ring = tmp_path / "busy"
    with running(ring) as service:
        tail = eventring.open(ring).tail(every=8, timeout=1)
        # A timeout that counts from the last batch would end the tail after a second.
        first = next(tail)
        assert len(first["spans"]) > 0
        stop(service)
        assert_has_every_closed_span_once([first, *tail], ring)


def test_only_one_thread_at_a_time_takes_a_batch_and_the_account_does_not_wait_for_it(tmp_path):
    ring = tmp_path / "stopped"
    with running(ring) as service:
        stop(service)
        tail = eventring.open(ring).tail(new=True)
        refused = []

        def take():
            try:
                list(tail)
            except ValueError as error:
                refused.append(str(error))

        # One of them waits for a batch that does not come, and the other one is refused.
        threads = [threading.Thread(target=take) for _ in range(2)]
        for thread in threads:
            thread.start()
        while not refused:
            time.sleep(0.01)
        assert "another thread" in refused[0]
        begin = time.monotonic()
        for _ in range(200):
            assert tail.account["read"] == 0
        # Each would wait for a tenth of a second if the other thread's wait held its lock.
        assert time.monotonic() - begin < 5
        tail.close()
        for thread in threads:
            thread.join()
        assert len(refused) == 1


def test_losses_before_the_start_are_counted_as_watch_counts_them(tmp_path):
    """A dead ring has lost the same for everybody."""
    ring = tmp_path / "orders"
    subprocess.run([SERVICE, "--requests", "30000", "--ring", ring, "--keep"], check=True, capture_output=True)
    tail = eventring.open(ring).tail()
    batches = list(tail)
    of_watch = counts(run("watch", ring, "--from", "oldest", "--json", "--full", "--quiet"))
    account = tail.account
    assert batches and account["lost"] > 0
    assert (account["read"], account["lost"], account["given_up"]) == of_watch


def test_a_tail_ends_after_its_timeout_and_when_it_is_closed(place, tmp_path):
    ring = tmp_path / "idle"
    with running(ring) as service:
        rings = eventring.open(ring)
        assert rings.is_live == [True]
        stop(service)
        with rings.tail(new=True, timeout=0.3) as tail:
            begin = time.monotonic()
            list(tail)
            assert 0.2 < time.monotonic() - begin < 20
        service.send_signal(signal.SIGCONT)
        with rings.tail(new=True) as tail:
            assert len(next(tail)) > 3
        assert list(tail) == []
    for options in [{"every": 0}, {"every": -1}, {"timeout": 0}]:
        with pytest.raises(ValueError, match="above 0"):
            eventring.open(place / "shop").tail(**options)


def test_a_tail_with_tiny_batches_does_not_only_make_batches(place):
    batches = list(eventring.open(place / "shop").tail(every=1e-9))
    assert sum(len(batch["spans"]) for batch in batches) == len(eventring.read(place / "shop.evc").spans)
