//! The recorder's side of the tables of call sites and threads, in the context area of shard 0.

use crate::layout::extension::COUNT_TABLE_OVERFLOWS;
use crate::recorder::Recorder;
use crate::schema::perf::tables::{CALL_SITES, MAGIC, MAGIC_OFFSET, TABLES_START, THREADS, TableWords, encode_entry};
use std::sync::{Mutex, PoisonError};

/// The tables of one recorder.
pub(in crate::tracing::record) struct Tables {
    call_sites: Mutex<Table>,
    threads: Mutex<Table>,
}

/// The kinds of tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tracing::record) enum TableKind {
    CallSites,
    Threads,
}

struct Table {
    words: TableWords,
    start: u64,
    capacity: u64,
    used: u64,
    overflows: u64,
}

impl Tables {
    /// Makes empty tables in the context area of `shard0`. The table of threads gets a quarter of the area, the table
    /// of call sites gets the rest.
    pub(in crate::tracing::record) fn new(shard0: &Recorder) -> Self {
        let area_bytes = shard0.geometry().context_area_bytes();
        let thread_bytes = area_bytes / 4;
        let call_site_bytes = area_bytes.saturating_sub(thread_bytes + TABLES_START);
        let call_sites = Table::new(shard0, CALL_SITES, TABLES_START, call_site_bytes);
        let threads = Table::new(shard0, THREADS, TABLES_START + call_site_bytes, thread_bytes);
        shard0.publish_context_word(MAGIC_OFFSET, MAGIC);
        Self { call_sites: Mutex::new(call_sites), threads: Mutex::new(threads) }
    }

    /// Adds an entry to a table and returns true. If the entry does not fit, counts it as an overflow and returns
    /// false.
    pub(in crate::tracing::record) fn add(&self, shard0: &Recorder, kind: TableKind, id: u32, body: &[u8]) -> bool {
        let table = match kind {
            TableKind::CallSites => &self.call_sites,
            TableKind::Threads => &self.threads,
        };
        table.lock().unwrap_or_else(PoisonError::into_inner).add(shard0, id, body)
    }
}

impl Table {
    fn new(shard0: &Recorder, words: TableWords, start: u64, capacity: u64) -> Self {
        shard0.publish_context_word(words.start(), start);
        shard0.publish_context_word(words.capacity(), capacity);
        Self { words, start, capacity, used: 0, overflows: 0 }
    }

    fn add(&mut self, shard0: &Recorder, id: u32, body: &[u8]) -> bool {
        let entry = encode_entry(id, body).filter(|entry| self.used + entry.len() as u64 <= self.capacity);
        let written = entry.filter(|entry| shard0.write_context(self.start + self.used, entry));
        match written {
            Some(entry) => {
                self.used += entry.len() as u64;
                shard0.publish_context_word(self.words.used(), self.used);
                true
            }
            None => {
                self.overflows += 1;
                shard0.publish_context_word(self.words.overflows(), self.overflows);
                shard0.core.add_to_counter(COUNT_TABLE_OVERFLOWS, 1);
                false
            }
        }
    }
}
