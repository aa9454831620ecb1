//! The slices of the open spans of one process, for JSON lines. A span's slices are kept until its line is written.
//! After a span's first 4,096 slices, each further slice gets a separate line.

use eventring::schema::perf::PerfEvent;
use eventring::tracing::{Catalog, IdMap, RawRecord, SpanId, SpanReplay, SpanStep, Thread, ThreadKey};
use std::sync::Arc;

/// The slices of all spans that are not over.
#[derive(Default)]
pub(crate) struct LineSlices {
    spans: IdMap<SpanId, SpanSlices>,
    threads: Vec<Arc<Thread>>,
    indices: IdMap<ThreadKey, u32>,
    /// The number of all slices.
    count: u64,
}

/// The largest number of slices in the line of a span.
pub(crate) const SLICES_MAX: usize = 4096;

/// The slices of one span, in the order of entering.
#[derive(Default)]
pub(crate) struct SpanSlices {
    slices: Vec<SmallSlice>,
    /// Further slices without an exit: the id in the replay, and the slice.
    beyond: Vec<(u64, SmallSlice)>,
    /// The number of slices that have lines of their own.
    pub(crate) written: u64,
    closed_nanos: Option<u64>,
    /// The slices without an exit: the id in the replay, and the index in `slices`.
    open: Vec<(u64, u32)>,
    /// The lengths in nanoseconds that do not fit into 32 bits, by the index in `slices`.
    long: IdMap<u32, u64>,
}

#[derive(Clone, Copy)]
struct SmallSlice {
    /// The time of the enter, or of the exit if the enter was not seen.
    nanos: u64,
    /// The length in nanoseconds, or one of the constants below.
    length: u32,
    /// The index of the thread.
    thread: u32,
}

/// The thread has not exited the span.
const OPEN: u32 = u32::MAX;
/// The enter was not seen.
const UNSEEN: u32 = u32::MAX - 1;
/// The length is in `long`.
const LONG: u32 = u32::MAX - 2;
/// The exit may have been lost. The span was closed since.
const LOST: u32 = u32::MAX - 3;

/// A slice as its line shows it.
pub(crate) struct LineSlice<'t> {
    pub(crate) thread: &'t Arc<Thread>,
    pub(crate) start_nanos: Option<u64>,
    pub(crate) end_nanos: Option<u64>,
    /// True if the thread may have left the span at any time before the close.
    pub(crate) is_end_lost: bool,
}

impl LineSlices {
    /// Notes a record and its effect on the replay of its process. Returns a slice that has ended and needs a line of
    /// its own, with its span.
    pub(crate) fn record(
        &mut self,
        recorder: u32,
        (record, catalog): (&RawRecord<'_>, &Catalog),
        step: &SpanStep,
        replay: &SpanReplay,
    ) -> Option<(SpanId, LineSlice<'_>)> {
        let nanos = record.epoch_nanos();
        match step {
            SpanStep::SliceBegun(slice) => {
                let thread = self.thread(slice.thread, catalog);
                let span = self.spans.entry(slice.span).or_default();
                let begun = SmallSlice { nanos, length: OPEN, thread };
                if span.slices.len() < SLICES_MAX {
                    span.open.push((slice.id, span.slices.len() as u32));
                    span.slices.push(begun);
                    self.count += 1;
                } else {
                    span.beyond.push((slice.id, begun));
                }
            }
            SpanStep::SliceEnded(taken) => {
                let span = self.spans.get_mut(&taken.slice.span)?;
                if let Some(at) = span.open.iter().rposition(|(id, _)| *id == taken.slice.id) {
                    span.end(at, nanos);
                } else if let Some(at) = span.beyond.iter().rposition(|(id, _)| *id == taken.slice.id) {
                    let ended = span.end_beyond(at);
                    return Some((taken.slice.span, self.line(ended, nanos)));
                }
            }
            // The stack of the thread has no slice of this span. Perhaps the close of the span came first and ended the
            // slice. So the exit goes to the span's last slice on this thread that has none.
            SpanStep::Updated(id) if record.event == Some(PerfEvent::SpanExit) => {
                let thread = self.thread(ThreadKey { recorder, thread_id: record.ext.thread_id }, catalog);
                let span = self.spans.entry(*id).or_default();
                let is_of_thread = |(_, index): &(u64, u32)| span.slices[*index as usize].thread == thread;
                let unseen = SmallSlice { nanos, length: UNSEEN, thread };
                if let Some(at) = span.beyond.iter().rposition(|(_, slice)| slice.thread == thread) {
                    let nanos = span.closed_nanos.map_or(nanos, |closed| closed.min(nanos));
                    let ended = span.end_beyond(at);
                    return Some((*id, self.line(ended, nanos)));
                } else if let Some(at) = span.open.iter().rposition(is_of_thread) {
                    span.end(at, nanos);
                } else if span.slices.len() < SLICES_MAX {
                    span.slices.push(unseen);
                    self.count += 1;
                } else {
                    span.written += 1;
                    return Some((*id, self.line(unseen, nanos)));
                }
            }
            SpanStep::Closed { span, cut } => {
                let span = self.spans.get_mut(span)?;
                span.closed_nanos.get_or_insert(nanos);
                for taken in cut.iter().filter(|taken| replay.may_have_ended(&taken.slice, nanos)) {
                    if let Some((_, index)) = span.open.iter().find(|(id, _)| *id == taken.slice.id) {
                        span.slices[*index as usize].length = LOST;
                    }
                    if let Some((_, slice)) = span.beyond.iter_mut().find(|(id, _)| *id == taken.slice.id) {
                        slice.length = LOST;
                    }
                }
            }
            _ => {}
        }
        None
    }

    /// Takes the slices of a span.
    pub(crate) fn take(&mut self, span: SpanId) -> SpanSlices {
        let slices = self.spans.remove(&span).unwrap_or_default();
        self.count -= slices.slices.len() as u64;
        slices
    }

    /// Returns the slices of a span that was taken.
    pub(crate) fn iter<'s>(&'s self, span: &'s SpanSlices) -> impl Iterator<Item = LineSlice<'s>> {
        let slices = span.slices.iter().zip(0..).map(|(slice, index)| {
            let nanos = match slice.length {
                LONG => span.long.get(&index).copied(),
                length => Some(length.into()),
            };
            self.line(*slice, slice.nanos.wrapping_add(nanos.unwrap_or(0)))
        });
        slices.chain(span.beyond.iter().map(|(_, slice)| self.line(*slice, 0)))
    }

    /// Returns a slice as its line shows it. `end_nanos` is its end, if it has one.
    fn line(&self, slice: SmallSlice, end_nanos: u64) -> LineSlice<'_> {
        let (start_nanos, end_nanos) = match slice.length {
            OPEN | LOST => (Some(slice.nanos), None),
            UNSEEN => (None, Some(slice.nanos)),
            _ => (Some(slice.nanos), Some(end_nanos)),
        };
        let thread = &self.threads[slice.thread as usize];
        LineSlice { thread, start_nanos, end_nanos, is_end_lost: slice.length == LOST }
    }

    pub(crate) fn kept_bytes(&self) -> u64 {
        const SPAN_BYTES: u64 = 4 * size_of::<(SpanId, SpanSlices)>() as u64;
        const SLICE_BYTES: u64 = 3 * size_of::<SmallSlice>() as u64;
        (self.spans.len() as u64).saturating_mul(SPAN_BYTES).saturating_add(self.count.saturating_mul(SLICE_BYTES))
    }

    /// Returns the index of a thread.
    fn thread(&mut self, thread: ThreadKey, catalog: &Catalog) -> u32 {
        let threads = &mut self.threads;
        *self.indices.entry(thread).or_insert_with(|| {
            threads.push(catalog.thread(thread.thread_id));
            threads.len() as u32 - 1
        })
    }
}

impl SpanSlices {
    /// Takes a slice of `beyond`, which has ended.
    fn end_beyond(&mut self, at: usize) -> SmallSlice {
        self.written += 1;
        // Any length: the end is given by itself.
        SmallSlice { length: 0, ..self.beyond.swap_remove(at).1 }
    }

    /// Ends the open slice with this index in `open`.
    fn end(&mut self, at: usize, nanos: u64) {
        let (_, index) = self.open.remove(at);
        let slice = &mut self.slices[index as usize];
        // A slice that seems to end before its begin comes from a damaged file, or from a clock that was set back.
        let length = nanos.wrapping_sub(slice.nanos);
        slice.length = match u32::try_from(length) {
            Ok(length) if length < LOST => length,
            _ => {
                self.long.insert(index, length);
                LONG
            }
        };
    }
}
