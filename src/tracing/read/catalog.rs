//! The call sites and threads of a recorder. A reader learns them from the recorder's tables and from events.

use super::call_site::{CallSite, Thread};
use super::catalog_limit::CatalogLimit;
use super::id_map::IdMap;
use crate::reader::Reader;
use crate::schema::perf::tables::{self, TableWords, split_entry};
use crate::schema::perf::{CallSiteView, ThreadView};
use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The call sites and threads of one recorder.
///
/// The recorder adds entries while it runs. So a reader of a live ring calls [`update`](Self::update) from time to
/// time, or when it meets an id that the catalog does not know. If the reader has only a copy of the context area, it
/// calls [`update_from_bytes`](Self::update_from_bytes).
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    call_sites: IdMap<u32, Arc<CallSite>>,
    threads: IdMap<u32, Arc<Thread>>,
    call_site_table: TableRead,
    thread_table: TableRead,
    /// The room for descriptions; `None` if it is not bounded.
    room: Option<CatalogLimit>,
}

fn in_order<T>(entries: &IdMap<u32, T>) -> impl Iterator<Item = &T> {
    let mut entries: Vec<(&u32, &T)> = entries.iter().collect();
    entries.sort_unstable_by_key(|(id, _)| **id);
    entries.into_iter().map(|(_, entry)| entry)
}

/// The state of reading a table.
#[derive(Clone, Copy, Debug, Default)]
struct TableRead {
    bytes: u64,
    /// The number of entries that could not be decoded.
    damaged_entries: u32,
}

/// When this many entries of a table were damaged, the catalog stops reading the table. The table of a damaged file
/// can have millions of damaged entries, and reading all of them would take long.
const DAMAGED_ENTRIES_MAX: u32 = 1 << 8;

/// Losses of a recorder that the counters of its rings do not contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CatalogLosses {
    /// The number of call sites that did not fit the table.
    pub call_sites: u64,
    /// The number of threads that did not fit the table.
    pub threads: u64,
    /// The number of shards that could not be created.
    pub shards: u64,
    /// The number of spans that were not recorded, because too many spans were open.
    pub spans: u64,
}

/// Access to the context area of shard 0, which holds the tables: either in a mapped ring, or in a copy.
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
    /// Creates an empty catalog.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the table entries that the recorder has added since the last call. `shard0` is the recorder's shard 0,
    /// which holds the tables.
    pub fn update(&mut self, shard0: &Reader) {
        self.update_from(shard0);
    }

    /// Does the same as [`Self::update`], but reads from a copy of shard 0's context area.
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

    /// Adds a call site. `body` is the body of a table entry or the payload of a CALL_SITE event. Returns false if
    /// the bytes are damaged.
    pub fn learn_call_site(&mut self, id: u32, body: &[u8]) -> bool {
        let Ok(view) = CallSiteView::decode(body) else { return false };
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let (name, format) = view.name_and_format();
        let call_site = CallSite {
            id,
            is_known: true,
            kind: Some(view.kind),
            level: view.level,
            name: name.to_owned(),
            format: format.map(Arc::from),
            target: view.target.clone().into_owned(),
            module: text(&view.module),
            file: text(&view.file),
            line: (view.line != 0).then_some(view.line),
            field_names: distinct(&view.field_names),
        };
        if let Some(room) = &mut self.room
            && !room.takes(&mut self.threads, self.call_sites.get(&id), &call_site)
        {
            return true;
        }
        self.call_sites.insert(id, Arc::new(call_site));
        true
    }

    /// Adds a thread. `body` is the body of a table entry or the payload of a THREAD_STARTED event. Returns false if
    /// the bytes are damaged.
    pub fn learn_thread(&mut self, id: u32, body: &[u8]) -> bool {
        let Ok(view) = ThreadView::decode(body) else { return false };
        let thread = Thread {
            id,
            os_thread_id: Some(view.header.os_thread_id),
            name: (!view.name.is_empty()).then(|| view.name.clone().into_owned()),
            started_epoch_nanos: Some(view.header.started_epoch_nanos),
            measures_times: view.header.measures_times != 0,
        };
        if let Some(room) = &mut self.room {
            let known = self.threads.get(&id).cloned();
            if !room.takes(&mut self.threads, known.as_ref(), &thread) {
                return true;
            }
        }
        self.threads.insert(id, Arc::new(thread));
        true
    }

    /// Adds the entries of another catalog of the same recorder.
    pub fn learn_all(&mut self, other: &Self) {
        self.call_sites.extend(other.call_sites.iter().map(|(id, call_site)| (*id, call_site.clone())));
        self.threads.extend(other.threads.iter().map(|(id, thread)| (*id, thread.clone())));
        self.call_site_table.damaged_entries |= other.call_site_table.damaged_entries;
        self.thread_table.damaged_entries |= other.thread_table.damaged_entries;
    }

    /// Returns the call site with this id. If the catalog does not know the id, returns a placeholder, for which
    /// [`CallSite::is_known`] is false.
    #[must_use]
    pub fn call_site(&self, id: u32) -> Arc<CallSite> {
        self.call_sites.get(&id).cloned().unwrap_or_else(|| Arc::new(CallSite::unknown(id)))
    }

    /// Returns the thread with this id. If the catalog does not know the id, returns a thread that has an id and
    /// nothing else.
    #[must_use]
    pub fn thread(&self, id: u32) -> Arc<Thread> {
        self.threads.get(&id).cloned().unwrap_or_else(|| Arc::new(Thread::unknown(id)))
    }

    /// Returns the call site with this id, if the catalog knows it.
    pub fn known_call_site(&self, id: u32) -> Option<&Arc<CallSite>> {
        self.call_sites.get(&id)
    }

    /// Returns the thread with this id, if the catalog knows it.
    pub fn known_thread(&self, id: u32) -> Option<&Arc<Thread>> {
        self.threads.get(&id)
    }

    /// Creates an empty catalog for a reader that goes on without end. Its memory is bounded, whatever the rings hold:
    /// what does not fit is left out, and so is another description of an id that has one.
    pub fn live() -> Self {
        Self { room: Some(CatalogLimit::default()), ..Self::default() }
    }

    /// Returns how many descriptions were left out.
    pub fn refused(&self) -> u64 {
        self.room.as_ref().map_or(0, CatalogLimit::refused)
    }

    /// Forgets a thread that has ended. If spans still have its description, it is forgotten after them.
    pub fn forget_thread(&mut self, id: u32) {
        match &mut self.room {
            Some(room) => room.forget(&mut self.threads, id),
            None => {
                self.threads.remove(&id);
            }
        }
    }

    /// Returns true if the call site is known.
    #[must_use]
    pub fn knows_call_site(&self, id: u32) -> bool {
        self.call_sites.contains_key(&id)
    }

    /// Returns true if the thread is known.
    #[must_use]
    pub fn knows_thread(&self, id: u32) -> bool {
        self.threads.contains_key(&id)
    }

    /// Returns the known call sites, in the order of their ids.
    pub fn call_sites(&self) -> impl Iterator<Item = &Arc<CallSite>> {
        in_order(&self.call_sites)
    }

    /// Returns the known threads, in the order of their ids.
    pub fn threads(&self) -> impl Iterator<Item = &Arc<Thread>> {
        in_order(&self.threads)
    }

    /// Returns how many call sites and how many threads are known.
    #[doc(hidden)]
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.call_sites.len(), self.threads.len())
    }

    /// Returns true if an entry of a table could not be decoded. Then the ring file is damaged.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.call_site_table.damaged_entries > 0 || self.thread_table.damaged_entries > 0
    }
}

impl CatalogLosses {
    /// Returns the counts of the recorder of this shard 0.
    #[must_use]
    pub fn read(shard0: &Reader) -> Self {
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

/// Returns names of which no two are equal: the second `x` becomes `x#2`, or the next name that is not there.
fn distinct(names: &[Cow<'_, str>]) -> Vec<Arc<str>> {
    let mut taken: HashMap<Arc<str>, u32> = HashMap::with_capacity(names.len());
    // Few call sites have a name twice.
    let all = LazyCell::new(|| names.iter().map(|name| &**name).collect::<HashSet<&str>>());
    let is_taken = |name: &str, taken: &HashMap<_, _>| taken.contains_key(name) || all.contains(name);
    let mut distinct = Vec::with_capacity(names.len());
    for name in names {
        let mut name: Arc<str> = Arc::from(&**name);
        if let Some(mut number) = taken.get(&name).copied() {
            let other = loop {
                number += 1;
                let other: Arc<str> = format!("{name}#{number}").into();
                if !is_taken(&other, &taken) {
                    break other;
                }
            };
            taken.insert(name, number);
            name = other;
        }
        taken.insert(name.clone(), 1);
        distinct.push(name);
    }
    distinct
}

/// Returns the bytes of a table that were published after its first `known` bytes, but at most `BYTES_MAX` bytes.
/// Returns no bytes if they reach beyond the context area.
fn new_entries(area: &(impl ContextArea + ?Sized), words: TableWords, known: u64) -> Vec<u8> {
    /// Most bytes that one call reads. The next call reads the rest.
    const BYTES_MAX: u64 = 64 << 20;
    let word = |offset| area.word(offset).unwrap_or(0);
    let used = word(words.used()).min(word(words.capacity()));
    let Some(bytes) = used.checked_sub(known).map(|bytes| bytes.min(BYTES_MAX)) else { return Vec::new() };
    let Some(start) = word(words.start()).checked_add(known) else { return Vec::new() };
    // In a damaged file, the table's length can reach beyond the context area. So the last byte is read first, and
    // memory is allocated only if the byte exists.
    if bytes == 0 || !start.checked_add(bytes - 1).is_some_and(|last| area.bytes(last, &mut [0])) {
        return Vec::new();
    }
    let mut entries = vec![0; bytes as usize];
    if area.bytes(start, &mut entries) { entries } else { Vec::new() }
}

impl TableRead {
    /// Reads the entries that were added since the last call, and calls `learn` with each of them. `learn` returns
    /// false if an entry is damaged.
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
            // New bytes were published, but they do not begin with a whole entry. A recorder publishes only whole
            // entries, so the table is damaged here. Where the next entry begins is not known, so the table is not
            // read any more.
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
    use crate::schema::perf::{CallSiteKind, CallSiteLevel};

    /// Returns the bytes of a context area whose table of call sites holds these entries.
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
    fn fields_of_one_name_get_names_of_their_own() {
        let named = |names: &[&'static str]| {
            let names: Vec<_> = names.iter().map(|name| Cow::from(*name)).collect();
            distinct(&names).iter().map(|name| name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(named(&["a", "b"]), ["a", "b"]);
        assert_eq!(named(&["a", "b", "a", "a"]), ["a", "b", "a#2", "a#3"]);
        assert_eq!(named(&["a", "a", "a#2", "a#2", "a"]), ["a", "a#3", "a#2", "a#2#2", "a#4"]);
        // What was written by a reader is read as it is.
        assert_eq!(named(&["a", "a#3", "a#2", "a#2#2"]), ["a", "a#3", "a#2", "a#2#2"]);
        assert_eq!(named(&[""; 256]).last().unwrap(), "#256");
    }

    #[test]
    fn a_damaged_entry_is_skipped_and_a_table_of_damaged_entries_is_given_up() {
        let mut catalog = Catalog::new();
        let one_bad = [entry(1), encode_entry(2, b"?").unwrap(), entry(3)].concat();
        catalog.update_from_bytes(&area(&one_bad));
        assert!(catalog.knows_call_site(1) && catalog.knows_call_site(3) && catalog.is_damaged());
        // One MiB of zeros, like a hole in a file. The catalog counts damaged entries in it, and stops reading the
        // table when it reaches the limit.
        let all_bad = [one_bad, vec![0; 1 << 20], entry(4)].concat();
        catalog.update_from_bytes(&area(&all_bad));
        assert_eq!(catalog.call_site_table.damaged_entries, DAMAGED_ENTRIES_MAX);
        let read = catalog.call_site_table.bytes;
        catalog.update_from_bytes(&area(&all_bad));
        assert_eq!((catalog.call_site_table.bytes, catalog.knows_call_site(4)), (read, false));
    }

    #[test]
    fn a_table_with_an_entry_that_has_no_end_is_not_read_again() {
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
