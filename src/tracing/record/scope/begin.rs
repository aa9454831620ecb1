//! The begin of a scope.

use crate::recorder::Recorder;
use crate::schema::perf::{PerfEvent, PerfExt, flags};
use crate::span_slab::SPAN_SLAB;
use crate::tracing::filter::filter_handle::may_judge;
use crate::tracing::filter::live_filters::each_judging_filter;
use crate::tracing::record::encoding::{SmallEncoder, visit_fields};
use crate::tracing::record::fields::encoded::EncodedFields;
use crate::tracing::record::fields::values::{FieldValues, visit_values};
use crate::tracing::record::macro_sites::site::MacroSite;
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::sites::call_sites::NO_CALL_SITE;
use crate::tracing::record::spans::open_spans;
use crate::tracing::record::spans::scope_end::end;
use crate::tracing::record::threads::end_of_thread;
use crate::tracing::record::threads::stack::SCOPES;
use crate::tracing::record::threads::thread::ThreadState;
use std::sync::Arc;
use tracing_core::field::Visit;

/// Flags of the begin of a scope.
const BEGIN: u16 = flags::SCOPE | flags::ENTERED;

/// Begins a scope without fields. Returns its id. Returns `None` and changes nothing if the common path cannot.
#[inline(always)]
pub(super) fn try_begin(site: &'static MacroSite, thread: &ThreadState) -> Option<u64> {
    let call_site_id = site.try_id()?;
    let core = &PERF.installed()?.core;
    let ring = thread.try_ring(core)?;
    let (parent, span_id) = try_create(thread, call_site_id)?;
    let ext = PerfExt { related: parent, flags: BEGIN, ..PerfExt::of_span(span_id, call_site_id) };
    core.record_empty(ring, thread, PerfEvent::SpanNew, ext);
    thread.enter_new_scope(span_id, call_site_id);
    Some(span_id)
}

/// Makes a span. Returns its parent and its id. The thread enters it when its begin is recorded: what a signal handler
/// records before is in the parent, and no event is in a span that begins after it.
#[inline(always)]
fn try_create(thread: &ThreadState, call_site_id: u32) -> Option<(u64, u64)> {
    let parent = thread.span_stack.try_current(SCOPES)?;
    if !thread.span_stack.has_inline_room() {
        return None;
    }
    let span_id = SPAN_SLAB.try_create::<false>(&thread.free_list, call_site_id)?;
    SPAN_SLAB.set_parent(span_id, parent);
    Some((parent, span_id))
}

/// Begins a scope with fields. Returns its id, or 0 if it is not recorded.
#[inline(always)]
pub(super) fn begin_with_fields(site: &'static MacroSite, thread: &ThreadState, values: &impl FieldValues) -> u64 {
    let Some((core, ring, call_site_id)) = try_prepare(site, thread) else { return begin_slow(site, thread, values) };
    if !thread.allocations.is_none() {
        return begin_slow(site, thread, values);
    }
    let Some(epoch_nanos) = thread.try_now(ring) else { return begin_slow(site, thread, values) };
    let mut encoder = SmallEncoder::new(thread, &core.limits);
    let panicked = |fields: EncodedFields<'_>| begin_and_end(site, core, thread, fields);
    visit_fields(&mut encoder, |encoder| values.encode_all(0, encoder), panicked);
    if encoder.is_too_small() {
        return begin_slow(site, thread, values);
    }
    let fields = encoder.encoded(Some(epoch_nanos));
    let Some((parent, span_id)) = try_create(thread, call_site_id) else {
        return begin_encoded(site, core, thread, fields);
    };
    let ext = PerfExt { related: parent, flags: BEGIN, ..PerfExt::of_span(span_id, call_site_id) };
    core.record_with_fields(ring, thread, PerfEvent::SpanNew, ext, fields);
    thread.enter_new_scope(span_id, call_site_id);
    span_id
}

#[inline(always)]
fn try_prepare(
    site: &'static MacroSite,
    thread: &ThreadState,
) -> Option<(&'static Arc<PerfCore>, &'static Recorder, u32)> {
    let call_site_id = site.try_id()?;
    let core = &PERF.installed()?.core;
    let ring = thread.try_ring(core)?;
    // Only the slow path can leave values out, or judge the scope by them.
    (core.redacted.is_empty() && !may_judge()).then_some((core, ring, call_site_id))
}

/// Begins a scope. Handles every case. Returns the id of the scope, or 0 if it is not recorded.
#[cold]
#[inline(never)]
pub(super) fn begin_slow(site: &'static MacroSite, thread: &ThreadState, values: &impl FieldValues) -> u64 {
    let _paused = thread.pause_count();
    let Some((core, _)) = site.wanted_id_slow() else { return 0 };
    let metadata = site.metadata();
    if metadata.fields().is_empty() {
        return begin_encoded(site, core, thread, EncodedFields::NONE);
    }
    // This may record that the thread has started, so it comes before the fields, which take the time of this event.
    let Some(ring) = thread.ring_of(core) else { return 0 };
    core.measure(thread, ring);
    let visit = |visitor: &mut dyn Visit| visit_values(values, metadata, visitor);
    core.encode_fields(thread, ring, NO_CALL_SITE, visit, |fields| match fields.has_panicked {
        // The panic goes on, so there will be no guard.
        true => {
            begin_and_end(site, core, thread, fields);
            0
        }
        false => begin_encoded(site, core, thread, fields),
    })
}

/// Records a scope whose fields have panicked: it ends at once.
#[cold]
#[inline(never)]
fn begin_and_end(site: &'static MacroSite, core: &Arc<PerfCore>, thread: &ThreadState, fields: EncodedFields<'_>) {
    let span_id = begin_encoded(site, core, thread, fields);
    if span_id != 0 {
        end(span_id);
    }
}

/// Begins a scope whose fields are encoded.
#[inline(never)]
fn begin_encoded(
    site: &'static MacroSite,
    core: &Arc<PerfCore>,
    thread: &ThreadState,
    fields: EncodedFields<'_>,
) -> u64 {
    let Some((_, call_site_id)) = site.wanted_id_slow() else { return 0 };
    let Some(ring) = thread.ring_of(core) else { return 0 };
    let parent = thread.span_stack.current_of(SCOPES);
    end_of_thread::register();
    let Some(span_id) = SPAN_SLAB.create::<false>(&thread.free_list, call_site_id) else {
        core.count_lost_span();
        return 0;
    };
    SPAN_SLAB.set_parent(span_id, parent);
    // An event has one word for the parent and the instructions. So where these are counted, the enter is an event.
    let instructions = thread.instructions();
    let flags = if instructions == 0 { BEGIN } else { flags::SCOPE };
    let ext = PerfExt { related: parent, flags, ..PerfExt::of_span(span_id, call_site_id) };
    core.record_with_fields(ring, thread, PerfEvent::SpanNew, ext, fields);
    thread.enter_new_scope_slow(span_id, call_site_id);
    each_judging_filter(|filter| open_spans::judge(filter, span_id, call_site_id, fields.payload));
    if instructions > 0 {
        let ext = PerfExt { related: instructions, ..PerfExt::of_span(span_id, call_site_id) };
        core.record(thread, PerfEvent::SpanEnter, ext, &[]);
    }
    span_id
}
