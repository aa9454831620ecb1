//! The tables of a capture, or of the events that rings hold now.

use crate::account::Account;
use crate::error::{EventringError, of_capture};
use crate::interrupt::{Wanted, interruptible};
use crate::table::Table;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use eventring_capture::{CaptureFile, Selection};
use eventring_parquet::{ArrowSink, tables_of_capture};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io;
use std::path::PathBuf;

/// Tables that are being filled.
pub(crate) struct Tables {
    pub(crate) tables: Vec<Table>,
    wanted: Wanted,
    bytes: u64,
    bytes_max: Option<u64>,
}

impl Tables {
    /// Makes tables without rows. They take rows while they are wanted, and up to this size in memory.
    pub(crate) fn new(wanted: &Wanted, bytes_max: Option<u64>) -> Self {
        Self { tables: Vec::new(), wanted: wanted.clone(), bytes: 0, bytes_max }
    }

    fn is_full(&self) -> bool {
        self.bytes_max.is_some_and(|max| self.bytes > max)
    }
}

impl ArrowSink for Tables {
    fn table(&mut self, name: &str, schema: SchemaRef) {
        self.tables.push(Table::new(name, schema));
    }

    fn rows(&mut self, table: usize, rows: RecordBatch) -> io::Result<()> {
        self.bytes = self.bytes.saturating_add(rows.get_array_memory_size() as u64);
        if self.is_full() || !self.wanted.is_wanted() {
            return Err(io::Error::other("no more rows are wanted"));
        }
        self.tables[table].push(rows);
        Ok(())
    }
}

/// Everything that a capture holds, as tables: ``spans``, ``logs``, ``losses``, ``rings``, ``counters``, ``markers``,
/// and ``events-NAME`` for each type of typed events. The columns are those of the Parquet files.
#[pyclass(frozen, module = "eventring")]
pub(crate) struct Recording {
    tables: Vec<Py<Table>>,
    names: Vec<String>,
    account: Account,
    problems: Vec<String>,
}

/// A recording whose tables Python does not have yet.
pub(crate) struct ReadTables {
    tables: Vec<Table>,
    account: Account,
    problems: Vec<String>,
}

impl ReadTables {
    /// Reads all tables of a capture into memory. The capture is one that is read while `wanted` says so.
    pub(crate) fn of_capture(capture: &CaptureFile, wanted: &Wanted, bytes_max: Option<u64>) -> PyResult<Self> {
        let mut tables = Tables::new(wanted, bytes_max);
        let read = tables_of_capture(capture, &mut tables);
        if tables.is_full() {
            return Err(EventringError::new_err(format!(
                "the tables of the capture take more memory than max_bytes={}: read a part of it with start=, end=, \
                 spans= or rings=, allow more with max_bytes=, or use `eventring export --format parquet`",
                bytes_max.unwrap_or(0)
            )));
        }
        let summary = read.map_err(of_capture)?;
        let account = Account::new(summary.rings, capture.end().is_some());
        Ok(Self { tables: tables.tables, account, problems: summary.problems })
    }

    /// Adds problems that were found before.
    pub(crate) fn with_problems(mut self, problems: Vec<String>) -> Self {
        self.problems.splice(0..0, problems);
        self
    }

    pub(crate) fn into_recording(self, py: Python<'_>) -> PyResult<Recording> {
        let names = self.tables.iter().map(|table| table.name().to_owned()).collect();
        let tables: PyResult<Vec<Py<Table>>> = self.tables.into_iter().map(|table| Py::new(py, table)).collect();
        Ok(Recording { tables: tables?, names, account: self.account, problems: self.problems })
    }
}

#[pymethods]
impl Recording {
    /// The names of the tables.
    fn keys(&self) -> Vec<String> {
        self.names.clone()
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<Table>> {
        let index = self.names.iter().position(|known| known == name);
        let index =
            index.ok_or_else(|| PyKeyError::new_err(format!("there is no table {name:?}: {:?}", self.names)))?;
        Ok(self.tables[index].clone_ref(py))
    }

    fn __contains__(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    fn __len__(&self) -> usize {
        self.names.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        pyo3::types::PyList::new(py, &self.names)?.call_method0("__iter__")
    }

    /// A row for each span.
    #[getter]
    fn spans(&self, py: Python<'_>) -> PyResult<Py<Table>> {
        self.__getitem__(py, "spans")
    }

    /// A row for each log record.
    #[getter]
    fn logs(&self, py: Python<'_>) -> PyResult<Py<Table>> {
        self.__getitem__(py, "logs")
    }

    /// A row for each loss: the ring, the first seqno, how many, and why.
    #[getter]
    fn losses(&self, py: Python<'_>) -> PyResult<Py<Table>> {
        self.__getitem__(py, "losses")
    }

    /// A row for each ring.
    #[getter]
    fn rings(&self, py: Python<'_>) -> PyResult<Py<Table>> {
        self.__getitem__(py, "rings")
    }

    /// The counts: ``read``, ``lost``, ``given_up``, ``filtered``, ``damaged`` and ``lost_payloads``, and the same for
    /// each ring with the causes. ``lost`` is ``None`` if the capture was cut off before its end.
    #[getter]
    fn account<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.account.to_dict(py)
    }

    /// What is wrong with the capture, a line each. Empty for a whole capture.
    #[getter]
    fn problems(&self) -> Vec<String> {
        self.problems.clone()
    }

    fn __repr__(&self) -> String {
        let rows = |table: &Py<Table>| table.get().rows();
        let tables = self.names.iter().zip(&self.tables).map(|(name, table)| format!("{name}: {}", rows(table)));
        format!("<eventring.Recording {{{}}}>", tables.collect::<Vec<_>>().join(", "))
    }
}

/// Reads captures: one, the files of a rotated one, or captures of different programs, which become one.
///
/// The rest selects a part: what was recorded from ``start`` until ``end`` (nanoseconds since the epoch), the spans of
/// these names with everything in them, what is in these rings. The tables may take ``max_bytes`` bytes of memory; None
/// means any size.
#[pyfunction]
#[pyo3(signature = (*paths, start=None, end=None, spans=None, rings=None, max_bytes=4294967296))]
pub(crate) fn read(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    start: Option<u64>,
    end: Option<u64>,
    spans: Option<Vec<String>>,
    rings: Option<Vec<String>>,
    max_bytes: Option<u64>,
) -> PyResult<Recording> {
    if paths.is_empty() {
        return Err(PyTypeError::new_err("no capture is named, expected one at least: read(\"trace.evc\")"));
    }
    let selection = start.into_iter().fold(Selection::new(), Selection::from_epoch_nanos);
    let selection = end.into_iter().fold(selection, Selection::to_epoch_nanos);
    let selection = spans.into_iter().flatten().fold(selection, Selection::span);
    let selection = rings.into_iter().flatten().fold(selection, Selection::ring);
    let read = interruptible(py, move |wanted| {
        let mut capture = wanted.of_capture(CaptureFile::open_all(&paths).map_err(of_capture)?);
        capture.select(&selection).map_err(of_capture)?;
        ReadTables::of_capture(&capture, wanted, max_bytes)
    });
    read?.into_recording(py)
}
