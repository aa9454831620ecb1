//! The entries of live rings.

use super::entry::{EntryContent, RecordingEntry};
use super::present::{PresentRecord, present_records};
use super::rings::{NewRing, RecordedProgram, ShardOrigin};
use super::tabled::TabledSpans;
use super::tables::RecordingTables;
use crate::engine::fields_in_rings::FieldsInRings;
use eventring::now::{LockCell, NowReader, Present};
use eventring::reader::{Descriptor, Reader, ReaderError, RingItem, RingSet, Seek, SetRing, WriterInfo};
use eventring::schema::EventType as _;
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::tracing::{Catalog, RawRecord, ThreadKey};
use std::collections::btree_map::{BTreeMap, Entry};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The entries of rings that are recorded, in the order of time. Each entry borrows its payload until the next entry is
/// read.
pub struct RingEntries {
    set: RingSet,
    tables: RecordingTables,
    /// The writers of the rings, by the number of their process. It is `None` for a writer that is not known.
    writers: Vec<Option<WriterInfo>>,
    last: Descriptor,
    /// The tables of the present that were read, by the index of shard 0. They outlive their files.
    now: BTreeMap<u32, Arc<NowReader>>,
}

impl RingEntries {
    /// Begins to read rings.
    pub fn new(set: RingSet) -> Self {
        Self::with_tables(set, RecordingTables::default())
    }

    /// Begins to read rings with what is known already. The set has no rings of which nothing is known.
    pub fn with_tables(set: RingSet, tables: RecordingTables) -> Self {
        let mut entries = Self { set, tables, writers: Vec::new(), last: Descriptor::default(), now: BTreeMap::new() };
        entries.take_new_rings();
        entries
    }

    /// Adds a ring, with all its shards, from its oldest events on.
    pub fn add(&mut self, ring: Reader) {
        self.set.add(ring, Seek::Oldest);
        self.set.find_shards();
        self.take_new_rings();
    }

    /// Goes on with new rings of the same names, as [`RingSet::reopen`] does. Then all indices are new ones, also those
    /// of processes.
    ///
    /// # Errors
    /// A new ring cannot be opened.
    pub fn reopen(&mut self, timeout: Duration) -> Result<Option<usize>, ReaderError> {
        let first = self.set.reopen(timeout)?;
        if first.is_some() {
            self.tables = RecordingTables::default();
            self.writers.clear();
            self.now.clear();
            self.take_new_rings();
        }
        Ok(first)
    }

    /// Holds back events that were recorded after this time, as [`RingSet::hold_after`] does.
    pub fn hold_after(&mut self, epoch_nanos: Option<u64>) {
        self.set.hold_after(epoch_nanos);
    }

    /// Returns the time after which events are held back, as [`RingSet::held_after`] does.
    pub fn held_after(&self) -> Option<u64> {
        self.set.held_after()
    }

    /// Returns the rings that are read.
    pub fn set(&self) -> &RingSet {
        &self.set
    }

    /// Returns what is known of the rings so far.
    pub fn tables(&self) -> &RecordingTables {
        &self.tables
    }

    /// Returns the next entry. If there is none yet, waits for it at most this long.
    #[inline]
    pub fn next_entry(&mut self, wait: Option<Duration>) -> Option<RecordingEntry<'_>> {
        let item = self.next_item(wait)?;
        Some(self.entry(item))
    }

    /// Returns what comes next, before its payload is read. If there is nothing yet, waits for it at most this long.
    #[inline]
    pub fn next_item(&mut self, wait: Option<Duration>) -> Option<RingItem> {
        loop {
            let item = match wait {
                Some(wait) => self.set.next_timeout(wait)?,
                None => self.set.next()?,
            };
            if self.set.rings().len() > self.tables.rings.count() {
                self.take_new_rings();
            }
            let (RingItem::Gap { ring, .. } | RingItem::Event { ring, .. }) = item;
            // There is no ring of which nothing is known: a shard that could not be opened has a shard 0.
            if ring < self.tables.rings.count() {
                return Some(item);
            }
        }
    }

    /// Returns the entry of what [`Self::next_item`] has returned last.
    #[inline]
    pub fn entry(&mut self, item: RingItem) -> RecordingEntry<'_> {
        let (RingItem::Gap { ring, .. } | RingItem::Event { ring, .. }) = item;
        let Self { set, tables, last, .. } = self;
        let origin = tables.rings.origin(ring as u32);
        let content = match item {
            RingItem::Gap { gap, .. } => EntryContent::Gap(gap),
            RingItem::Event { event, .. } => {
                *last = event;
                match origin.shard {
                    Some(ShardOrigin { recorder, shard, recorder_index }) => {
                        let catalog = &mut tables.catalogs[recorder_index];
                        know(catalog, last, recorder, set.rings());
                        let record = RawRecord::new(catalog, shard, last, set.payload());
                        EntryContent::Perf { recorder, record, catalog: &tables.catalogs[recorder_index] }
                    }
                    None => EntryContent::Typed { descriptor: last, payload: set.payload() },
                }
            }
        };
        let (process, process_index) = (origin.process, origin.process_index);
        RecordingEntry { tables, ring: ring as u32, process, process_index, content, gap_until_nanos: None }
    }

    /// Reads the open spans in the tables of the present of a perf recorder, by the index of its shard 0. Of more than
    /// `max` spans, the oldest ones are kept. Returns also the time of the last event of any thread (nanoseconds since
    /// the epoch). Returns `None` if the recorder has no tables.
    #[must_use]
    pub fn open_spans(&mut self, recorder: u32, max: usize) -> Option<(TabledSpans, u64)> {
        let now = self.tables_of(recorder)?;
        let last_nanos = self.last_nanos(recorder);
        let spans = TabledSpans::of_rings(&now, FieldsInRings::new(self.shards(recorder)), max);
        self.learn_call_sites(recorder)?;
        Some((spans, last_nanos))
    }

    /// Returns the waits for locks and the guards that the tables of a recorder show. Returns `None` if it has none.
    pub fn locks(&mut self, recorder: u32) -> Option<Vec<LockCell>> {
        let locks = self.tables_of(recorder)?.locks();
        self.learn_call_sites(recorder)?;
        Some(locks)
    }

    fn tables_of(&mut self, recorder: u32) -> Option<Arc<NowReader>> {
        let rings = self.set.rings();
        if let Entry::Vacant(new) = self.now.entry(recorder) {
            new.insert(NowReader::open_beside(rings.get(recorder as usize)?.reader()?).ok()??.into());
        }
        self.now.get(&recorder).cloned()
    }

    /// Reads the call sites of what cells show: a call site comes into its table before it comes into a cell.
    fn learn_call_sites(&mut self, recorder: u32) -> Option<()> {
        let index = self.tables.rings.origin(recorder).shard?.recorder_index;
        learn(&mut self.tables.catalogs[index], recorder, self.set.rings());
        Some(())
    }

    /// Returns the records that show what was found in the tables of a recorder.
    #[must_use]
    pub fn present_of(&self, recorder: u32, mut present: Present) -> Option<Vec<PresentRecord>> {
        let mut fields = FieldsInRings::new(self.shards(recorder));
        let further = present.spans.iter().filter_map(|span| Some((span.id, fields.of(span)?)));
        present.further_fields.extend(further);
        let index = self.tables.rings.origin(recorder).shard?.recorder_index;
        Some(present_records(&present, &self.tables.catalogs[index]))
    }

    fn shards(&self, recorder: u32) -> impl Iterator<Item = (u32, Option<&Reader>)> {
        let is_its = move |(index, ring): &(usize, &SetRing)| ring.recorder().unwrap_or(*index) == recorder as usize;
        self.set.rings().iter().enumerate().filter(is_its).map(|(_, ring)| (ring.shard(), ring.reader()))
    }

    /// Returns the time of the last event of a recorder: the last event of a ring is never overwritten.
    fn last_nanos(&self, recorder: u32) -> u64 {
        let readers = self.shards(recorder).filter_map(|(_, reader)| reader);
        readers.map(Reader::last_event_epoch_nanos).max().unwrap_or(0)
    }

    /// Returns the entry of a record that tables of this recorder have made.
    pub fn present_entry<'e>(&'e mut self, recorder: u32, made: &'e PresentRecord) -> Option<RecordingEntry<'e>> {
        let Self { set, tables, .. } = self;
        let index = tables.rings.origin(recorder).shard?.recorder_index;
        know(&mut tables.catalogs[index], made.descriptor(), recorder, set.rings());
        made.entry(tables, recorder)
    }

    /// Forgets the name of a thread that has ended.
    pub fn forget_thread(&mut self, thread: ThreadKey) {
        if let Some(shard) = self.tables.rings.origin(thread.recorder).shard {
            self.tables.catalogs[shard.recorder_index].forget_thread(thread.thread_id);
        }
    }

    fn take_new_rings(&mut self) {
        while self.tables.rings.count() < self.set.rings().len() && self.take_new_ring().is_some() {}
    }

    /// Describes the next ring of the set.
    fn take_new_ring(&mut self) -> Option<()> {
        let index = self.tables.rings.count();
        let all = self.set.rings();
        let ring = all.get(index)?;
        let recorder = ring.recorder().unwrap_or(index);
        // A shard that could not be opened is described by shard 0.
        let reader = ring.reader().or_else(|| all.get(recorder)?.reader())?;
        let info = reader.info();
        let is_perf = info.content_type == PerfEvent::CONTENT_TYPE && info.schema_hash == PerfEvent::schema_hash();
        let created_epoch_nanos = info.extension.as_ref().map_or(0, |extension| extension.created_epoch_nanos);
        let writer = info.extension.map(|extension| extension.writer).filter(|writer| writer.pid != 0);
        // Nobody else has the list of rings while rings are added.
        let rings = Arc::get_mut(&mut self.tables.rings)?;
        let process = match ring.recorder() {
            Some(shard0) => rings.origin(shard0 as u32).process,
            // A writer that is not known is a process of its own.
            None => match self.writers.iter().position(|known| writer.is_some() && *known == writer) {
                Some(known) => known as u32,
                None => {
                    let process = self.writers.len() as u32;
                    let program = writer.as_ref().map(|writer| RecordedProgram::new(writer.pid, &writer.program_name));
                    rings.add_process(process, program.unwrap_or_default());
                    self.writers.push(writer);
                    process
                }
            },
        };
        let text = reader.schema_text();
        let name = reader.path().and_then(Path::file_name).or(reader.name().map(Path::as_os_str));
        rings.add(&NewRing {
            process,
            shard: is_perf.then_some((recorder as u32, ring.shard())),
            name: &name.unwrap_or("ring".as_ref()).to_string_lossy(),
            created_epoch_nanos,
            content_type: info.content_type,
            schema_hash: info.schema_hash,
            schema_text: text.as_deref(),
        });
        self.tables.catalogs.resize_with(rings.recorders().len(), Catalog::live);
        if let Some(shard) = rings.origin(index as u32).shard {
            learn(&mut self.tables.catalogs[shard.recorder_index], shard.recorder, all);
        }
        Some(())
    }
}

/// Reads the call sites and threads that a recorder has added since the last call.
fn learn(catalog: &mut Catalog, recorder: u32, all: &[SetRing]) {
    if let Some(shard0) = all.get(recorder as usize).and_then(SetRing::reader) {
        catalog.update(shard0);
    }
}

/// Makes sure that the call site and the thread of an event are known, if they can be.
#[inline]
fn know(catalog: &mut Catalog, event: &Descriptor, recorder: u32, all: &[SetRing]) {
    let ext = PerfExt::from_words(event.content_ext);
    let knows_call_site = ext.call_site_id == 0 || catalog.knows_call_site(ext.call_site_id);
    if !(knows_call_site && catalog.knows_thread(ext.thread_id)) {
        learn(catalog, recorder, all);
    }
}
