//! What rings record, as it is recorded.

use crate::account::Account;
use crate::error::{EventringError, of_capture, of_ring};
use crate::recording::{Recording, Tables};
use crate::table::Table;
use eventring::__internals::shm::nameless_file;
use eventring::capture::{CaptureError, CaptureFile, CaptureOptions, NextRing, capture_rings_to, follow_rings};
use eventring::export::ArrowTail;
use eventring::reader::{Reader, RingState};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The batches that wait until Python takes them. While they wait, events wait in their rings.
const WAITING_MAX: usize = 4;
/// The pause between two looks for Ctrl-C.
const SIGNAL_PAUSE: Duration = Duration::from_millis(100);

/// Rings, of living or dead programs.
#[pyclass(frozen, module = "eventring")]
pub(crate) struct Rings {
    readers: Vec<Reader>,
}

/// Opens rings by their names or paths, whether their programs live or not. All shards of a perf recorder belong to
/// its ring.
#[pyfunction]
#[pyo3(signature = (*names))]
pub(crate) fn open(names: Vec<PathBuf>) -> PyResult<Rings> {
    if names.is_empty() {
        return Err(EventringError::new_err("no ring is named, expected one at least: open(\"shop\")"));
    }
    let readers: Result<Vec<Reader>, _> = names.iter().map(Reader::open).collect();
    Ok(Rings { readers: readers.map_err(of_ring)? })
}

#[pymethods]
impl Rings {
    /// The names of the rings.
    #[getter]
    fn names(&self) -> Vec<String> {
        let name = |reader: &Reader| reader.path().map_or_else(String::new, |path| path.display().to_string());
        self.readers.iter().map(name).collect()
    }

    /// Whether each program still writes its ring.
    #[getter]
    fn is_live(&self) -> Vec<bool> {
        self.readers.iter().map(|reader| reader.state() == RingState::Live).collect()
    }

    /// Returns what the rings hold now, as a recording.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Recording> {
        let capture = py.detach(|| -> Result<CaptureFile, CaptureError> {
            let mut readers = self.readers.clone().into_iter();
            let mut next = || readers.next().map_or(NextRing::NoMore, NextRing::Ring);
            let cannot = |error| CaptureError::from_io("make a file for the snapshot", error);
            let file = nameless_file(&std::env::temp_dir()).map_err(cannot)?;
            let out = file.try_clone().map_err(cannot)?;
            let options = CaptureOptions::new().duration(Duration::ZERO);
            capture_rings_to(&mut next, out, &options, &mut |_| ControlFlow::Continue(()))?;
            CaptureFile::from_file(file)
        });
        Recording::of_capture(py, &capture.map_err(of_capture)?)
    }

    /// Returns an iterator over what the rings record: a dictionary of tables for each batch, at the latest ``every``
    /// seconds after an event. It begins with the oldest event in the rings, or with ``new=True`` with the next one,
    /// and ends when all programs have ended, or when nothing has come for ``timeout`` seconds.
    #[pyo3(signature = (*, every=0.2, new=false, timeout=None))]
    fn tail(&self, every: f64, new: bool, timeout: Option<f64>) -> PyResult<Tail> {
        let seconds = |name: &str, value: f64| {
            let expected = || EventringError::new_err(format!("{name}={value}: expected a time in seconds above 0"));
            Duration::try_from_secs_f64(value).ok().filter(|time| !time.is_zero()).ok_or_else(expected)
        };
        let every = seconds("every", every)?;
        let timeout = timeout.map(|timeout| seconds("timeout", timeout)).transpose()?;
        let (send, batches) = sync_channel(WAITING_MAX);
        let shall_end = Arc::new(AtomicBool::new(false));
        let (readers, is_asked) = (self.readers.clone(), Arc::clone(&shall_end));
        let thread = std::thread::Builder::new().name("eventring-tail".into());
        let thread = thread.spawn(move || follow(readers, every, new, &send, &is_asked));
        let thread = thread.map_err(|error| EventringError::new_err(format!("cannot start a thread: {error}")))?;
        let state = TailState {
            batches: Some(batches),
            thread: Some(thread),
            tables: Some(ArrowTail::default()),
            last: None,
            account: Account::default(),
        };
        Ok(Tail { state: Mutex::new(state), shall_end, timeout })
    }

    fn __repr__(&self) -> String {
        format!("<eventring.Rings {:?}>", self.names())
    }
}

/// Copies the events of rings, and sends them in batches until nobody wants more.
fn follow(
    readers: Vec<Reader>,
    every: Duration,
    new: bool,
    send: &SyncSender<CaptureFile>,
    shall_end: &AtomicBool,
) -> Result<(), CaptureError> {
    let goes_on = |goes_on: bool| if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    let mut take = |batch: CaptureFile| goes_on(send.send(batch).is_ok());
    let mut progress = || goes_on(!shall_end.load(Relaxed));
    follow_rings(readers, every, new, &mut take, &mut progress)
}

/// An iterator over what rings record.
#[pyclass(frozen, module = "eventring")]
pub(crate) struct Tail {
    state: Mutex<TailState>,
    shall_end: Arc<AtomicBool>,
    timeout: Option<Duration>,
}

struct TailState {
    /// `None` when the tail is closed.
    batches: Option<Receiver<CaptureFile>>,
    thread: Option<JoinHandle<Result<(), CaptureError>>>,
    /// `None` after the last batch.
    tables: Option<ArrowTail>,
    last: Option<CaptureFile>,
    account: Account,
}

#[pymethods]
impl Tail {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let begin = Instant::now();
        loop {
            let received = py.detach(|| {
                let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.batches.as_ref().map(|batches| batches.recv_timeout(SIGNAL_PAUSE))
            });
            match received {
                Some(Ok(batch)) => return self.take(py, batch).map(Some),
                Some(Err(RecvTimeoutError::Timeout)) => py.check_signals()?,
                Some(Err(RecvTimeoutError::Disconnected)) => {
                    self.end(py)?;
                    return self.rest(py);
                }
                None => return Ok(None),
            }
            if self.timeout.is_some_and(|timeout| begin.elapsed() >= timeout) {
                return self.end(py).map(|()| None);
            }
        }
    }

    /// The counts so far: ``read``, ``lost``, ``given_up``, and the same for each ring with the causes. What waits to be
    /// taken is not counted yet.
    #[getter]
    fn account<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let account = self.state.lock().unwrap_or_else(PoisonError::into_inner).account.clone();
        account.to_dict(py)
    }

    /// Ends the tail. The iterator then ends, too.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py)
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<bool> {
        self.end(py)?;
        Ok(false)
    }
}

impl Tail {
    fn take<'py>(&self, py: Python<'py>, batch: CaptureFile) -> PyResult<Bound<'py, PyDict>> {
        let mut tables = Tables::default();
        let made = py.detach(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.account.add(&batch);
            let pushed = state.tables.as_mut().map_or(Ok(()), |tail| tail.push(&batch, &mut tables));
            state.last = Some(batch);
            pushed
        });
        made.map_err(of_capture)?;
        by_name(py, tables)
    }

    /// Returns the spans that no batch has shown, because they are open, or were closed just before the end.
    fn rest<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut tables = Tables::default();
        let made = py.detach(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            match (state.tables.take(), state.last.take()) {
                (Some(tail), Some(last)) => tail.finish(&last, &mut tables),
                _ => Ok(()),
            }
        });
        made.map_err(of_capture)?;
        if tables.0.iter().all(|table| table.name() != "spans" || table.rows() == 0) {
            return Ok(None);
        }
        by_name(py, tables).map(Some)
    }

    /// Ends the thread. Returns its error, if it had one.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.shall_end.store(true, Relaxed);
        let joined = py.detach(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            // Without a receiver, the thread cannot wait for one.
            state.batches = None;
            state.thread.take().map(JoinHandle::join)
        });
        match joined {
            Some(Ok(Err(error))) => Err(of_capture(error)),
            Some(Err(_)) => Err(EventringError::new_err("the thread that reads the rings has panicked")),
            _ => Ok(()),
        }
    }
}

/// Returns tables by their names.
fn by_name<'py>(py: Python<'py>, tables: Tables) -> PyResult<Bound<'py, PyDict>> {
    let by_name = PyDict::new(py);
    for table in tables.0 {
        let name = table.name().to_owned();
        by_name.set_item(name, Py::<Table>::new(py, table)?)?;
    }
    Ok(by_name)
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.shall_end.store(true, Relaxed);
    }
}
