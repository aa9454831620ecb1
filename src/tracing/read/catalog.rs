//! What is known of call sites and threads: from the tables, and from events.

use crate::reader::Reader;
use crate::schema::perf::tables::{self, TableWords, split_entry};
use crate::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView, ThreadView};
use std::collections::HashMap;
use std::sync::Arc;

/// A place in the program that records spans, log records, counters or markers.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CallSite {
    /// Its id in the ring.
    pub id: u32,
    /// False if the ring has lost what it knew: then the name is `call site N`, and the rest is empty.
    pub is_known: bool,
    /// What it records, if that is known.
    pub kind: Option<CallSiteKind>,
    /// The level of what it records.
    pub level: CallSiteLevel,
    /// Its name.
    pub name: String,
    /// Its target, the module path unless the program says otherwise.
    pub target: String,
    /// Its module path, if known.
    pub module: Option<String>,
    /// Its source file, if known.
    pub file: Option<String>,
    /// Its line in the source file, from 1, if known.
    pub line: Option<u32>,
    /// The names of its fields, in the order of their indices.
    pub field_names: Vec<Arc<str>>,
}

/// A thread of the recording program.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Thread {
    /// Its id in the ring: never used twice by a process.
    pub id: u32,
    /// Its id in the operating system, if known.
    pub os_thread_id: Option<u32>,
    /// Its name, if it has one that is known.
    pub name: Option<String>,
    /// When it first recorded, nanoseconds since the epoch, if known.
    pub started_epoch_nanos: Option<u64>,
}

/// The call sites and threads of one recorder.
///
/// A reader of a live ring calls [`update`](Self::update) now and then, or when it meets an id that it does not know. Whoever
/// has only a copy of the context area uses [`update_from_bytes`](Self::update_from_bytes).
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    call_sites: HashMap<u32, Arc<CallSite>>,
    threads: HashMap<u32, Arc<Thread>>,
    call_site_table: TableRead,
    thread_table: TableRead,
}

/// How far a table has been read.
#[derive(Clone, Copy, Debug, Default)]
struct TableRead {
    bytes: u64,
    /// Entries that nothing could be learnt from.
    damaged_entries: u32,
}

/// With so many damaged entries a table is not read any more: it may have any number of them, and is looked into again with
/// each event that names an unknown id.
const DAMAGED_ENTRIES_MAX: u32 = 1 << 8;

/// Losses of the tables, as the recorder counted them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CatalogLosses {
    /// Call sites that did not fit the table.
    pub call_sites: u64,
    /// Threads that did not fit the table.
    pub threads: u64,
    /// Shards that could not be created.
    pub shards: u64,
    /// Spans that were not recorded because too many were open.
    pub spans: u64,
}

/// A context area to read: of a ring, or a copy.
trait ContextArea {
    fn word(&self, offset: u64) -> Option<u64>;
    fn bytes(&self, offset: u64, out: &mut [u8]) -> bool;
}

impl ContextArea for Reader {
    fn word(&self, offset: u64) -> Option<u64> {
        self.context_word(offset)
    }

    fn bytes(&self, offset: u64, out: &mut [u8]) -> bool {
        self.read_context(offset, out)
    }
}

impl ContextArea for [u8] {
    fn word(&self, offset: u64) -> Option<u64> {
        let (word, _) = self.get(usize::try_from(offset).ok()?..)?.split_first_chunk()?;
        Some(u64::from_le_bytes(*word))
    }

    fn bytes(&self, offset: u64, out: &mut [u8]) -> bool {
        let from = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)?.get(..out.len()));
        from.map(|from| out.copy_from_slice(from)).is_some()
    }
}

impl Catalog {
    /// Knows nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads what the tables have got since the last time. `shard0` is the recorder's shard 0.
    pub fn update(&mut self, shard0: &Reader) {
        self.update_from(shard0);
    }

    /// As [`Self::update`], from a copy of the context area of shard 0.
    pub fn update_from_bytes(&mut self, context_area: &[u8]) {
        self.update_from(context_area);
    }

    fn update_from(&mut self, area: &(impl ContextArea + ?Sized)) {
        if area.word(tables::MAGIC_OFFSET) != Some(tables::MAGIC) {
            return;
        }
        self.call_site_table =
            self.call_site_table.go_on(area, tables::CALL_SITES, |id, body| self.learn_call_site(id, body));
        self.thread_table = self.thread_table.go_on(area, tables::THREADS, |id, body| self.learn_thread(id, body));
    }

    /// Learns a call site from the body of a table entry or the payload of CALL_SITE; false if that is damaged.
    pub fn learn_call_site(&mut self, id: u32, body: &[u8]) -> bool {
        let Ok(view) = CallSiteView::decode(body) else { return false };
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let call_site = CallSite {
            id,
            is_known: true,
            kind: Some(view.kind),
            level: view.level,
            name: view.name.clone().into_owned(),
            target: view.target.clone().into_owned(),
            module: text(&view.module),
            file: text(&view.file),
            line: (view.line != 0).then_some(view.line),
            field_names: view.field_names.iter().map(|name| Arc::from(&**name)).collect(),
        };
        self.call_sites.insert(id, Arc::new(call_site));
        true
    }

    /// Learns a thread from the body of a table entry or the payload of THREAD_STARTED; false if that is damaged.
    pub fn learn_thread(&mut self, id: u32, body: &[u8]) -> bool {
        let Ok(view) = ThreadView::decode(body) else { return false };
        let thread = Thread {
            id,
            os_thread_id: Some(view.header.os_thread_id),
            name: (!view.name.is_empty()).then(|| view.name.clone().into_owned()),
            started_epoch_nanos: Some(view.header.started_epoch_nanos),
        };
        self.threads.insert(id, Arc::new(thread));
        true
    }

    /// Learns what another catalog of the same recorder knows.
    #[cfg(feature = "capture")]
    pub(crate) fn learn_all(&mut self, other: &Self) {
        self.call_sites.extend(other.call_sites.iter().map(|(id, call_site)| (*id, call_site.clone())));
        self.threads.extend(other.threads.iter().map(|(id, thread)| (*id, thread.clone())));
        self.call_site_table.damaged_entries |= other.call_site_table.damaged_entries;
        self.thread_table.damaged_entries |= other.thread_table.damaged_entries;
    }

    /// The call site with that id; one that says so if it is not known.
    #[must_use]
    pub fn call_site(&self, id: u32) -> Arc<CallSite> {
        self.call_sites.get(&id).cloned().unwrap_or_else(|| Arc::new(CallSite::unknown(id)))
    }

    /// The thread with that id; one that says so if it is not known.
    #[must_use]
    pub fn thread(&self, id: u32) -> Arc<Thread> {
        self.threads.get(&id).cloned().unwrap_or_else(|| Arc::new(Thread::unknown(id)))
    }

    /// Whether the call site is known.
    #[must_use]
    pub fn knows_call_site(&self, id: u32) -> bool {
        self.call_sites.contains_key(&id)
    }

    /// Whether the thread is known.
    #[must_use]
    pub fn knows_thread(&self, id: u32) -> bool {
        self.threads.contains_key(&id)
    }

    /// The call sites known, in no order.
    pub fn call_sites(&self) -> impl Iterator<Item = &Arc<CallSite>> {
        self.call_sites.values()
    }

    /// The threads known, in no order.
    pub fn threads(&self) -> impl Iterator<Item = &Arc<Thread>> {
        self.threads.values()
    }

    /// Whether an entry of a table could not be read: the file is damaged.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.call_site_table.damaged_entries > 0 || self.thread_table.damaged_entries > 0
    }
}

impl CatalogLosses {
    /// What the recorder of this shard 0 has counted so far.
    #[must_use]
    pub fn of(shard0: &Reader) -> Self {
        let word = |offset| shard0.context_word(offset).unwrap_or(0);
        if word(tables::MAGIC_OFFSET) != tables::MAGIC {
            return Self::default();
        }
        Self {
            call_sites: word(tables::CALL_SITES.overflows()),
            threads: word(tables::THREADS.overflows()),
            shards: word(tables::SHARD_FAILURES_OFFSET),
            spans: word(tables::LOST_SPANS_OFFSET),
        }
    }
}

impl CallSite {
    fn unknown(id: u32) -> Self {
        Self {
            id,
            is_known: false,
            kind: None,
            level: CallSiteLevel::None,
            name: format!("call site {id}"),
            target: String::new(),
            module: None,
            file: None,
            line: None,
            field_names: Vec::new(),
        }
    }
}

impl Thread {
    fn unknown(id: u32) -> Self {
        Self { id, os_thread_id: None, name: None, started_epoch_nanos: None }
    }
}

/// The bytes of a table from `known` bytes on, as far as they are published and exist.
fn new_entries(area: &(impl ContextArea + ?Sized), words: TableWords, known: u64) -> Vec<u8> {
    /// More in one go is damage, or comes next time.
    const BYTES_MAX: u64 = 64 << 20;
    let word = |offset| area.word(offset).unwrap_or(0);
    let used = word(words.used()).min(word(words.capacity()));
    let Some(bytes) = used.checked_sub(known).map(|bytes| bytes.min(BYTES_MAX)) else { return Vec::new() };
    let Some(start) = word(words.start()).checked_add(known) else { return Vec::new() };
    // The end is looked at first: no memory is taken for bytes that the area does not have.
    if bytes == 0 || !start.checked_add(bytes - 1).is_some_and(|last| area.bytes(last, &mut [0])) {
        return Vec::new();
    }
    let mut entries = vec![0; bytes as usize];
    if area.bytes(start, &mut entries) { entries } else { Vec::new() }
}

impl TableRead {
    /// Calls `learn` with each entry that has come since, which says whether it was one.
    fn go_on(
        mut self,
        area: &(impl ContextArea + ?Sized),
        words: TableWords,
        mut learn: impl FnMut(u32, &[u8]) -> bool,
    ) -> Self {
        if self.damaged_entries >= DAMAGED_ENTRIES_MAX {
            return self;
        }
        let entries = new_entries(area, words, self.bytes);
        let mut rest = &entries[..];
        while self.damaged_entries < DAMAGED_ENTRIES_MAX
            && let Some((entry, after)) = split_entry(rest)
        {
            self.damaged_entries += u32::from(!learn(entry.id, entry.body));
            rest = after;
        }
        if !entries.is_empty() && rest.len() == entries.len() {
            // Only whole entries are published: there is no way past this one.
            self.damaged_entries = DAMAGED_ENTRIES_MAX;
        }
        self.bytes += (entries.len() - rest.len()) as u64;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::perf::tables::{BODY_BYTES_MAX, CALL_SITES, MAGIC, TABLES_START, encode_entry};

    /// A context area with these entries in its table of call sites.
    fn area(entries: &[u8]) -> Vec<u8> {
        let mut area = vec![0; TABLES_START as usize];
        area[..8].copy_from_slice(&MAGIC.to_le_bytes());
        area.extend(entries);
        for (word, value) in [
            (CALL_SITES.start(), TABLES_START),
            (CALL_SITES.capacity(), 1 << 40),
            (CALL_SITES.used(), entries.len() as u64),
        ] {
            area[word as usize..][..8].copy_from_slice(&value.to_le_bytes());
        }
        area
    }

    fn entry(id: u32) -> Vec<u8> {
        let view = CallSiteView {
            kind: CallSiteKind::Span,
            level: CallSiteLevel::Info,
            name: "query".into(),
            target: "shop".into(),
            module: "".into(),
            file: "".into(),
            line: 0,
            field_names: Vec::new(),
        };
        encode_entry(id, &view.encode()).unwrap()
    }

    #[test]
    fn an_entry_that_says_nothing_is_passed_over_and_a_table_of_them_is_given_up() {
        let mut catalog = Catalog::new();
        let one_bad = [entry(1), encode_entry(2, b"?").unwrap(), entry(3)].concat();
        catalog.update_from_bytes(&area(&one_bad));
        assert!(catalog.knows_call_site(1) && catalog.knows_call_site(3) && catalog.is_damaged());
        // Entries of no bytes, as in a file that is one hole: each update would go through millions of them.
        let all_bad = [one_bad, vec![0; 1 << 20], entry(4)].concat();
        catalog.update_from_bytes(&area(&all_bad));
        assert_eq!(catalog.call_site_table.damaged_entries, DAMAGED_ENTRIES_MAX);
        let read = catalog.call_site_table.bytes;
        catalog.update_from_bytes(&area(&all_bad));
        assert_eq!((catalog.call_site_table.bytes, catalog.knows_call_site(4)), (read, false));
    }

    #[test]
    fn a_table_with_an_entry_that_has_no_end_is_not_looked_into_again() {
        let mut catalog = Catalog::new();
        let endless = [&(BODY_BYTES_MAX as u32 + 1).to_le_bytes()[..], &[0; 12]].concat();
        catalog.update_from_bytes(&area(&[entry(1), endless.clone()].concat()));
        assert!(catalog.knows_call_site(1) && !catalog.is_damaged());
        catalog.update_from_bytes(&area(&[entry(1), endless].concat()));
        assert!(catalog.is_damaged());
        catalog.update_from_bytes(&area(&[entry(1), entry(2)].concat()));
        assert!(!catalog.knows_call_site(2));
    }
}
