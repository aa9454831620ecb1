//! Blocks that are decoded on other threads before they are needed.

use crate::error::CaptureError;
use crate::format::columns::{BlockRecords, PayloadsWanted};
use crate::read::file_block::FileBlock;
use crate::read::workers;
use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver};

/// The largest number of blocks that are decoded ahead.
const BLOCKS_MAX: usize = 16;
/// The memory of the blocks that are decoded ahead, in bytes, as estimated from their headers.
const BYTES_MAX: u64 = 24 << 20;

type Decoded = Result<BlockRecords, CaptureError>;

/// The blocks of a capture, in the order in which they are needed.
pub(crate) struct BlocksAhead {
    blocks: Vec<FileBlock>,
    /// The size in bytes of all blocks, as they are stored.
    pub(crate) stored_bytes: u64,
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
    pub(crate) fn new(blocks: Vec<FileBlock>, wanted: PayloadsWanted) -> Self {
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
    pub(crate) fn take(&mut self) -> Option<(FileBlock, Decoded)> {
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

    /// Decodes a block that is none of those that were given in the beginning.
    pub(crate) fn decode_now(&mut self, block: FileBlock) -> (FileBlock, Decoded) {
        self.stored_bytes += block.block.header.stored_bytes;
        let decoded = block.decode(self.wanted);
        (block, decoded)
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
