"""Reads event rings and captures, live or dead, as Arrow tables.

``eventring.read("trace.evc")`` reads a capture. ``eventring.open("shop")`` opens the ring of a program, whether it
lives or not: ``.snapshot()`` is what it holds now, ``.tail()`` what it records. Every table can be given to pyarrow,
polars, pandas and DuckDB as it is.
"""

from ._eventring import EventringError, Recording, Rings, Table, Tail, __version__, open, read

__all__ = ["EventringError", "Recording", "Rings", "Table", "Tail", "__version__", "open", "read"]
