//! Blocks that are decoded on other threads before they are needed.

use super::block;
use super::columns::{BlockRecords, PayloadsWanted};
use super::error::CaptureError;
use super::format::BlockRef;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, OnceLock};

/// The largest number of blocks that are decoded ahead.
const BLOCKS_MAX: usize = 16;
/// The memory of the blocks that are decoded ahead, in bytes, as estimated from their headers.
const BYTES_MAX: u64 = 24 << 20;

/// A block of a file.
pub(super) type FileBlock = (Arc<File>, BlockRef);

type Decoded = Result<BlockRecords, CaptureError>;

/// The blocks of a capture, in the order in which they are needed.
pub(super) struct BlocksAhead {
    blocks: Vec<FileBlock>,
    wanted: PayloadsWanted,
    /// The index of the next block that is taken.
    next: usize,
    /// The blocks from `next` on that are being decoded or were decoded.
    begun: VecDeque<Receiver<Decoded>>,
    begun_bytes: u64,
}

impl BlocksAhead {
    pub(super) fn new(blocks: Vec<FileBlock>, wanted: PayloadsWanted) -> Self {
        Self { blocks, wanted, next: 0, begun: VecDeque::new(), begun_bytes: 0 }
    }

    /// Takes the next block. Waits until it is decoded.
    pub(super) fn take(&mut self) -> Option<(BlockRef, Decoded)> {
        let (file, block) = self.blocks.get(self.next).map(|(file, block)| (file.clone(), *block))?;
        self.begin();
        self.next += 1;
        let Some(decoded) = self.begun.pop_front() else {
            return Some((block, block::records(&file, &block, self.wanted)));
        };
        self.begun_bytes -= memory_bytes(&block);
        // If the thread has panicked, the block is decoded again here, where the caller sees the panic.
        let decoded = decoded.recv().unwrap_or_else(|_| block::records(&file, &block, self.wanted));
        self.begin();
        Some((block, decoded))
    }

    /// Begins to decode further blocks.
    fn begin(&mut self) {
        let Some(threads) = threads() else { return };
        while let Some((file, block)) = self.blocks.get(self.next + self.begun.len()) {
            let bytes = memory_bytes(block);
            let is_full = self.begun.len() >= BLOCKS_MAX || self.begun_bytes + bytes > BYTES_MAX;
            if is_full && !self.begun.is_empty() {
                return;
            }
            let (file, block, wanted) = (file.clone(), *block, self.wanted);
            let (out, decoded) = mpsc::sync_channel(1);
            // If nobody waits for the block any more, sending fails, and the block is dropped.
            threads.spawn_fifo(move || drop(out.send(block::records(&file, &block, wanted))));
            self.begun.push_back(decoded);
            self.begun_bytes += bytes;
        }
    }
}

/// Returns the estimated memory of a decoded block, in bytes.
pub(super) fn memory_bytes(block: &BlockRef) -> u64 {
    const EVENT_BYTES: u64 = 72;
    block.header.plain_bytes + EVENT_BYTES * block.header.records
}

/// Returns the threads that decode. They are not those of rayon's global pool: a program may read a capture on such a
/// thread, and would then wait for itself. Returns `None` if no threads can be made.
fn threads() -> Option<&'static rayon::ThreadPool> {
    static THREADS: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    let make = || rayon::ThreadPoolBuilder::new().thread_name(|_| "capture-decode".into()).build().ok();
    THREADS.get_or_init(make).as_ref()
}
