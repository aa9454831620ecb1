//! The selection of the events that `watch` shows.

use super::ring::{Ring, RingSchema};
use super::rings::{LazyPayload, Rings};
use super::wanted::Wanted;
use crate::exit::{Exit, Failure};
use crate::input::decoder::no_such_event;
use crate::text::format::counted;
use crate::text::losses::report_problem;
use eventring::reader::{Descriptor, EventFilter};
use eventring_live::Truth;

/// The options that select the events to show.
#[derive(clap::Args)]
pub(super) struct Select {
    /// Only events of this type: a name (TXN_LOG, or TxnLog as in the source) or a code (18); may be repeated
    #[arg(long = "type", value_name = "NAME|CODE", value_delimiter = ',')]
    types: Vec<String>,
    /// Only events of the block whose BLOCK_START has this sequence number (execution events)
    #[arg(long, value_name = "SEQNO")]
    block: Option<u64>,
    /// Only events of the blocks with this number, as far as the blocks are known: from their BLOCK_START on, or by the
    /// ring's block table (execution events)
    #[arg(long, value_name = "NUMBER", conflicts_with = "block")]
    block_number: Option<u64>,
    /// Only events of the transaction with this index, from 0 (execution events)
    #[arg(long, value_name = "INDEX")]
    txn: Option<u64>,
    /// Only events of the span with this id: its own events in perf rings, and typed events recorded in it. Or only
    /// spans of this name, with everything in them. May be repeated
    #[arg(long, value_name = "ID|NAME")]
    span: Vec<String>,
}

/// The events that the options select.
pub(super) struct EventSelection {
    /// The part of the selection that needs only descriptors, for the events of each schema: the same code and the same
    /// extension word mean other things in another schema. `None` selects nothing of it.
    filters: Vec<(RingSchema, Option<EventFilter>)>,
    block_number: Option<u64>,
    /// The number of events of which it is not known whether they have the wanted block number.
    of_unknown_blocks: u64,
    /// The ids of the wanted spans; empty for all.
    spans: Vec<u64>,
    /// The test that needs the whole event.
    wanted: Wanted,
}

impl Select {
    /// Returns true if the user has named types. All events of these types are then shown, even those that are left
    /// out by default.
    pub(super) fn names_types(&self) -> bool {
        !self.types.is_empty()
    }

    /// Returns the names of the wanted spans.
    pub(super) fn span_names(&self) -> Vec<String> {
        self.span.iter().filter(|span| span.parse::<u64>().is_err()).cloned().collect()
    }

    /// Applies the options to these rings and returns the selection.
    pub(super) fn on(&self, rings: &Rings, wanted: Wanted) -> Result<EventSelection, Failure> {
        if self.block.is_some() {
            rings.exec_word("--block", "block")?;
        }
        if self.txn.is_some() {
            rings.exec_word("--txn", "txn")?;
        }
        if self.block_number.is_some() {
            rings.need_exec("--block-number")?;
        }
        let is_known = |name: &str| rings.iter().any(|ring| ring.decoder.code_of(name).is_some());
        if let Some(name) = self.types.iter().find(|name| !is_known(name)) {
            let known = rings.iter().flat_map(|ring| ring.decoder.events()).map(|(_, known)| known);
            return Exit::Usage.fail(no_such_event(name, known.collect()));
        }
        let spans: Vec<u64> = self.span.iter().filter_map(|span| span.parse().ok()).collect();
        if !spans.is_empty() && spans.len() < self.span.len() {
            return Exit::Usage.fail("--span: an id beside a name; ask for the spans of either, in a call of its own");
        }
        let mut filters: Vec<(RingSchema, Option<EventFilter>)> = Vec::new();
        for ring in rings.iter() {
            if filters.iter().all(|(schema, _)| *schema != ring.schema) {
                filters.push((ring.schema, self.filter_in(ring)));
            }
        }
        Ok(EventSelection { filters, block_number: self.block_number, of_unknown_blocks: 0, spans, wanted })
    }

    /// Returns the selection of events of this ring by their descriptors, or `None` if it selects nothing.
    fn filter_in(&self, ring: &Ring) -> Option<EventFilter> {
        let mut filter = EventFilter::new();
        let codes: Vec<u16> = self.types.iter().filter_map(|name| ring.decoder.code_of(name)).collect();
        if codes.is_empty() && self.names_types() {
            return None;
        }
        for code in codes {
            filter = filter.event_type(code);
        }
        for (word, value) in [("block", self.block), ("txn", self.txn.map(|index| index.saturating_add(1)))] {
            if let Some(value) = value {
                filter = filter.content_ext(ring.words.index_of(word).filter(|_| ring.is_exec)?, value);
            }
        }
        Some(filter)
    }
}

impl EventSelection {
    /// Says of how many events the block was not known.
    pub(super) fn report_unknown_blocks(&self) {
        if self.of_unknown_blocks > 0 {
            let are = counted(self.of_unknown_blocks, "event is of a block", "events are of blocks");
            report_problem(false, &format!("{are} whose number is not known: their BLOCK_START was not captured"));
        }
    }

    /// Returns whether the event is to be shown; unknown if that depends on a lost payload. Reads the payload only if
    /// the selection depends on it.
    pub(super) fn accepts(&mut self, ring: &Ring, event: &Descriptor, payload: &mut LazyPayload<'_>) -> Truth {
        // Every event comes here, so that a BLOCK_START is known for the events that follow even if it is not shown.
        let block_number = ring.block_number(event, || payload.read());
        if self.block_number.is_some() && self.block_number != block_number {
            let is_of_block = || ring.words.index_of("block").is_some_and(|word| event.content_ext[word] != 0);
            self.of_unknown_blocks += u64::from(block_number.is_none() && ring.is_exec && is_of_block());
            return Truth::No;
        }
        // The same holds for the spans that are open.
        let is_wanted = self.wanted.accepts(ring, event, payload);
        let filter = self.filters.iter().find(|(schema, _)| *schema == ring.schema);
        let is_selected = matches!(filter, Some((_, Some(filter))) if filter.accepts(event));
        let is_selected = is_selected && (self.spans.is_empty() || self.spans.contains(&ring.span_id(event)));
        is_wanted.min(is_selected.into())
    }
}
