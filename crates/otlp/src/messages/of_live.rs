//! The messages of running programs, from what the live engine sees.

use super::attributes::Attributes;
use super::batch::{OtlpBatch, OtlpRequests};
use super::happenings::{Happening, of_fields};
use super::ids::ProcessKey;
use super::mapper::{NotInSpans, OtlpMapper, OtlpProcess};
use eventring::reader::Gap;
use eventring::tracing::{Field, Span, SpanId};
use eventring_live::{Live, LiveFields, LiveProgram, LiveState, Sight};
use std::collections::HashMap;
use std::sync::Arc;

/// Makes messages of what the live engine sees.
#[derive(Default)]
pub(crate) struct LiveMapper {
    mapper: OtlpMapper,
    host: Option<String>,
    open_spans: u64,
    /// The number of rings that were there at the last look.
    rings_known: usize,
    /// The number of the latest span of each process that was sent open. A program whose rings have all ended may make
    /// another one, and then ends again.
    sent_open: HashMap<usize, u64>,
}

impl LiveMapper {
    /// `host` is the name of this host.
    pub(crate) fn new(host: Option<String>) -> Self {
        Self { host, ..Self::default() }
    }

    /// Takes what the engine has seen. Calls `leave` whenever a batch is full.
    pub(crate) fn see(&mut self, sight: &Sight<'_>, state: LiveState<'_>, mut leave: impl FnMut(&mut Self)) {
        self.learn(state);
        match sight {
            Sight::SpanClosed(closed) | Sight::SpanGivenUp(closed) => {
                self.span(closed.process_index, closed.span(), closed.fields(), closed.epoch_nanos());
            }
            Sight::LogRecord(seen) => {
                let happening = Happening::of_record(seen.record, seen.catalog);
                self.happening(seen.program(), seen.span_id(), seen.span(), happening, state);
            }
            Sight::Marker(seen) => {
                let happening = Happening::of_record(seen.record, seen.catalog);
                self.happening(seen.program(), seen.record.span(), seen.span(), happening, state);
            }
            Sight::Other(seen) => match (seen.record.span(), seen.follows_from(), state.process_of(seen.program())) {
                (Some(id), Some(to), Some(process)) => {
                    let to = (to, state.span_of(process, to));
                    self.mapper.link(process, (id, seen.span()), to, seen.epoch_nanos());
                }
                (id, ..) => {
                    let happening = Happening::of_record(seen.record, seen.catalog);
                    self.happening(seen.program(), id, seen.span(), happening, state);
                }
            },
            Sight::TypedEvent(seen) => {
                let (rings, ring) = (state.recorded_rings(), (seen.ring, seen.ring_name()));
                let happening = Happening::of_typed_event(rings, ring, seen.descriptor(), seen.payload);
                let id = rings.span(seen.ring, seen.descriptor());
                self.happening(seen.program(), id, seen.span(), Some(happening), state);
            }
            Sight::Lost(lost) => {
                if let Some(process) = state.process_of(lost.program) {
                    self.mapper.loss(process, lost.ring_name, lost.gap, lost.epoch_nanos);
                }
            }
            Sight::Tick if self.mapper.is_crowded() => {
                self.let_go(|process, id| state.span_of(process, id).is_some(), &mut leave);
            }
            Sight::ProgramEnded(end) => {
                if let Some(process) = state.process_of(end.program) {
                    self.end(process, end.epoch_nanos, state, &mut leave);
                }
            }
            _ => {}
        }
        if self.batch().is_full() {
            leave(self);
        }
    }

    /// Takes the events that were overwritten before the engine began. Returns their number.
    pub(crate) fn lost_before(&mut self, live: &mut Live) -> u64 {
        let mut count = 0;
        for (ring, gap) in live.take_lost_before() {
            let state = live.state();
            self.learn(state);
            let process = state.recorded_rings().origin(ring).process_index;
            let Gap { count: lost, .. } = gap;
            let nanos = match state.now_epoch_nanos() {
                0 => state.ring_created_nanos(ring),
                now_nanos => now_nanos,
            };
            self.mapper.loss(process, state.ring_name(ring), gap, nanos);
            count = u64::saturating_add(count, lost);
        }
        count
    }

    /// Takes the spans that are open although their program has ended.
    fn end(&mut self, process: usize, end_nanos: u64, state: LiveState<'_>, leave: &mut impl FnMut(&mut Self)) {
        let sent_before = self.sent_open.get(&process).copied().unwrap_or(0);
        for span in state.open_spans().at_end(process, end_nanos).filter(|span| span.number > sent_before) {
            let latest = self.sent_open.entry(process).or_default();
            *latest = span.number.max(*latest);
            self.open_spans += 1;
            let fields = LiveFields::of_span(&span);
            self.span(process, &span, fields, end_nanos);
            if self.batch().is_full() {
                leave(self);
            }
        }
        self.let_go(|of, _| of != process, leave);
    }

    /// Lets go of what happened in spans that nobody knows. A batch that is full leaves in between: there may be much.
    fn let_go(&mut self, is_known: impl Fn(usize, SpanId) -> bool, leave: &mut impl FnMut(&mut Self)) {
        for gone in self.mapper.take_gone(is_known) {
            self.mapper.let_go(gone);
            if self.batch().is_full() {
                leave(self);
            }
        }
    }

    /// Returns the number of spans that were open although their programs had ended.
    pub(crate) fn open_spans(&self) -> u64 {
        self.open_spans
    }

    /// Returns the numbers of what no span has, although it belongs to one.
    pub(crate) fn not_in_spans(&self) -> NotInSpans {
        self.mapper.counts
    }

    /// Returns what waits to leave.
    pub(crate) fn batch(&self) -> &OtlpBatch {
        &self.mapper.batch
    }

    /// Takes the requests of everything that is ready to leave.
    pub(crate) fn take(&mut self) -> OtlpRequests {
        self.mapper.take()
    }

    /// Learns of processes that are new, and of the first ring of spans of a process.
    fn learn(&mut self, state: LiveState<'_>) {
        let rings = state.recorded_rings();
        if self.rings_known == rings.count() {
            return;
        }
        self.rings_known = rings.count();
        for index in 0..state.programs().len() {
            if self.mapper.processes.get(index).is_some_and(|known| known.has_spans) {
                continue;
            }
            let LiveProgram { pid, name, .. } = &state.programs()[index];
            let first = (0..rings.count() as u32).find(|ring| rings.origin(*ring).process_index == index);
            let recorders = rings.recorders().iter().filter(|ring| rings.origin(**ring).process_index == index);
            let of_perf = recorders.map(|ring| state.ring_created_nanos(*ring)).min();
            // A program without a ring of spans is told from others by its other rings.
            let of_process = (0..rings.count() as u32).filter(|ring| rings.origin(*ring).process_index == index);
            let created = of_perf.or_else(|| of_process.map(|ring| state.ring_created_nanos(ring)).min());
            let key = ProcessKey { pid: *pid, program: name.clone(), created_nanos: created.unwrap_or_default() };
            // The ids are those of an export of all these rings, also if the ring of spans has come last.
            match self.mapper.processes.get_mut(index) {
                Some(known) => (known.key, known.has_spans) = (key, of_perf.is_some()),
                None => {
                    let ring = first.map_or("", |ring| state.ring_name(ring)).to_owned();
                    let mut process = OtlpProcess::new(key, ring, self.host.clone());
                    process.has_spans = of_perf.is_some();
                    self.mapper.processes.push(process);
                }
            }
        }
    }

    fn span(&mut self, process: usize, span: &Span, fields: LiveFields<'_>, end_nanos: u64) {
        let decoded = fields.iter().map(|(name, field)| Field {
            name: Arc::from(if name.is_empty() { format!("field {}", field.index) } else { name.to_owned() }),
            index: field.index,
            value: field.to_value(),
            cut: field.cut,
        });
        let attributes: Attributes = of_fields(decoded, span.fields.missing, span.fields.problem);
        self.mapper.span(process, span, attributes, end_nanos);
    }

    fn happening(
        &mut self,
        program: &LiveProgram,
        id: Option<SpanId>,
        known: Option<&Span>,
        happening: Option<Happening>,
        state: LiveState<'_>,
    ) {
        if let (Some(happening), Some(process)) = (happening, state.process_of(program)) {
            self.mapper.happening(process, id, known, happening);
        }
    }
}
