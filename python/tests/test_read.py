"""A capture as Arrow tables: the rows are those of the Parquet files, and every library takes them."""

import eventring
import pyarrow
import pyarrow.parquet
import pytest
from conftest import run


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
    assert pandas.DataFrame.from_arrow(capture.spans).shape == (rows, len(names))
    spans = pyarrow.table(capture.spans)
    assert duckdb.sql("SELECT count(*) FROM spans").fetchall() == [(rows,)]
    assert spans.schema.names == names
    # A stream can be taken more than once.
    assert pyarrow.table(capture.spans).equals(spans)


def test_the_account_says_that_nothing_was_lost(place):
    account = eventring.read(place / "shop.evc").account
    assert account["lost"] == 0 and account["read"] > 5000
    for ring in account["rings"]:
        assert ring["read"] + ring["lost"] + ring["given_up"] == ring["last_seqno"] - ring["first_seqno"] + 1


def test_errors_say_what_to_do(place, tmp_path):
    with pytest.raises(FileNotFoundError, match="none.evc"):
        eventring.read(tmp_path / "none.evc")
    with pytest.raises(FileNotFoundError, match="nobody"):
        eventring.open("nobody-has-this-ring")
    text = tmp_path / "text"
    text.write_text("hello, this is no capture at all, it is only a text of some length")
    with pytest.raises(eventring.EventringError, match="not a capture"):
        eventring.read(text)
    with pytest.raises(eventring.EventringError, match="one at least"):
        eventring.read()
    with pytest.raises(KeyError, match='there is no table "span"'):
        eventring.read(place / "shop.evc")["span"]


def test_a_capture_that_was_cut_off_is_read_and_says_so(place, tmp_path):
    whole = (place / "shop.evc").read_bytes()
    cut = tmp_path / "cut.evc"
    cut.write_bytes(whole[: len(whole) // 2])
    capture = eventring.read(cut)
    assert "truncated" in capture.problems[0] and len(capture.rings) > 0
