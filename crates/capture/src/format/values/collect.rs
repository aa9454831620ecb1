//! Collecting the values of a block's events. Only events that conditions can test without other events have values.

use super::key::{NameKey, NameKind};
use super::losses::{self, BlockLoss};
use super::names::Names;
use super::operand::Operand;
use super::pages;
use super::seen::Seen;
use super::tables::{RecorderTables, RingNames};
use super::typed::TypedValues;
use crate::format::block_records::{BlockRecords, RecordRange};
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::EventType as _;
use eventring::schema::perf::{PerfEvent, PerfExt, RawField, RawFields, ValueType};
use eventring::tracing::{CallSite, Fields, PerfContent, decode_record, is_log_record};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The largest number of messages of log records in a block that have keys. More are no names of something.
const MESSAGES_MAX: usize = 256;

/// A key takes about a quarter of the time that a capture takes for an event. A span has four events, and perhaps an
/// id.
const EVENTS_PER_KEY: usize = 4;
/// The same in bytes of the block.
const BYTES_PER_KEY: usize = 128;
/// A block may have this many keys even if it is small.
const KEYS_MIN: usize = 1024;

/// A collector of values. It keeps its memory from one block to the next.
#[derive(Default)]
pub(crate) struct ValueCollector {
    pub(super) names: Names,
    /// The levels of log records, a bit each.
    pub(super) levels: u8,
    pub(super) losses: Vec<BlockLoss>,
}

/// A collector of what the events of a perf ring say in one block.
struct PerfValues<'r, 'c> {
    tables: &'r RecorderTables,
    names: &'c mut Names,
    levels: &'c mut u8,
    sites: Vec<Site<'r>>,
    /// The index of each call site, by its id.
    places: HashMap<u32, usize>,
    /// The index of the call site that came last with these low bits of its id.
    recent: [u32; 256],
    /// The threads whose names were added.
    threads: HashSet<u32>,
    last_thread: Option<u32>,
}

/// A call site of the block.
struct Site<'r> {
    id: u32,
    call_site: Arc<CallSite>,
    /// The places of its fields among the names, and their last values.
    fields: Vec<(usize, Seen<'r>)>,
    is_log: bool,
    /// True once its names were added for a span, and for an event.
    is_span: bool,
    is_event: bool,
}

impl ValueCollector {
    /// Collects the values of a part of `records`, which take `block_bytes` without the column. Returns false if a name
    /// is not known: then nothing can be said about the block.
    pub(crate) fn collect(
        &mut self,
        records: &BlockRecords,
        part: &RecordRange,
        names: &RingNames,
        block_bytes: usize,
    ) -> bool {
        let bytes_max = pages::bytes_max(block_bytes).unwrap_or(0);
        self.names.clear();
        self.levels = 0;
        self.losses = losses::of_part(records, part);
        let descriptors = records.events.descriptors();
        let mut events = part.events.clone().map(|event| (&descriptors[event], records.events.payload(event)));
        let are_known = match names {
            RingNames::Typed(ring) => {
                let mut values = TypedValues::new(ring, &mut self.names);
                events.for_each(|(event, payload)| values.add(event, payload));
                true
            }
            RingNames::Perf(tables) => {
                let mut values = PerfValues::new(tables, &mut self.names, &mut self.levels);
                events.all(|(event, payload)| values.add(event, payload).is_some())
            }
        };
        self.names.finish(pages::keys_max(bytes_max).min(keys_for(part.events.len(), block_bytes)));
        let messages = self.names.of(NameKey::field("message"));
        if messages.keys.len() > MESSAGES_MAX {
            messages.leave_out();
        }
        are_known
    }
}

impl<'r, 'c> PerfValues<'r, 'c> {
    fn new(tables: &'r RecorderTables, names: &'c mut Names, levels: &'c mut u8) -> Self {
        let (sites, places, recent) = (Vec::new(), HashMap::new(), [0; 256]);
        Self { tables, names, levels, sites, places, recent, threads: HashSet::new(), last_thread: None }
    }

    /// Adds what an event says by itself. Returns `None` if its call site or thread is not in the tables.
    #[inline]
    fn add(&mut self, event: &Descriptor, payload: PayloadRead<'r>) -> Option<()> {
        let Some(code) = PerfEvent::from_code(event.event_type).filter(|code| code.has_values()) else {
            return Some(());
        };
        let ext = PerfExt::from_words(event.content_ext);
        if self.last_thread.replace(ext.thread_id) != Some(ext.thread_id)
            && self.threads.insert(ext.thread_id)
            && let Some(name) = &self.tables.thread(ext.thread_id)?.name
        {
            self.names.of(NameKey::of_kind(NameKind::Thread)).add(Operand::Text(name));
        }
        let site = self.site(ext.call_site_id)?;
        let Self { names, levels, tables, sites, .. } = self;
        let site = &mut sites[site];
        site.add_names(code, names);
        if code == PerfEvent::Event {
            **levels |= 1 << site.call_site.level as u8;
        }
        if site.is_log {
            let record = decode_record(&mut tables.catalog(), 0, event, payload);
            if let PerfContent::Event { call_site, fields, .. } = &record.content {
                add_log_record(names, call_site, fields);
                **levels |= 1 << call_site.level as u8;
            }
        }
        if matches!(code, PerfEvent::SpanNew | PerfEvent::SpanRecord | PerfEvent::Event)
            && let Some(payload) = payload.valid()
        {
            RawFields::new(payload).map_while(Result::ok).for_each(|field| site.add_field(&field, names));
        }
        Some(())
    }

    /// Returns the index of the call site with this id.
    #[inline]
    fn site(&mut self, id: u32) -> Option<usize> {
        let recent = &mut self.recent[id as usize % 256];
        if self.sites.get(*recent as usize).is_some_and(|known| known.id == id) {
            return Some(*recent as usize);
        }
        let index = match self.places.get(&id) {
            Some(known) => *known,
            None => {
                self.sites.push(Site::new(id, self.tables.call_site(id)?, self.names));
                self.places.insert(id, self.sites.len() - 1);
                self.sites.len() - 1
            }
        };
        *recent = index as u32;
        Some(index)
    }
}

impl<'r> Site<'r> {
    fn new(id: u32, call_site: Arc<CallSite>, names: &mut Names) -> Self {
        let place = |name: &Arc<str>| (names.place(NameKey::field(name)), Seen::default());
        let fields = call_site.field_names.iter().map(place).collect();
        let is_log = is_log_record(&call_site);
        Self { id, call_site, fields, is_log, is_span: false, is_event: false }
    }

    /// Adds the names of the span or event.
    fn add_names(&mut self, code: PerfEvent, names: &mut Names) {
        let CallSite { name, target, .. } = &*self.call_site;
        if matches!(code, PerfEvent::SpanNew | PerfEvent::SpanRecord) {
            if std::mem::replace(&mut self.is_span, true) {
                return;
            }
            let spans = names.of(NameKey::of_kind(NameKind::Span));
            spans.add(Operand::Text(name));
            spans.add(Operand::Text(&format!("{target}::{name}")));
        } else {
            if std::mem::replace(&mut self.is_event, true) {
                return;
            }
            names.of(NameKey::of_kind(NameKind::Event)).add(Operand::Text(name));
        }
        names.of(NameKey::of_kind(NameKind::Target)).add(Operand::Text(target));
    }

    #[inline]
    fn add_field(&mut self, field: &RawField<'r>, names: &mut Names) {
        let values = match self.fields.get_mut(usize::from(field.index)) {
            Some((place, seen)) => {
                if seen.has(field.type_code, field.value) {
                    return;
                }
                &mut names.list[*place]
            }
            None => names.of(NameKey::field(&format!("field {}", field.index))),
        };
        if let (Some(code @ (ValueType::I64 | ValueType::U64)), Ok(bytes)) =
            (ValueType::from_code(field.type_code), field.value.try_into())
        {
            let number = u64::from_le_bytes(bytes);
            return values.number(if code == ValueType::I64 { number as i64 as f64 } else { number as f64 });
        }
        let is_text =
            [ValueType::Str, ValueType::Debug, ValueType::Error].map(|it| it as u8).contains(&field.type_code);
        match std::str::from_utf8(field.value) {
            Ok(text) if is_text => values.add(Operand::Text(text)),
            // The text of a log record with arguments: nobody looks for it as a whole.
            _ if field.type_code == ValueType::Text as u8 && !field.value.is_empty() => values.has_others = true,
            _ => Operand::with_field(&self.call_site.value_of(field), &mut |value| values.add(value)),
        }
    }
}

/// Adds what a record of the crate `log` says. Its call site stands in its fields.
fn add_log_record(names: &mut Names, call_site: &CallSite, fields: &Fields) {
    names.of(NameKey::of_kind(NameKind::Event)).add(Operand::Text(&call_site.name));
    names.of(NameKey::of_kind(NameKind::Target)).add(Operand::Text(&call_site.target));
    for field in &fields.values {
        let values = names.of(NameKey::field(&field.name));
        Operand::with_field(&field.value, &mut |value| values.add(value));
    }
}

/// Returns the number of keys that a block may have, so that making them takes a small part of the time.
fn keys_for(events: usize, block_bytes: usize) -> usize {
    KEYS_MIN.max(events / EVENTS_PER_KEY + block_bytes / BYTES_PER_KEY)
}
