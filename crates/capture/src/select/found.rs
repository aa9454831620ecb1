//! Parts of a capture that somebody has found by reading it: spans, and single events.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::select::roots::Roots;
use eventring::exec::BlockInfo;
use std::collections::HashSet;
use std::sync::Arc;

/// Spans with everything in them, and single events. [`CaptureFile::select_found`](crate::CaptureFile::select_found)
/// selects them.
#[derive(Clone, Debug, Default)]
pub struct FoundParts {
    pub(crate) roots: Roots,
    /// The index of the ring, and the seqno.
    events: HashSet<(u32, u64)>,
    /// Blocks of found execution events, with the index of the ring.
    pub(crate) blocks: Vec<(u32, Arc<BlockInfo>)>,
    count: u64,
}

impl FoundParts {
    /// Adds a span of a process (its number in the capture) that existed between these times, in nanoseconds since the
    /// epoch.
    pub fn add_span(&mut self, process: u32, span: u64, since_nanos: u64, until_nanos: u64) {
        self.count += 1;
        self.roots.add((process, span), since_nanos, until_nanos);
    }

    /// Adds an event of a ring (its index in the capture) that was recorded at this time.
    pub fn add_event(&mut self, ring: u32, seqno: u64, epoch_nanos: u64) {
        self.count += 1;
        self.events.insert((ring, seqno));
        self.roots.add_time(epoch_nanos, epoch_nanos);
    }

    /// Adds the block of an execution event. Its BLOCK_START need not be found.
    pub fn add_block(&mut self, ring: u32, block: Arc<BlockInfo>) {
        if self.blocks.last().is_none_or(|(_, last)| !Arc::ptr_eq(last, &block)) {
            self.blocks.push((ring, block));
        }
    }

    /// Returns true if nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn has_event(&self, ring: u32, seqno: u64) -> bool {
        self.events.contains(&(ring, seqno))
    }

    /// Joins the times in which something was found.
    ///
    /// # Errors
    /// There are more spans and events than any capture of this size has.
    pub(crate) fn finish(mut self, parts_max: u64) -> Result<Self, CaptureError> {
        if self.count > parts_max {
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
