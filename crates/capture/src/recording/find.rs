//! Finds the spans and events of a capture that fulfil conditions. A first pass over the capture ends before any event
//! is returned, because a span's duration and fields are known only at its end.

use super::consumer::{OverSpan, ReplayConsumer, ReplayNeeds, SpanOver};
use super::entry::{EntryContent, RecordingEntry};
use super::of_capture::CaptureRecording;
use super::parts::ReplayState;
use super::replay::{RecordingReplay, ReplayBounds, SPANS_MAX, write_error};
use crate::condition::{Condition, EventSubject, SpanSubject, Truth};
use crate::error::CaptureError;
use crate::format::columns::PayloadsWanted;
use crate::format::ring::CapturedRing;
use crate::read::file::CaptureFile;
use crate::read::file_block::FileBlock;
use crate::select::matches::Matches;
use eventring::exec::KnownBlocks;
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{CallSite, SpanId, SpanStep, Thread};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

/// An estimate of the bytes that a span or event takes that was found.
const FOUND_BYTES: u64 = 64;

/// Finds what fulfils each of the conditions between these times, of what is selected now.
///
/// # Errors
/// The capture is damaged: it would take more memory than any of its size. Or all rings of spans have another schema.
pub(crate) fn find(
    capture: &CaptureFile,
    conditions: &[Condition],
    (from_nanos, to_nanos): (u64, u64),
) -> Result<Vec<Matches>, CaptureError> {
    let recording = CaptureRecording::new(capture)?;
    let exec_rings =
        capture.rings().iter().zip(0..).map(|(ring, index)| ring.is_exec().then(|| capture.known_blocks(index)));
    let mut finder = Finder {
        conditions,
        found: vec![Matches::default(); conditions.len()],
        processes: recording.processes().to_vec(),
        blocks: exec_rings.collect(),
        from_nanos,
        have_losses: HashSet::new(),
        entered_by: HashMap::new(),
    };
    let mut replay = RecordingReplay::for_consumer(&finder, ReplayBounds::Forget { spans_max: SPANS_MAX });
    let needs = NeededBlocks::new(capture, conditions);
    let has_fields =
        conditions.iter().any(|condition| !condition.field_paths().is_empty() || !condition.is_about_spans_alone());
    let wanted = if has_fields { PayloadsWanted::All } else { PayloadsWanted::OfTypes(&DESCRIPTIONS) };
    let mut entries = recording.entries_of_blocks(wanted, |block| needs.has(block));
    replay.begin(capture, &mut entries, (&mut finder, true))?;
    replay.drive(&mut entries, &mut finder)?;
    replay.end_looks(&mut finder);
    let end_nanos = capture.last_nanos().unwrap_or(0).min(to_nanos);
    replay.finish(&vec![end_nanos; finder.processes.len()], entries.tables(), &mut finder).map_err(write_error)?;
    if let Some(first) = finder.found.first_mut() {
        first.problems = entries.problems().to_vec();
    }
    Ok(finder.found)
}

/// The types of events that describe call sites and threads.
const DESCRIPTIONS: [u16; 2] = [PerfEvent::CallSite as u16, PerfEvent::ThreadStarted as u16];
/// The types of events that say something about the life of a span.
const SPAN_EVENTS: [PerfEvent; 5] =
    [PerfEvent::SpanNew, PerfEvent::SpanRecord, PerfEvent::SpanEnter, PerfEvent::SpanExit, PerfEvent::SpanClose];

/// The blocks in which something may fulfil a condition.
struct NeededBlocks {
    /// The call sites of spans that may fulfil one, by ring; `None` if other events may, too.
    call_sites: Option<Vec<HashSet<u32>>>,
    /// True if spans of any name may fulfil a condition.
    has_any_name: bool,
}

impl NeededBlocks {
    fn new(capture: &CaptureFile, conditions: &[Condition]) -> Self {
        if !conditions.iter().all(Condition::is_about_spans_alone) {
            return Self { call_sites: None, has_any_name: true };
        }
        let may_hold = |site: &CallSite| conditions.iter().any(|it| it.may_hold_for_span(&site.target, &site.name));
        let of_ring = |(ring, index): (&CapturedRing, u32)| {
            let catalog = capture.catalog(ring.shard0(index));
            catalog.call_sites().filter(|site| may_hold(site)).map(|site| site.id).collect()
        };
        let has_any_name = conditions.iter().any(|condition| condition.names().is_empty());
        Self { call_sites: Some(capture.rings().iter().zip(0..).map(of_ring).collect()), has_any_name }
    }

    fn has(&self, block: &FileBlock) -> bool {
        let (filter, Some(call_sites)) = (&block.block.header.filter, &self.call_sites) else { return true };
        let has_span = SPAN_EVENTS.iter().any(|event| filter.may_have_type(*event as u16));
        let is_named = |ids: &HashSet<u32>| ids.iter().any(|id| filter.may_have_call_site(*id));
        // A loss says that a span may have ended.
        filter.may_have_gaps()
            || has_span && (self.has_any_name || call_sites.get(block.ring as usize).is_some_and(is_named))
    }
}

struct Finder<'c> {
    conditions: &'c [Condition],
    found: Vec<Matches>,
    /// The numbers of the processes.
    processes: Vec<u32>,
    /// The blocks of each ring of execution events.
    blocks: Vec<Option<KnownBlocks>>,
    from_nanos: u64,
    /// The processes of which events were lost.
    have_losses: HashSet<usize>,
    /// The threads that are in the spans of each process at the end.
    entered_by: HashMap<(usize, SpanId), Vec<Arc<Thread>>>,
}

impl ReplayConsumer for Finder<'_> {
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds { remaining: true, presents: true, ..ReplayNeeds::default() }
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, _: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let Self { conditions, found, blocks, processes, .. } = self;
        let (Some(event), Some((descriptor, payload))) = (entry.seen(), entry.event()) else {
            if matches!(&entry.content, EntryContent::Gap(gap) if gap.is_loss()) {
                self.have_losses.insert(entry.process_index);
            }
            return Ok(());
        };
        let subject = EventSubject { event, replay: state.replays.get(entry.process_index), by_option: false };
        if !subject.is_content() {
            return Ok(());
        }
        // Each BLOCK_START comes here, so that the block of a found event is known even if its beginning is not found.
        let blocks = blocks.get_mut(entry.ring as usize).and_then(Option::as_mut);
        let mut block = blocks.and_then(|blocks| blocks.block_of(descriptor, || payload));
        let (ring, seqno, nanos) = (entry.ring, descriptor.seqno, descriptor.record_epoch_nanos);
        for (condition, found) in conditions.iter().zip(found) {
            match condition.truth(&subject) {
                Truth::No => {}
                Truth::Yes => {
                    found.add_event(ring, seqno, nanos);
                    block.take().into_iter().for_each(|block| found.add_block(ring, block));
                }
                // The event has lost its own payload, or its span has lost fields.
                Truth::Indeterminate => match subject.spans().next().filter(|_| !subject.has_lost_fields()) {
                    None => found.add_untested_event(ring, seqno, nanos),
                    Some(span) => {
                        let since = span.created.as_ref().map_or(0, |created| created.epoch_nanos);
                        found.add_untested_span(processes[entry.process_index], span.id.get(), since, nanos);
                    }
                },
            }
        }
        Ok(())
    }

    fn end(&mut self, state: ReplayState<'_>, _: &[u64]) -> io::Result<()> {
        for (process, replay) in state.replays.iter().enumerate() {
            for slice in replay.open_slices() {
                let thread = state.tables.thread(slice.thread);
                self.entered_by.entry((process, slice.span)).or_default().extend(thread);
            }
        }
        Ok(())
    }

    fn span(&mut self, process: usize, over: &OverSpan<'_>, _: ReplayState<'_>) -> io::Result<()> {
        let span = over.span;
        let created = span.created.as_ref().map(|created| created.epoch_nanos);
        // A span that exists before its creation is seen was created before the window, unless that is lost.
        let is_older = created.is_none() && self.from_nanos > 0 && !self.have_losses.contains(&process);
        let start_epoch_nanos = if is_older { self.from_nanos } else { span.start_epoch_nanos() };
        let until_nanos = if over.over == SpanOver::Remaining && !span.is_end_lost {
            over.end_nanos
        } else {
            span.last_seen_epoch_nanos
        };
        let open_nanos = span.closed.is_none().then(|| until_nanos.saturating_sub(start_epoch_nanos));
        let entered_by = self.entered_by.get(&(process, span.id)).map_or(&[][..], |threads| threads);
        let subject = SpanSubject { entered_by, start_epoch_nanos, open_nanos, ..SpanSubject::new(span) };
        let (since, id) = (created.unwrap_or(self.from_nanos), span.id.get());
        let until = span.closed.as_ref().map_or(u64::MAX, |closed| match over.over {
            SpanOver::Remaining => closed.epoch_nanos.max(span.last_seen_epoch_nanos),
            _ => over.end_nanos,
        });
        for (condition, found) in self.conditions.iter().zip(&mut self.found) {
            match condition.truth(&subject) {
                Truth::No => {}
                Truth::Yes => found.add_span(self.processes[process], id, since, until),
                Truth::Indeterminate => found.add_untested_span(self.processes[process], id, since, until),
            }
        }
        Ok(())
    }

    fn kept_bytes(&self) -> u64 {
        self.found.iter().map(|found| found.len().saturating_mul(FOUND_BYTES)).sum()
    }
}
