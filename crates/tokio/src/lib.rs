//! Records what every tokio task does and waits for, as spans and events of `tracing`. Eventring's subscriber or layer
//! writes these records to a ring, where `eventring tasks` finds them, live and after the program was killed.
//!
//! A task is a root span: target `eventring::task`, name `task`. Each poll is an enter and an exit of the span, so the
//! spans of a poll are descendants of the task's span.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let sum = eventring_tokio::spawn_named("adder", async { 1 + 1 }).await?;
//! assert_eq!(sum, 2);
//! # Ok::<(), tokio::task::JoinError>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! If the subscriber disables the target `eventring::task`, a task costs one branch for each poll, and nothing else.
//!
//! | what is recorded | how |
//! |---|---|
//! | a task | span `task` with `name`, `spawned_at`, `kind`, and at its end `outcome`: `done`, `cancelled` or `panicked` |
//! | the spawner of a task | the task's span follows from the current span of the spawner |
//! | a wake of a task | event `woken` of the task's span; the waker is the innermost span of the recording thread |
//! | a task that nobody can wake | event `unwakeable`: the task waits, and all clones of its waker are dropped |
//! | the locks of a task | events `lock_wait`, `lock_held`, `lock_free` of [`sync`] |
//! | workers | events `parked` and `unparked` of the target `eventring::worker`, see [`instrument`] |
//!
//! A layer that sends its records to a task spawned with this crate must filter out the target `eventring::task`.
//! Otherwise each wake of the task makes another event, which wakes the task again.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]

mod blocking;
#[cfg(tokio_unstable)]
mod hooks;
mod primitives;
mod record;
mod spawn;
pub mod sync;
mod task;
mod waker;
#[cfg(test)]
mod waker_model;
mod worker;

pub use blocking::{spawn_blocking, spawn_blocking_named};
pub use record::TARGET;
pub use spawn::{JoinSetExt, SpawnExt, spawn, spawn_local, spawn_local_named, spawn_named};
pub use task::Task;
pub use worker::instrument;
