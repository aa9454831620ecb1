//! The state of a program's tasks: polls, wakes, places of awaits, and tasks that wait for each other. A task is a span
//! recorded by the crate `eventring-tokio`.
//!
//! The memory grows only with the number of tasks that have not ended, and with [`Question::finished_max`]. All counts
//! are exact.
//!
//! ```no_run
//! use eventring_capture::CaptureFile;
//! use eventring_tasks::{Question, tasks};
//!
//! let answer = tasks(&CaptureFile::open("shop.evc".as_ref())?, &Question::default())?;
//! for cycle in &answer.deadlocks {
//!     println!("these tasks wait for each other: {cycle:?}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `phase` | the phase of a task, and when it began |
//! | `losses` | the time after which no event can be lost |
//! | `open` | the tasks that have not ended, and the effect of each record on them |
//! | `seen` | the names and fields of records of tasks |
//! | `task` | the counts and times of one task |
//! | `collect` | the effect of each event on the tasks' counts and locks |
//! | `latency` | times from wake to poll, counted in bounded memory |
//! | `locks` | which tasks wait for and hold which locks, and cycles of tasks |
//! | `thread_locks` | the same of threads |
//! | `place` | the place where a task waits: its innermost open span |
//! | `present` | the tasks that tables of the present show at the end |
//! | `finished` | the tasks that have ended: some are kept, and all are counted |
//! | `question` | the question, which selects tasks |
//! | `answer` | the answer, and its JSON |

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]

mod answer;
mod collect;
mod finished;
mod latency;
mod locks;
mod losses;
mod open;
mod phase;
mod place;
mod present;
mod question;
mod seen;
mod task;
mod thread_locks;

pub use answer::{Answer, Counts, LockWait, TaskView, WokenBy};
#[doc(hidden)]
pub use open::PerTask;
pub use open::{OpenTask, OpenTasks, TaskChange, TaskEvent};
pub use phase::{Phase, TaskState};
pub use question::{Order, Question};
pub use seen::{TARGET, is_task};
pub use thread_locks::{ThreadWaits, thread_waits};

use eventring_capture::recording::{CaptureRecording, replay_capture};
use eventring_capture::{CaptureError, CaptureFile};

/// Reads what the tasks of a capture did and wait for at its end.
///
/// ```
/// use eventring::tracing::{PerfRecorder, RecorderSubscriber};
/// use eventring_tasks::{Question, TaskState, tasks};
///
/// let recorder = PerfRecorder::builder().anonymous().build()?;
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), || {
///     runtime.block_on(async {
///         eventring_tokio::spawn_named("short", tokio::task::yield_now()).await?;
///         let _idle = eventring_tokio::spawn_named("idle", std::future::pending::<()>());
///         tokio::task::yield_now().await;
///         Ok::<(), tokio::task::JoinError>(())
///     })
/// })?;
/// let (capture, _) = eventring_capture::capture_now(recorder.open_readers()?, || true)?;
/// let answer = tasks(&capture, &Question::default())?;
/// assert_eq!((answer.counts.tasks, answer.counts.polls, answer.counts.wakes), (2, 3, 1));
/// let idle = answer.tasks.iter().find(|task| task.name == "idle").unwrap();
/// assert_eq!((idle.state, &answer.deadlocks), (TaskState::Idle, &vec![vec![idle.id]]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The capture is damaged.
pub fn tasks(capture: &CaptureFile, question: &Question) -> Result<Answer, CaptureError> {
    let recording = CaptureRecording::new(capture)?;
    let mut collector = collect::Collector::new(question, collect::present_tasks(&recording)?);
    let counts = replay_capture(&recording, &mut collector)?;
    Ok(Answer { lost: counts.lost, problems: counts.problems, ..collector.finish() })
}
