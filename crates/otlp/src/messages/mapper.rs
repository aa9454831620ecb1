//! Making messages of OTLP from records.

use super::attributes::Attributes;
use super::batch::{OtlpBatch, OtlpRequests};
use super::happenings::Happening;
use super::ids::{ClosedTrees, Tree};
use super::open_span_events::{Holding, OpenSpanEvents};
use super::otel_fields;
use eventring::reader::{Gap, GapCause};
use eventring::tracing::context::ProcessIds;
use eventring::tracing::{Span, SpanId};
use eventring_capture::recording::{RecordedProgram, RecordedRings};
use eventring_export::args::Args;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span as OtlpSpan;
use opentelemetry_proto::tonic::trace::v1::SpanFlags;
use opentelemetry_proto::tonic::trace::v1::span::Link;

/// A process whose spans are sent.
#[derive(Default)]
struct OtlpProcess {
    program: RecordedProgram,
    ids: ProcessIds,
    /// The name of its first ring.
    ring: String,
    /// True if a ring of spans is known.
    has_spans: bool,
    /// The number of events that it has lost.
    lost: u64,
    /// The number of events that had been overwritten before anybody read them.
    overwritten_before: u64,
    /// The number of the latest span that was sent open, and the one that was so when the program ended before. A
    /// program whose rings have all ended may make another one, and then ends again.
    sent_open: (u64, u64),
}

/// Makes messages of spans, of what happens at one time, and of losses.
#[derive(Default)]
pub(crate) struct OtlpMapper {
    /// The name of the host, if it is known.
    host: Option<String>,
    /// The time from which on there are events, if no better one is known, in nanoseconds since the epoch.
    since_nanos: u64,
    processes: Vec<OtlpProcess>,
    /// The number of rings that were there at the last look.
    rings_known: usize,
    pub(super) batch: OtlpBatch,
    held: OpenSpanEvents,
    trees: ClosedTrees,
    /// The counts of what no span has.
    pub(crate) counts: NotInSpans,
    /// The number of spans that were open although their programs had ended.
    pub(crate) open_spans: u64,
}

/// The numbers of what no span has, although it belongs to one.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct NotInSpans {
    /// Links that were dropped because their spans had too many.
    pub(crate) dropped_links: u64,
    /// Events and links that left as log records, and that their spans do not count.
    pub(crate) apart: u64,
}

/// What happened in a span that nobody knows any more, with its process, its tree, and the span.
pub(super) type Gone = (usize, (Tree, SpanId), Happening);

impl OtlpProcess {
    fn resource(&self, host: Option<&str>) -> Resource {
        let mut attributes = Attributes::default();
        let program = if self.program.name.is_empty() { "unknown_service" } else { &self.program.name };
        attributes.push_text("service.name", program);
        attributes.push_text("service.instance.id", format!("{:016x}", self.ids.instance()));
        if self.program.pid != 0 {
            attributes.push_count("process.pid", self.program.pid.into());
        }
        if let Some(host) = host {
            attributes.push_text("host.name", host);
        }
        attributes.push_text("telemetry.sdk.name", "eventring");
        attributes.push_text("telemetry.sdk.language", "rust");
        attributes.push_text("telemetry.sdk.version", env!("CARGO_PKG_VERSION"));
        attributes.push_text("eventring.ring", &self.ring);
        // Without losses, the resource stays the same, as receivers expect.
        if self.lost > 0 {
            attributes.push_count("eventring.lost_events", self.lost);
        }
        Resource { attributes: attributes.0, ..Resource::default() }
    }
}

impl OtlpMapper {
    /// Makes a mapper whose batches are full from this number of bytes on.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { batch: OtlpBatch::new(bytes_max), ..Self::default() }
    }

    /// Sets the name of the host.
    pub(crate) fn host(self, host: Option<String>) -> Self {
        Self { host, ..self }
    }

    /// Sets the time of losses before the first event of a ring of which nobody knows when it was made.
    pub(super) fn since(self, since_nanos: u64) -> Self {
        Self { since_nanos, ..self }
    }

    /// Learns of processes that are new, and of the first ring of spans of a process.
    #[inline]
    pub(super) fn learn(&mut self, rings: &RecordedRings) {
        if self.rings_known != rings.count() {
            self.rings_known = rings.count();
            self.learn_processes(rings);
        }
    }

    #[cold]
    fn learn_processes(&mut self, rings: &RecordedRings) {
        self.processes.resize_with(rings.programs().len(), OtlpProcess::default);
        for (index, (process, program)) in self.processes.iter_mut().zip(rings.programs()).enumerate() {
            if process.has_spans {
                continue;
            }
            // The ids are those of an export of all these rings, also if the ring of spans has come last.
            (process.program, process.ids) = (program.clone(), rings.ids(index).clone());
            process.has_spans = rings.of_process(index).any(|ring| rings.is_perf(ring));
            if process.ring.is_empty() {
                process.ring = rings.of_process(index).next().map_or("", |ring| rings.name(ring)).to_owned();
            }
        }
    }

    /// Notes that a span remains at the end of its program. Returns false if it was sent before as such a span.
    pub(super) fn is_sent_first(&mut self, process: usize, span: &Span) -> bool {
        let (latest, before) = &mut self.processes[process].sent_open;
        *latest = span.number.max(*latest);
        let is_first = span.number > *before;
        self.open_spans += u64::from(is_first && span.is_open());
        is_first
    }

    /// Notes that the spans that remain at the end of a process were taken.
    pub(super) fn end_process(&mut self, process: usize) {
        if let Some(OtlpProcess { sent_open: (latest, before), .. }) = self.processes.get_mut(process) {
            *before = *latest;
        }
    }

    /// Takes a span that is over. `attributes` are its fields. A span without an end ends at `end_nanos`.
    pub(super) fn span(&mut self, process: usize, span: &Span, mut attributes: Attributes, end_nanos: u64) {
        let process_ids = &self.processes[process].ids;
        let ids = process_ids.of(span);
        let start = span.start_epoch_nanos();
        let end = match &span.closed {
            Some(closed) => closed.epoch_nanos,
            None if span.is_end_lost => span.last_seen_epoch_nanos,
            None => end_nanos,
        };
        let happened = self.held.take(process, span.id);
        // What the ids and flags say need not be said twice.
        attributes.take_text("eventring.traceparent");
        let trace_state = attributes.take_text("eventring.tracestate").unwrap_or_default();
        let name = otel_fields::name(&attributes, span);
        let kind = otel_fields::kind(&attributes);
        let status = otel_fields::status(&attributes, happened.error);
        if let Some(call_site) = &span.call_site {
            attributes.push_call_site(call_site);
        }
        if let Some(created) = &span.created {
            attributes.push_thread(&created.thread);
        }
        if let Some(busy) = span.known_busy_nanos() {
            attributes.push_count("eventring.busy_ns", busy);
        }
        let mut measured = Args::default();
        measured.push_instructions(span.instructions);
        measured.push_times(span.times());
        measured.push_allocated(span.allocated);
        attributes.push_facts(measured);
        attributes.push_flag("eventring.open", span.is_open() && !span.is_end_lost);
        attributes.push_flag("eventring.end_lost", span.is_end_lost);
        attributes.push_flag("eventring.scope", span.is_scope());
        attributes.push_flag("eventring.ended_with_parent", span.has_ended_with_parent());
        attributes.push_flag("eventring.exit_missing", !span.missing_exits().is_empty());
        attributes.push_flag("eventring.start_lost", span.created.is_none());
        attributes.push_flag("eventring.may_have_losses", span.may_have_losses);
        if happened.as_logs > 0 {
            attributes.push_count("eventring.events_as_logs", happened.as_logs);
        }
        let link = |(id, tree): (SpanId, Tree)| {
            let (trace_id, span_id) = tree.ids(process_ids, id);
            Link { trace_id, span_id, ..Link::default() }
        };
        let links = happened.links.into_iter().map(link).collect();
        let message = OtlpSpan {
            trace_id: ids.trace_id.to_bytes().to_vec(),
            span_id: ids.span_id.to_be_bytes().to_vec(),
            parent_span_id: ids.parent_span_id.map(|id| id.to_be_bytes().to_vec()).unwrap_or_default(),
            trace_state,
            flags: trace_flags(span),
            name,
            kind: kind.into(),
            start_time_unix_nano: start,
            end_time_unix_nano: end.max(start),
            attributes: attributes.0,
            events: happened.events.into_iter().map(Happening::into_event).collect(),
            links,
            dropped_links_count: happened.links_dropped,
            status,
            ..OtlpSpan::default()
        };
        self.trees.add(process, span);
        let scope = span.call_site.as_ref().map_or("", |call_site| &call_site.target);
        self.batch.span(process, scope, message);
    }

    /// Takes the fact that a span follows from another one. `known` is the other one, if it is not over.
    pub(super) fn link(
        &mut self,
        process: usize,
        (id, span): (SpanId, Option<&Span>),
        (to, known): (SpanId, Option<&Span>),
        epoch_nanos: u64,
    ) {
        let to_tree = self.trees.of(process, to, known);
        let held = match span {
            Some(_) => self.held.link(process, id, (to, to_tree)),
            None => Holding::NoEntry(()),
        };
        match held {
            Holding::Held => {}
            Holding::Full(()) => self.counts.dropped_links += 1,
            Holding::NoEntry(()) => {
                let link = self.link_apart(process, (to, to_tree), epoch_nanos);
                self.log_record_apart(process, (self.trees.of(process, id, span), id), link);
            }
        }
    }

    /// Returns a link as a happening, which leaves by itself.
    fn link_apart(&self, process: usize, (to, tree): (SpanId, Tree), epoch_nanos: u64) -> Happening {
        let (trace_id, span_id) = tree.ids(&self.processes[process].ids, to);
        Happening::of_link(&trace_id, &span_id, epoch_nanos)
    }

    /// Takes what happened at one time, in no span or in a span with this id. `known` is the span, if it is not over.
    pub(super) fn happening(&mut self, process: usize, id: Option<SpanId>, known: Option<&Span>, happening: Happening) {
        let Some(id) = id else { return self.log_record(process, None, happening) };
        let tree = self.trees.of(process, id, known);
        let held = match known {
            Some(_) => self.held.add(process, id, happening),
            None => Holding::NoEntry(happening),
        };
        match held {
            Holding::Held => {}
            Holding::Full(happening) => self.log_record(process, Some((tree, id)), happening),
            Holding::NoEntry(happening) => self.log_record_apart(process, (tree, id), happening),
        }
    }

    /// Takes a loss.
    pub(super) fn loss(&mut self, process: usize, (rings, ring): (&RecordedRings, u32), gap: Gap, now_nanos: u64) {
        let of_process = &mut self.processes[process];
        let total = match gap.cause {
            GapCause::OverwrittenBefore => &mut of_process.overwritten_before,
            _ => &mut of_process.lost,
        };
        *total = total.saturating_add(gap.count);
        let total = *total;
        // Before the first event, the loss has the time from which on the ring could have events.
        let nanos = [now_nanos, rings.created_epoch_nanos(ring)].into_iter().find(|nanos| *nanos != 0);
        let nanos = nanos.unwrap_or(self.since_nanos);
        let loss = Happening::of_loss(rings.name(ring), gap, nanos, total);
        self.log_record(process, None, loss);
    }

    /// Returns true if there is little room for what happened in open spans. Then the caller should let go of what
    /// happened in spans that nobody knows ([`Self::take_gone`]).
    pub(super) fn is_crowded(&self) -> bool {
        self.held.is_crowded()
    }

    /// Takes what happened in spans that nobody knows. The caller gives each to [`Self::log_record_apart`], and lets
    /// batches leave in between.
    pub(super) fn take_gone(&mut self, is_known: impl Fn(usize, SpanId) -> bool) -> Vec<Gone> {
        let mut gone = Vec::new();
        for ((process, id), happened) in self.held.take_gone(is_known) {
            let of = (self.trees.of(process, id, None), id);
            // Nobody counts those that left earlier, either.
            self.counts.apart += happened.as_logs;
            let links = happened.links.into_iter().map(|link| self.link_apart(process, link, 0));
            gone.extend(happened.events.into_iter().chain(links).map(|happening| (process, of, happening)));
        }
        gone
    }

    /// Takes the requests of everything that is ready to leave.
    pub(crate) fn take(&mut self) -> OtlpRequests {
        self.batch.take(|process| self.processes[process].resource(self.host.as_deref()))
    }

    /// Returns the number of events that were lost, and of those that had been overwritten before they were read.
    pub(crate) fn lost(&self) -> (u64, u64) {
        let sum = |count: fn(&OtlpProcess) -> u64| self.processes.iter().map(count).fold(0, u64::saturating_add);
        (sum(|process| process.lost), sum(|process| process.overwritten_before))
    }

    /// Returns true if nothing waits to leave.
    pub(crate) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.held.kept_bytes() + self.batch.kept_bytes()
    }

    /// Makes a log record of what its span neither has nor counts.
    pub(super) fn log_record_apart(&mut self, process: usize, of: (Tree, SpanId), mut happening: Happening) {
        self.counts.apart += 1;
        happening.is_apart();
        self.log_record(process, Some(of), happening);
    }

    fn log_record(&mut self, process: usize, of: Option<(Tree, SpanId)>, happening: Happening) {
        let (trace_id, span_id) = match of {
            Some((tree, id)) => tree.ids(&self.processes[process].ids, id),
            None => (Vec::new(), Vec::new()),
        };
        let scope = happening.scope.clone();
        self.batch.log_record(process, &scope, happening.into_log_record(trace_id, span_id));
    }
}

/// Returns the flags of a span: those of the trace, and whether its parent is in another process.
fn trace_flags(span: &Span) -> u32 {
    let of_trace = span.remote_trace.map_or(0, |trace| u32::from(trace.flags));
    let is_remote = if span.remote_parent.is_some() { SpanFlags::ContextIsRemoteMask as u32 } else { 0 };
    match span.remote_trace {
        Some(_) => of_trace | SpanFlags::ContextHasIsRemoteMask as u32 | is_remote,
        None => 0,
    }
}
