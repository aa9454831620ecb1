//! Blocks that are decoded on other threads before they are needed.

use super::block;
use super::columns::{BlockRecords, PayloadsWanted};
use super::damage::BlockExtent;
use super::error::CaptureError;
use super::format::BlockRef;
use super::workers;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

/// The largest number of blocks that are decoded ahead.
const BLOCKS_MAX: usize = 16;
/// The memory of the blocks that are decoded ahead, in bytes, as estimated from their headers.
const BYTES_MAX: u64 = 24 << 20;

/// A block of a file.
#[derive(Clone, Debug)]
pub(super) struct FileBlock {
    pub(super) file: Arc<File>,
    /// The beginning of messages about the file.
    pub(super) label: Arc<str>,
    pub(super) block: BlockRef,
    /// The index of its ring in the capture, or `u32::MAX` if there is no such ring. The header has the index of the
    /// ring in the file.
    pub(super) ring: u32,
    /// The seqnos that are missing if the block cannot be read.
    pub(super) extent: BlockExtent,
}

impl FileBlock {
    fn decode(&self, wanted: PayloadsWanted) -> Decoded {
        block::records(&self.file, &self.block, wanted)
    }

    /// Returns the estimated memory of the decoded block, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        const EVENT_BYTES: u64 = 72;
        self.block.header.plain_bytes + EVENT_BYTES * self.block.header.records
    }
}

type Decoded = Result<BlockRecords, CaptureError>;

/// The blocks of a capture, in the order in which they are needed.
pub(super) struct BlocksAhead {
    blocks: Vec<FileBlock>,
    /// The size in bytes of all blocks, as they are stored.
    pub(super) stored_bytes: u64,
    wanted: PayloadsWanted,
    /// The index of the next block that is taken.
    next: usize,
    /// The blocks from `next` on that are being decoded or were decoded.
    begun: VecDeque<Receiver<Decoded>>,
    begun_bytes: u64,
    /// The process whose threads decode the blocks.
    process: u32,
}

impl BlocksAhead {
    pub(super) fn new(blocks: Vec<FileBlock>, wanted: PayloadsWanted) -> Self {
        let stored_bytes = blocks.iter().map(|block| block.block.header.stored_bytes).sum();
        Self {
            blocks,
            stored_bytes,
            wanted,
            next: 0,
            begun: VecDeque::new(),
            begun_bytes: 0,
            process: std::process::id(),
        }
    }

    /// Takes the next block. Waits until it is decoded.
    pub(super) fn take(&mut self) -> Option<(FileBlock, Decoded)> {
        let block = self.blocks.get(self.next)?.clone();
        self.begin();
        self.next += 1;
        // A forked child has none of the threads that were to decode the blocks, and so decodes them itself.
        if self.process != std::process::id() {
            (self.process, self.begun_bytes) = (std::process::id(), 0);
            self.begun.clear();
        }
        let Some(decoded) = self.begun.pop_front() else {
            let decoded = block.decode(self.wanted);
            return Some((block, decoded));
        };
        self.begun_bytes -= block.memory_bytes();
        // If the thread has panicked, the block is decoded again here, where the caller sees the panic.
        let decoded = decoded.recv().unwrap_or_else(|_| block.decode(self.wanted));
        self.begin();
        Some((block, decoded))
    }

    /// Begins to decode further blocks.
    fn begin(&mut self) {
        let Some(threads) = workers::worker_threads() else { return };
        while let Some(block) = self.blocks.get(self.next + self.begun.len()) {
            let bytes = block.memory_bytes();
            let is_full = self.begun.len() >= BLOCKS_MAX || self.begun_bytes + bytes > BYTES_MAX;
            if is_full && !self.begun.is_empty() {
                return;
            }
            let (block, wanted) = (block.clone(), self.wanted);
            let (out, decoded) = mpsc::sync_channel(1);
            // If nobody waits for the block any more, sending fails, and the block is dropped.
            threads.spawn_fifo(move || drop(out.send(block.decode(wanted))));
            self.begun.push_back(decoded);
            self.begun_bytes += bytes;
        }
    }
}
