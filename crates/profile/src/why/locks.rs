//! The waits for locks of `eventring::sync`, which threads have recorded themselves.

use super::collect::Slice;
use crate::line::times::Times;
use eventring::schema::perf::{FieldValue, PerfEvent};
use eventring::tracing::{Catalog, RawRecord, SpanId, ThreadKey};
use eventring_capture::numbers::{counted, time};
use eventring_capture::recording::ReplayState;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// The number of locks of a span that are named.
const LOCKS_MAX: usize = 10;
/// The number of closed spans whose names are kept: a holder may close its span before the wait for it has ended.
const CLOSED_MAX: usize = 1 << 16;

/// The waits of a span for a lock, which one holder had.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct LockShare {
    #[serde(flatten)]
    of: Lock,
    /// The number of waits.
    pub count: u64,
    /// How long they were, in nanoseconds.
    #[serde(rename = "ns")]
    pub nanos: u64,
}

/// A lock, and who held it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
pub(super) struct Lock {
    /// Its name.
    lock: String,
    /// Where it was made.
    file: Option<String>,
    line: Option<u32>,
    /// `mutex`, `read`, `write` or `condition`.
    mode: String,
    /// The name of the span in which the holder took it; of a condition, of who has notified it. Null if nobody knows it.
    holder: Option<String>,
    /// The name of the holder's thread.
    holder_thread: Option<String>,
}

/// A wait of a thread.
#[derive(Debug)]
struct LockWait {
    from_nanos: u64,
    to_nanos: u64,
    lock: Arc<Lock>,
}

/// The waits of all threads.
#[derive(Debug, Default)]
pub(super) struct LockWaits {
    /// By the thread, as the system numbers it, in the order of time: a thread waits for one lock at a time.
    of_threads: HashMap<u32, Vec<LockWait>>,
    /// The names of spans that have closed: the last ones, and those before.
    closed: [HashMap<(usize, u64), Arc<str>>; 2],
}

impl Lock {
    /// Says for what lock somebody has waited, how often and how long.
    pub(super) fn waited(&self, count: u64, nanos: u64) -> String {
        let what = if self.mode == "condition" { "condition" } else { "lock" };
        let place = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!(" ({file}:{line})"),
            _ => String::new(),
        };
        let of_thread = || self.holder_thread.as_ref().map(|name| format!("thread `{name}`"));
        let long = match self.holder.as_ref().map(|name| format!("`{name}`")).or_else(of_thread) {
            Some(holder) if what == "condition" => format!("notified by {holder}, {}", time(nanos)),
            Some(holder) => format!("held by {holder} for {}", time(nanos)),
            None => time(nanos),
        };
        let often = if count > 1 { format!(" in {}", counted(count, "wait", "waits")) } else { String::new() };
        format!("{what} `{}`{place}, {long}{often}", self.lock)
    }
}

impl fmt::Display for LockShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.of.waited(self.count, self.nanos))
    }
}

impl LockWaits {
    /// Takes a record if it is a wait in one of these times.
    pub(super) fn record(
        &mut self,
        record: &RawRecord<'_>,
        (process, recorder): (usize, u32),
        catalog: &Catalog,
        state: ReplayState<'_>,
        windows: &Times,
    ) {
        let site = catalog.known_call_site(record.ext.call_site_id).filter(|_| record.event == Some(PerfEvent::Event));
        let Some(site) = site.filter(|site| site.target == "eventring::sync") else { return };
        let fields = record.named_fields(catalog);
        let number = |name: &str| match fields.get(name) {
            Some(FieldValue::U64(number)) => Some(*number),
            _ => None,
        };
        let Some(nanos) = number("waited_ns") else { return };
        let to_nanos = record.epoch_nanos();
        let from_nanos = to_nanos.saturating_sub(nanos);
        let Some(thread_id) = catalog.thread(record.ext.thread_id).os_thread_id else { return };
        if !windows.overlap(from_nanos, to_nanos) {
            return;
        }
        let of_span = number("holder").and_then(SpanId::new).and_then(|id| self.span_name(process, id, state));
        let thread_id_of_holder = number("holder_thread").and_then(|id| u32::try_from(id).ok());
        let thread = thread_id_of_holder.and_then(|thread_id| state.tables.thread(ThreadKey { recorder, thread_id }));
        let mode = fields.get("mode").map(ToString::to_string).unwrap_or_default();
        let lock = Arc::new(Lock {
            lock: site.name.clone(),
            file: site.file.clone(),
            line: site.line,
            mode,
            holder: of_span.map(|name| name.to_string()),
            holder_thread: thread.and_then(|thread| thread.name.clone()),
        });
        self.of_threads.entry(thread_id).or_default().push(LockWait { from_nanos, to_nanos, lock });
    }

    fn span_name(&self, process: usize, id: SpanId, state: ReplayState<'_>) -> Option<Arc<str>> {
        let closed = || self.closed.iter().find_map(|closed| closed.get(&(process, id.get())).cloned());
        state.span(process, id).map(|span| span.name().into()).or_else(closed)
    }

    /// Keeps the name of a span that has closed.
    pub(super) fn closed(&mut self, process: usize, id: u64, name: Arc<str>) {
        let [last, before] = &mut self.closed;
        if last.len() >= CLOSED_MAX {
            *before = std::mem::take(last);
        }
        last.insert((process, id), name);
    }

    /// Calls `each` with each wait of a thread in a time: its part in it, and the lock.
    fn between<'w>(&'w self, thread: u32, from: u64, to: u64, mut each: impl FnMut(u64, u64, &'w Arc<Lock>)) {
        let all = self.of_threads.get(&thread).map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|wait| wait.to_nanos <= from);
        for wait in all[first..].iter().take_while(|wait| wait.from_nanos < to) {
            each(wait.from_nanos.max(from), wait.to_nanos.min(to), &wait.lock);
        }
    }

    /// Calls `each` with the parts of a time, each with the lock for which the thread has waited in it.
    pub(super) fn divide(&self, thread: u32, from: u64, to: u64, mut each: impl FnMut(u64, Option<&Arc<Lock>>)) {
        let mut at = from;
        self.between(thread, from, to, |from, to, lock| {
            each(from.saturating_sub(at), None);
            each(to.saturating_sub(from.max(at)), Some(lock));
            at = at.max(to);
        });
        each(to - at, None);
    }

    /// Returns how long a thread has waited for locks in a time, without the part in which a span had children.
    pub(super) fn outside(&self, thread: u32, from: u64, to: u64, children: &Times) -> Vec<(Arc<Lock>, u64)> {
        let mut waits = Vec::new();
        self.between(thread, from, to, |from, to, lock| waits.push((lock.clone(), children.left_out_of(from, to))));
        waits
    }

    /// Returns the locks for which threads have waited longest in these slices.
    pub(super) fn shares(&self, slices: &[Slice]) -> Vec<LockShare> {
        let mut all: BTreeMap<&Arc<Lock>, (u64, u64)> = BTreeMap::new();
        for slice in slices {
            self.between(slice.thread_id, slice.from_nanos, slice.to_nanos, |from, to, lock| {
                let (count, nanos) = all.entry(lock).or_default();
                (*count, *nanos) = (*count + 1, *nanos + (to - from));
            });
        }
        let share = |(of, (count, nanos)): (&Arc<Lock>, _)| LockShare { of: Lock::clone(of), count, nanos };
        let mut shares: Vec<LockShare> = all.into_iter().map(share).collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.nanos));
        shares.truncate(LOCKS_MAX);
        shares
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        let waits: usize = self.of_threads.values().map(Vec::len).sum();
        let closed: usize = self.closed.iter().map(HashMap::len).sum();
        (waits * 200 + closed * 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(all: &[(u64, u64, &str)]) -> LockWaits {
        let wait = |(from_nanos, to_nanos, name): &(u64, u64, &str)| {
            let (lock, mode) = ((*name).to_owned(), "mutex".to_owned());
            let (file, line, holder, holder_thread) = (Some("src/db.rs".to_owned()), Some(40), None, None);
            let lock = Lock { lock, file, line, mode, holder, holder_thread }.into();
            LockWait { from_nanos: *from_nanos, to_nanos: *to_nanos, lock }
        };
        LockWaits { of_threads: [(7, all.iter().map(wait).collect())].into(), ..LockWaits::default() }
    }

    #[test]
    fn the_parts_of_a_time_add_up_to_it_and_no_wait_counts_twice() {
        let waits = waits(&[(10, 20, "a"), (20, 30, "b"), (90, 120, "a")]);
        for (from, to, named) in [(0, 100, 30), (15, 25, 10), (30, 90, 0), (100, 110, 10), (130, 140, 0)] {
            let (mut of_locks, mut others) = (0, 0);
            waits.divide(7, from, to, |nanos, lock| *if lock.is_some() { &mut of_locks } else { &mut others } += nanos);
            assert_eq!((of_locks, of_locks + others), (named, to - from), "{from} to {to}");
        }
    }

    #[test]
    fn waits_for_a_lock_of_one_holder_are_one_line_and_who_held_it_is_said_if_it_is_known() {
        let of = waits(&[(0, 1, "accounts")]).of_threads[&7][0].lock.clone();
        assert_eq!(of.waited(1, 31_000_000), "lock `accounts` (src/db.rs:40), 31.0 ms");
        let thread = Lock { holder_thread: Some("writer".into()), ..Lock::clone(&of) };
        let text = "lock `accounts` (src/db.rs:40), held by thread `writer` for 31.0 ms in 3 waits";
        assert_eq!(thread.waited(3, 31_000_000), text);
        let notified = Lock { holder: Some("publish".into()), mode: "condition".into(), ..thread };
        assert_eq!(
            notified.waited(1, 31_000_000),
            "condition `accounts` (src/db.rs:40), notified by `publish`, 31.0 ms"
        );
    }
}
