//! The open spans of a recorder, from its *tables of the present* (which list what is open now). A million spans may be
//! open, so a span's fields are read only on request.

use super::present;
use crate::engine::fields_in_rings::FieldsInRings;
use eventring::internal::{span_index, whole_thread_ids};
use eventring::now::{LockCell, NowReader, Presence, Present, SpanCell, TaskCell};
use eventring::tracing::SpanId;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// An open span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TabledSpan {
    /// The time of its begin, in nanoseconds since the epoch.
    pub begun_epoch_nanos: u64,
    /// Its id.
    pub id: SpanId,
    /// The span id of its parent; 0 if it is a root.
    pub parent: u64,
    /// The id of its call site.
    pub call_site_id: u32,
    /// The id of the thread that is in it; 0 if none is.
    pub thread_id: u32,
}

/// The open spans of a recorder.
#[derive(Debug)]
pub struct TabledSpans {
    /// In the order of their cells.
    spans: Vec<TabledSpan>,
    /// For each group of neighbouring cells, where its spans begin.
    groups: Vec<u32>,
    /// The number of cells of a group, as an exponent of 2.
    group_shift: u32,
    /// For each span that a thread is in: the thread, the time of its enter, and the id. Those of a thread follow one
    /// another, innermost last.
    entered: Vec<(u32, u64, u64)>,
    last_epoch_nanos: u64,
    left_out: u64,
    locks: Vec<LockCell>,
    more: More,
}

/// The source of the cells and of further fields.
#[derive(Debug)]
enum More {
    Rings(Arc<NowReader>, Mutex<FieldsInRings>),
    Capture(Box<Present>),
}

/// The spans of some cells.
#[derive(Default)]
struct Cells {
    spans: Vec<TabledSpan>,
    entered: Vec<(u32, u64, u64)>,
    last_epoch_nanos: u64,
}

impl Cells {
    fn add(&mut self, cell: &SpanCell, whole: &HashMap<u32, u32>) {
        let SpanCell { id, parent, begun_epoch_nanos, call_site_id, presence, .. } = *cell;
        let mut thread_id = 0;
        self.last_epoch_nanos = begun_epoch_nanos.max(self.last_epoch_nanos);
        if let Presence::Inside(_, since) | Presence::Left(_, since) = presence {
            self.last_epoch_nanos = since.max(self.last_epoch_nanos);
        }
        if let Presence::Inside(thread, since) = presence {
            thread_id = whole.get(&thread).copied().unwrap_or(thread);
            self.entered.push((thread_id, since, id));
        }
        let span = |id| TabledSpan { begun_epoch_nanos, id, parent, call_site_id, thread_id };
        self.spans.extend(SpanId::new(id).map(span));
    }
}

/// Does two things at the same time, if another thread can be had.
#[doc(hidden)]
pub fn both<A: Send, B>(beside: impl Fn() -> A + Sync, here: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().spawn_scoped(scope, &beside);
        let here = here();
        let beside = match other {
            Ok(other) => other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => beside(),
        };
        (beside, here)
    })
}

impl TabledSpans {
    /// Reads tables. Of more than `max` spans, the oldest ones are kept.
    pub(super) fn of_rings(now: &Arc<NowReader>, fields: FieldsInRings, max: usize) -> Self {
        let (whole, count) = (whole_thread_ids(&now.threads()), now.span_cells());
        let read = |from: usize, until: usize| {
            let mut cells = Cells::default();
            now.for_each_span_in(from..until, |cell| cells.add(&cell, &whole));
            cells
        };
        let (rest, mut cells) = both(|| read(count / 2, count), || read(0, count / 2));
        cells.spans.extend(rest.spans);
        cells.entered.extend(rest.entered);
        cells.last_epoch_nanos = cells.last_epoch_nanos.max(rest.last_epoch_nanos);
        let left_out = now.untabled().spans;
        let locks = now.locks();
        Self::new(cells, (left_out, locks), More::Rings(now.clone(), Mutex::new(fields)), max)
    }

    /// Takes what tables showed at the end of a capture. Of more than `max` spans, the oldest ones are kept.
    #[must_use]
    pub fn of_capture(mut present: Present, max: usize) -> Self {
        // They are in order, unless the capture is damaged.
        present.spans.sort_by_key(|cell| span_index(cell.id));
        present.tasks.sort_by_key(|task| span_index(task.id));
        // Its cells have whole ids of threads.
        let mut cells = Cells::default();
        present.spans.iter().for_each(|cell| cells.add(cell, &HashMap::new()));
        let locks = present.locks.clone();
        Self::new(cells, (present.untabled.spans, locks), More::Capture(Box::new(present)), max)
    }

    fn new(cells: Cells, (without_cell, locks): (u64, Vec<LockCell>), more: More, max: usize) -> Self {
        let Cells { mut spans, mut entered, last_epoch_nanos } = cells;
        let left_out = spans.len().saturating_sub(max);
        if left_out > 0 {
            let mut oldest: Vec<_> = spans.iter().map(|span| span.begun_epoch_nanos).zip(0..).collect();
            let first_out = *oldest.select_nth_unstable(max).1;
            let mut at = 0..;
            spans.retain(|span| Some(span.begun_epoch_nanos).zip(at.next()) < Some(first_out));
        }
        entered.sort_by_key(|(thread, since, _)| (*thread, *since));
        let last = spans.last().map_or(0, index_of);
        let group_shift = (0..u32::BITS).find(|shift| last >> shift <= spans.len() / 2).unwrap_or(0);
        let mut groups = vec![0; (last >> group_shift) + 2];
        spans.iter().for_each(|span| groups[(index_of(span) >> group_shift) + 1] += 1);
        let mut before = 0;
        groups.iter_mut().for_each(|group| (before += *group, *group = before).1);
        Self {
            spans,
            groups,
            group_shift,
            entered,
            last_epoch_nanos,
            left_out: without_cell.saturating_add(left_out as u64),
            locks,
            more,
        }
    }

    /// Returns the spans, in the order of their cells.
    #[must_use]
    #[inline]
    pub fn spans(&self) -> &[TabledSpan] {
        &self.spans
    }

    /// Returns the place of a span in [`Self::spans`].
    #[must_use]
    #[inline]
    pub fn place_of(&self, id: u64) -> Option<usize> {
        let group = span_index(id) >> self.group_shift;
        let [from, until] = [group, group + 1].map(|group| self.groups.get(group).copied());
        let spans = self.spans.get(from? as usize..until? as usize)?;
        let at = from? as usize + spans.partition_point(|span| index_of(span) < span_index(id));
        self.spans.get(at).filter(|span| span.id.get() == id).map(|_| at)
    }

    /// Returns the spans that a thread is in, innermost first, and when it entered each, in nanoseconds since the epoch.
    pub fn entered_by(&self, thread: u32) -> impl Iterator<Item = (&TabledSpan, u64)> {
        let until = self.entered.partition_point(|(other, ..)| *other <= thread);
        let its = self.entered[..until].iter().rev().take_while(move |(other, ..)| *other == thread);
        its.filter_map(|(_, since, id)| Some((&self.spans[self.place_of(*id)?], *since)))
    }

    /// Returns the last time that the cells name, in nanoseconds since the epoch.
    #[must_use]
    pub fn last_epoch_nanos(&self) -> u64 {
        self.last_epoch_nanos
    }

    /// Returns the waits for locks, and the guards.
    #[must_use]
    pub fn locks(&self) -> &[LockCell] {
        &self.locks
    }

    /// Returns how many spans were left out, or have no cell.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the fields of a span, encoded as in events, and the number of those that are not known. Nothing is known
    /// of a span that has ended meanwhile.
    #[must_use]
    pub fn fields_of(&self, span: &TabledSpan) -> (Cow<'_, [u8]>, u16) {
        let id = span.id.get();
        let found = match &self.more {
            More::Rings(now, rings) => now.span(id).map(|cell| {
                let further = rings.lock().unwrap_or_else(PoisonError::into_inner).of(&cell);
                (cell, now.task(id), further.map(Cow::Owned))
            }),
            More::Capture(present) => {
                let spans = present.spans.binary_search_by_key(&span_index(id), |cell| span_index(cell.id));
                let tasks = present.tasks.binary_search_by_key(&span_index(id), |task| span_index(task.id));
                let task = tasks.ok().map(|at| present.tasks[at]).filter(|task| task.id == id);
                let further = present.further_fields.get(&id).map(|fields| Cow::Borrowed(fields.as_slice()));
                spans.ok().map(|at| (present.spans[at], task, further))
            }
        };
        let Some((cell, task, further)) = found.filter(|(cell, ..)| cell.id == id) else { return (Cow::default(), 1) };
        let has_later = further.is_some();
        let of_task = task.iter().map(TaskCell::fields);
        let of_cells = [cell.fields()].into_iter().chain(of_task).map(|fields| Cow::Owned(fields.to_vec()));
        let fields = of_cells.chain(further).max_by_key(|fields| fields.len()).unwrap_or_default();
        let (_, missing) = present::fields_of(&cell, &fields, has_later);
        (fields, missing)
    }
}

#[inline]
fn index_of(span: &TabledSpan) -> usize {
    span_index(span.id.get())
}
