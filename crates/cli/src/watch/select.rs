//! The selection of the events that `watch` shows.

use super::ring::Ring;
use super::rings::{LazyPayload, Rings};
use super::wanted::Wanted;
use crate::decoder::no_such_event;
use crate::exit::{Exit, Failure};
use eventring::reader::{Descriptor, EventFilter};

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
    /// spans of this name, with everything in them
    #[arg(long, value_name = "ID|NAME")]
    span: Option<String>,
}

/// The events that the options select.
pub(super) struct EventSelection {
    /// The part of the selection that needs only descriptors.
    filter: EventFilter,
    block_number: Option<u64>,
    span: Option<u64>,
    /// The test that needs the whole event.
    wanted: Wanted,
}

impl Select {
    /// Returns true if the user has named types. All events of these types are then shown, even those that are left
    /// out by default.
    pub(super) fn names_types(&self) -> bool {
        !self.types.is_empty()
    }

    /// Returns the id of the span, if the user has given an id.
    fn span_id(&self) -> Option<u64> {
        self.span.as_ref()?.parse().ok()
    }

    /// Returns the name of the span, if the user has given a name.
    pub(super) fn span_name(&self) -> Option<&String> {
        self.span.as_ref().filter(|_| self.span_id().is_none())
    }

    /// Applies the options to these rings and returns the selection.
    pub(super) fn on(&self, rings: &Rings, wanted: Wanted) -> Result<EventSelection, Failure> {
        let mut filter = EventFilter::new();
        for name in &self.types {
            for code in codes(rings, name)? {
                filter = filter.event_type(code);
            }
        }
        if let Some(block) = self.block {
            filter = filter.content_ext(rings.exec_word("--block", "block")?, block);
        }
        if let Some(index) = self.txn {
            filter = filter.content_ext(rings.exec_word("--txn", "txn")?, index.saturating_add(1));
        }
        if self.block_number.is_some() {
            rings.need_exec("--block-number")?;
        }
        Ok(EventSelection { filter, block_number: self.block_number, span: self.span_id(), wanted })
    }
}

/// Returns the event codes for a name or a number that the user gave. In several rings, the same name may stand for
/// several codes.
fn codes(rings: &Rings, name: &str) -> Result<Vec<u16>, Failure> {
    if let Ok(code) = name.parse() {
        return Ok(vec![code]);
    }
    let all = || rings.iter().flat_map(|ring| ring.decoder.events());
    // The user may name a type as the ring does (ORDER_SHIPPED), or as the program's source does (OrderShipped). Names
    // are first compared as they are, and then without underscores. Upper and lower case never matter.
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let is_called = |known: &str| known.eq_ignore_ascii_case(name);
    let is_called_in_source = |known: &str| plain(known) == plain(name);
    for is_it in [&is_called as &dyn Fn(&str) -> bool, &is_called_in_source] {
        let found: Vec<u16> = all().filter(|(_, known)| is_it(known)).map(|(code, _)| code).collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let message = no_such_event(name, all().map(|(_, known)| known).collect());
    Err(Failure::new(Exit::Usage, message))
}

impl EventSelection {
    /// Returns true if the event is to be shown. Reads the payload only if the selection depends on it.
    pub(super) fn accepts(&mut self, ring: &Ring, event: &Descriptor, payload: &mut LazyPayload<'_>) -> bool {
        // Every event comes here, so that a BLOCK_START is known for the events that follow even if it is not shown.
        let block_number = ring.block_number(event, || payload.read());
        if self.block_number.is_some() && self.block_number != block_number {
            return false;
        }
        // The same holds for the spans that are open.
        let is_wanted = self.wanted.accepts(ring, event, payload);
        is_wanted && self.filter.accepts(event) && self.span.is_none_or(|span| ring.span_id(event) == span)
    }
}
