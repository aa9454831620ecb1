//! Log records of this crate's own macros (`eventring::log`). The call site's description holds the format string. Each
//! event holds the arguments, encoded by their types. Readers format them.

mod macros;

use crate::recorder::Recorder;
use crate::schema::perf::PerfExt;
use crate::tracing::record::encoding::{SmallEncoder, encode_large, visit_fields};
use crate::tracing::record::events::present::may_mean;
use crate::tracing::record::events::record::record_event;
use crate::tracing::record::fields::encoded::EncodedFields;
use crate::tracing::record::fields::redact::Redactable;
use crate::tracing::record::fields::values::{FieldValues, visit_values};
use crate::tracing::record::macro_sites::site::MacroSite;
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::sites::call_sites::NO_CALL_SITE;
use crate::tracing::record::threads::stack::SCOPES;
use crate::tracing::record::threads::thread::{self, ThreadState};

use std::sync::Arc;
use tracing_core::field::Visit;

/// Takes a text so that the compiler checks it. Not called. (An assignment would keep temporaries alive for too long.)
pub fn checked(_: std::fmt::Arguments<'_>) {}

/// Records a log record. The call site is not off.
#[inline]
pub fn log(site: &'static MacroSite, values: &impl FieldValues) {
    thread::with(|thread| {
        if try_log(site, thread, values).is_none() {
            log_slow(site, thread, values);
        }
    });
}

/// The fast path. Returns `None` if the common path cannot record this; nothing is recorded then, but values may have
/// been formatted.
#[inline(always)]
fn try_log(site: &'static MacroSite, thread: &ThreadState, values: &impl FieldValues) -> Option<()> {
    let call_site_id = site.try_id().filter(|_| !may_mean(site.metadata()))?;
    let core: &'static Arc<PerfCore> = &PERF.installed()?.core;
    let ring = thread.try_ring(core).filter(|_| core.stores_arguments)?;
    let span_id = thread.span_stack.try_current(SCOPES)?;
    let epoch_nanos = thread.try_now(ring)?;
    let ext = PerfExt::of_span(span_id, call_site_id);
    let mut encoder = SmallEncoder::new(thread, &core.limits);
    let panicked = move |fields: EncodedFields<'_>| record(site, (core, ring), thread, ext, fields);
    visit_fields(&mut encoder, |encoder| values.encode_all(0, encoder), panicked);
    if encoder.is_too_small() {
        log_as_text(site, thread, values);
        return Some(());
    }
    record_event(ring, thread, ext, encoder.encoded(Some(epoch_nanos)));
    Some(())
}

/// Records a log record whose fields are encoded, and changes the tables of the present if it means something.
fn record(
    site: &'static MacroSite,
    (core, ring): (&PerfCore, &Recorder),
    thread: &ThreadState,
    ext: PerfExt,
    fields: EncodedFields<'_>,
) {
    let recorded = record_event(ring, thread, ext, fields);
    core.show_log((ring, thread), site.metadata(), ext, recorded, fields.payload);
}

/// Handles every case but a long text.
#[cold]
#[inline(never)]
fn log_slow(site: &'static MacroSite, thread: &ThreadState, values: &impl FieldValues) {
    let _paused = thread.pause_count();
    let Some(LogPlace { core, ring, ext }) = LogPlace::from_site(site, thread) else { return };
    if !core.stores_arguments {
        return log_as_text(site, thread, values);
    }
    let epoch_nanos = core.measured_now(thread, ring);
    let record = |fields: EncodedFields<'_>| record(site, (core, ring), thread, ext, fields);
    let mut encoder = SmallEncoder::new(thread, &core.limits);
    visit_fields(&mut encoder, |encoder| values.encode_all(0, encoder), record);
    if encoder.is_too_small() {
        return log_as_text(site, thread, values);
    }
    record(encoder.encoded(epoch_nanos));
}

/// Records the text as the program formats it, because it is long or the recorder stores no arguments.
#[cold]
#[inline(never)]
fn log_as_text(site: &'static MacroSite, thread: &ThreadState, values: &impl FieldValues) {
    let _paused = thread.pause_count();
    let Some(LogPlace { core, ring, ext }) = LogPlace::from_site(site, thread) else { return };
    let record = |fields: EncodedFields<'_>| record(site, (core, ring), thread, ext, fields);
    if core.stores_arguments {
        // The small buffer was too small already: each further visit would format the values once more.
        let visit = |encoder: &mut dyn Redactable| visit_values(values, site.metadata(), encoder);
        return encode_large(thread, (&core.limits, NO_CALL_SITE), core.measured_now(thread, ring), visit, record);
    }
    let visit = |visitor: &mut dyn Visit| visit_values(values, site.metadata(), visitor);
    core.encode_fields(thread, ring, NO_CALL_SITE, visit, record);
}

/// Where a log record goes.
struct LogPlace {
    core: &'static Arc<PerfCore>,
    ring: &'static Recorder,
    ext: PerfExt,
}

impl LogPlace {
    /// Returns the place, or `None` if nothing is to be recorded. This may record that the thread has started, so it
    /// comes before the fields, which take the time of the log record.
    fn from_site(site: &'static MacroSite, thread: &ThreadState) -> Option<Self> {
        let (core, call_site_id) = site.wanted_id_slow()?;
        let ring = thread.ring_of(core)?;
        let span_id = thread.span_stack.current_of(SCOPES);
        let ext = PerfExt { related: thread.instructions(), ..PerfExt::of_span(span_id, call_site_id) };
        Some(Self { core, ring, ext })
    }
}
