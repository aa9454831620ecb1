//! Writing final blocks of a ring into an archive.

use super::archive::BlockArchive;
use super::write::write_bundle;
use crate::dialect::Dialect;
use eventring::exec::flow_tag;
use eventring::reader::{Descriptor, Gap, GapCause};
use eventring::schema::exec::{Bytes32, ExecEvent, ExecPayload};
use eventring_capture::{CaptureError, OutputEntry};
use std::collections::VecDeque;
use std::path::PathBuf;

/// The blocks that wait for their end, and the ends that wait for their block.
const WAITING_MAX: usize = 256;
/// The bytes of blocks that wait.
const BYTES_MAX: usize = 512 << 20;

/// A block that was written into an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Archived {
    /// Its number.
    pub number: u64,
    /// Its file.
    pub path: PathBuf,
    /// The size of the file in bytes.
    pub bytes: u64,
}

/// Writes blocks into an archive as they become final. Events go in; what is lost, not executed to its end, or
/// abandoned is not written. Its memory is bounded: of the blocks that wait for consensus, the oldest are forgotten.
#[derive(Debug)]
pub struct Archiver {
    archive: BlockArchive,
    dialect: Dialect,
    schema_hash: [u8; 32],
    open: Option<RawBlock>,
    waiting: VecDeque<RawBlock>,
    /// The ids of final blocks whose execution has not been seen.
    finals: VecDeque<Bytes32>,
    next_seqno: u64,
    scratch: Vec<u8>,
    forgotten: u64,
    are_all_final: bool,
}

/// The events of a block.
#[derive(Debug)]
struct RawBlock {
    id: Bytes32,
    number: u64,
    tag: u64,
    is_whole: bool,
    bytes: usize,
    events: Vec<(Descriptor, Vec<u8>)>,
}

impl Archiver {
    /// Writes blocks of a ring with this schema.
    #[must_use]
    pub fn new(archive: BlockArchive, dialect: Dialect, schema_hash: [u8; 32]) -> Self {
        let (waiting, finals) = (VecDeque::new(), VecDeque::new());
        let (scratch, forgotten) = (Vec::new(), 0);
        let (open, next_seqno, are_all_final) = (None, 0, false);
        Self { archive, dialect, schema_hash, open, waiting, finals, next_seqno, scratch, forgotten, are_all_final }
    }

    /// Returns an archiver that takes each block for final as soon as it has ended, or not. The blocks of an archive
    /// are final, and no event says so ([`ExecEvents::is_archive`](crate::ExecEvents::is_archive)).
    #[must_use]
    pub fn all_final(self, are_all_final: bool) -> Self {
        Self { are_all_final, ..self }
    }

    /// Returns the number of final blocks that were not written, because events of them were lost or too old.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Takes the next event; `payload` is `None` if it has expired. Returns the block that was written because of it.
    ///
    /// # Errors
    /// A file cannot be written. The block is then not in the archive. Who gives further events leaves a hole there.
    pub fn push(&mut self, event: &Descriptor, payload: Option<&[u8]>) -> Result<Option<Archived>, CaptureError> {
        if self.next_seqno != 0 && event.seqno > self.next_seqno {
            self.lose();
        }
        self.next_seqno = event.seqno.saturating_add(1);
        let kind = self.dialect.meaning(event.event_type);
        let Some(payload) = payload else {
            self.lose();
            return Ok(None);
        };
        match kind {
            Some(ExecEvent::BlockStart) => {
                self.open = None;
                let Ok(start) = self.dialect.block_start(event.event_type, payload, &mut self.scratch) else {
                    return Ok(None);
                };
                let (id, number) = (start.block_tag.id, start.block_tag.block_number);
                let mut block = RawBlock { id, number, tag: event.seqno, is_whole: true, bytes: 0, events: Vec::new() };
                block.add(event, payload);
                self.open = Some(block);
                Ok(None)
            }
            Some(ExecEvent::BlockFinalized) => {
                let decoded =
                    self.dialect.decode(event.event_type, ExecEvent::BlockFinalized, payload, &mut self.scratch);
                match decoded {
                    Ok(ExecPayload::BlockFinalized(tag)) => self.finalize(tag.id),
                    _ => Ok(None),
                }
            }
            _ => {
                let tag = flow_tag(event);
                let Some(open) = self.open.as_mut().filter(|open| open.tag == tag && tag != 0) else { return Ok(None) };
                open.add(event, payload);
                match kind {
                    Some(ExecEvent::BlockEnd) => self.end(),
                    Some(ExecEvent::RecordError) | None => {
                        open.is_whole = false;
                        Ok(None)
                    }
                    Some(ExecEvent::BlockReject) => {
                        self.open = None;
                        Ok(None)
                    }
                    _ => Ok(None),
                }
            }
        }
    }

    /// Takes a range of events that will not come.
    pub fn push_gap(&mut self, gap: Gap) {
        if gap.cause != GapCause::Skipped {
            self.lose();
        }
        self.next_seqno = gap.first_seqno.saturating_add(gap.count);
    }

    /// Says that the events that follow are of another ring.
    pub fn next_ring(&mut self) {
        self.lose();
        self.next_seqno = 0;
    }

    /// The open block has lost an event.
    fn lose(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_whole = false;
        }
    }

    /// The open block has been executed.
    fn end(&mut self) -> Result<Option<Archived>, CaptureError> {
        let Some(block) = self.open.take() else { return Ok(None) };
        if self.are_all_final {
            return self.write(block);
        }
        if let Some(at) = self.finals.iter().position(|id| *id == block.id) {
            self.finals.remove(at);
            return self.write(block);
        }
        // The node was started again and has executed it once more: the last execution counts.
        self.waiting.retain(|other| other.id != block.id);
        self.waiting.push_back(block);
        while self.waiting.len() > WAITING_MAX
            || self.waiting.iter().map(|block| block.bytes).sum::<usize>() > BYTES_MAX
        {
            self.waiting.pop_front();
        }
        Ok(None)
    }

    fn finalize(&mut self, id: Bytes32) -> Result<Option<Archived>, CaptureError> {
        let Some(at) = self.waiting.iter().position(|block| block.id == id) else {
            if self.finals.len() >= WAITING_MAX {
                self.finals.pop_front();
                self.forgotten += 1;
            }
            self.finals.push_back(id);
            return Ok(None);
        };
        let Some(block) = self.waiting.remove(at) else { return Ok(None) };
        // What was proposed for the number, or before it, is not awaited any more.
        self.waiting.retain(|other| other.number > block.number);
        self.write(block)
    }

    fn write(&mut self, block: RawBlock) -> Result<Option<Archived>, CaptureError> {
        let path = self.archive.path_of(block.number);
        if !block.is_whole {
            self.forgotten += 1;
            return Ok(None);
        }
        if self.archive.has_file_of(block.number)? {
            return Ok(None);
        }
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)
                .map_err(|error| CaptureError::io_writing("make it", error).at(directory))?;
            OutputEntry::open(directory)?.check_link_owner()?;
        }
        let bytes = write_bundle(&path, self.schema_hash, block.number, &block.events)?;
        Ok(Some(Archived { number: block.number, path, bytes }))
    }
}

impl RawBlock {
    fn add(&mut self, event: &Descriptor, payload: &[u8]) {
        // More than the largest block has.
        if self.bytes > BYTES_MAX {
            self.is_whole = false;
            self.events.clear();
            return;
        }
        self.bytes += size_of::<Descriptor>() + payload.len();
        self.events.push((*event, payload.to_vec()));
    }
}
