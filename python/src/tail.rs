//! The tables of live rings, batch by batch.

use crate::account::Account;
use crate::error::{EventringError, of_capture, of_ring};
use crate::interrupt::{SIGNAL_PAUSE, Wanted, check_signals, interruptible};
use crate::recording::{ReadTables, Recording, Tables};
use crate::table::Table;
use eventring::reader::{Reader, RingState};
use eventring_capture::{CaptureError, CaptureFile, CaptureProgress, capture_now, follow_rings};
use eventring_parquet::ArrowTail;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The batches that wait until Python takes them. While they wait, events wait in their rings.
const WAITING_MAX: usize = 4;
/// A time in which each event of a ring is seen, even if batches are rare.
const SEEN_AFTER: Duration = Duration::from_secs(2);
/// The number of problems that a tail keeps.
const PROBLEMS_MAX: usize = 1000;

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
        return Err(PyTypeError::new_err("no ring is named, expected one at least: open(\"shop\")"));
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

    /// Whether each program still writes its ring. ``None`` if this cannot be known, for example because the program
    /// runs in another container.
    #[getter]
    fn is_live(&self) -> Vec<Option<bool>> {
        let is_live = |reader: &Reader| match reader.state() {
            RingState::Unknown => None,
            state => Some(state == RingState::Live),
        };
        self.readers.iter().map(is_live).collect()
    }

    /// Returns what the rings hold now, as a recording.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Recording> {
        let readers = self.readers.clone();
        let read = interruptible(py, move |wanted| {
            let of_capture_now = wanted.clone();
            let captured = capture_now(readers, move || of_capture_now.is_wanted());
            let (capture, summary) = captured.map_err(of_capture)?;
            Ok(ReadTables::of_capture(&wanted.of_capture(capture), wanted, None)?.with_problems(summary.problems))
        });
        read?.into_recording(py)
    }

    /// Returns an iterator over what the rings record: a dictionary of tables for each batch, at the latest ``every``
    /// seconds after an event (0.02 at least). It begins with the oldest event in the rings, or with ``new=True`` with
    /// the next one, and ends when all programs have ended, or when nothing was recorded for ``timeout`` seconds.
    #[pyo3(signature = (*, every=0.2, new=false, timeout=None))]
    fn tail(&self, every: f64, new: bool, timeout: Option<f64>) -> PyResult<Tail> {
        let seconds = |name: &str, value: f64| {
            let expected = || PyValueError::new_err(format!("{name}={value}: expected a time in seconds above 0"));
            Duration::try_from_secs_f64(value).ok().filter(|time| !time.is_zero()).ok_or_else(expected)
        };
        let every = seconds("every", every)?;
        let timeout = timeout.map(|timeout| seconds("timeout", timeout)).transpose()?;
        // An event is seen after a quarter of the time `every`. This must be sooner than the timeout.
        let every = timeout.filter(|timeout| *timeout < SEEN_AFTER).map_or(every, |timeout| every.min(2 * timeout));
        let (send, batches) = sync_channel(WAITING_MAX);
        let following = Arc::new(Following::new());
        let (readers, of_thread) = (self.readers.clone(), Arc::clone(&following));
        let thread = std::thread::Builder::new().name("eventring-tail".into());
        let thread = thread.spawn(move || of_thread.follow(readers, every, new, &send));
        let thread = thread.map_err(|error| EventringError::new_err(format!("cannot start a thread: {error}")))?;
        let iteration =
            Iteration { batches: Some(batches), thread: Some(thread), tables: ArrowTail::default(), last: None };
        let account = Account::new(Vec::new(), true);
        Ok(Tail {
            process: process::id(),
            iteration: Mutex::new(iteration),
            findings: Mutex::new(Findings { account, problems: Vec::new() }),
            following,
            left: Wanted::new(),
            timeout,
        })
    }

    fn __repr__(&self) -> String {
        format!("<eventring.Rings {:?}>", self.names())
    }
}

/// The state that the thread which follows the rings shares with the iterator.
struct Following {
    wanted: Wanted,
    /// The time at which the last event was seen.
    last_event: Mutex<Instant>,
}

impl Following {
    fn new() -> Self {
        Self { wanted: Wanted::new(), last_event: Mutex::new(Instant::now()) }
    }

    /// Copies the events of rings, and sends them in batches until nobody wants more. Returns problems.
    fn follow(
        &self,
        readers: Vec<Reader>,
        every: Duration,
        new: bool,
        send: &SyncSender<CaptureFile>,
    ) -> Result<Vec<String>, CaptureError> {
        let goes_on = |goes_on: bool| if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        let mut take = |batch: CaptureFile| goes_on(send.send(batch).is_ok());
        let mut seen = 0;
        let mut progress = |done: &CaptureProgress| {
            let count = done.events.saturating_add(done.lost);
            if count != seen {
                seen = count;
                *locked(&self.last_event) = Instant::now();
            }
            goes_on(self.wanted.is_wanted())
        };
        follow_rings(readers, every, new, &mut take, &mut progress)
    }
}

/// An iterator over what rings record.
#[pyclass(frozen, module = "eventring")]
pub(crate) struct Tail {
    /// The process that has the thread.
    process: u32,
    /// The state of whoever takes batches. The one who waits for a batch holds this lock, and not the interpreter.
    iteration: Mutex<Iteration>,
    findings: Mutex<Findings>,
    following: Arc<Following>,
    /// Not wanted any more once the `with` block was left.
    left: Wanted,
    timeout: Option<Duration>,
}

struct Iteration {
    /// `None` after the last batch.
    batches: Option<Receiver<CaptureFile>>,
    thread: Option<JoinHandle<Result<Vec<String>, CaptureError>>>,
    tables: ArrowTail,
    last: Option<CaptureFile>,
}

/// The counts and problems that are known so far.
struct Findings {
    account: Account,
    problems: Vec<String>,
}

#[pymethods]
impl Tail {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.check_process()?;
        let tables = py.detach(|| match self.iteration.try_lock() {
            Ok(mut iteration) => self.next(&mut iteration),
            Err(TryLockError::Poisoned(poisoned)) => self.next(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(PyValueError::new_err(
                "another thread is taking a batch of this tail: let one thread take them all",
            )),
        });
        tables?.map(|tables| by_name(py, tables)).transpose()
    }

    /// The counts so far: ``read``, ``lost``, ``given_up``, ``filtered``, ``damaged`` and ``lost_payloads``, and the
    /// same for each ring with the causes. What waits to be taken is not counted yet.
    #[getter]
    fn account<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check_process()?;
        let account = py.detach(|| locked(&self.findings).account.clone());
        account.to_dict(py)
    }

    /// What was found wrong so far, a line each, for example rings that could not be opened. What is known only at the
    /// end comes with the last batch.
    #[getter]
    fn problems(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.check_process()?;
        Ok(py.detach(|| locked(&self.findings).problems.clone()))
    }

    /// Ends the tail: what is recorded from now on is not taken. The iterator still returns what was recorded before,
    /// with the spans that are open now, and then ends. May be called in any thread.
    fn close(&self) -> PyResult<()> {
        self.check_process()?;
        self.following.wanted.end();
        Ok(())
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Ends the tail. What was not taken is forgotten.
    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, pyo3::types::PyTuple>) {
        self.following.wanted.end();
        self.left.end();
        if self.check_process().is_ok() {
            // A thread that waits for a batch ends the iteration itself.
            py.detach(|| self.iteration.try_lock().map_or((), |mut iteration| drop(iteration.end())));
        }
    }
}

impl Tail {
    /// Returns an error in a forked child: it has a copy of the tail, without the thread that reads the rings.
    fn check_process(&self) -> PyResult<()> {
        if self.process == process::id() {
            return Ok(());
        }
        Err(EventringError::new_err(format!(
            "this tail belongs to process {}, from which this one was forked; open the rings and call tail() here",
            self.process
        )))
    }

    /// Returns the next tables that have rows. Returns `None` at the end.
    fn next(&self, iteration: &mut Iteration) -> PyResult<Option<Tables>> {
        let begin = Instant::now();
        loop {
            if !self.left.is_wanted() {
                let _ = iteration.end();
            }
            let Some(batches) = &iteration.batches else { return Ok(None) };
            match batches.recv_timeout(SIGNAL_PAUSE) {
                Ok(batch) => {
                    let tables = self.take(iteration, batch)?;
                    if tables.tables.iter().any(|table| table.name() != "rings" && table.rows() > 0) {
                        return Ok(Some(tables));
                    }
                }
                Err(RecvTimeoutError::Timeout) => check_signals()?,
                Err(RecvTimeoutError::Disconnected) => return self.rest(iteration),
            }
            let quiet_since = begin.max(*locked(&self.following.last_event));
            if self.timeout.is_some_and(|timeout| quiet_since.elapsed() >= timeout) {
                // Then comes what was recorded until now, and the end.
                self.following.wanted.end();
            }
        }
    }

    fn take(&self, iteration: &mut Iteration, batch: CaptureFile) -> PyResult<Tables> {
        let mut tables = Tables::new(&self.left, None);
        match iteration.tables.push(&batch, &mut tables) {
            Ok(summary) => {
                let mut findings = locked(&self.findings);
                findings.account.add(summary.rings);
                findings.add_problems(summary.problems);
                iteration.last = Some(batch);
                Ok(tables)
            }
            Err(error) => {
                self.following.wanted.end();
                let _ = iteration.end();
                Err(of_capture(error))
            }
        }
    }

    /// Ends the tail. Returns the spans that no batch has shown, because they are open, or were closed just before the
    /// end.
    fn rest(&self, iteration: &mut Iteration) -> PyResult<Option<Tables>> {
        let problems = iteration.end()?;
        locked(&self.findings).add_problems(problems);
        let Some(last) = iteration.last.take() else { return Ok(None) };
        let mut tables = Tables::new(&self.left, None);
        std::mem::take(&mut iteration.tables).finish(&last, &mut tables).map_err(of_capture)?;
        let has_spans = tables.tables.iter().any(|table| table.name() == "spans" && table.rows() > 0);
        Ok(has_spans.then_some(tables))
    }
}

impl Iteration {
    /// Ends the thread. Returns the problems that it has found, or its error.
    fn end(&mut self) -> PyResult<Vec<String>> {
        // Without a receiver, the thread cannot wait for one.
        self.batches = None;
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(Vec::new()),
            Some(Ok(result)) => result.map_err(of_capture),
            Some(Err(_)) => Err(EventringError::new_err("the thread that reads the rings has panicked")),
        }
    }
}

impl Findings {
    fn add_problems(&mut self, problems: Vec<String>) {
        for problem in problems {
            if self.problems.len() < PROBLEMS_MAX && !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }
}

/// Locks a mutex that is never held for long.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns tables by their names.
fn by_name<'py>(py: Python<'py>, tables: Tables) -> PyResult<Bound<'py, PyDict>> {
    let by_name = PyDict::new(py);
    for table in tables.tables {
        let name = table.name().to_owned();
        by_name.set_item(name, Py::<Table>::new(py, table)?)?;
    }
    Ok(by_name)
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.following.wanted.end();
    }
}
