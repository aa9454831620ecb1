//! Messages that are sent together, grouped as in OTLP: a resource for each process, a scope for each target.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use std::collections::HashMap;
use std::hash::Hash;

/// The number of spans and log records of a batch.
const MESSAGES_MAX: usize = 2000;
/// The bytes from which on a batch is full, as Protocol Buffers.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
/// The bytes from which on a batch is full, as Protocol Buffers, if it becomes a line of JSON, which has some
/// four times its bytes. Collectors read lines of 1 MiB by default.
pub(super) const LINE_BYTES: usize = 128 << 10;

/// Spans and log records that leave together.
#[derive(Default)]
pub(crate) struct OtlpBatch {
    /// The bytes from which on the batch is full.
    bytes_max: usize,
    spans: Vec<(usize, String, Span)>,
    logs: Vec<(usize, String, LogRecord)>,
    bytes: usize,
}

/// The requests of a batch.
pub(crate) struct OtlpRequests {
    /// `None` if there are no spans.
    pub(crate) traces: Option<ExportTraceServiceRequest>,
    /// `None` if there are no log records.
    pub(crate) logs: Option<ExportLogsServiceRequest>,
    pub spans: u64,
    pub(crate) log_records: u64,
}

impl OtlpBatch {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    pub(super) fn span(&mut self, process: usize, scope: &str, span: Span) {
        self.bytes += span.encoded_len();
        self.spans.push((process, scope.to_owned(), span));
    }

    pub(super) fn log_record(&mut self, process: usize, scope: &str, record: LogRecord) {
        self.bytes += record.encoded_len();
        self.logs.push((process, scope.to_owned(), record));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty() && self.logs.is_empty()
    }

    /// Returns true if the batch should leave.
    pub(crate) fn is_full(&self) -> bool {
        self.spans.len() + self.logs.len() >= MESSAGES_MAX || self.bytes >= self.bytes_max
    }

    /// Returns an estimate of the bytes that the batch takes in memory.
    pub(super) fn kept_bytes(&self) -> u64 {
        4 * self.bytes as u64
    }

    /// Takes everything out. `resource` describes a process.
    pub(super) fn take(&mut self, resource: impl Fn(usize) -> Resource) -> OtlpRequests {
        self.bytes = 0;
        let (spans, logs) = (std::mem::take(&mut self.spans), std::mem::take(&mut self.logs));
        let (span_count, log_count) = (spans.len() as u64, logs.len() as u64);
        let of_scope = |scope, spans| ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() };
        let resource_spans = grouped(spans, of_scope).map(|(process, scope_spans)| ResourceSpans {
            resource: Some(resource(process)),
            scope_spans,
            ..ResourceSpans::default()
        });
        let resource_spans = resource_spans.collect();
        let of_scope = |scope, log_records| ScopeLogs { scope: Some(scope), log_records, ..ScopeLogs::default() };
        let resource_logs = grouped(logs, of_scope).map(|(process, scope_logs)| ResourceLogs {
            resource: Some(resource(process)),
            scope_logs,
            ..ResourceLogs::default()
        });
        let resource_logs = resource_logs.collect();
        OtlpRequests {
            traces: (span_count > 0).then_some(ExportTraceServiceRequest { resource_spans }),
            logs: (log_count > 0).then_some(ExportLogsServiceRequest { resource_logs }),
            spans: span_count,
            log_records: log_count,
        }
    }
}

/// Puts messages into groups by process, and within a process by scope. Groups and messages keep their order.
fn grouped<M, S>(
    messages: Vec<(usize, String, M)>,
    of_scope: impl Fn(InstrumentationScope, Vec<M>) -> S,
) -> impl Iterator<Item = (usize, Vec<S>)> {
    let scope = |name| InstrumentationScope { name, ..InstrumentationScope::default() };
    let messages = messages.into_iter().map(|(process, scope, message)| (process, (scope, message)));
    by_key(messages).into_iter().map(move |(process, of_process)| {
        let scopes = by_key(of_process).into_iter();
        (process, scopes.map(|(name, messages)| of_scope(scope(name), messages)).collect())
    })
}

fn by_key<K: Hash + Eq + Clone, M>(messages: impl IntoIterator<Item = (K, M)>) -> Vec<(K, Vec<M>)> {
    let mut groups: Vec<(K, Vec<M>)> = Vec::new();
    let mut indices = HashMap::new();
    for (key, message) in messages {
        let index = *indices.entry(key.clone()).or_insert_with(|| {
            groups.push((key, Vec::new()));
            groups.len() - 1
        });
        groups[index].1.push(message);
    }
    groups
}
