//! The part of a capture that fulfils a condition: its spans with everything in them, its log records, marks and typed
//! events.

use crate::exit::Exit;
use crate::input::fields::{KnownFields, check_fields};
use crate::input::unseen::SeenNames;
use crate::text::format::counted;
use crate::text::table::shortened_name;
use eventring::files::CONTENT_TYPE_EXEC;
use eventring::schema::ext_words;
use eventring::tracing::Span;
use eventring_capture::recording::CaptureRecording;
use eventring_capture::{CaptureFile, CapturedRing, FoundParts};
use eventring_live::{Condition, Live, LiveOptions, Observation, Occurrence, Truth};

/// Finds, in what is selected now, what fulfils the condition. Says which of its names nothing had.
///
/// # Errors
/// The condition names a field that no event has, or the capture is damaged.
pub(crate) fn find(capture: &CaptureFile, condition: &Condition) -> anyhow::Result<FoundParts> {
    check_fields(condition, &known_fields(capture)).map_err(|why| Exit::Usage.failure(format!("--where: {why}")))?;
    let mut found = FoundParts::default();
    let processes = CaptureRecording::new(capture)?.processes().to_vec();
    let exec_rings = capture.rings().iter().map(|ring| ring.content_type == CONTENT_TYPE_EXEC);
    let mut blocks: Vec<_> =
        (0..).zip(exec_rings).map(|(ring, is_exec)| is_exec.then(|| capture.known_blocks(ring))).collect();
    let options = LiveOptions::new().windows([]).without_self_times();
    let live = Live::of_capture_seen(capture, None, &options, |observation, state| {
        // Each BLOCK_START comes here, so that the block of a found event is known even if its beginning is not found.
        let block = match observation {
            Observation::TypedEvent(event) => blocks[event.place().0 as usize]
                .as_mut()
                .and_then(|blocks| blocks.block_of(event.descriptor(), || event.payload())),
            _ => None,
        };
        match condition.truth(&Occurrence::of(observation, state)) {
            Truth::No => return,
            Truth::Unknown => return add_untested(&mut found, capture, &processes, observation),
            Truth::Yes => {}
        }
        let (place, nanos) = match observation {
            Observation::SpanClosed(span) => {
                let process = processes[span.program_index()];
                return found.add_span(process, span.span().id.get(), since(span.span()), span.epoch_nanos());
            }
            Observation::LogRecord(record) => (record.place(), record.epoch_nanos()),
            Observation::Marker(mark) => (mark.place(), mark.epoch_nanos()),
            Observation::TypedEvent(event) => (event.place(), event.epoch_nanos()),
            _ => return,
        };
        found.add_event(place.0, place.1, nanos);
        block.into_iter().for_each(|block| found.add_block(place.0, block));
    })?;
    for span in live.state().open_spans().list().iter() {
        let since = span.span().map_or(0, since);
        let (process, id) = (processes[span.program_index()], span.id().get());
        match condition.truth(&Occurrence::of_open(&span, live.state())) {
            Truth::No => {}
            Truth::Unknown => found.add_untested_span(process, id, since, u64::MAX),
            Truth::Yes => found.add_span(process, id, since, u64::MAX),
        }
    }
    drop(live);
    SeenNames::of_capture(capture).report_condition("--where", condition);
    if found.is_empty() {
        let condition = shortened_name(&condition.to_string());
        let untested = match found.untested() as u64 {
            0 => String::new(),
            count => format!(
                "; {} not be tested, because the payload is lost",
                counted(count, "span or event could", "spans and events could")
            ),
        };
        return Exit::Usage.fail(format!("--where {condition}: nothing of the capture is so{untested}"));
    }
    Ok(found)
}

/// Adds what could not be tested: an event that has lost its own payload, or the span of which fields were lost.
fn add_untested(found: &mut FoundParts, capture: &CaptureFile, processes: &[u32], observation: &Observation<'_>) {
    match observation {
        Observation::SpanClosed(span) => {
            let process = processes[span.program_index()];
            found.add_untested_span(process, span.span().id.get(), since(span.span()), span.epoch_nanos());
        }
        Observation::TypedEvent(event) => {
            let (ring, seqno) = event.place();
            found.add_untested_event(ring, seqno, event.epoch_nanos());
        }
        Observation::LogRecord(record) => {
            let (ring, seqno) = record.place();
            match record.span().filter(|_| !record.has_lost_fields()) {
                None => found.add_untested_event(ring, seqno, record.epoch_nanos()),
                Some(span) => {
                    let process = capture.rings()[ring as usize].process;
                    found.add_untested_span(process, span.id.get(), since(span), record.epoch_nanos());
                }
            }
        }
        _ => {}
    }
}

/// Returns the first time at which something may have happened in a span. A span whose creation was lost may be older
/// than all events.
fn since(span: &Span) -> u64 {
    span.created.as_ref().map_or(0, |created| created.epoch_nanos)
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
