//! The second pass over a capture: each span, record, event and loss becomes a row of its table.

use super::field_types::FieldTypes;
use super::logs::LogColumns;
use super::losses::{self, LOSS_BYTES, LossColumns};
use super::rings::{self, RingColumns};
use super::samples::SampleColumns;
use super::spans::{self, SpanColumns};
use super::table::ParquetTable;
use super::table_sink::TableSink;
use super::typed_events::TypedColumns;
use crate::export::pass::Pass;
use crate::export::recording::CaptureRecording;
use crate::export::ring_blocks::RingBlocks;
use crate::reader::{Descriptor, PayloadRead};
use crate::recording::{EntryContent, RecordingEntry};
use crate::schema::perf::PerfEvent;
use crate::tracing::{Catalog, PerfContent, RawRecord, Span, SpanReplay, SpanStep};
use std::collections::{HashMap, HashSet};
use std::io;

/// The largest size of the rows that wait in all tables together, in bytes.
const WAITING_BYTES_MAX: u64 = 64 << 20;
/// The largest number of event types that get a table of their own. A program has no more open files for them.
const TYPED_TABLES_MAX: usize = 200;
/// The column with the time by which events and records are sorted.
const TIME: &str = "time_ns";
/// An estimate of the bytes that a column takes beside its values.
const COLUMN_BYTES: u64 = 2048;
/// The largest number of characters of an event's name in the name of a file.
const FILE_NAME_MAX: usize = 100;

/// The tables of an export.
pub(super) struct ParquetTables<'o, 'f> {
    recording: &'o CaptureRecording<'o>,
    out: &'f mut dyn TableSink,
    spans: ParquetTable<SpanColumns>,
    logs: ParquetTable<LogColumns>,
    losses: ParquetTable<LossColumns>,
    /// The tables of [`SAMPLES`], as far as the capture has such records.
    samples: [Option<ParquetTable<SampleColumns>>; SAMPLES.len()],
    typed: Vec<ParquetTable<TypedColumns<'o>>>,
    /// The index in `typed` for each event type: its schema, and its code.
    typed_indices: HashMap<(usize, u16), usize>,
    /// The index in `typed` of the table of all further event types.
    other: Option<usize>,
    /// The names of the files of typed events.
    file_names: HashSet<String>,
    /// For each ring, the index of the first ring with the same schema.
    schemas: Vec<usize>,
    blocks: RingBlocks<'o>,
    last_nanos: u64,
    waiting_bytes: u64,
    column_bytes: u64,
}

/// The names of the tables of other records.
const SAMPLES: [&str; 4] = ["counters", "markers", "not_recorded", "unknown"];

impl<'o, 'f> ParquetTables<'o, 'f> {
    pub(super) fn new(
        recording: &'o CaptureRecording<'o>,
        types: &FieldTypes,
        out: &'f mut dyn TableSink,
    ) -> io::Result<Self> {
        let of_capture = recording.capture.rings();
        let mut rings = ParquetTable::create(RingColumns::default(), "rings", rings::TIME, out)?;
        for ring in of_capture {
            rings.columns.push(ring);
            rings.end_row(ring.created_epoch_nanos, 0, out)?;
        }
        rings.flush(out)?;
        let schemas = of_capture.iter().map(|ring| {
            let same = |other: &&crate::capture::CapturedRing| {
                (other.content_type, other.schema_hash) == (ring.content_type, ring.schema_hash)
            };
            of_capture.iter().take_while(|other| !same(other)).count()
        });
        let schemas = schemas.collect();
        Ok(Self {
            recording,
            spans: ParquetTable::create(SpanColumns::new(&types.spans), "spans", spans::TIME, out)?,
            logs: ParquetTable::create(LogColumns::new(&types.logs), "logs", TIME, out)?,
            losses: ParquetTable::create(LossColumns::default(), "losses", losses::TIME, out)?,
            samples: [const { None }; SAMPLES.len()],
            typed: Vec::new(),
            typed_indices: HashMap::new(),
            other: None,
            file_names: HashSet::new(),
            schemas,
            blocks: RingBlocks::of(recording),
            last_nanos: 0,
            waiting_bytes: 0,
            column_bytes: 0,
            out,
        })
    }

    /// Writes the row of a span.
    pub(super) fn span(&mut self, process_index: usize, span: &Span) -> io::Result<()> {
        let bytes = self.spans.columns.push(self.recording.processes()[process_index], span)?;
        // A span without a beginning is null in the column, and comes first.
        let nanos = span.created.as_ref().map_or(0, |created| created.epoch_nanos);
        self.spans.end_row(nanos, bytes, self.out)?;
        self.limit(bytes)
    }

    /// Passes all waiting rows on.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let out = &mut *self.out;
        self.spans.flush(out)?;
        self.logs.flush(out)?;
        self.losses.flush(out)?;
        self.samples.iter_mut().flatten().try_for_each(|table| table.flush(out))?;
        self.typed.iter_mut().try_for_each(|table| table.flush(out))
    }

    fn record(&mut self, process: u32, record: &RawRecord<'_>, catalog: &Catalog) -> io::Result<()> {
        let sample = match record.event {
            Some(PerfEvent::Event) => return self.log_record(process, record, catalog),
            Some(PerfEvent::Counter) => 0,
            Some(PerfEvent::Marker) => 1,
            Some(PerfEvent::RecordError) => 2,
            None => 3,
            Some(_) => return Ok(()),
        };
        let table = match &mut self.samples[sample] {
            Some(table) => table,
            empty => empty.insert(ParquetTable::create(SampleColumns::default(), SAMPLES[sample], TIME, self.out)?),
        };
        let decoded = record.decode(catalog);
        let bytes = table.columns.push(process, record, &decoded.thread, &decoded.content);
        table.end_row(record.epoch_nanos(), bytes, self.out)?;
        self.limit(bytes)
    }

    fn log_record(&mut self, process: u32, record: &RawRecord<'_>, catalog: &Catalog) -> io::Result<()> {
        let decoded = record.decode(catalog);
        let PerfContent::Event { call_site, fields, .. } = &decoded.content else { return Ok(()) };
        let bytes = self.logs.columns.push(process, record, &decoded.thread, (call_site, fields))?;
        self.logs.end_row(record.epoch_nanos(), bytes, self.out)?;
        self.limit(bytes)
    }

    fn typed_event(
        &mut self,
        entry: &RecordingEntry<'_>,
        descriptor: &Descriptor,
        payload: PayloadRead<'_>,
    ) -> io::Result<()> {
        let block_number = self.blocks.number_of(entry.ring, descriptor, payload);
        let index = self.typed_table(entry.ring, descriptor.event_type)?;
        let table = &mut self.typed[index];
        let bytes = table.columns.push(entry, descriptor, payload, block_number)?;
        table.end_row(descriptor.record_epoch_nanos, bytes, self.out)?;
        self.limit(bytes)
    }

    /// Returns the index of the table for an event.
    fn typed_table(&mut self, ring: u32, code: u16) -> io::Result<usize> {
        let key = (self.schemas[ring as usize], code);
        if let Some(index) = self.typed_indices.get(&key).copied().or(self.other) {
            return Ok(index);
        }
        let is_full = self.typed.len() >= TYPED_TABLES_MAX;
        let columns = TypedColumns::new(self.recording, ring, Some(code).filter(|_| !is_full));
        let name = match is_full {
            true => "other".into(),
            false => file_name(&self.recording.rings().event_name(ring, code)),
        };
        let mut unique = format!("events-{name}");
        while !self.file_names.insert(unique.to_lowercase()) {
            unique.push('_');
        }
        let index = self.typed.len();
        let table = ParquetTable::create(columns, &unique, TIME, self.out)?;
        self.column_bytes += table.column_count() as u64 * COLUMN_BYTES;
        self.typed.push(table);
        match is_full {
            true => self.other = Some(index),
            false => drop(self.typed_indices.insert(key, index)),
        }
        Ok(index)
    }

    /// Notes that rows of this size wait, too. If too many rows wait, passes on those of the largest table.
    fn limit(&mut self, bytes: u64) -> io::Result<()> {
        self.waiting_bytes += bytes;
        if self.waiting_bytes < WAITING_BYTES_MAX {
            return Ok(());
        }
        // Since the last sum, tables may have passed on their rows.
        self.waiting_bytes = self.sum();
        if self.waiting_bytes < WAITING_BYTES_MAX {
            return Ok(());
        }
        let out = &mut *self.out;
        let typed = self.typed.iter_mut().max_by_key(|table| table.kept_bytes());
        let of_typed = typed.as_ref().map_or(0, |table| table.kept_bytes());
        let of_others = [self.spans.kept_bytes(), self.logs.kept_bytes(), self.losses.kept_bytes()];
        match typed {
            Some(table) if of_others.iter().all(|bytes| *bytes <= of_typed) => table.flush(out)?,
            _ => {
                self.spans.flush(out)?;
                self.logs.flush(out)?;
                self.losses.flush(out)?;
                self.samples.iter_mut().flatten().try_for_each(|table| table.flush(out))?;
            }
        }
        self.waiting_bytes = self.sum();
        Ok(())
    }

    fn sum(&self) -> u64 {
        let of_samples = self.samples.iter().flatten().map(ParquetTable::kept_bytes);
        let of_typed = self.typed.iter().map(ParquetTable::kept_bytes);
        let others = [self.spans.kept_bytes(), self.logs.kept_bytes(), self.losses.kept_bytes()];
        of_samples.chain(of_typed).chain(others).fold(0, u64::saturating_add)
    }
}

/// Returns the name of an event as a part of a file's name.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    name.chars().take(FILE_NAME_MAX).map(plain).collect()
}

impl Pass for ParquetTables<'_, '_> {
    fn entry(&mut self, entry: &RecordingEntry<'_>, _: &SpanStep, _: &SpanReplay) -> io::Result<()> {
        match &entry.content {
            EntryContent::Perf { record, catalog, .. } => {
                self.last_nanos = record.epoch_nanos();
                self.record(entry.process, record, catalog)
            }
            EntryContent::Typed { descriptor, payload } => {
                self.last_nanos = descriptor.record_epoch_nanos;
                self.typed_event(entry, descriptor, *payload)
            }
            EntryContent::Gap { first_seqno, count, cause } => {
                let ring = &self.recording.ring(entry.ring).name;
                self.losses.columns.push((entry.process, ring), (*first_seqno, *count, *cause), self.last_nanos);
                self.losses.end_row(self.last_nanos, LOSS_BYTES, self.out)?;
                self.limit(LOSS_BYTES)
            }
        }
    }

    fn replay(&self) -> SpanReplay {
        SpanReplay::new().without_slices()
    }

    fn closed(&mut self, process_index: usize, span: &Span, _: &SpanReplay) -> io::Result<()> {
        self.span(process_index, span)
    }

    fn kept_bytes(&self) -> u64 {
        self.column_bytes.saturating_add(self.blocks.kept_bytes())
    }
}
