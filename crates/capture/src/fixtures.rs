//! Captures for tests, which choose the times of the events.

use crate::format::columns::{BlockEncoder, BlockRecords, EncodedBlock, PlacedGap, RingLayout};
use crate::format::end::{CaptureEnd, EndReason};
use crate::format::header::FileHeader;
use crate::format::record::SortKey;
use crate::format::ring::{CapturedRing, RingRole};
use crate::format::stats::{CaptureStats, RingStats};
use crate::format::tables;
use crate::format::values::tables::RecorderTables;
use crate::format::write::CaptureWriter;
use crate::read::file::CaptureFile;
use eventring::files::{CONTENT_TYPE_EXEC, CONTENT_TYPE_PERF};
use eventring::reader::{Descriptor, Gap, GapCause, PayloadRead};
use eventring::schema::EventType;
use eventring::schema::exec::ExecEvent;
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView, PerfEvent, PerfExt, ThreadView, ValueType};
use eventring::tracing::Catalog;
use std::fs::File;
use std::io::Write;

/// A capture that a test makes. Ring 0 is a perf ring, and ring 1 is an exec ring of the same process. Ring 2, if
/// there is one, is another shard of the recorder of ring 0.
pub struct CaptureFixture {
    writer: CaptureWriter,
    file: File,
    rings: Vec<FixtureRing>,
    /// The ring into which events of spans are recorded.
    perf_ring: usize,
    pid: u32,
    program: &'static str,
    level: i32,
}

/// A ring of a fixture: the records that wait to be written, and the counts.
#[derive(Default)]
struct FixtureRing {
    records: BlockRecords,
    key: SortKey,
    stats: RingStats,
    layout: RingLayout,
}

impl FixtureRing {
    fn new(index: u32, ring: &CapturedRing) -> Self {
        let layout = RingLayout::of_ring(ring.content_type, ring.schema_hash, &ring.schema_text);
        let mut records = BlockRecords { ring: index, ..BlockRecords::default() };
        records.events.set_limits(1 << 30, 1 << 30);
        Self { records, layout, ..Self::default() }
    }
}

/// The index of the ring that [`CaptureFixture::sharded`] adds: another shard of the recorder of ring 0.
pub const SHARD_1: usize = 2;

fn ring(name: &str, content_type: u16, schema_hash: [u8; 32], role: RingRole) -> CapturedRing {
    CapturedRing {
        name: name.into(),
        process: 0,
        role,
        content_type,
        content_name: if content_type == CONTENT_TYPE_PERF { "PERF" } else { "EXEC" }.into(),
        schema_hash,
        schema_text: String::new(),
        descriptor_capacity: 1 << 16,
        payload_buf_bytes: 1 << 27,
        context_area_bytes: 0,
        pid: 4711,
        program_name: "shop".into(),
        created_epoch_nanos: 500,
        clock: [0; 6],
        first_seqno: 1,
        host: String::new(),
        filter: String::new(),
        sampled_per_million: 1_000_000,
        process_key: 0,
    }
}

/// Encodes a field of type `i64`.
pub fn int(index: u8, value: i64) -> Vec<u8> {
    let mut field = vec![index, ValueType::I64 as u8, 8, 0];
    field.extend(value.to_le_bytes());
    field
}

/// Encodes a field of text.
pub fn text(index: u8, value: &str) -> Vec<u8> {
    let mut field = vec![index, ValueType::Str as u8, value.len() as u8, 0];
    field.extend(value.as_bytes());
    field
}

impl Default for CaptureFixture {
    fn default() -> Self {
        Self::new()
    }
}

impl CaptureFixture {
    pub fn new() -> Self {
        Self::with_schema(PerfEvent::schema_hash())
    }

    /// Makes a capture of the process with this id.
    pub fn of_process(pid: u32) -> Self {
        Self::made(PerfEvent::schema_hash(), pid, "shop")
    }

    /// Makes a capture that `write` writes, and that is read from `file`.
    pub fn written(file: File, write: Box<dyn Write>) -> Self {
        Self::made_in(file, write, PerfEvent::schema_hash(), 4711, "shop")
    }

    pub fn with_schema(perf_schema_hash: [u8; 32]) -> Self {
        Self::made(perf_schema_hash, 4711, "shop")
    }

    /// Makes a capture of a program with this name.
    pub fn of_program(name: &'static str) -> Self {
        Self::made(PerfEvent::schema_hash(), 4711, name)
    }

    fn made(perf_schema_hash: [u8; 32], pid: u32, program: &'static str) -> Self {
        let file = tempfile::tempfile().unwrap();
        let write = Box::new(file.try_clone().unwrap());
        Self::made_in(file, write, perf_schema_hash, pid, program)
    }

    fn made_in(file: File, write: Box<dyn Write>, perf_schema_hash: [u8; 32], pid: u32, program: &'static str) -> Self {
        let header =
            FileHeader { part: 0, started_epoch_nanos: 900, started_boot_nanos: 100, started_monotonic_nanos: 90 };
        let writer = CaptureWriter::new(write, &header).unwrap();
        let shard = RingRole::Shard { recorder: 0, shard: 0 };
        let mut made = Self { writer, file, rings: Vec::new(), perf_ring: 0, pid, program, level: 3 };
        made.add_ring(&ring("shop", CONTENT_TYPE_PERF, perf_schema_hash, shard));
        made.add_ring(&ring("shop-exec", CONTENT_TYPE_EXEC, ExecEvent::schema_hash(), RingRole::Single));
        made
    }

    fn add_ring(&mut self, ring: &CapturedRing) {
        let ring = &CapturedRing { pid: self.pid, program_name: self.program.into(), ..ring.clone() };
        self.writer.ring(ring).unwrap();
        self.rings.push(FixtureRing::new(self.rings.len() as u32, ring));
    }

    /// Makes a capture whose perf recorder has a second shard.
    pub fn sharded() -> Self {
        let mut made = Self::new();
        let shard = RingRole::Shard { recorder: 0, shard: 1 };
        made.add_ring(&ring("shop.1", CONTENT_TYPE_PERF, PerfEvent::schema_hash(), shard));
        made
    }

    /// Makes a capture that has a perf ring of this version and then one of another version.
    pub fn with_other_schema() -> Self {
        let mut made = Self::new();
        made.add_ring(&ring("other", CONTENT_TYPE_PERF, [9; 32], RingRole::Single));
        made
    }

    /// Adds a ring with events of a schema. Returns its number.
    pub fn ring_of<E: EventType>(&mut self, name: &str) -> usize {
        let schema = E::schema();
        let ring = ring(name, E::CONTENT_TYPE, schema.hash(), RingRole::Single);
        let (content_name, schema_text) = (E::CONTENT_NAME.into(), schema.text().to_owned());
        self.add_ring(&CapturedRing { content_name, schema_text, ..ring });
        self.rings.len() - 1
    }

    /// Records the next events of spans into this ring.
    pub fn in_shard(&mut self, ring: usize) {
        self.perf_ring = ring;
    }

    pub fn event(&mut self, ring: usize, code: u16, nanos: u64, content_ext: [u64; 4], payload: &[u8]) {
        self.read(ring, code, nanos, content_ext, PayloadRead::Valid(payload));
    }

    /// Records an event of which this was read.
    fn read(&mut self, ring: usize, code: u16, nanos: u64, content_ext: [u64; 4], payload: PayloadRead<'_>) {
        let FixtureRing { records, stats, .. } = &mut self.rings[ring];
        stats.events += 1;
        stats.last_seqno += 1;
        let descriptor = Descriptor {
            seqno: stats.last_seqno,
            event_type: code,
            payload_size: payload.valid().map_or(0, <[u8]>::len) as u32,
            record_epoch_nanos: nanos,
            payload_buf_offset: 0,
            content_ext,
        };
        records.events.push(&descriptor, payload);
    }

    pub fn perf(&mut self, event: PerfEvent, nanos: u64, ext: PerfExt, payload: &[u8]) {
        self.event(self.perf_ring, event as u16, nanos, ext.to_words(), payload);
    }

    /// Records a perf event whose payload was overwritten before it could be copied.
    pub fn perf_expired(&mut self, event: PerfEvent, nanos: u64, ext: PerfExt) {
        self.read(self.perf_ring, event as u16, nanos, ext.to_words(), PayloadRead::Expired);
    }

    /// Adds an event of a span, without payload.
    pub fn span(&mut self, event: PerfEvent, nanos: u64, thread_id: u32, span_id: u64, call_site_id: u32) {
        self.perf(event, nanos, PerfExt { span_id, call_site_id, thread_id, ..PerfExt::default() }, &[]);
    }

    /// Adds a new span with these encoded fields.
    pub fn span_new(
        &mut self,
        nanos: u64,
        thread_id: u32,
        (span_id, parent): (u64, u64),
        call_site_id: u32,
        fields: &[Vec<u8>],
    ) {
        let field_count = fields.len() as u16;
        let ext = PerfExt { span_id, related: parent, call_site_id, thread_id, field_count, ..PerfExt::default() };
        self.perf(PerfEvent::SpanNew, nanos, ext, &fields.concat());
    }

    pub fn thread(&mut self, nanos: u64, thread_id: u32, name: &str) {
        let ext = PerfExt { thread_id, ..PerfExt::default() };
        self.perf(PerfEvent::ThreadStarted, nanos, ext, &ThreadView::encode(nanos, 4711 + thread_id, name));
    }

    pub fn call_site(&mut self, nanos: u64, call_site_id: u32, kind: CallSiteKind, name: &str, fields: &[&str]) {
        self.call_site_of(nanos, call_site_id, (kind, CallSiteLevel::Info), name, fields);
    }

    /// Records a call site of this kind and level.
    pub fn call_site_of(
        &mut self,
        nanos: u64,
        call_site_id: u32,
        kind: (CallSiteKind, CallSiteLevel),
        name: &str,
        fields: &[&str],
    ) {
        self.call_site_in(nanos, call_site_id, kind, ("shop::web", name), fields);
    }

    /// Records a call site of this target.
    pub fn call_site_in(
        &mut self,
        nanos: u64,
        call_site_id: u32,
        (kind, level): (CallSiteKind, CallSiteLevel),
        (target, name): (&str, &str),
        fields: &[&str],
    ) {
        let view = CallSiteView {
            kind,
            level,
            name: name.into(),
            target: target.into(),
            module: "shop::web".into(),
            file: "src/web.rs".into(),
            line: 10 + call_site_id,
            field_names: fields.iter().map(|name| (*name).into()).collect(),
        };
        let ext = PerfExt { call_site_id, thread_id: 1, ..PerfExt::default() };
        self.perf(PerfEvent::CallSite, nanos, ext, &view.encode());
    }

    pub fn gap(&mut self, ring: usize, count: u64, cause: GapCause) {
        let FixtureRing { records, stats, .. } = &mut self.rings[ring];
        let gap = Gap { first_seqno: stats.last_seqno + 1, count, cause };
        stats.count_gap(gap);
        records.gaps.push(PlacedGap { events_before: records.events.len(), gap });
    }

    /// Adds a ring of typed events, and returns its index.
    pub fn add_typed<E: EventType>(&mut self, name: &str) -> usize {
        let ring = ring(name, E::CONTENT_TYPE, E::schema_hash(), RingRole::Single);
        self.add_ring(&CapturedRing { schema_text: E::schema().text().to_owned(), ..ring });
        self.rings.len() - 1
    }

    /// Writes call sites and threads into the tables, as recorders do.
    pub fn describe(&mut self, catalog: &Catalog) {
        let mut bytes = Vec::new();
        let mut count = 0;
        for site in catalog.call_sites() {
            tables::put_entry(&mut bytes, 0, tables::CALL_SITE, site.id, &site.encode());
            count += 1;
        }
        for thread in catalog.threads() {
            tables::put_entry(&mut bytes, 0, tables::THREAD, thread.id, &thread.encode());
            count += 1;
        }
        self.tables(&bytes, count);
        for ring in &mut self.rings {
            ring.layout = std::mem::take(&mut ring.layout).with_tables(|| RecorderTables::new(catalog.clone(), None));
        }
    }

    /// Sets the level of compression; 0 for none.
    pub fn set_level(&mut self, level: i32) {
        self.level = level;
    }

    /// Adds an image of tables of the present.
    pub fn look(&mut self, ring: u32, nanos: u64, image: &[u8]) {
        self.writer.present(ring, nanos, image).unwrap();
    }

    /// Adds a block of entries of tables, as they stand in a file.
    pub fn tables(&mut self, bytes: &[u8], entries: u64) {
        self.writer.tables(bytes, entries).unwrap();
    }

    /// Writes the records that wait as blocks, one for each ring.
    pub fn end_block(&mut self) {
        let mut encoder = BlockEncoder::new();
        encoder.set_level(self.level).unwrap();
        for FixtureRing { records, key, layout, .. } in &mut self.rings {
            let mut block = EncodedBlock::default();
            if records.all().len() > 0 {
                encoder.encode(records, &records.all(), layout, &mut block).unwrap();
                self.writer.events(records, &records.all(), &block, key).unwrap();
                records.clear();
            }
        }
    }

    /// Returns the file without an end.
    pub fn truncated(mut self) -> File {
        self.end_block();
        self.file
    }

    pub fn file(self) -> File {
        self.ended(EndReason::WritersEnded, 9999)
    }

    fn ended(mut self, reason: EndReason, ended_epoch_nanos: u64) -> File {
        self.end_block();
        let stats = CaptureStats { rings: self.rings.into_iter().map(|ring| ring.stats).collect() };
        self.writer.finish(&CaptureEnd { reason, ended_epoch_nanos, lower_level_events: 0, stats }).unwrap();
        self.file
    }

    /// Makes a batch that ends at this time, and that others follow. `behind` names the rings with events that are not
    /// in this batch.
    pub fn batch(mut self, ended_epoch_nanos: u64, behind: &[usize]) -> CaptureFile {
        behind.iter().for_each(|ring| self.rings[*ring].stats.unread = 1);
        CaptureFile::from_file(self.ended(EndReason::Rotated, ended_epoch_nanos)).unwrap()
    }

    pub fn open(self) -> CaptureFile {
        CaptureFile::from_file(self.file()).unwrap()
    }

    /// Opens the file after its block of events with this number was damaged. The first one is number 0.
    pub fn open_damaged(self, number: usize) -> CaptureFile {
        use std::os::unix::fs::FileExt as _;
        let file = self.file();
        let whole = CaptureFile::from_file(file.try_clone().unwrap()).unwrap();
        let block = whole.event_blocks().nth(number).unwrap().block;
        let mut last = [0];
        file.read_exact_at(&mut last, block.end() - 1).unwrap();
        file.write_all_at(&[!last[0]], block.end() - 1).unwrap();
        CaptureFile::from_file(file).unwrap()
    }
}
