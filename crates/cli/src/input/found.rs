//! The part of a capture that fulfils a condition: its spans with everything in them, its log records, marks and typed
//! events.

use crate::exit::{Exit, Failure};
use crate::input::fields::{KnownFields, check_fields};
use crate::text::table::shortened_name;
use eventring::schema::ext_words;
use eventring_capture::recording::CaptureRecording;
use eventring_capture::{CaptureFile, CapturedRing, FoundParts};
use eventring_live::{Condition, Live, LiveOptions, Observation, Occurrence};

/// Selects, of what is selected now, what fulfils the condition.
///
/// # Errors
/// The condition names a field that no event has, or the capture is damaged.
pub(crate) fn select(capture: &mut CaptureFile, condition: &Condition) -> anyhow::Result<()> {
    check_fields(condition, &known_fields(capture))
        .map_err(|why| Failure::new(Exit::Usage, format!("--where: {why}")))?;
    let mut found = FoundParts::default();
    let processes = CaptureRecording::new(capture)?.processes().to_vec();
    let options = LiveOptions::new().windows([]).without_self_times();
    let live = Live::of_capture_seen(capture, None, &options, |observation, state| {
        if !condition.holds(&Occurrence::of(observation, state)) {
            return;
        }
        let (place, nanos) = match observation {
            Observation::SpanClosed(span) => {
                let (since, until) = (span.span().start_epoch_nanos(), span.epoch_nanos());
                let process = processes[span.program_index()];
                return found.add_span(process, span.span().id.get(), since, until);
            }
            Observation::LogRecord(record) => (record.place(), record.epoch_nanos()),
            Observation::Marker(mark) => (mark.place(), mark.epoch_nanos()),
            Observation::TypedEvent(event) => (event.place(), event.epoch_nanos()),
            _ => return,
        };
        found.add_event(place.0, place.1, nanos);
    })?;
    for span in live.state().open_spans().to_vec() {
        if condition.holds(&Occurrence::of_open(&span, live.state())) {
            found.add_span(processes[span.program_index()], span.id().get(), span.span().start_epoch_nanos(), u64::MAX);
        }
    }
    drop(live);
    if found.is_empty() {
        let condition = shortened_name(&condition.to_string());
        return Err(Failure::new(Exit::Usage, format!("--where {condition}: nothing of the capture is so")).into());
    }
    Ok(capture.select_found(found)?)
}

/// Returns the fields that the events of each ring have.
pub(crate) fn known_fields(capture: &CaptureFile) -> Vec<KnownFields> {
    capture.rings().iter().zip(0..).map(|(ring, index)| fields(capture, ring, index)).collect()
}

fn fields(capture: &CaptureFile, ring: &CapturedRing, index: u32) -> KnownFields {
    if ring.is_perf() {
        // The call sites are those of shard 0.
        return KnownFields::of_perf(&capture.catalog(index), false);
    }
    let model = ring.schema().ok();
    KnownFields::of_typed(model.as_deref(), &ext_words(ring.content_type, model.as_deref()))
}
