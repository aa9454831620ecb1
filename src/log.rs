//! The macros `error!`, `warn!`, `info!`, `debug!` and `trace!` record log records to the rings of spans. A log record
//! costs as little as a typed event.
//!
//! The syntax is that of `tracing`'s macros with the same names: `target:`, fields, and a text as for `format!`.
//!
//! ```
//! # eventring::tracing::PERF.install(eventring::tracing::PerfRecorder::builder().anonymous().build()?)?;
//! use eventring::log;
//!
//! let (orders, share, path) = (17_u32, 0.25, std::path::Path::new("/orders"));
//! log::info!("started");
//! log::warn!(target: "shop::queue", orders, ?path, "{orders} orders wait, {:.1} % of the room", 100.0 * share);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The format string is stored once, with the call site. An event has only the arguments. Readers format the message
//! exactly as `format!` does. The macros do not allocate.
//!
//! - Numbers, booleans, characters, texts, and options and slices of these ([`LogValue`](crate::tracing::LogValue)) are
//!   recorded unformatted.
//! - Any other argument is recorded as the text from its `Display` or `Debug`.
//!
//! The compiler must be able to infer the type of each argument before the call. If only a later line fixes the type,
//! name it earlier: `let mut names: Vec<Name> = Vec::new();`.
//!
//! A record goes to the ring that its thread has in [`PERF`](crate::tracing::PERF), and belongs to the thread's span or
//! scope. The subscriber or layer that records to `PERF` filters the records. A call that is filtered out costs a load
//! and a branch, and does not evaluate its arguments.
//!
//! Other subscribers and layers see these records only if the program has the feature `log-to-tracing`: then the macros
//! of this module are those of `tracing`.

#[cfg(feature = "log-to-tracing")]
#[doc(no_inline)]
pub use tracing::{debug, error, info, trace, warn};

#[cfg(not(feature = "log-to-tracing"))]
#[doc(inline)]
pub use crate::{
    __log_debug as debug, __log_error as error, __log_info as info, __log_trace as trace, __log_warn as warn,
};

#[cfg(all(test, feature = "log-to-tracing"))]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// `.ci/run embedding` runs this test: the tests of the workspace are built without the feature.
    #[test]
    fn other_subscribers_see_the_records_with_the_feature_log_to_tracing() {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).without_time().with_writer(move || writer.clone());
        tracing::subscriber::with_default(subscriber.finish(), || {
            let orders = 17;
            crate::log::warn!(target: "shop", orders, "{orders} wait, {:.1} %", 2.5);
        });
        let written = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert_eq!(written, " WARN shop: 17 wait, 2.5 % orders=17\n");
    }
}
