//! The threads with the spans that they are in, as plain data.

use super::list::{ListOrder, ListRow};
use super::stats::TopKey;
use crate::text::perf::thread_label;
use crate::verbs::now::open::program_name;
use eventring::tracing::ThreadKey;
use eventring_live::{LiveState, LiveThread, SeriesKind};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

/// A thread.
#[derive(Serialize, JsonSchema)]
pub(super) struct TopThread {
    /// The index of the program, and the number of the thread.
    #[serde(skip)]
    pub(super) key: (usize, ThreadKey),
    pub(super) name: String,
    #[serde(skip)]
    pub(super) program: String,
    #[serde(rename = "tid")]
    pub(super) os_thread_id: Option<u32>,
    pub(super) pid: u32,
    /// The innermost span that the thread is in.
    #[serde(flatten, serialize_with = "innermost")]
    #[schemars(with = "Innermost<'_>")]
    pub(super) innermost: Option<TopInnermost>,
    /// False if the thread may have left the span, or may be in another one.
    #[serde(rename = "certain")]
    pub(super) is_certain: bool,
    /// False if the rings do not hold a record of the thread any more.
    #[serde(rename = "seen")]
    pub(super) is_seen: bool,
}

/// The innermost span of a thread.
pub(super) struct TopInnermost {
    pub(super) id: u64,
    pub(super) key: TopKey,
    pub(super) entered_epoch_nanos: u64,
    pub(super) nanos: u64,
    /// The names of the parents, nearest first.
    pub(super) path: Vec<String>,
}

/// The innermost span in JSON.
#[derive(Serialize, JsonSchema)]
struct Innermost<'a> {
    span: Option<&'a str>,
    id: Option<u64>,
    since_ns: Option<u64>,
    for_ns: Option<u64>,
    /// The names of the parents, nearest first.
    path: &'a [String],
}

fn innermost<S: Serializer>(span: &Option<TopInnermost>, to: S) -> Result<S::Ok, S::Error> {
    let span = span.as_ref();
    let innermost = Innermost {
        span: span.map(|it| it.key.name.as_str()),
        id: span.map(|it| it.id),
        since_ns: span.map(|it| it.entered_epoch_nanos),
        for_ns: span.map(|it| it.nanos),
        path: span.map_or(&[], |it| &it.path),
    };
    innermost.serialize(to)
}

impl TopThread {
    /// Returns the threads of all programs. Where tables of the present show the spans that they are in, nothing is in
    /// doubt.
    pub(super) fn all(state: LiveState<'_>, present: Option<LiveState<'_>>) -> Vec<Self> {
        let mut threads: Vec<Self> = state.threads().iter().map(Self::from_thread).collect();
        if let Some(present) = present {
            let of_tables = present.threads();
            let of_tables = of_tables.iter().map(Self::from_thread).map(|thread| (thread.key, thread.innermost));
            let mut innermost: HashMap<_, _> = of_tables.collect();
            for thread in &mut threads {
                thread.innermost = innermost.remove(&thread.key).flatten();
                thread.is_certain = true;
            }
        }
        threads
    }

    fn from_thread(thread: &LiveThread<'_>) -> Self {
        let innermost = || {
            let (span, entered_epoch_nanos) = (thread.span()?, thread.in_span_since_epoch_nanos()?);
            let (name, target) = (span.name().into_owned(), span.target().to_owned());
            Some(TopInnermost {
                id: span.id().get(),
                key: TopKey { kind: SeriesKind::Spans, name, target },
                entered_epoch_nanos,
                nanos: thread.nanos_in_span()?,
                path: span.ancestor_names().map(std::borrow::Cow::into_owned).collect(),
            })
        };
        Self {
            key: (thread.program_index(), thread.key()),
            name: thread_label(thread.thread()),
            program: program_name(thread.program()),
            pid: thread.program().pid,
            os_thread_id: thread.thread().os_thread_id,
            innermost: innermost(),
            is_certain: thread.is_certain(),
            is_seen: thread.is_seen(),
        }
    }

    /// Returns the name of the span, or a word for its absence.
    pub(super) fn span_words(&self) -> &str {
        match &self.innermost {
            Some(innermost) => &innermost.key.name,
            None if !self.is_seen => "no record seen",
            None if !self.is_certain => "in no known span",
            None => "in no span",
        }
    }

    /// Returns how long the thread has been in the span.
    fn nanos(&self) -> Option<u64> {
        self.innermost.as_ref().map(|innermost| innermost.nanos)
    }
}

/// The order of the threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum ThreadOrder {
    /// The order by the time that the threads have been in their spans, longest first. Those that may have left
    /// their spans follow, then those in no span.
    #[default]
    Time,
    Thread,
    Span,
}

impl ListOrder for ThreadOrder {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Time, "time in the span"), (Self::Thread, "thread"), (Self::Span, "span")];
}

impl ListRow for TopThread {
    type Key = (usize, ThreadKey);
    type Order = ThreadOrder;

    fn key(&self) -> Self::Key {
        self.key
    }

    fn compare(&self, other: &Self, order: ThreadOrder) -> Ordering {
        let doubt = |row: &Self| (row.innermost.is_none(), !row.is_seen, !row.is_certain);
        let by_order = match order {
            ThreadOrder::Time => (doubt(self), Reverse(self.nanos())).cmp(&(doubt(other), Reverse(other.nanos()))),
            ThreadOrder::Thread => Ordering::Equal,
            ThreadOrder::Span => {
                let span = |row: &'_ Self| row.innermost.as_ref().map(|it| it.key.name.clone());
                doubt(self).0.cmp(&doubt(other).0).then_with(|| span(self).cmp(&span(other)))
            }
        };
        by_order.then_with(|| (&self.name, self.key).cmp(&(&other.name, other.key)))
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let path = self.innermost.iter().flat_map(|it| &it.path).map(String::as_str);
        [self.name.as_str(), self.span_words(), self.program.as_str()].into_iter().chain(path)
    }
}
