//! The spans and slices that have begun in the output, and the fields that each of them already shows.

use super::{ArgValue, Args};
use crate::args::is_of_span;
use crate::formats::trace_writer::{SliceId, TrackId};
use eventring::tracing::{Fields, FieldsProblem, SpanId, ThreadKey};

/// A span that is not over.
#[derive(Default)]
pub(super) struct DrawnSpan {
    /// The last value of each field that was recorded so far, in the order in which the fields came, and after them
    /// other facts that each slice shows.
    args: Args,
    /// For each field in `args`, the number of the change that gave it its value.
    changed_at: Vec<u64>,
    /// The number of changes of fields.
    changes: u64,
    missing: u16,
    problem: Option<FieldsProblem>,
    /// An estimate of the size of the fields.
    pub(super) field_bytes: u64,
    /// The parent that `args` shows after the fields. `None` if nothing is there after the fields.
    shown_parent: Option<Option<SpanId>>,
    /// The slice of the span in span view.
    pub(super) whole: Option<WholeSlice>,
    /// The slices of the span in thread view: those that are open, and those that have ended lately.
    pub(super) slices: Vec<DrawnSlice>,
    /// The number of slices from which on those that ended long ago are forgotten.
    pub(super) slices_many: usize,
}

/// The slice of a span in span view.
pub(super) struct WholeSlice {
    pub(super) id: SliceId,
    pub(super) track: TrackId,
    pub(super) row: u32,
    /// The number of the span in its replay.
    pub(super) number: u64,
    pub(super) start_nanos: u64,
    /// The time of the end, if it is known.
    pub(super) end_nanos: Option<u64>,
    pub(super) has_ended: bool,
    pub(super) shown: ShownFields,
}

/// A span slice in thread view.
pub(super) struct DrawnSlice {
    pub(super) id: SliceId,
    pub(super) track: TrackId,
    pub(super) thread: ThreadKey,
    /// The id of the slice in the replay of its process.
    pub(super) replay_id: u64,
    pub(super) begun_nanos: u64,
    /// The time at which the beginning of the slice is drawn.
    pub(super) start_nanos: u64,
    /// The time of the exit from the span. If the exit was lost, this is the last time at which the thread is known to
    /// have been in the span. `None` as long as the thread is in the span.
    pub(super) end_nanos: Option<u64>,
    /// The row of the thread's overlapping slices, if the slice is one of them.
    pub(super) row: Option<u32>,
    pub(super) shown: ShownFields,
    /// An estimate of the size of what the writer keeps until the slice ends.
    pub(super) bytes: u64,
}

/// The fields of its span that a slice shows already.
#[derive(Clone, Copy, Default)]
pub(super) struct ShownFields {
    changes: u64,
    missing: u16,
    problem: Option<FieldsProblem>,
}

impl DrawnSpan {
    /// Takes fields that were recorded. A later value replaces an earlier one.
    pub(super) fn add_fields(&mut self, more: Fields) {
        self.missing = self.missing.saturating_add(more.missing);
        self.problem = self.problem.or(more.problem);
        let mut args = Args::default();
        more.values.into_iter().for_each(|field| args.push_field(field));
        args.tell_from_facts(0, is_of_span);
        self.add_args(args);
    }

    /// Takes facts, as [`Self::add_fields`] takes fields.
    pub(super) fn add_args(&mut self, more: Args) {
        let count = self.changed_at.len();
        self.args.0.truncate(count);
        self.shown_parent = None;
        // The ids of the span and of its parent follow.
        self.args.0.reserve_exact(more.0.len() + 2);
        for arg in more.0 {
            self.changes += 1;
            self.field_bytes = self.field_bytes.saturating_add(arg.kept_bytes());
            match self.args.0.iter().position(|known| *known.name == *arg.name) {
                Some(at) => {
                    self.field_bytes = self.field_bytes.saturating_sub(self.args.0[at].kept_bytes());
                    self.args.0[at] = arg;
                    self.changed_at[at] = self.changes;
                }
                None => {
                    self.args.0.push(arg);
                    self.changed_at.push(self.changes);
                }
            }
        }
    }

    /// Returns the arguments for the beginning of a slice, with more of them at the end.
    pub(super) fn args(&mut self, id: SpanId, parent: Option<SpanId>, more: &mut Args) -> &Args {
        if self.shown_parent != Some(parent) || !more.0.is_empty() {
            self.args.0.truncate(self.changed_at.len());
            self.args.push_problems(self.missing, self.problem);
            self.args.push("span_id", ArgValue::Uint(id.get()));
            self.args.push_some("parent_span_id", parent.map(|parent| ArgValue::Uint(parent.get())));
            // The next slice does not have the same facts at the end.
            self.shown_parent = more.0.is_empty().then_some(parent);
            self.args.0.append(&mut more.0);
        }
        &self.args
    }

    pub(super) fn shown(&self) -> ShownFields {
        ShownFields { changes: self.changes, missing: self.missing, problem: self.problem }
    }

    /// Adds the fields that a slice does not show yet. They become arguments of the slice's end.
    pub(super) fn push_rest(&self, shown: ShownFields, args: &mut Args) {
        let fields = self.args.0.iter().zip(&self.changed_at);
        args.0.extend(fields.filter(|(_, changed)| **changed > shown.changes).map(|(arg, _)| arg.clone()));
        if (shown.missing, shown.problem) != (self.missing, self.problem) {
            args.push_problems(self.missing, self.problem);
        }
    }

    /// Forgets the fields of a span that was closed, unless a slice is still to show them. A thread that enters the
    /// span nevertheless has recorded this late, and earlier slices show the fields. Returns the bytes that they took.
    pub(super) fn forget_fields(&mut self) -> u64 {
        if self.slices.iter().any(|slice| slice.end_nanos.is_none()) {
            return 0;
        }
        (self.args, self.changed_at, self.shown_parent) = (Args::default(), Vec::new(), None);
        std::mem::take(&mut self.field_bytes)
    }

    /// Returns the slice of the span in which an event lies, or `None` if there is none. The event happened at `nanos`.
    /// If its thread is known, only slices of that thread count. If several slices contain the time, a slice that goes
    /// on after `nanos` is preferred to a slice that ends at `nanos`. If several slices are still equal, the slice that
    /// began last is taken.
    pub(super) fn slice_at(&self, thread: Option<ThreadKey>, nanos: u64) -> Option<&DrawnSlice> {
        let holds = |slice: &&DrawnSlice| {
            slice.begun_nanos <= nanos
                && slice.end_nanos.is_none_or(|end| end >= nanos)
                && thread.is_none_or(|thread| thread == slice.thread)
        };
        let order =
            |slice: &&DrawnSlice| (slice.end_nanos.is_none_or(|end| end > nanos), slice.begun_nanos, slice.replay_id);
        self.slices.iter().filter(holds).max_by_key(order)
    }
}

impl WholeSlice {
    /// Returns the time at which to draw an event that names the span. It is before the span's end, because viewers do
    /// not count the end of a slice as a part of it. `None` if the event happened at another time: after a loss, it may
    /// come before all that is known of its span.
    pub(super) fn drawn(&self, nanos: u64) -> Option<u64> {
        let end_nanos = self.end_nanos.unwrap_or(u64::MAX);
        let is_inside = (self.start_nanos..=end_nanos).contains(&nanos);
        is_inside.then(|| nanos.min(end_nanos.saturating_sub(1)).max(self.start_nanos))
    }
}

impl DrawnSlice {
    /// Returns the time at which to draw an event of this slice. The event happened at `nanos`. The returned time is
    /// before the end of the slice, because viewers do not count the end as a part of the slice. So an event at the
    /// time of the exit is drawn one nanosecond earlier.
    pub(super) fn drawn(&self, nanos: u64) -> u64 {
        let end_nanos = self.end_nanos.map_or(u64::MAX, |end| drawn_end(self.start_nanos, end));
        nanos.min(end_nanos - 1).max(self.start_nanos)
    }
}

/// Returns the time at which to draw the end of a slice. A slice that took no time is drawn one nanosecond long, so
/// that events can lie in it.
pub(super) fn drawn_end(start_nanos: u64, end_nanos: u64) -> u64 {
    end_nanos.max(start_nanos.saturating_add(1))
}

/// Returns the arguments that mark a slice whose end was lost: the slice may have gone on after the end that is drawn.
pub(super) fn lost_end() -> Args {
    Args::one("end", ArgValue::Text("lost".into()))
}

/// Returns the arguments that mark a slice that its thread has never left: it ends with the close of its span.
pub(super) fn missing_exit() -> Args {
    Args::one("exit", ArgValue::Text("missing".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(thread_id: u32) -> ThreadKey {
        ThreadKey { recorder: 0, thread_id }
    }

    fn slice(thread: u32, id: u64, start_nanos: u64, end_nanos: Option<u64>) -> DrawnSlice {
        DrawnSlice {
            id: SliceId(id),
            track: TrackId(0),
            thread: key(thread),
            replay_id: id,
            begun_nanos: start_nanos,
            start_nanos,
            end_nanos,
            row: None,
            shown: ShownFields::default(),
            bytes: 0,
        }
    }

    #[test]
    fn a_field_that_is_recorded_again_and_again_takes_the_room_of_one_value() {
        let mut span = DrawnSpan::default();
        let recorded = |value: u64| {
            let mut args = Args::default();
            args.push("step", ArgValue::Uint(value));
            args.push_named("text", ArgValue::Text(value.to_string().into()));
            args
        };
        span.add_args(recorded(10_000));
        let (before, first_shown) = (span.field_bytes, span.shown());
        (10_001..99_999).for_each(|value| span.add_args(recorded(value)));
        assert_eq!((span.args.0.len(), span.field_bytes), (2, before));
        let last_shown = span.shown();
        let mut other = Args::default();
        other.push("other", ArgValue::Bool(true));
        span.add_args(other);
        let rest = |shown| {
            let mut args = Args::default();
            span.push_rest(shown, &mut args);
            serde_json::Value::from(args.values())
        };
        assert_eq!(rest(first_shown), serde_json::json!({ "step": 99_998, "text": "99998", "other": true }));
        assert_eq!(rest(last_shown), serde_json::json!({ "other": true }));
        assert_eq!((span.forget_fields() > 0, span.field_bytes), (true, 0));
    }

    #[test]
    fn an_event_of_a_span_lies_in_the_slice_of_that_time() {
        let slices = vec![
            slice(1, 0, 10, Some(20)),
            slice(2, 1, 15, Some(18)),
            slice(1, 2, 30, Some(40)),
            slice(1, 3, 40, Some(40)),
            slice(1, 4, 60, Some(90)),
        ];
        let span = DrawnSpan { slices, ..DrawnSpan::default() };
        let id = |thread: Option<u32>, nanos| span.slice_at(thread.map(key), nanos).map(|slice| slice.replay_id);
        assert_eq!(
            [9, 10, 16, 18, 19, 20, 25].map(|nanos| id(None, nanos)),
            [None, Some(0), Some(1), Some(0), Some(0), Some(0), None]
        );
        assert_eq!([40, 60, 90, 91].map(|nanos| id(None, nanos)), [Some(3), Some(4), Some(4), None]);
        assert_eq!([id(Some(1), 16), id(Some(2), 18), id(Some(2), 30)], [Some(0), Some(1), None]);
    }

    #[test]
    fn an_event_is_drawn_before_the_end_and_not_before_the_begin() {
        let drawn = |start, end, nanos| slice(1, 0, start, end).drawn(nanos);
        assert_eq!([10, 15, 20].map(|nanos| drawn(10, Some(20), nanos)), [10, 15, 19]);
        assert_eq!((drawn(10, Some(10), 10), drawn(10, None, 12)), (10, 12));
        // These slices are drawn later than they began, because an earlier slice took no time and is drawn one
        // nanosecond long.
        assert_eq!((drawn(12, Some(10), 10), drawn(11, Some(20), 10)), (12, 11));
        assert_eq!(drawn(u64::MAX, Some(u64::MAX), u64::MAX), u64::MAX);
    }
}
