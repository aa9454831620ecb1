//! What tables of the present show, as the records that would have shown it: so a replay takes the present as it takes
//! everything else, and knows nothing of tables.

use eventring::now::{LockCell, LockMode, Presence, Present, SpanCell, TaskCell};
use eventring::reader::{Cursor, Descriptor, Next, PayloadRead, Reader, Seek};
use eventring::schema::perf::{PerfEvent, PerfExt, RawFields, ValueType, flags};
use eventring::tracing::{CallSite, Catalog, RawRecord};
use std::collections::HashMap;

/// Number of bits of a seqno that a cell has.
const SEQNO_BITS: u32 = 36;
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
}

impl PresentRecord {
    fn new(event: PerfEvent, epoch_nanos: u64, ext: PerfExt, payload: Vec<u8>) -> Self {
        let no_event = Descriptor {
            record_epoch_nanos: epoch_nanos,
            payload_size: payload.len() as u32,
            content_ext: ext.to_words(),
            ..Descriptor::default()
        };
        Self { descriptor: Descriptor { event_type: event as u16, ..no_event }, no_event, payload }
    }

    /// Returns the time, in nanoseconds since the epoch.
    #[must_use]
    pub fn epoch_nanos(&self) -> u64 {
        self.descriptor.record_epoch_nanos
    }

    pub(super) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Returns the record. It does not count as an event that was read.
    pub fn record(&self, catalog: &mut Catalog) -> RawRecord<'_> {
        let mut record = RawRecord::new(catalog, 0, &self.descriptor, PayloadRead::Valid(&self.payload));
        record.descriptor = &self.no_event;
        record
    }
}

/// Returns the records that show what the tables of a recorder show, in the order of time. `shards` are the recorder's
/// rings, by index: they may still have the fields for which the tables have no room.
#[must_use]
pub fn present_records(present: &Present, catalog: &Catalog, shards: &[Option<&Reader>]) -> Vec<PresentRecord> {
    let tasks: HashMap<u64, &TaskCell> = present.tasks.iter().map(|task| (task.id, task)).collect();
    let sites = TaskSites::of(catalog);
    let mut fields = FieldsInRings { shards, cursors: shards.iter().map(|_| None).collect(), buffer: Vec::new() };
    let mut records = Vec::new();
    for span in &present.spans {
        let task = tasks.get(&span.id).copied();
        span_records(span, task, fields.of(span), &mut records);
        task.into_iter().for_each(|task| task_records(task, &sites, &mut records));
    }
    present.locks.iter().for_each(|lock| records.extend(sites.lock_record(lock)));
    // What the same moment has shown stays in the order of the rows.
    records.sort_by_key(|record| record.descriptor.record_epoch_nanos);
    records
}

/// Makes the records of an open span: that it began, and where it is.
fn span_records(span: &SpanCell, task: Option<&TaskCell>, payload: Option<Vec<u8>>, records: &mut Vec<PresentRecord>) {
    let of_span = PerfExt::of_span(span.id, span.call_site_id);
    let (thread_id, since, is_inside) = match span.presence {
        Presence::Inside(thread_id, since) => (thread_id, Some(since), true),
        Presence::Left(thread_id, since) => (thread_id, Some(since), false),
        Presence::NotYet => (0, None, false),
    };
    let payload = payload.unwrap_or_else(|| {
        let of_task = task.map(TaskCell::fields).unwrap_or_default();
        if of_task.len() > span.fields().len() { of_task } else { span.fields() }.to_vec()
    });
    let has = RawFields::new(&payload).filter(Result::is_ok).count() as u16;
    let begun = PerfExt {
        related: span.parent,
        thread_id,
        flags: span.flags & NEW_FLAGS,
        field_count: has,
        missing_fields: span.field_count.saturating_sub(has),
        ..of_span
    };
    records.push(PresentRecord::new(PerfEvent::SpanNew, span.begun_epoch_nanos, begun, payload));
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
}

impl TaskSites {
    fn of(catalog: &Catalog) -> Self {
        let site = |name: &str| {
            let is_it = |site: &&std::sync::Arc<CallSite>| site.target == "eventring::task" && site.name == name;
            catalog.call_sites().find(is_it).map(|site| site.id)
        };
        let [woken, unwakeable, lock_wait, lock_held] = ["woken", "unwakeable", "lock_wait", "lock_held"].map(site);
        Self { woken, unwakeable, lock_wait, lock_held }
    }

    fn lock_record(&self, lock: &LockCell) -> Option<PresentRecord> {
        let site = if lock.is_held { self.lock_held } else { self.lock_wait }?;
        let ext = PerfExt { thread_id: lock.thread, field_count: 3, ..PerfExt::of_span(lock.span, site) };
        let mut payload = Vec::new();
        // The fields of these call sites: 0 is the text.
        for (index, number) in [(1, lock.lock), (2, lock.guard)] {
            payload.extend([index, ValueType::U64 as u8, 8, 0]);
            payload.extend(number.to_le_bytes());
        }
        let mode = if lock.mode == LockMode::Unknown { "" } else { lock.mode.name() };
        payload.extend([3, ValueType::Str as u8, mode.len() as u8, 0]);
        payload.extend(mode.as_bytes());
        Some(PresentRecord::new(PerfEvent::Event, lock.since_epoch_nanos, ext, payload))
    }
}

/// The fields of spans, as far as the rings still have their begins.
struct FieldsInRings<'r> {
    shards: &'r [Option<&'r Reader>],
    cursors: Vec<Option<Cursor>>,
    buffer: Vec<u8>,
}

impl FieldsInRings<'_> {
    /// Returns the fields of a span, if its cell does not have them all and the ring still does.
    fn of(&mut self, span: &SpanCell) -> Option<Vec<u8>> {
        if RawFields::new(span.fields()).count() >= usize::from(span.field_count) {
            return None;
        }
        let (shard, low) = span.begun_at;
        let reader = (*self.shards.get(shard as usize)?)?;
        let last = reader.info().last_seqno;
        // The last seqno of the ring that has these low bits.
        let seqno = last - (last.wrapping_sub(low) & ((1 << SEQNO_BITS) - 1)).min(last);
        let cursor = self.cursors.get_mut(shard as usize)?.get_or_insert_with(|| reader.cursor());
        cursor.seek(Seek::Seqno(seqno));
        let Next::Event(event) = cursor.next() else { return None };
        let is_it = event.event_type == PerfEvent::SpanNew as u16 && event.content_ext[0] == span.id;
        let payload = cursor.payload(&event, &mut self.buffer).valid().filter(|_| is_it)?;
        Some(payload.to_vec())
    }
}
