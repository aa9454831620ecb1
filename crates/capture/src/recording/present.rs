//! Turns *tables of the present* (which list what is open now) into records. A replay of the records has the same open
//! spans, threads and tasks.

use super::entry::{EntryContent, RecordingEntry};
use super::tables::RecordingTables;
use eventring::now::{LockCell, Presence, Present, SpanCell, TaskCell};
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::perf::{PerfEvent, PerfExt, RawFields, ValueType, flags};
use eventring::tracing::{CallSite, Catalog, RawRecord};
use std::collections::HashMap;

/// The flags of a span that its SPAN_NEW event has, too.
const NEW_FLAGS: u16 = flags::TRUNCATED
    | flags::FIELDS_MISSING
    | flags::EXPLICIT_ROOT
    | flags::EXPLICIT_PARENT
    | flags::ADOPTED
    | flags::SCOPE;

/// A record that tables have made.
#[derive(Debug)]
pub struct PresentRecord {
    descriptor: Descriptor,
    /// The same without the type: no ring has this event.
    no_event: Descriptor,
    payload: Vec<u8>,
    /// The shard to whose losses it belongs. Where nothing is lost, it is always 0.
    pub(super) shard: u32,
}

impl PresentRecord {
    fn new(event: PerfEvent, epoch_nanos: u64, ext: PerfExt, payload: Vec<u8>) -> Self {
        let no_event = Descriptor {
            record_epoch_nanos: epoch_nanos,
            payload_size: payload.len() as u32,
            content_ext: ext.to_words(),
            ..Descriptor::default()
        };
        Self { descriptor: Descriptor { event_type: event as u16, ..no_event }, no_event, payload, shard: 0 }
    }

    /// Returns the time, in nanoseconds since the epoch.
    #[must_use]
    pub fn epoch_nanos(&self) -> u64 {
        self.descriptor.record_epoch_nanos
    }

    pub(super) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Returns the entry of the record, which tables of this recorder have made.
    pub fn entry<'e>(&'e self, tables: &'e mut RecordingTables, recorder: u32) -> Option<RecordingEntry<'e>> {
        let origin = tables.rings.origin(recorder);
        let index = origin.shard?.recorder_index;
        let record = self.record(&mut tables.catalogs[index]);
        let (process, process_index) = (origin.process, origin.process_index);
        let content = EntryContent::Perf { recorder, record, catalog: &tables.catalogs[index] };
        Some(RecordingEntry { tables, ring: recorder, process, process_index, content, gap_until_nanos: None })
    }

    /// Returns the record. It does not count as an event that was read.
    fn record(&self, catalog: &mut Catalog) -> RawRecord<'_> {
        let mut record = RawRecord::new(catalog, self.shard, &self.descriptor, PayloadRead::Valid(&self.payload));
        record.descriptor = &self.no_event;
        record
    }
}

/// Returns the records that show what the tables of a recorder show, in the order of time.
#[must_use]
pub(super) fn present_records(present: &Present, catalog: &Catalog) -> Vec<PresentRecord> {
    let tasks: HashMap<u64, &TaskCell> = present.tasks.iter().map(|task| (task.id, task)).collect();
    let sites = TaskSites::from_catalog(catalog);
    let mut records = Vec::new();
    for span in &present.spans {
        let task = tasks.get(&span.id).copied();
        span_records(span, task, present, &mut records);
        task.into_iter().for_each(|task| task_records(task, &sites, &mut records));
    }
    // Those of threads are no locks of tasks.
    let of_tasks = present.locks.iter().filter(|lock| lock.site == 0);
    of_tasks.for_each(|lock| records.extend(sites.lock_records(lock)));
    // What the same moment has shown stays in the order of the rows.
    records.sort_by_key(|record| record.descriptor.record_epoch_nanos);
    records
}

/// Returns the number of a span's fields that are known, and of those that are not.
pub(super) fn fields_of(span: &SpanCell, payload: &[u8], has_later: bool) -> (u16, u16) {
    // What was recorded later may be overwritten.
    let lacks_later = span.has_recorded() && !has_later;
    let has = RawFields::new(payload).filter(Result::is_ok).count() as u16;
    (has, u16::from(span.field_count).saturating_sub(has) + u16::from(lacks_later))
}

/// Makes the records of an open span: that it began, and where it is.
fn span_records(span: &SpanCell, task: Option<&TaskCell>, present: &Present, records: &mut Vec<PresentRecord>) {
    let of_span = PerfExt::of_span(span.id, span.call_site_id);
    let (thread_id, since, is_inside) = match span.presence {
        Presence::Inside(thread_id, since) => (thread_id, Some(since), true),
        Presence::Left(thread_id, since) => (thread_id, Some(since), false),
        Presence::NotYet => (0, None, false),
    };
    let payload = present.fields_of(span, task);
    let (field_count, missing_fields) = fields_of(span, payload, present.further_fields.contains_key(&span.id));
    let flags = span.flags & NEW_FLAGS;
    let begun = PerfExt { related: span.parent, thread_id, flags, field_count, missing_fields, ..of_span };
    records.push(PresentRecord::new(PerfEvent::SpanNew, span.begun_epoch_nanos, begun, payload.to_vec()));
    let Some(since) = since else { return };
    let on_thread = PerfExt { thread_id, ..of_span };
    // A task that is not polled now was polled since this time. Of other spans, nobody knows.
    let polled = task.map(|task| task.polled_epoch_nanos).filter(|polled| *polled <= since && *polled > 0);
    let entered = if is_inside { since } else { polled.unwrap_or(since) };
    records.push(PresentRecord::new(PerfEvent::SpanEnter, entered, on_thread, Vec::new()));
    if !is_inside {
        records.push(PresentRecord::new(PerfEvent::SpanExit, since, on_thread, Vec::new()));
    }
}

fn task_records(task: &TaskCell, sites: &TaskSites, records: &mut Vec<PresentRecord>) {
    if let (Some(wake), Some(site)) = (task.woken, sites.woken) {
        let by = wake.by_thread.unwrap_or(0);
        let ext = PerfExt { thread_id: by, flags: flags::EXPLICIT_PARENT, ..PerfExt::of_span(task.id, site) };
        records.push(PresentRecord::new(PerfEvent::Event, wake.epoch_nanos, ext, Vec::new()));
    }
    if let (true, Some(site)) = (task.is_unwakeable, sites.unwakeable) {
        let ext = PerfExt { flags: flags::EXPLICIT_PARENT, ..PerfExt::of_span(task.id, site) };
        records.push(PresentRecord::new(PerfEvent::Event, task.polled_epoch_nanos, ext, Vec::new()));
    }
}

/// The call sites of events of tasks in a recorder.
struct TaskSites {
    woken: Option<u32>,
    unwakeable: Option<u32>,
    lock_wait: Option<u32>,
    lock_held: Option<u32>,
    lock_free: Option<u32>,
}

impl TaskSites {
    fn from_catalog(catalog: &Catalog) -> Self {
        let site = |name: &str| {
            let is_it = |site: &&std::sync::Arc<CallSite>| site.target == "eventring::task" && site.name == name;
            catalog.call_sites().find(is_it).map(|site| site.id)
        };
        let names = ["woken", "unwakeable", "lock_wait", "lock_held", "lock_free"];
        let [woken, unwakeable, lock_wait, lock_held, lock_free] = names.map(site);
        Self { woken, unwakeable, lock_wait, lock_held, lock_free }
    }

    /// Makes the records of a lock: of a wait or guard one, of a guard that was dropped one that says so after one of
    /// the guard.
    fn lock_records(&self, lock: &LockCell) -> impl Iterator<Item = PresentRecord> {
        let of = |site: Option<u32>, lock: &LockCell| {
            let ext = PerfExt { thread_id: lock.thread, field_count: 3, ..PerfExt::of_span(lock.span, site?) };
            let mut payload = Vec::new();
            // The fields of these call sites: 0 is the text.
            for (index, number) in [(1, lock.lock), (2, lock.guard)] {
                payload.extend([index, ValueType::U64 as u8, 8, 0]);
                payload.extend(number.to_le_bytes());
            }
            let mode = lock.mode();
            payload.extend([3, ValueType::Str as u8, mode.len() as u8, 0]);
            payload.extend(mode.as_bytes());
            Some(PresentRecord::new(PerfEvent::Event, lock.since_epoch_nanos, ext, payload))
        };
        let is_over = lock.guard == 0;
        let first = if lock.is_held || is_over { self.lock_held } else { self.lock_wait };
        [of(first, lock), of(self.lock_free.filter(|_| is_over), lock)].into_iter().flatten()
    }
}
