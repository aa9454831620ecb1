//! Records what every tokio task does and waits for, as spans and events of `tracing`. With eventring's subscriber or
//! layer they are in a ring, where `eventring tasks` finds them, live and after the program was killed.
//!
//! A task is a root span: target `eventring::task`, name `task`. Its polls are the enters and exits of the span, so all
//! spans of a poll are its children. Each wake is an event of it, and so is the loss of its last waker while it waits.
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
//! If the subscriber does not want the target `eventring::task`, a task costs one branch for each poll, and nothing
//! else.
//!
//! | what is recorded | how |
//! |---|---|
//! | a task | span `task` with `name`, `spawned_at`, `kind`, and at its end `outcome`: `done`, `cancelled` or `panicked` |
//! | who spawned it | the span follows from the current span of the spawner |
//! | a wake | event `woken` of the span; the innermost span of the thread that records it is who has woken the task |
//! | that nobody can wake it | event `unwakeable`: it waits, and all clones of its waker are gone |
//! | its locks | events `lock_wait`, `lock_held`, `lock_free` of [`sync`] |
//! | workers | events `parked` and `unparked` of the target `eventring::worker`, see [`instrument`] |
//!
//! A layer that sends what it records to a task of this crate must leave out the target `eventring::task`: each wake of
//! that task would be one more event for it.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]

mod blocking;
#[cfg(tokio_unstable)]
mod hooks;
mod record;
mod spawn;
pub mod sync;
mod task;
mod waker;
#[cfg(test)]
mod waker_model;
mod worker;

pub use blocking::{spawn_blocking, spawn_blocking_named};
pub use spawn::{JoinSetExt, SpawnExt, spawn, spawn_local, spawn_local_named, spawn_named};
pub use task::Task;
pub use worker::instrument;

/// The waker is made of these. Its model replaces them.
mod primitives {
    pub(crate) use std::sync::atomic::AtomicBool;
    pub(crate) use std::sync::{Mutex, MutexGuard};
}

/// The target of the spans of tasks, and of their events.
pub const TARGET: &str = "eventring::task";
