//! An embedded event recorder: it records typed events and `tracing` spans into shared-memory rings. Other processes
//! read the rings live, or after a crash of the program.
//!
//! It records spans and log records of `tracing`. The module [`tracing`](mod@tracing) has layers, filters and settings:
//!
//! ```no_run
//! # #[cfg(feature = "tracing")] {
//! eventring::tracing::init("shop");
//! let _request = tracing::info_span!("request", path = "/orders").entered();
//! tracing::info!(orders = 17, "served");
//! # }
//! ```
//!
//! For hot loops there are scopes ([`scope!`], [`scoped`](macro@scoped)), and the texts of [`log`], which readers
//! format:
//!
//! ```no_run
//! # #[cfg(all(feature = "macros", feature = "tracing"))] {
//! #[eventring::scoped(skip(body))]
//! fn parse(path: &str, body: &[u8]) -> usize {
//!     let _line = eventring::scope!("line", bytes = body.len());
//!     eventring::log::info!("{path} has {} bytes", body.len());
//! #   body.len()
//! }
//! # }
//! ```
//!
//! [`record!`] and [`recordv!`] record events of the program's own types to a
//! [`GlobalRecorder`](global::GlobalRecorder) or a [`Recorder`](recorder::Recorder):
//!
//! ```
//! # #[cfg(feature = "macros")] {
//! # use eventring::recorder::{ContentDescription, Recorder};
//! # use eventring::{EventPayload, EventType, record};
//! #[derive(EventPayload)]
//! struct OrderPlaced { order_id: u64, price_cents: u64 }
//! # #[derive(EventType, Clone, Copy)]
//! # #[event(content_type = 300, name = "SHOP")]
//! # #[repr(u16)]
//! # enum Shop {
//! #     #[event(payload = OrderPlaced)]
//! #     OrderPlaced = 2,
//! # }
//! # // In memory without a name, for this example; a program gives a name: `.config("shop:64MiB")`.
//! # let recorder = Recorder::builder(ContentDescription::from_event_type::<Shop>()).anonymous().build()?;
//! record!(recorder => Shop::OrderPlaced, &OrderPlaced { order_id: 7, price_cents: 1250 });
//! # assert_eq!(recorder.stats().last_seqno, 1);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Another process reads a ring, live or later:
//!
//! - [`reader::Reader`] opens a ring by its name.
//! - A [`Cursor`](reader::Cursor) reads the ring's events one by one. A [`Follower`](reader::Follower) waits for new
//!   events.
//! - [`schema::SchemaModel`] decodes rings whose types the reading program does not have.
//! - The program `eventring` (crate `eventring-cli`) lists, shows, follows, saves and exports rings.
//!
//! Rings need Linux. On other systems the crate compiles, but records nothing: making or opening a ring returns an
//! error of the kind `Unsupported`.
//!
//! | feature | content | default |
//! |---|---|---|
//! | `macros` | the derives | yes |
//! | `tracing` | spans and log records of `tracing` | yes |
//! | `thread-time` | how long the threads of spans ran, could have run, and slept | yes |
//! | `allocations` | what each span allocates: `eventring::alloc` | no |
//! | `parking_lot` | the locks of [`sync`] over those of parking_lot | no |
//! | `log-to-tracing` | the macros of [`log`] are those of `tracing` | no |
//! | `context` | contexts of remote callers, stored with spans and written into headers: [`tracing::context`] | no |
//! | `otel-context` | the trace and span of each thread are published for profilers of OpenTelemetry | no |
//! | `exec` | the published EXEC schema: `eventring::exec`, `eventring::schema::exec` | no |
//! | `server` | a server in the program, through which other processes control what is recorded: [`control`] | no |
//! | `snapshot` | zstd snapshots of rings | no |
//! | `serde` | `serde::Serialize` for decoded values | no |
//!
//! The tools are crates: `eventring-capture` saves rings, `eventring-export` converts them, `eventring-live` follows
//! running programs.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(
    not(all(
        feature = "exec",
        feature = "server",
        feature = "snapshot",
        feature = "tracing",
        target_os = "linux",
        not(eventring_unsupported)
    )),
    allow(
        dead_code,
        unused_imports,
        reason = "a part of each layer is only reached with a feature, or if there are rings"
    )
)]

// The code that the derives generate names this crate `::eventring`. With this line, the name is also valid inside the
// crate itself.
extern crate self as eventring;

/// Implements `Debug` for an error type by its `Display`, which names all causes. Rust prints the `Debug` of an error
/// that `main` returns, so the user sees all causes then, too.
macro_rules! debug_as_displayed {
    ($error:ty) => {
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

#[cfg(feature = "allocations")]
#[allow(unsafe_code, reason = "one of the modules that ARCHITECTURE names for it")]
pub mod alloc;
#[allow(unsafe_code, reason = "one of the modules that ARCHITECTURE names for it")]
mod arch;
mod clock;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
pub mod control;
#[cfg(feature = "exec")]
pub mod exec;
pub mod files;
pub mod global;
#[doc(hidden)]
pub mod internal;
mod layout;
#[cfg(feature = "tracing")]
pub mod log;
mod macros;
#[cfg(test)]
#[path = "../crates/stress/src/missing.rs"]
mod missing;
pub mod now;
pub mod reader;
pub mod recorder;
mod ring;
pub mod schema;
#[allow(unsafe_code, reason = "one of the modules that ARCHITECTURE names for it")]
mod shm;
mod span_slab;
pub mod sync;
#[cfg(feature = "tracing")]
pub mod tracing;

/// The steps at which tests can stop writers.
#[cfg(eventring_mutants)]
pub use ring::step;

// The names `EventPayload`, `EventType` and `PayloadField` below are traits. With the feature `macros` they are
// derives, too.
/// Makes the body of a function a [scope](macro@crate::scope). Its name is that of the function, and its fields are the
/// arguments: as they are if [`RecordedValue`](crate::tracing::RecordedValue) has their type, and otherwise as their
/// `Debug` text.
///
/// ```
/// #[eventring::scoped(skip(body), fields(body.bytes = body.len()))]
/// fn parse(path: &str, body: &[u8]) -> usize {
///     body.iter().filter(|byte| **byte == b'\n').count()
/// }
/// parse("/", b"one\n");
/// ```
///
/// `skip(a, b)` and `skip_all` leave arguments out, and `fields(…)` adds fields, which are written as in `scope!`. A
/// field with the name of an argument takes its place. `name = "…"`, `target = …` and `level = …` (`Level::DEBUG` or
/// `"debug"`) are those of the scope. `self`, patterns, constants and arguments with attributes are no fields. An
/// argument whose type has no `Debug` must be skipped.
///
/// An `async` function is refused, because a scope belongs to one thread: give it a span, with
/// `#[tracing::instrument]`. Of a function that returns a future, the scope is only the making of the future.
#[cfg(all(feature = "macros", feature = "tracing"))]
pub use eventring_macros::scoped;
#[doc(hidden)]
pub use macros::support as __private;
#[doc(no_inline)]
pub use schema::{EventPayload, EventType, PayloadField};

/// The examples of the README.
#[cfg(all(doctest, feature = "macros", feature = "tracing"))]
#[doc = include_str!("../README.md")]
struct Readme;
