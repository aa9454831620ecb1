//! The messages from the copying thread to the encoding threads, and on to the writing thread. A message is in one of a
//! fixed number of slots (buffers), which bounds the memory of a capture. When all slots are in use, the copying thread
//! waits, and events stay in their rings.

use crate::engine::sources::DiscoveredRings;
use crate::error::CaptureError;
use crate::format::columns::{BlockRecords, EncodedBlock, RingLayout};
use crate::format::end::EndReason;
use crate::format::header::BLOCK_EVENTS_BYTES;
use std::sync::Arc;

/// A slot: the records of a block, and the block.
#[derive(Default)]
pub(crate) struct BlockSlot {
    pub(crate) records: BlockRecords,
    pub(crate) block: EncodedBlock,
    pub(crate) layout: Arc<RingLayout>,
    /// The level of compression.
    pub(crate) level: i32,
}

/// The memory of a slot that was used for a large payload is given back if it has more bytes than this.
const SLOT_BYTES_MAX: usize = 4 * BLOCK_EVENTS_BYTES;

impl BlockSlot {
    /// Removes the records and the block. The memory stays for the next use, unless it is much.
    pub(crate) fn emptied(mut self: Box<Self>) -> Box<Self> {
        if self.records.events.memory_bytes() + self.block.data.capacity() > SLOT_BYTES_MAX {
            return Box::default();
        }
        self.records.clear();
        self
    }
}

/// A message of the copying thread. The writing thread gets the messages in the order in which they were sent.
pub(crate) enum Message {
    /// Rings that were found.
    Found(DiscoveredRings),
    /// Records. The encoding thread adds the block.
    Records(Box<BlockSlot>),
    /// The last message: the copying has ended.
    Done(CopyResult),
}

/// The result of copying.
pub(crate) struct CopyResult {
    pub(crate) result: Result<EndReason, CaptureError>,
    /// For each ring, the number of payloads that were refused because they share bytes with others.
    pub(crate) refused_payloads: Vec<u64>,
}

/// A request to the copying thread.
pub(crate) enum Request {
    /// Add a ring.
    Add(eventring::reader::Reader),
    /// No more rings will be added.
    NoMoreRings,
    /// Stop: take only what was recorded until now.
    Stop(crate::engine::stop::Stop),
}
