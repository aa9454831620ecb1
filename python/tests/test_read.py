"""A capture as Arrow tables: the rows are those of the Parquet files, and every library takes them."""

import gc
import struct

import eventring
import pyarrow
import pyarrow.parquet
import pytest
from conftest import assert_each_seqno_is_counted_once, run


def test_each_table_has_the_rows_of_its_parquet_file(place):
    run("export", place / "shop.evc", "--format", "parquet", "-o", place / "tables")
    capture = eventring.read(place / "shop.evc")
    files = {file.stem: file for file in (place / "tables").glob("*.parquet")}
    assert set(capture.keys()) == set(files)
    for name, file in files.items():
        ours, theirs = pyarrow.table(capture[name]), pyarrow.parquet.read_table(file)
        assert ours.schema.names == theirs.schema.names, name
        assert ours.to_pylist() == theirs.to_pylist(), name
    assert len(capture.spans) > 1000 and len(capture["spans"]) == capture.spans.num_rows


def test_polars_pandas_and_duckdb_take_a_table_as_it_is(place):
    import duckdb
    import pandas
    import polars

    capture = eventring.read(place / "shop.evc")
    rows, names = len(capture.spans), capture.spans.column_names
    assert polars.DataFrame(capture.spans).shape == (rows, len(names))
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert pandas.DataFrame.from_arrow(capture.spans).shape == (rows, len(names))
    spans = capture.spans
    assert duckdb.sql("SELECT count(*) FROM spans").fetchall() == [(rows,)]
    # A stream can be taken more than once.
    spans = pyarrow.table(capture.spans)
    assert spans.schema.names == names and pyarrow.table(capture.spans).equals(spans)


def test_pandas_keeps_integers_with_the_types_of_arrow(place):
    import pandas

    spans = pyarrow.table(eventring.read(place / "shop.evc").spans)
    frame = spans.to_pandas(types_mapper=pandas.ArrowDtype)
    assert frame["start_ns"].dtype == "int64[pyarrow]" and frame["parent"].dtype == "uint64[pyarrow]"
    assert frame["parent"].isna().any()
    assert frame["start_ns"].tolist() == spans["start_ns"].to_pylist()


def test_a_stream_that_nobody_reads_is_freed(place):
    spans = eventring.read(place / "shop.evc").spans
    capsules = [spans.__arrow_c_stream__() for _ in range(10)] + [spans.__arrow_c_schema__()]
    del capsules, spans
    gc.collect()


def test_the_account_says_that_nothing_was_lost(place):
    account = eventring.read(place / "shop.evc").account
    assert account["lost"] == 0 and account["read"] > 5000
    assert_each_seqno_is_counted_once(account)


def test_typed_events_have_tables_and_their_losses_are_counted(demo):
    capture = eventring.read(demo / "lines.evc")
    events = [name for name in capture if name.startswith("events-")]
    assert events and "payload_problem" in capture[events[0]].column_names
    account = capture.account
    assert sum(len(capture[name]) for name in events) == account["read"] > 1000
    losses = pyarrow.table(capture.losses).to_pylist()
    assert account["lost"] == sum(row["count"] for row in losses) > 0
    # Each of the four threads may have been killed while it recorded.
    assert 0 <= account["lost"] - account["rings"][0]["missing_by_cause"]["overwritten_before"] <= 4
    assert_each_seqno_is_counted_once(account)


def test_several_paths_become_one_capture(place, demo):
    shop, lines = eventring.read(place / "shop.evc"), eventring.read(demo / "lines.evc")
    both = eventring.read(place / "shop.evc", str(demo / "lines.evc"))
    assert len(both.spans) == len(shop.spans) and set(both) == set(shop) | set(lines)
    assert len(set(pyarrow.table(both.rings)["process"].to_pylist())) == 2
    assert both.account["read"] == shop.account["read"] + lines.account["read"]
    with pytest.raises(eventring.EventringError, match="has the ring"):
        eventring.read(place / "shop.evc", place / "shop.evc")


def test_a_part_is_that_of_export_with_the_same_options(place, tmp_path):
    whole = pyarrow.table(eventring.read(place / "shop.evc").spans).to_pylist()
    times = sorted(row["start_ns"] for row in whole if row["start_ns"])
    start, end = times[len(times) // 3], times[len(times) // 2]
    part = eventring.read(place / "shop.evc", start=start, end=end, spans=["request"], rings=["shop"])
    options = ["--from", start, "--to", end, "--span", "request", "--ring", "shop"]
    run("export", place / "shop.evc", "--format", "parquet", "-o", tmp_path / "part", *options)
    theirs = pyarrow.parquet.read_table(tmp_path / "part" / "spans.parquet").to_pylist()
    assert pyarrow.table(part.spans).to_pylist() == theirs and 0 < len(theirs) < len(whole)
    with pytest.raises(eventring.EventringError, match="no span nothing"):
        eventring.read(place / "shop.evc", spans=["nothing"])


def test_tables_that_are_too_large_are_refused(place):
    with pytest.raises(eventring.EventringError, match="max_bytes=100000: read a part"):
        eventring.read(place / "shop.evc", max_bytes=100_000)
    assert len(eventring.read(place / "shop.evc", max_bytes=None).spans) > 1000


def test_errors_say_what_to_do(place, tmp_path):
    with pytest.raises(FileNotFoundError, match="none.evc"):
        eventring.read(tmp_path / "none.evc")
    with pytest.raises(FileNotFoundError, match="nobody"):
        eventring.open("nobody-has-this-ring")
    text = tmp_path / "text"
    text.write_text("hello, this is no capture at all, it is only a text of some length")
    with pytest.raises(eventring.EventringError, match="not a capture"):
        eventring.read(text)
    for function in [eventring.read, eventring.open]:
        with pytest.raises(TypeError, match="one at least"):
            function()
    with pytest.raises(KeyError, match='there is no table "span"'):
        eventring.read(place / "shop.evc")["span"]


def test_a_capture_that_was_cut_off_is_read_and_does_not_know_what_was_lost(place, tmp_path):
    whole = (place / "shop.evc").read_bytes()
    cut = tmp_path / "cut.evc"
    cut.write_bytes(whole[: len(whole) // 2])
    capture = eventring.read(cut)
    assert "truncated" in capture.problems[0] and len(capture.rings) > 0
    account = capture.account
    assert account["lost"] is None and {ring["lost"] for ring in account["rings"]} == {None}
    assert 0 < account["read"] < eventring.read(place / "shop.evc").account["read"]


def test_events_in_a_damaged_block_are_counted_as_lost(place, tmp_path):
    whole = bytearray((place / "shop.evc").read_bytes())
    # Blocks follow the header of 48 bytes; each has a header of 120 bytes. Those of events are of the kind 2.
    block, kind, size = 48, 0, 0
    while kind != 2:
        block += 120 + size if kind else 0
        kind, size = struct.unpack_from("<II", whole, block + 4)
    whole[block + 120 + size // 2] ^= 0x55
    damaged = tmp_path / "damaged.evc"
    damaged.write_bytes(whole)
    capture = eventring.read(damaged)
    account, losses = capture.account, pyarrow.table(capture.losses).to_pylist()
    assert capture.problems and account["damaged"] > 0
    assert account["lost"] == account["damaged"] == sum(row["count"] for row in losses)
    assert_each_seqno_is_counted_once(account)
