//! The slices of an ended block: the block, the EVM in it, and its transactions.

use super::collected::{Collected, Part, PendingEvent};
use super::facts;
use crate::args::{ArgValue, Args};
use crate::formats::trace_writer::{Alert, Label, TrackId};
use crate::slices::track_rows::TrackRows;
use crate::trace_builder::drawn::drawn_end;
use crate::trace_builder::{TraceBuilder, TrackKey};
use eventring::reader::PayloadRead;
use eventring::schema::exec::ExecEvent;
use eventring_exec::{Block, Outcome};
use std::collections::BTreeMap;
use std::io;

impl TraceBuilder<'_> {
    /// Draws a block. `block` is what its events say, and whether it was open at the end of the recording; `None` if
    /// its BLOCK_START was not read.
    pub(super) fn draw_block(
        &mut self,
        ring: u32,
        mut collected: Collected,
        block: Option<(&Block, bool)>,
    ) -> io::Result<()> {
        let seen = collected.times();
        let (mut start, mut end) =
            seen.or(block.map(|(it, _)| (it.start_epoch_nanos, it.end_epoch_nanos))).unwrap_or_default();
        if let Some((block, _)) = block {
            start = block.start_epoch_nanos;
            // Times are not in order, so the end need not be the latest event.
            if block.outcome != Outcome::Unknown {
                end = block.end_epoch_nanos;
            }
        }
        let (start, end) = (start, drawn_end(start, end));
        let number = block.map(|(block, _)| block.number()).or(collected.known.as_ref().map(|known| known.number()));
        let state = |tag| self.outline.states.of(ring, tag);
        let args = facts::of_block(&collected, block, state);
        let name = number.map_or_else(|| "block ?".to_owned(), |number| format!("block {number}"));
        let row = place(&mut self.chains.chains[ring as usize].block_rows, start, end);
        let track = self.track(TrackKey::Blocks { ring, row }, None)?;
        let (slice, category) = (self.next_slice(), self.category(ring));
        let alert = block.and_then(|(block, _)| facts::alert_of_block(block));
        self.writer.begin(track, slice, start, Label { name: &name, category, alert, ..Label::default() }, &args)?;
        self.draw_evm(track, category, &collected.own, (start, end))?;
        self.draw_held(ring, track, &collected.own.held, (start, end))?;
        self.writer.end(track, slice, end, &Args::default())?;
        let txns = std::mem::take(&mut collected.txns);
        self.draw_txns(ring, number, txns, block.map(|(block, _)| block))
    }

    /// Draws the time of the EVM inside of its block.
    fn draw_evm(&mut self, track: TrackId, category: &str, own: &Part, (start, end): (u64, u64)) -> io::Result<()> {
        if own.enter_nanos.is_none() && own.exit_nanos.is_none() {
            return Ok(());
        }
        let mut args = Args::default();
        args.push_not_seen("start", own.enter_nanos);
        args.push_not_seen("end", own.exit_nanos);
        // Slices with equal times may be nested in either way.
        let last = end.saturating_sub(1);
        let from = own.enter_nanos.unwrap_or(start).clamp(start.saturating_add(1).min(last), last);
        let until = own.exit_nanos.unwrap_or(end).clamp(from, last);
        if from >= until {
            return Ok(());
        }
        self.whole_slice(track, (from, until), Label { name: "EVM", category, ..Label::default() }, &args)
    }

    fn draw_txns(
        &mut self,
        ring: u32,
        number: Option<u64>,
        txns: BTreeMap<u64, Part>,
        block: Option<&Block>,
    ) -> io::Result<()> {
        let mut facts_of = block.iter().flat_map(|block| &block.transactions).peekable();
        let mut drawn = Vec::with_capacity(txns.len());
        for (index, part) in txns {
            while facts_of.next_if(|txn| txn.index < index).is_some() {}
            let txn = facts_of.next_if(|txn| txn.index == index);
            let start = part.enter_nanos.unwrap_or(part.first_nanos);
            let end = drawn_end(start, part.exit_nanos.unwrap_or(part.last_nanos));
            drawn.push((start, end, index, part, txn));
        }
        // The lowest free row for the earliest first takes as few rows as there can be.
        drawn.sort_by_key(|(start, end, index, ..)| (*start, *end, *index));
        let category = self.category(ring);
        for (start, end, index, part, txn) in drawn {
            let row = place(&mut self.chains.chains[ring as usize].txn_rows, start, end);
            let track = self.track(TrackKey::Transactions { ring, row }, None)?;
            let slice = self.next_slice();
            let args = facts::of_txn(index, number, &part, txn, block);
            let name = format!("txn {index}");
            let alert = txn.and_then(facts::alert_of_txn);
            self.writer.begin(
                track,
                slice,
                start,
                Label { name: &name, category, alert, ..Label::default() },
                &args,
            )?;
            self.draw_held(ring, track, &part.held, (start, end))?;
            self.writer.end(track, slice, end, &Args::default())?;
        }
        Ok(())
    }

    /// Draws events as instants inside of a slice. Those that were recorded after its end are drawn in its last
    /// nanoseconds, one a nanosecond, and say so.
    fn draw_held(
        &mut self,
        ring: u32,
        track: TrackId,
        held: &[PendingEvent],
        (start, end): (u64, u64),
    ) -> io::Result<()> {
        let is_late = |held: &PendingEvent| held.descriptor.record_epoch_nanos >= end;
        let mut late = held.iter().filter(|held| is_late(held)).count() as u64;
        let mut drawn = Vec::with_capacity(held.len());
        for held in held {
            let mut nanos = held.descriptor.record_epoch_nanos;
            if is_late(held) {
                nanos = end.saturating_sub(late);
                late -= 1;
            }
            drawn.push((nanos.min(end.saturating_sub(1)).max(start), held));
        }
        drawn.sort_by_key(|(nanos, _)| *nanos);
        let (recording, category) = (self.recording, self.category(ring));
        for (nanos, PendingEvent { descriptor, payload, meaning }) in drawn {
            let read = payload.as_deref().map_or(PayloadRead::Expired, PayloadRead::Valid);
            let mut args = self.typed_args(ring, descriptor, read);
            let recorded = descriptor.record_epoch_nanos;
            if recorded > end {
                args.push("recorded_after_end_ns", ArgValue::Uint(recorded - end));
            } else if recorded < start {
                args.push("recorded_before_start_ns", ArgValue::Uint(start - recorded));
            }
            let is_error = matches!(meaning, Some(ExecEvent::RecordError | ExecEvent::EvmError | ExecEvent::TxnReject));
            let alert = is_error.then_some(Alert::Error);
            let name = recording.rings().event_name(ring, descriptor.event_type);
            self.writer.instant(track, nanos, Label { name: &name, category, alert, ..Label::default() }, &args)?;
        }
        Ok(())
    }
}

/// Returns the row for a slice whose end is known.
fn place(rows: &mut TrackRows, start_nanos: u64, end_nanos: u64) -> u32 {
    let row = rows.begin(0, start_nanos, None);
    rows.end(row, 0, end_nanos);
    row
}
