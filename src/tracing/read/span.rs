//! A span, put together from its events.

use super::catalog::{CallSite, Thread};
use super::record::{Fields, SpanId};
use std::sync::Arc;

/// A span as far as its events were seen.
///
/// Its wall time runs from `created` to `closed`; its busy time is the union of its `slices` on each thread. What was not seen
/// is `None`: a span without `closed` was open when the recording ended, or its end was lost ([`Self::may_have_losses`]).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Span {
    /// Its id.
    pub id: SpanId,
    /// The span it is part of; `None` for a root, and for a span whose creation was not seen.
    pub parent: Option<SpanId>,
    /// Where it was created; `None` if its creation was not seen.
    pub call_site: Option<Arc<CallSite>>,
    /// Its fields, with the last value of each.
    pub fields: Fields,
    /// When and on which thread it was created.
    pub created: Option<Moment>,
    /// When and on which thread its last handle went away.
    pub closed: Option<Moment>,
    /// When it was entered, on which thread, in the order of entering.
    pub slices: Vec<Slice>,
    /// The spans that it follows from.
    pub follows_from: Vec<SpanId>,
    /// See [`flags`](crate::schema::perf::flags).
    pub flags: u16,
    /// Whether events of this span may be missing: some were lost while it was open, or its first were not seen.
    pub may_have_losses: bool,
}

/// A time on a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moment {
    /// Nanoseconds since the epoch.
    pub epoch_nanos: u64,
    /// The thread.
    pub thread: Arc<Thread>,
}

/// A stay of one thread in a span.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice {
    /// The thread.
    pub thread: Arc<Thread>,
    /// When it entered, nanoseconds since the epoch; `None` if that was not seen.
    pub entered_epoch_nanos: Option<u64>,
    /// When it exited; `None` if it had not yet, or that was not seen.
    pub exited_epoch_nanos: Option<u64>,
}

impl Slice {
    /// How long it was, in nanoseconds; `None` if one end is not known.
    #[must_use]
    pub fn nanos(&self) -> Option<u64> {
        Some(self.exited_epoch_nanos?.saturating_sub(self.entered_epoch_nanos?))
    }
}

impl Span {
    pub(super) fn unseen(id: SpanId) -> Self {
        Self {
            id,
            parent: None,
            call_site: None,
            fields: Fields::default(),
            created: None,
            closed: None,
            slices: Vec::new(),
            follows_from: Vec::new(),
            flags: 0,
            may_have_losses: true,
        }
    }

    /// The span's name; `span N` if its creation was not seen.
    #[must_use]
    pub fn name(&self) -> String {
        self.call_site.as_ref().map_or_else(|| format!("span {}", self.id), |call_site| call_site.name.clone())
    }

    /// Whether it had not been closed when the recording ended, or its end was not seen.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    /// From creation to close, in nanoseconds: the true time of an async span, too. `None` while one end is not known.
    #[must_use]
    pub fn wall_nanos(&self) -> Option<u64> {
        let (created, closed) = (self.created.as_ref()?, self.closed.as_ref()?);
        Some(closed.epoch_nanos.saturating_sub(created.epoch_nanos))
    }

    /// How long threads were in it, in nanoseconds, summed over threads. Slices without an end are left out; what a thread
    /// spent in it twice (it can be entered again while it is entered) counts once.
    #[must_use]
    pub fn busy_nanos(&self) -> u64 {
        self.busy_nanos_with(None)
    }

    /// As [`Self::busy_nanos`]; slices without an end last until `epoch_nanos`, nanoseconds since the epoch. For an open span: how long threads had
    /// been in it by then, if no exit was lost ([`Self::may_have_losses`]).
    #[must_use]
    pub fn busy_nanos_until(&self, epoch_nanos: u64) -> u64 {
        self.busy_nanos_with(Some(epoch_nanos))
    }

    fn busy_nanos_with(&self, end: Option<u64>) -> u64 {
        let times = |slice: &Slice| {
            let entered = slice.entered_epoch_nanos?;
            Some((slice.thread.id, entered, slice.exited_epoch_nanos.or(end)?.max(entered)))
        };
        let mut ended: Vec<(u32, u64, u64)> = self.slices.iter().filter_map(times).collect();
        ended.sort_unstable();
        let (mut busy, mut covered) = (0, (0, 0));
        for (thread, entered, exited) in ended {
            let from = if covered.0 == thread { entered.max(covered.1) } else { entered };
            busy += exited.saturating_sub(from);
            covered = (thread, if covered.0 == thread { exited.max(covered.1) } else { exited });
        }
        busy
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalog::Catalog;
    use super::*;

    #[test]
    fn busy_time_counts_each_thread_once_and_leaves_open_slices_out() {
        let thread = |id| Catalog::new().thread(id);
        let slice = |id, entered_epoch_nanos, exited_epoch_nanos| Slice {
            thread: thread(id),
            entered_epoch_nanos,
            exited_epoch_nanos,
        };
        let mut span = Span::unseen(SpanId::new(1).unwrap());
        span.slices = vec![
            slice(1, Some(10), Some(30)),
            slice(1, Some(15), Some(20)),
            slice(1, Some(40), Some(45)),
            slice(2, Some(10), Some(12)),
            slice(2, Some(50), None),
        ];
        assert_eq!(span.busy_nanos(), 20 + 5 + 2);
        assert_eq!(span.busy_nanos_until(60), 20 + 5 + 2 + 10);
        // It has not entered by then.
        assert_eq!(span.busy_nanos_until(40), 20 + 5 + 2);
    }
}
