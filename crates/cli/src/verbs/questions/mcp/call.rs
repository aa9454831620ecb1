//! A run of this program as a child process, with limits on its output, time and memory.

use super::tools::Tool;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// The largest memory of a call, in bytes.
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
const MEMORY_BYTES_MAX: u64 = 4 << 30;
/// The part of the messages of a call that is told.
const MESSAGE_BYTES: u64 = 2048;

/// Runs tools.
pub(super) struct Caller {
    program: PathBuf,
    timeout: Duration,
    /// The calls that are under way, by the ids of their requests.
    running: Mutex<BTreeMap<String, Arc<Running>>>,
}

/// A call that is under way.
struct Running {
    child: Mutex<Child>,
    is_cancelled: AtomicBool,
}

impl Running {
    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Caller {
    pub(super) fn new(timeout: Duration) -> anyhow::Result<Self> {
        Ok(Self { program: std::env::current_exe()?, timeout, running: Mutex::default() })
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the call of the request with this id, if it is under way.
    pub(super) fn cancel(&self, id: &str) {
        if let Some(running) = self.running().get(id) {
            running.is_cancelled.store(true, Ordering::Relaxed);
            let _ = running.child().kill();
        }
    }

    /// Runs a tool for the request with this id. Returns its answer, or why there is none.
    pub(super) fn call(&self, id: &str, tool: &Tool, arguments: &Map<String, Value>) -> Result<String, String> {
        let bytes_max = Tool::answer_bytes(arguments)?;
        let line = tool.command_line(arguments, bytes_max)?;
        let mut command = Command::new(&self.program);
        command.args(line).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot run the verb: {error}"))?;
        limit_memory(&child);
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let running = Arc::new(Running { child: Mutex::new(child), is_cancelled: AtomicBool::new(false) });
        self.running().insert(id.to_owned(), running.clone());
        // One byte more tells that there was more.
        let (out, err) = (read(out, bytes_max + 1), read(err, MESSAGE_BYTES));
        let until = Instant::now() + self.timeout;
        let wait = |from: &mpsc::Receiver<Vec<u8>>| from.recv_timeout(until.saturating_duration_since(Instant::now()));
        let answer = wait(&out);
        let is_whole = answer.as_ref().is_ok_and(|answer| answer.len() as u64 <= bytes_max);
        if !is_whole {
            let _ = running.child().kill();
        }
        let messages = wait(&err).unwrap_or_default();
        // A child that has closed its output may still work.
        let ended = end(&running, until);
        self.running().remove(id);
        if running.is_cancelled.load(Ordering::Relaxed) {
            return Err("the client does not want the answer any more".to_owned());
        }
        let Ok(answer) = answer else {
            return Err(format!("no answer within {} s; ask about a smaller part", self.timeout.as_secs()));
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match is_whole {
            true if ended && !answer.is_empty() => Ok(text(&answer)),
            true => Err(format!("no answer: {}", text(&messages).trim())),
            false => Err(format!("the answer has more than {bytes_max} bytes; allow more with max_bytes")),
        }
    }
}

/// Waits for a child until then, and kills it after that. Returns true if it has ended before.
fn end(running: &Running, until: Instant) -> bool {
    while Instant::now() < until {
        if let Ok(Some(_)) = running.child().try_wait() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut child = running.child();
    let _ = (child.kill(), child.wait());
    false
}

/// Reads at most so many bytes on a thread.
fn read(from: Option<impl Read + Send + 'static>, bytes_max: u64) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(from) = from {
            let _ = from.take(bytes_max).read_to_end(&mut bytes);
        }
        sender.send(bytes)
    });
    receiver
}

/// Limits the memory of a child, where the system can.
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
fn limit_memory(child: &Child) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let limit = Rlimit { current: Some(MEMORY_BYTES_MAX), maximum: Some(MEMORY_BYTES_MAX) };
    // If the child has ended already, there is nothing to limit.
    let _ = prlimit(Some(Pid::from_child(child)), Resource::Data, limit);
}

#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
fn limit_memory(_: &Child) {}
