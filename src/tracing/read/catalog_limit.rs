//! The memory limit for a catalog: the descriptions of call sites and threads that a reader keeps.
//!
//! A damaged or hostile ring can describe any number of call sites and threads. So the descriptions have a limit in
//! bytes, and the catalog keeps only the first description of each id. The description of an ended thread counts
//! towards the limit at least as long as a span refers to it.

use super::call_site::{CallSite, Thread};
use super::id_map::IdMap;
use std::collections::HashSet;
use std::sync::Arc;

/// The room for the descriptions of one catalog, in bytes.
const ROOM_BYTES: u64 = 64 << 20;
/// The bytes that a text takes beside its characters: a string or an `Arc<str>`, and the memory that it points to.
const TEXT_BYTES: u64 = 48;
/// The number of ended threads from which on those that nobody has any more are looked for.
const ENDED_MIN: usize = 256;

/// A description of a call site or of a thread.
pub(super) trait Description: PartialEq {
    /// Returns an estimate of the memory that it takes, in bytes.
    fn kept_bytes(&self) -> u64;
}

/// The room that is left, and the threads that will make room.
#[derive(Clone, Debug)]
pub(super) struct CatalogLimit {
    bytes_left: u64,
    refused: u64,
    /// The threads that have ended while spans had their descriptions.
    ended: HashSet<u32>,
    /// The number of ended threads at which they are looked through.
    ended_max: usize,
}

impl Default for CatalogLimit {
    fn default() -> Self {
        Self { bytes_left: ROOM_BYTES, refused: 0, ended: HashSet::new(), ended_max: ENDED_MIN }
    }
}

impl CatalogLimit {
    /// Returns true if there is room for a description, and `known`, the description that its id has, is none. Counts
    /// a description that is left out, unless it is the same as the known one.
    pub(super) fn takes<D: Description>(
        &mut self,
        threads: &mut IdMap<u32, Arc<Thread>>,
        known: Option<&Arc<D>>,
        new: &D,
    ) -> bool {
        if let Some(known) = known {
            self.refused += u64::from(**known != *new);
            return false;
        }
        let bytes = new.kept_bytes();
        if bytes > self.bytes_left && !self.ended.is_empty() {
            self.remove_ended(threads);
        }
        let left = self.bytes_left.checked_sub(bytes);
        self.refused += u64::from(left.is_none());
        self.bytes_left = left.unwrap_or(self.bytes_left);
        left.is_some()
    }

    /// Forgets a thread as soon as no span has its description.
    pub(super) fn forget(&mut self, threads: &mut IdMap<u32, Arc<Thread>>, id: u32) {
        if threads.contains_key(&id) {
            self.ended.insert(id);
        }
        if self.ended.len() >= self.ended_max {
            self.remove_ended(threads);
        }
    }

    /// Removes the ended threads that nobody else has.
    fn remove_ended(&mut self, threads: &mut IdMap<u32, Arc<Thread>>) {
        let bytes_left = &mut self.bytes_left;
        self.ended.retain(|id| match threads.get(id) {
            Some(thread) if Arc::strong_count(thread) > 1 => true,
            Some(thread) => {
                *bytes_left += thread.kept_bytes();
                threads.remove(id);
                false
            }
            None => false,
        });
        self.ended_max = (2 * self.ended.len()).max(ENDED_MIN);
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused
    }
}

impl Description for CallSite {
    fn kept_bytes(&self) -> u64 {
        let texts = [&self.name, &self.target].into_iter().chain(&self.module).chain(&self.file);
        let texts = texts.map(|text| text.len() as u64 + TEXT_BYTES);
        let names = self.field_names.iter().map(|name| name.len() as u64 + TEXT_BYTES);
        2 * size_of::<Self>() as u64 + texts.chain(names).sum::<u64>()
    }
}

impl Description for Thread {
    fn kept_bytes(&self) -> u64 {
        4 * size_of::<Self>() as u64 + self.name.as_ref().map_or(0, |name| name.len() as u64 + TEXT_BYTES)
    }
}
