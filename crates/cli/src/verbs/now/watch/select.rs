//! The selection of the events that `watch` shows.

use super::ring::{Ring, RingSchema};
use super::rings::Rings;
use crate::args::selection::{EventArgs, parse_level};
use crate::exit::{Exit, Failure};
use crate::input::names::decoder::check_type;
use crate::input::names::fields::check_fields;
use crate::text::format::counted;
use crate::text::losses::report_problem;
use crate::text::perf::is_description;
use eventring::reader::{Descriptor, EventFilter};
use eventring::schema::EventType as _;
use eventring::schema::exec::ExecEvent;
use eventring::schema::perf::CallSiteLevel;
use eventring_capture::SelectedNow;
use eventring_capture::condition::Truth;
use eventring_capture::recording::RecordingEntry;
use std::collections::HashSet;

/// The options that select the events to show.
#[derive(clap::Args)]
pub(super) struct Select {
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
    #[command(flatten)]
    pub(super) events: EventArgs,
    /// An earlier name of --max-level.
    #[arg(long, hide = true, value_name = "LEVEL", value_parser = parse_level, conflicts_with = "max_level")]
    level: Option<CallSiteLevel>,
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
    /// The test that needs what the event says, and the spans around it; `None` if all events fulfil it.
    wanted: Option<SelectedNow>,
}

impl Select {
    /// Returns true if the user has named types. All events of these types are then shown, even those that are left
    /// out by default.
    pub(super) fn names_types(&self) -> bool {
        !self.events.types.is_empty()
    }

    /// Returns the options about what events are about, without ids of spans.
    pub(super) fn events(&self) -> EventArgs {
        let span = self.events.span.iter().filter(|span| span.parse::<u64>().is_err()).cloned().collect();
        EventArgs { span, max_level: self.events.max_level.or(self.level), ..self.events.clone() }
    }

    /// Applies the options to live rings and returns the selection.
    ///
    /// # Errors
    /// The condition names a field that no event has, or an option has no meaning for these rings.
    pub(super) fn on_rings(&self, rings: &Rings) -> Result<EventSelection, Failure> {
        if let Some(condition) = &self.events.condition {
            let refuse = |why: String| Exit::Usage.failure(format!("--where: {why}"));
            check_fields(condition, &rings.known_fields()).map_err(refuse)?;
        }
        let events = eventring_capture::EventSelection { types: Vec::new(), ..self.events().selection() };
        let wanted = (!events.is_all()).then(|| SelectedNow::new(&events));
        Ok(EventSelection { wanted, ..self.on(rings)? })
    }

    /// Applies the options to the rings of a capture, whose reader has selected by what events are about.
    pub(super) fn on(&self, rings: &Rings) -> Result<EventSelection, Failure> {
        if self.block.is_some() {
            rings.exec_word("--block", "block")?;
        }
        if self.txn.is_some() {
            rings.exec_word("--txn", "txn")?;
        }
        if self.block_number.is_some() {
            rings.need_exec("--block-number")?;
        }
        let decoders = rings.iter().map(|ring| &ring.decoder);
        let checked = self.events.types.iter().try_for_each(|name| check_type(name, decoders.clone()));
        checked.map_err(|why| Exit::Usage.failure(why))?;
        let spans: Vec<u64> = self.events.span.iter().filter_map(|span| span.parse().ok()).collect();
        if !spans.is_empty() && spans.len() < self.events.span.len() {
            return Exit::Usage.fail("--span: an id beside a name; ask for the spans of either, in a call of its own");
        }
        let mut filters: Vec<(RingSchema, Option<EventFilter>)> = Vec::new();
        for ring in rings.iter() {
            if filters.iter().all(|(schema, _)| *schema != ring.schema) {
                filters.push((ring.schema, self.filter_in(ring)));
            }
        }
        Ok(EventSelection { filters, block_number: self.block_number, of_unknown_blocks: 0, spans, wanted: None })
    }

    /// Returns the selection of events of this ring by their descriptors, or `None` if it selects nothing.
    fn filter_in(&self, ring: &Ring) -> Option<EventFilter> {
        let mut filter = EventFilter::new();
        let codes = self.events.selection().codes(ring.decoder.model());
        if codes.as_ref().is_some_and(HashSet::is_empty) {
            return None;
        }
        for code in codes.into_iter().flatten() {
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

    /// Returns false if all that there is to know of an event is that it is not shown. Its payload is then not read.
    pub(super) fn needs(&self, ring: &Ring, event: &Descriptor) -> bool {
        let (is_perf, is_exec) = (ring.is_perf, ring.is_exec);
        self.wanted.is_some()
            || (is_exec && (self.block_number.is_some() || event.event_type == ExecEvent::BlockStart.code()))
            || (is_perf && is_description(event.event_type))
            || self.selects(ring, event)
    }

    /// Returns whether an entry is to be shown; unknown if that depends on a lost payload. All entries come here that
    /// are needed, so that what later events refer to is known even if it is not shown: the beginning of their block,
    /// and the spans that are open.
    pub(super) fn accepts(&mut self, ring: &Ring, entry: &RecordingEntry<'_>) -> Truth {
        let is_wanted = self.wanted.as_mut().map_or(Truth::Yes, |wanted| wanted.accepts(entry));
        let Some((event, payload)) = entry.event() else { return Truth::Yes };
        let block_number = ring.block_number(event, payload);
        if self.block_number.is_some() && self.block_number != block_number {
            let is_of_block = || ring.words.index_of("block").is_some_and(|word| event.content_ext[word] != 0);
            self.of_unknown_blocks += u64::from(block_number.is_none() && ring.is_exec && is_of_block());
            return Truth::No;
        }
        if self.wanted.is_some() && ring.is_perf && is_description(event.event_type) {
            return Truth::No;
        }
        is_wanted.min(self.selects(ring, event).into())
    }

    /// Returns true if an event is selected by its descriptor.
    fn selects(&self, ring: &Ring, event: &Descriptor) -> bool {
        let filter = self.filters.iter().find(|(schema, _)| *schema == ring.schema);
        matches!(filter, Some((_, Some(filter))) if filter.accepts(event))
            && (self.spans.is_empty() || self.spans.contains(&ring.span_id(event)))
    }
}
