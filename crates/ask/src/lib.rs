//! A first look at a recording: recorded events, losses and red flags, in an answer of bounded size.
//!
//! [`ask`] reads a capture and returns a [`FirstLook`]. [`FirstLook::to_json`] and [`FirstLook::to_markdown`] write its
//! most important parts first, and only as much as fits into a given number of bytes. [`ask`] keeps the duration of each
//! closed span, most in four bytes; otherwise its memory grows only with open spans and tasks that have not ended.
//!
//! ```no_run
//! use eventring_capture::CaptureFile;
//!
//! let look = eventring_ask::ask(&CaptureFile::open("shop.evc".as_ref())?, &["shop.evc"])?;
//! print!("{}", look.to_markdown(16_384, |epoch_nanos| format!("{epoch_nanos} ns")));
//! # Ok::<(), eventring_capture::CaptureError>(())
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `collect` | one pass over the events: counts, names of spans, errors, pauses |
//! | `names` | the spans of one name |
//! | `task_kinds` | the kind of a task |
//! | `step` | the test whether durations have become longer, and when |
//! | `errors`, `pauses` | bursts of errors, times without events |
//! | `flag` | the kinds of red flags, with their thresholds |
//! | `find/` | the search for red flags: in the counts, in tasks, and in blocks |
//! | `next_command` | the next command for a flag |
//! | `look` | the answer, with its parts in order of importance |
//! | `fit` | limiting the answer to a number of bytes |

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]

mod collect;
mod errors;
mod find;
mod fit;
mod flag;
mod look;
mod names;
mod next_command;
mod pauses;
mod step;
mod task_kinds;
#[cfg(test)]
mod tests;

pub use flag::{Flag, FlagKind};
pub use look::{BUDGET_MIN_BYTES, FirstLook, LookAnswer};
pub use next_command::command_line;

use collect::Collected;
use eventring_capture::recording::{CaptureRecording, replay_capture};
use eventring_capture::{CaptureError, CaptureFile};
use std::ffi::OsStr;

/// Takes a first look at a capture. `inputs` are the names of its files or rings, for the command lines of the answer.
///
/// The capture is read once; if it has tasks, slow spans or blocks, it is read again for each of these.
///
/// # Errors
/// The capture is damaged, or would take more memory than any capture of its size from a real program.
pub fn ask(capture: &CaptureFile, inputs: &[impl AsRef<OsStr>]) -> Result<FirstLook, CaptureError> {
    let recording = CaptureRecording::new(capture)?;
    let mut collected = Collected::new(capture);
    let counts = replay_capture(&recording, &mut collected)?;
    collected.names.end();
    let flags = find::flags(capture, &collected, &counts)?;
    let inputs = inputs.iter().map(|input| input.as_ref().to_owned()).collect();
    Ok(FirstLook::new(capture, inputs, collected, counts, flags))
}
