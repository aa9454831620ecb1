//! Building blocks from execution events.
//!
//! | file | idea |
//! |---|---|
//! | `open_block` | the block whose events are being read |
//! | `open_txn` | a transaction of the block |
//! | `open_accounts` | the accounts that a transaction or block has accessed |
//! | `numbered` | lists whose entries arrive with their index |

mod numbered;
mod open_accounts;
mod open_block;
mod open_txn;

use crate::dialect::Dialect;
use crate::problem::Problem;
use crate::values::Block;
use crate::wanted::Wanted;
use eventring::exec::flow_tag;
use eventring::reader::{Descriptor, Gap, GapCause, PayloadRead};
use eventring::schema::exec::{BlockQc, BlockTag, ExecEvent, ExecPayload};
use eventring::schema::{EventPayload as _, RecordError};
use open_block::OpenBlock;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The number of blocks whose ids are remembered, so that a second execution is noticed.
const IDS_MAX: usize = 4096;
/// The default of [`BlockBuilder::bytes_max`].
const BYTES_MAX: usize = 256 << 20;

/// Something that a [`BlockBuilder`] has found in the events.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ChainEvent {
    /// A block whose execution has ended, or of which no more events will come.
    Block(Arc<Block>),
    /// A quorum certificate: the block has been voted for.
    Voted(BlockQc),
    /// The block is final.
    Finalized(BlockTag),
    /// The state of the final block with this number was verified.
    Verified(u64),
    /// Something wrong outside of any open block.
    Problem(Problem),
}

/// Puts blocks together from execution events. It does no input or output: events go in, [`ChainEvent`] comes out.
///
/// Whatever comes in, nothing panics, and no block is called complete that is not. The memory is bounded: one block is
/// open at a time, and it may take [`Self::bytes_max`].
///
/// ```
/// use eventring::reader::{Next, Seek};
/// use eventring_exec::{BlockBuilder, ChainEvent, Wanted};
/// # use eventring::exec::BlockScope;
/// # use eventring::recorder::{ContentDescription, Recorder};
/// # use eventring::schema::exec::{BlockEnd, BlockStart, ExecEvent};
/// # let recorder = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>()).anonymous().build()?;
/// # let _guard = eventring::global::EXEC.override_with(recorder.clone());
/// # let block = BlockScope::start(&BlockStart::default());
/// # eventring::record!(ExecEvent::BlockEnd, &BlockEnd { gas_used: 17, ..BlockEnd::default() });
/// # drop(block);
/// # let reader = eventring::reader::Reader::options().open_fd(recorder.as_fd())?;
/// let mut builder = BlockBuilder::for_ring(&reader, Wanted::TRANSACTIONS)?;
/// let (mut cursor, mut buffer) = (reader.cursor(), Vec::new());
/// cursor.seek(Seek::Oldest);
/// loop {
///     match cursor.next() {
///         Next::Event(event) => builder.push(&event, || cursor.payload(&event, &mut buffer)),
///         Next::Gap(gap) => builder.push_gap(gap),
///         Next::NotReady => break,
///     }
///     while let Some(found) = builder.pop() {
///         if let ChainEvent::Block(block) = found {
///             assert!(block.is_complete && block.end().is_some_and(|end| end.gas_used == 17));
///         }
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BlockBuilder {
    dialect: Dialect,
    wanted: Wanted,
    bytes_max: usize,
    open: Option<OpenBlock>,
    found: VecDeque<ChainEvent>,
    /// Memory for payloads of earlier schemas.
    scratch: Vec<u8>,
    /// The seqno of the next event, or 0 before the first.
    next_seqno: u64,
    /// The flow tag of the last block whose start was lost, so that it is told once.
    without_start: u64,
    /// For each block that was executed lately, its flow tag.
    executed: HashMap<[u8; 32], u64>,
    executed_in_order: VecDeque<[u8; 32]>,
}

impl BlockBuilder {
    /// Makes a builder for events of this schema.
    pub fn new(dialect: Dialect, wanted: Wanted) -> Self {
        Self {
            dialect,
            wanted,
            bytes_max: BYTES_MAX,
            open: None,
            found: VecDeque::new(),
            scratch: Vec::new(),
            next_seqno: 0,
            without_start: 0,
            executed: HashMap::new(),
            executed_in_order: VecDeque::new(),
        }
    }

    /// Makes a builder for the events of a ring.
    ///
    /// # Errors
    /// The ring has no execution events, or its schema is not known.
    pub fn for_ring(ring: &eventring::reader::Reader, wanted: Wanted) -> Result<Self, crate::dialect::UnknownSchema> {
        let (info, model) = (ring.info(), ring.schema().ok());
        Ok(Self::new(Dialect::of_schema(info.content_type, info.schema_hash, model.as_deref())?, wanted))
    }

    /// Sets how many bytes of one block are kept. A block with more is not complete. Default: 256 MiB.
    pub fn bytes_max(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }

    /// Returns the next thing that was found, in the order of the events.
    pub fn pop(&mut self) -> Option<ChainEvent> {
        self.found.pop_front()
    }

    /// Takes the next event. `payload` reads its payload, and is called only if it is wanted.
    pub fn push<'p>(&mut self, event: &Descriptor, payload: impl FnOnce() -> PayloadRead<'p>) {
        if event.seqno < self.next_seqno {
            return self.repeated(event.seqno);
        }
        // Who passes events on may forget to pass gaps on.
        if self.next_seqno != 0 && event.seqno > self.next_seqno {
            self.lose(self.next_seqno, event.seqno - self.next_seqno);
        }
        self.next_seqno = event.seqno.saturating_add(1);
        match self.dialect.meaning(event.event_type) {
            None => self.report(Problem::Unknown { seqno: event.seqno, code: event.event_type }),
            Some(ExecEvent::BlockStart) => self.start_block(event, payload()),
            Some(kind @ (ExecEvent::BlockQc | ExecEvent::BlockFinalized | ExecEvent::BlockVerified)) => {
                self.consensus(event, kind, payload());
            }
            Some(kind) => self.event_of_block(event, kind, payload),
        }
    }

    /// Takes a range of events that will not come.
    pub fn push_gap(&mut self, gap: Gap) {
        let end = gap.first_seqno.saturating_add(gap.count);
        if end <= self.next_seqno {
            return;
        }
        // What was overwritten before the first event that is read is the past, and no loss.
        if gap.cause == GapCause::OverwrittenBefore && self.next_seqno == 0 {
            self.next_seqno = end;
            return;
        }
        let first = gap.first_seqno.max(self.next_seqno);
        if gap.cause != GapCause::Skipped {
            self.lose(first, end - first);
        } else if self.next_seqno != 0 && first > self.next_seqno {
            self.lose(self.next_seqno, first - self.next_seqno);
        }
        self.next_seqno = end;
    }

    /// Says that no more events come: the ring has ended. The open block, if there is one, is delivered as it is.
    pub fn end(&mut self) {
        if let Some(open) = self.open.take() {
            self.deliver(open);
        }
    }

    /// Says that the events that follow are of another ring, for example because the node was started again: their
    /// seqnos begin anew. Blocks that were executed before are known.
    pub fn next_ring(&mut self) {
        self.end();
        self.next_seqno = 0;
        self.without_start = 0;
    }

    /// [`Self::next_ring`], of a ring with this schema.
    pub(crate) fn next_ring_of(&mut self, dialect: Dialect) {
        self.next_ring();
        self.dialect = dialect;
    }

    pub(crate) fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    fn report(&mut self, problem: Problem) {
        match &mut self.open {
            Some(open) => open.report(problem),
            None => self.found.push_back(ChainEvent::Problem(problem)),
        }
    }

    /// An event that was there before. It is ignored, so a block stays complete: had the event been skipped the first
    /// time, a gap would have said so.
    fn repeated(&mut self, seqno: u64) {
        let problem = Problem::Duplicate { seqno };
        match &mut self.open {
            Some(open) => open.remark(problem),
            None => self.found.push_back(ChainEvent::Problem(problem)),
        }
    }

    fn lose(&mut self, first_seqno: u64, count: u64) {
        if count > 0 {
            self.report(Problem::Gap { first_seqno, count });
        }
    }

    fn start_block(&mut self, event: &Descriptor, payload: PayloadRead<'_>) {
        // A block that is still open has lost its end.
        self.end();
        let start = match payload {
            PayloadRead::Valid(bytes) => match self.dialect.block_start(event.event_type, bytes, &mut self.scratch) {
                Ok(start) => start,
                Err(_) => return self.report(Problem::Malformed { seqno: event.seqno }),
            },
            PayloadRead::Expired => return self.report(Problem::Expired { seqno: event.seqno }),
            PayloadRead::Malformed => return self.report(Problem::Malformed { seqno: event.seqno }),
        };
        let mut open = OpenBlock::new(event, start, self.wanted, self.bytes_max, self.dialect.has_header_end());
        // The field has room for 32 bytes.
        if flow_tag(event) != event.seqno || start.eth_block_input.extra_data_length > 32 {
            open.report(Problem::Malformed { seqno: event.seqno });
        }
        let id = start.block_tag.id.0;
        match self.executed.insert(id, event.seqno) {
            Some(earlier_seqno) => open.is_executed_again(earlier_seqno),
            None => {
                self.executed_in_order.push_back(id);
                if self.executed_in_order.len() > IDS_MAX
                    && let Some(oldest) = self.executed_in_order.pop_front()
                {
                    self.executed.remove(&oldest);
                }
            }
        }
        self.open = Some(open);
    }

    fn consensus(&mut self, event: &Descriptor, kind: ExecEvent, payload: PayloadRead<'_>) {
        let decoded = match payload {
            PayloadRead::Valid(bytes) => self.dialect.decode(event.event_type, kind, bytes, &mut self.scratch),
            PayloadRead::Expired => {
                return self.found.push_back(ChainEvent::Problem(Problem::Expired { seqno: event.seqno }));
            }
            PayloadRead::Malformed => {
                return self.found.push_back(ChainEvent::Problem(Problem::Malformed { seqno: event.seqno }));
            }
        };
        self.found.push_back(match decoded {
            Ok(ExecPayload::BlockQc(qc)) => ChainEvent::Voted(qc),
            Ok(ExecPayload::BlockFinalized(tag)) => ChainEvent::Finalized(tag),
            Ok(ExecPayload::BlockVerified(verified)) => ChainEvent::Verified(verified.block_number),
            _ => ChainEvent::Problem(Problem::Malformed { seqno: event.seqno }),
        });
    }

    fn event_of_block<'p>(&mut self, event: &Descriptor, kind: ExecEvent, payload: impl FnOnce() -> PayloadRead<'p>) {
        let tag = flow_tag(event);
        let is_record_error = kind == ExecEvent::RecordError;
        let Some(open) = self.open.as_mut().filter(|open| open.tag() == tag || (is_record_error && tag == 0)) else {
            return self.event_without_block(event, tag, is_record_error, payload);
        };
        if !open.wants(kind) {
            return open.note(event);
        }
        match payload() {
            PayloadRead::Valid(bytes) if is_record_error => open.record_error(event, dropped_type(bytes)),
            PayloadRead::Valid(bytes) => match self.dialect.decode(event.event_type, kind, bytes, &mut self.scratch) {
                Ok(decoded) => open.take(event, decoded),
                Err(_) => open.report(Problem::Malformed { seqno: event.seqno }),
            },
            PayloadRead::Expired => open.report(Problem::Expired { seqno: event.seqno }),
            PayloadRead::Malformed => open.report(Problem::Malformed { seqno: event.seqno }),
        }
        if open.has_ended()
            && let Some(open) = self.open.take()
        {
            self.deliver(open);
        }
    }

    /// An event of a block that is not open: its start was lost, or it has ended already.
    fn event_without_block<'p>(
        &mut self,
        event: &Descriptor,
        tag: u64,
        is_record_error: bool,
        payload: impl FnOnce() -> PayloadRead<'p>,
    ) {
        if is_record_error {
            let dropped_type = payload().valid().map_or(0, dropped_type);
            let txn = event.content_ext[1].checked_sub(1);
            return self.report(Problem::RecordError { seqno: event.seqno, txn, dropped_type });
        }
        if tag != self.without_start {
            self.without_start = tag;
            self.report(Problem::NoStart { seqno: event.seqno, block_seqno: tag });
        }
    }

    fn deliver(&mut self, open: OpenBlock) {
        self.found.push_back(ChainEvent::Block(Arc::new(open.finish())));
    }
}

/// Returns the type of the event in whose place a RECORD_ERROR stands.
fn dropped_type(payload: &[u8]) -> u16 {
    RecordError::decode(payload).map_or(0, |(error, _)| error.dropped_event_type)
}

const _: () = assert!(ExecEvent::RecordError as u16 == eventring::schema::RECORD_ERROR_CODE);
