//! The workers of a runtime.

use tokio::runtime::Builder;

/// Makes the runtime record its workers: an event `parked` when a worker has nothing to do, `unparked` when it goes on,
/// with the target `eventring::worker`. They replace the builder's `on_thread_park` and `on_thread_unpark`.
///
/// In a build with `--cfg tokio_unstable`, the runtime also records all its tasks, also those that other crates spawn
/// with [`tokio::spawn`]: their names are the places where they were spawned, their kind is `hooked`, and neither
/// their wakes are known, nor how they end. Tasks of this crate are recorded once.
///
/// ```
/// let mut builder = tokio::runtime::Builder::new_current_thread();
/// let runtime = eventring_tokio::instrument(&mut builder).build()?;
/// # drop(runtime);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn instrument(builder: &mut Builder) -> &mut Builder {
    #[cfg(tokio_unstable)]
    crate::hooks::install(builder);
    builder
        .on_thread_park(|| tracing::info!(target: "eventring::worker", "parked"))
        .on_thread_unpark(|| tracing::info!(target: "eventring::worker", "unparked"))
}
