//! The table `spans`: a row for each span.

use super::columns::{Column, amount};
use super::field_types::TypedField;
use super::fields::FieldColumns;
use super::sites::{SiteColumns, ThreadColumns};
use super::table::RowColumns;
use arrow_array::builder::{BooleanBuilder, Int64Builder, ListBuilder, StringBuilder, UInt32Builder, UInt64Builder};
use eventring::tracing::context::{ProcessIds, SpanIdText};
use eventring::tracing::{Span, SpanId};
use std::io;

/// The column with the time by which spans are sorted.
pub(super) const TIME: &str = "start_ns";
/// An estimate of the bytes that a span takes without its fields.
const SPAN_BYTES: u64 = 208;

#[derive(Default)]
pub(super) struct SpanColumns {
    process: UInt32Builder,
    id: UInt64Builder,
    parent: UInt64Builder,
    trace_id: StringBuilder,
    span_id: StringBuilder,
    parent_span_id: StringBuilder,
    site: SiteColumns,
    thread: ThreadColumns,
    start: Int64Builder,
    end: Int64Builder,
    duration: Int64Builder,
    busy: Int64Builder,
    instructions: Int64Builder,
    self_instructions: Int64Builder,
    scope: BooleanBuilder,
    ended_with_parent: BooleanBuilder,
    open: BooleanBuilder,
    end_lost: BooleanBuilder,
    last_seen: Int64Builder,
    may_have_losses: BooleanBuilder,
    follows_from: ListBuilder<UInt64Builder>,
    fields: FieldColumns,
}

impl SpanColumns {
    pub(super) fn new(types: &[TypedField]) -> Self {
        Self { fields: FieldColumns::new(types), ..Self::default() }
    }

    /// Appends a span. Returns an estimate of the bytes that it takes.
    pub(super) fn push(&mut self, process: u32, span: &Span, ids: &ProcessIds) -> io::Result<u64> {
        let busy = span.known_busy_nanos();
        self.process.append_value(process);
        self.id.append_value(span.id.get());
        self.parent.append_option(span.parent.map(SpanId::get));
        let ids = ids.of(span);
        self.trace_id.append_value(ids.trace_id.to_string());
        self.span_id.append_value(SpanIdText(ids.span_id).to_string());
        self.parent_span_id.append_option(ids.parent_span_id.map(|id| SpanIdText(id).to_string()));
        let described = self.site.push(span.call_site.as_ref())
            + self.thread.push(span.created.as_ref().map(|created| &created.thread));
        self.start.append_option(span.created.as_ref().map(|created| amount(created.epoch_nanos)));
        self.end.append_option(span.closed.as_ref().map(|closed| amount(closed.epoch_nanos)));
        self.duration.append_option(span.wall_nanos().map(amount));
        self.busy.append_option(busy.map(amount));
        self.instructions.append_option(span.instructions.map(|counts| amount(counts.all)));
        self.self_instructions.append_option(span.instructions.map(|counts| amount(counts.own)));
        self.scope.append_value(span.is_scope());
        self.ended_with_parent.append_value(span.has_ended_with_parent());
        self.open.append_value(span.is_open() && !span.is_end_lost);
        self.end_lost.append_value(span.is_end_lost);
        self.last_seen.append_option(span.is_end_lost.then_some(amount(span.last_seen_epoch_nanos)));
        self.may_have_losses.append_value(span.may_have_losses || busy.is_none());
        self.follows_from.append_value(span.follows_from.iter().map(|id| Some(id.get())));
        let more = 8 * span.follows_from.len() as u64;
        Ok(SPAN_BYTES + described + more + self.fields.push(&span.fields)?)
    }
}

impl RowColumns for SpanColumns {
    fn columns(&mut self) -> Vec<(&str, &mut dyn Column)> {
        vec![
            ("process", &mut self.process),
            ("id", &mut self.id),
            ("parent", &mut self.parent),
            ("trace_id", &mut self.trace_id),
            ("span_id", &mut self.span_id),
            ("parent_span_id", &mut self.parent_span_id),
            ("", &mut self.site),
            ("", &mut self.thread),
            (TIME, &mut self.start),
            ("end_ns", &mut self.end),
            ("duration_ns", &mut self.duration),
            ("busy_ns", &mut self.busy),
            ("instructions", &mut self.instructions),
            ("self_instructions", &mut self.self_instructions),
            ("scope", &mut self.scope),
            ("ended_with_parent", &mut self.ended_with_parent),
            ("open", &mut self.open),
            ("end_lost", &mut self.end_lost),
            ("last_seen_ns", &mut self.last_seen),
            ("may_have_losses", &mut self.may_have_losses),
            ("follows_from", &mut self.follows_from),
            ("", &mut self.fields),
        ]
    }
}
