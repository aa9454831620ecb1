//! Blocks and transactions as slices, from rings of execution events.
//!
//! | file | idea |
//! |---|---|
//! | `chains` | the open blocks, and the rows in use |
//! | `collected` | the events of the open block, by transaction |
//! | `draw` | the slices of an ended block |
//! | `facts` | the arguments of blocks and transactions |

mod chains;
mod collected;
mod draw;
mod facts;
#[cfg(test)]
mod tests;

use super::{Args, Label, TraceBuilder, TrackKey};
use chains::Chain;
pub(super) use chains::Chains;
use collected::Collected;
use eventring::exec::flow_tag;
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::exec::ExecEvent;
use eventring_capture::recording::RecordingEntry;
use eventring_exec::{Block, ChainEvent, Problem};
use std::io;

impl TraceBuilder<'_> {
    /// Takes an execution event. Most are drawn with their block, when it is over.
    pub(super) fn chain_event(
        &mut self,
        entry: &RecordingEntry<'_>,
        descriptor: &Descriptor,
        payload: PayloadRead<'_>,
    ) -> io::Result<()> {
        use ExecEvent as E;
        let ring = entry.ring;
        let meaning = self.chains.rings.meaning(ring, descriptor.event_type);
        self.chains.rings.take(entry);
        let is_in_span = self.recording.rings().span(ring, descriptor).is_some();
        match meaning {
            Some(E::BlockQc | E::BlockFinalized | E::BlockVerified) => self.consensus(entry, descriptor, payload),
            Some(E::BlockStart) => {
                let is_start = self.draw_found(ring, descriptor.seqno)?;
                self.draw_without_start(ring)?;
                let mut block = Collected::new(descriptor.seqno);
                block.take(descriptor, meaning, payload, is_in_span);
                let chain = &mut self.chains.chains[ring as usize];
                if is_start {
                    chain.open = Some(block);
                } else {
                    block.known = chain.known.block_of(descriptor, || payload);
                    chain.without_start = Some(block);
                }
                self.draw_in_span(entry, descriptor, payload, is_in_span)
            }
            _ => {
                let is_collected = self.collect(ring, descriptor, (meaning, payload, is_in_span))?;
                self.draw_found(ring, 0)?;
                if !is_collected {
                    return self.typed_event(entry, descriptor, payload);
                }
                if flow_tag(descriptor) == self.tag_without_start(ring) && is_end(meaning, descriptor) {
                    self.draw_without_start(ring)?;
                }
                self.draw_in_span(entry, descriptor, payload, is_in_span)
            }
        }
    }

    /// Draws what is left at the end of the recording.
    pub(super) fn end_chains(&mut self) -> io::Result<()> {
        self.chains.rings.end();
        for ring in 0..self.chains.rings.len() {
            while let Some(found) = self.chains.rings.pop(ring) {
                if let ChainEvent::Block(block) = found {
                    self.draw_over(ring, &block, true)?;
                }
            }
            self.draw_without_start(ring)?;
        }
        Ok(())
    }

    /// An event that names a span of its program is drawn in that span, too.
    fn draw_in_span(
        &mut self,
        entry: &RecordingEntry<'_>,
        descriptor: &Descriptor,
        payload: PayloadRead<'_>,
        is_in_span: bool,
    ) -> io::Result<()> {
        if is_in_span { self.typed_event(entry, descriptor, payload) } else { Ok(()) }
    }

    /// Adds an event to its block. Returns false if it belongs to no block, or to one that is over.
    fn collect(
        &mut self,
        ring: u32,
        descriptor: &Descriptor,
        (meaning, payload, is_in_span): (Option<ExecEvent>, PayloadRead<'_>, bool),
    ) -> io::Result<bool> {
        let tag = flow_tag(descriptor);
        let is_record_error = meaning == Some(ExecEvent::RecordError);
        let chain = &mut self.chains.chains[ring as usize];
        if let Some(open) = chain.open.as_mut().filter(|open| open.tag == tag || (is_record_error && tag == 0)) {
            open.take(descriptor, meaning, payload, is_in_span);
            return Ok(true);
        }
        if tag == 0 || tag == chain.over_tag || tag > descriptor.seqno {
            return Ok(false);
        }
        if self.tag_without_start(ring) != tag {
            if is_in_span {
                return Ok(false);
            }
            self.draw_without_start(ring)?;
        }
        let Chain { without_start, known, .. } = &mut self.chains.chains[ring as usize];
        let block = without_start
            .get_or_insert_with(|| Collected { known: known.block_of(descriptor, || payload), ..Collected::new(tag) });
        block.take(descriptor, meaning, payload, is_in_span);
        Ok(true)
    }

    fn tag_without_start(&self, ring: u32) -> u64 {
        self.chains.chains[ring as usize].without_start.as_ref().map_or(0, |block| block.tag)
    }

    /// Draws the blocks that are over. Returns false if the event `seqno` was found to be wrong.
    fn draw_found(&mut self, ring: u32, seqno: u64) -> io::Result<bool> {
        let mut is_right = true;
        while let Some(found) = self.chains.rings.pop(ring) {
            match found {
                ChainEvent::Block(block) => self.draw_over(ring, &block, false)?,
                ChainEvent::Problem(
                    Problem::Expired { seqno: of }
                    | Problem::Malformed { seqno: of }
                    | Problem::Duplicate { seqno: of },
                ) => is_right &= of != seqno,
                _ => {}
            }
        }
        Ok(is_right)
    }

    /// Draws a block that is over, or that is open at the end of the recording.
    fn draw_over(&mut self, ring: u32, block: &Block, is_open: bool) -> io::Result<()> {
        let chain = &mut self.chains.chains[ring as usize];
        let collected = chain.open.take().filter(|open| open.tag == block.start_seqno);
        let collected = collected.unwrap_or_else(|| Collected::new(block.start_seqno));
        chain.over_tag = block.start_seqno;
        self.draw_block(ring, collected, Some((block, is_open)))
    }

    fn draw_without_start(&mut self, ring: u32) -> io::Result<()> {
        let chain = &mut self.chains.chains[ring as usize];
        let Some(block) = chain.without_start.take() else { return Ok(()) };
        chain.over_tag = block.tag;
        self.draw_block(ring, block, None)
    }

    /// Draws what consensus says of a block, with its number.
    fn consensus(
        &mut self,
        entry: &RecordingEntry<'_>,
        descriptor: &Descriptor,
        payload: PayloadRead<'_>,
    ) -> io::Result<()> {
        let ring = entry.ring;
        let mut said: Option<(String, Args)> = None;
        while let Some(found) = self.chains.rings.pop(ring) {
            said = facts::of_consensus(&found, descriptor).or(said);
        }
        let Some((name, args)) = said.filter(|_| self.recording.rings().span(ring, descriptor).is_none()) else {
            return self.typed_event(entry, descriptor, payload);
        };
        let track = self.track(TrackKey::Consensus(ring), None)?;
        let label = Label { name: &name, category: self.category(ring), ..Label::default() };
        self.writer.instant(track, descriptor.record_epoch_nanos, label, &args)
    }
}

/// Returns true if the block is over with this event.
fn is_end(meaning: Option<ExecEvent>, descriptor: &Descriptor) -> bool {
    match meaning {
        Some(ExecEvent::BlockEnd | ExecEvent::BlockReject) => true,
        Some(ExecEvent::EvmError) => descriptor.content_ext[1] == 0,
        _ => false,
    }
}
