//! The matches of a condition in a capture: spans, and single events.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::select::roots::{ProcessSpan, Roots};
use eventring::exec::BlockInfo;
use eventring::reader::Descriptor;
use eventring::schema::EventType as _;
use eventring::schema::perf::{PerfEvent, PerfExt};
use std::collections::HashSet;
use std::sync::Arc;

/// Spans with everything in them, and single events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matches {
    /// The problems of the blocks that were read.
    pub(crate) problems: Vec<String>,
    pub(crate) roots: Roots,
    /// The index of the ring, and the seqno.
    events: HashSet<(u32, u64)>,
    /// Blocks of found execution events, with the index of the ring.
    pub(crate) blocks: Vec<(u32, Arc<BlockInfo>)>,
    count: u64,
    /// Events, as above, that could not be tested because their payload was lost.
    untested_events: HashSet<(u32, u64)>,
    /// Spans that could not be tested because fields were lost.
    untested_spans: HashSet<ProcessSpan>,
}

impl Matches {
    /// Adds a span of a process (its number in the capture) that existed between these times, in nanoseconds since the
    /// epoch.
    pub(crate) fn add_span(&mut self, process: u32, span: u64, since_nanos: u64, until_nanos: u64) {
        self.count += 1;
        self.roots.add((process, span), since_nanos, until_nanos);
    }

    /// Adds an event of a ring (its index in the capture) that was recorded at this time.
    pub(crate) fn add_event(&mut self, ring: u32, seqno: u64, epoch_nanos: u64) {
        self.count += 1;
        self.events.insert((ring, seqno));
        self.roots.add_time(epoch_nanos, epoch_nanos);
    }

    /// Adds an event, as [`Self::add_event`], that is not chosen because its payload was lost. It counts as such.
    pub(crate) fn add_untested_event(&mut self, ring: u32, seqno: u64, epoch_nanos: u64) {
        self.untested_events.insert((ring, seqno));
        self.roots.add_time(epoch_nanos, epoch_nanos);
    }

    /// Adds a span that is not chosen because fields of it were lost, as [`Self::add_span`]. Those of its events count
    /// that have lost their payload.
    pub(crate) fn add_untested_span(&mut self, process: u32, span: u64, since_nanos: u64, until_nanos: u64) {
        self.untested_spans.insert((process, span));
        self.roots.add_time(since_nanos, until_nanos);
    }

    /// Returns the number of spans and events that could not be tested.
    pub(crate) fn untested(&self) -> usize {
        self.untested_events.len() + self.untested_spans.len()
    }

    /// Adds the block of an execution event. Its BLOCK_START need not be found.
    pub(crate) fn add_block(&mut self, ring: u32, block: Arc<BlockInfo>) {
        if self.blocks.last().is_none_or(|(_, last)| !Arc::ptr_eq(last, &block)) {
            self.blocks.push((ring, block));
        }
    }

    /// Returns the number of spans and events.
    pub(crate) fn len(&self) -> u64 {
        self.count.saturating_add(self.untested() as u64)
    }

    /// Returns true if nothing was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn has_event(&self, ring: u32, seqno: u64) -> bool {
        self.events.contains(&(ring, seqno))
    }

    /// Returns true if an event could not be tested, or may have the lost fields of a span that could not. `process` is
    /// that of a perf ring.
    pub(crate) fn is_untested(&self, ring: u32, process: Option<u32>, event: &Descriptor) -> bool {
        let has_fields = || [PerfEvent::SpanNew.code(), PerfEvent::SpanRecord.code()].contains(&event.event_type);
        let span = || PerfExt::from_words(event.content_ext).span_id;
        self.untested_events.contains(&(ring, event.seqno))
            || process.is_some_and(|process| has_fields() && self.untested_spans.contains(&(process, span())))
    }

    /// Joins the times in which something was found.
    ///
    /// # Errors
    /// There are more spans and events than any capture of this size has.
    pub(crate) fn finish(mut self, parts_max: u64) -> Result<Self, CaptureError> {
        if self.len() > parts_max {
            let message = format!(
                "more than {parts_max} of its spans and events were found, which a file of its size cannot have: it is damaged; copy it \
                 anew from where it was made"
            );
            return Err(CaptureError::new(CaptureErrorKind::Damaged, message));
        }
        self.roots.join_times();
        Ok(self)
    }
}
