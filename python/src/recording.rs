//! The tables of a capture, or of what rings hold now.

use crate::account::Account;
use crate::error::{EventringError, of_capture};
use crate::table::Table;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use eventring::capture::CaptureFile;
use eventring::export::{ArrowSink, tables_of_capture};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io;
use std::path::PathBuf;

/// Tables that are being filled.
#[derive(Default)]
pub(crate) struct Tables(pub(crate) Vec<Table>);

impl ArrowSink for Tables {
    fn table(&mut self, name: &str, schema: SchemaRef) {
        self.0.push(Table::new(name, schema));
    }

    fn rows(&mut self, table: usize, rows: RecordBatch) -> io::Result<()> {
        self.0[table].push(rows);
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

impl Recording {
    /// Reads all tables of a capture into memory.
    pub(crate) fn of_capture(py: Python<'_>, capture: &CaptureFile) -> PyResult<Self> {
        let mut tables = Tables::default();
        let read = py.detach(|| tables_of_capture(capture, &mut tables));
        let summary = read.map_err(of_capture)?;
        let mut account = Account::default();
        account.add(capture);
        let names = tables.0.iter().map(|table| table.name().to_owned()).collect();
        let tables: PyResult<Vec<Py<Table>>> = tables.0.into_iter().map(|table| Py::new(py, table)).collect();
        Ok(Self { tables: tables?, names, account, problems: summary.problems })
    }

    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Py<Table>> {
        let index = self.names.iter().position(|known| known == name);
        let index =
            index.ok_or_else(|| PyKeyError::new_err(format!("there is no table {name:?}: {:?}", self.names)))?;
        Ok(self.tables[index].clone_ref(py))
    }
}

#[pymethods]
impl Recording {
    /// The names of the tables.
    fn keys(&self) -> Vec<String> {
        self.names.clone()
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<Table>> {
        self.table(py, name)
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
        self.table(py, "spans")
    }

    /// A row for each log record.
    #[getter]
    fn logs(&self, py: Python<'_>) -> PyResult<Py<Table>> {
        self.table(py, "logs")
    }

    /// A row for each loss: the ring, the first seqno, how many, and why.
    #[getter]
    fn losses(&self, py: Python<'_>) -> PyResult<Py<Table>> {
        self.table(py, "losses")
    }

    /// A row for each ring.
    #[getter]
    fn rings(&self, py: Python<'_>) -> PyResult<Py<Table>> {
        self.table(py, "rings")
    }

    /// The counts: ``read``, ``lost``, ``given_up``, and the same for each ring with the causes. Without counts if the
    /// capture was cut off before its end.
    #[getter]
    fn account<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.account.to_dict(py)
    }

    /// What is wrong with the capture, a line each. Empty for a whole capture.
    #[getter]
    fn problems(&self) -> Vec<String> {
        self.problems.clone()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let rows = |table: &Py<Table>| table.get().rows();
        let tables = self.names.iter().zip(&self.tables).map(|(name, table)| format!("{name}: {}", rows(table)));
        let _ = py;
        format!("<eventring.Recording {{{}}}>", tables.collect::<Vec<_>>().join(", "))
    }
}

/// Reads captures: one, the files of a rotated one, or captures of different programs, which become one.
#[pyfunction]
#[pyo3(signature = (*paths))]
pub(crate) fn read(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Recording> {
    if paths.is_empty() {
        return Err(EventringError::new_err("no capture is named, expected one at least: read(\"trace.evc\")"));
    }
    let capture = py.detach(|| CaptureFile::open_all(&paths)).map_err(of_capture)?;
    Recording::of_capture(py, &capture)
}
