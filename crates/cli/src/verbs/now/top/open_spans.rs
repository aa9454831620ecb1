//! Open spans as plain data.

use crate::text::format::{counted, grouped};
use crate::verbs::now::open;
use eventring_live::OpenSpan;
use schemars::JsonSchema;
use serde::Serialize;

/// The number of open spans of each kind that are kept for the screen.
const OPEN_MAX: usize = 100;
/// The width of the column of threads beside the open spans.
pub(super) const THREAD_WIDTH: usize = 24;

/// An open span.
#[derive(Serialize, JsonSchema)]
pub(super) struct TopOpen {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) target: String,
    #[serde(rename = "age_ns")]
    pub(super) age_nanos: u64,
    /// The largest age that the span can have, if its program has ended.
    #[serde(rename = "age_max_ns")]
    pub(super) age_max_nanos: Option<u64>,
    /// The thread that has entered the span last, and how many others are in it.
    pub(super) thread: Option<String>,
    #[serde(rename = "opened_before_window")]
    pub(super) is_opened_before_window: bool,
    pub(super) may_have_closed: bool,
    pub(super) pid: u32,
}

/// The first of some open spans, and the counts of all.
#[derive(Default)]
pub(super) struct TopOpenSpans {
    /// The first of the spans that are surely open, oldest first.
    pub(super) first: Vec<TopOpen>,
    /// The first of those that may have been closed, oldest first.
    pub(super) first_perhaps: Vec<TopOpen>,
    /// The number of spans that are surely open.
    pub(super) surely: usize,
    /// The number of spans that may have been closed.
    pub(super) perhaps: usize,
}

impl TopOpenSpans {
    /// Keeps the first of these spans, which come oldest first.
    pub(super) fn new<'s>(spans: impl Iterator<Item = OpenSpan<'s>>) -> Self {
        let mut all = Self::default();
        for span in spans {
            let (first, count) = match span.may_have_closed() {
                true => (&mut all.first_perhaps, &mut all.perhaps),
                false => (&mut all.first, &mut all.surely),
            };
            *count += 1;
            first.extend((*count <= OPEN_MAX).then(|| TopOpen::from_span(&span)));
        }
        all
    }

    /// Returns the first spans: those that are surely open, and then those that may have been closed.
    pub(super) fn all(&self) -> impl Iterator<Item = &TopOpen> {
        self.first.iter().chain(&self.first_perhaps).take(OPEN_MAX)
    }

    /// Returns the counts in words.
    pub(super) fn words(&self) -> String {
        let perhaps = grouped(self.perhaps as u64);
        match (self.surely, self.perhaps) {
            (0, 0) => "no open spans".to_owned(),
            (1, 0) => "1 open span".to_owned(),
            (surely, 0) => format!("{} open spans, oldest first", grouped(surely as u64)),
            (0, count) => format!("perhaps {}", counted(count as u64, "open span", "open spans")),
            (surely, _) => {
                format!("{} and perhaps {perhaps} more", counted(surely as u64, "open span", "open spans"))
            }
        }
    }
}

impl TopOpen {
    fn from_span(span: &OpenSpan<'_>) -> Self {
        Self {
            id: span.id().get(),
            name: span.name().into_owned(),
            target: span.target().to_owned(),
            age_nanos: span.age_nanos(),
            age_max_nanos: span.age_max_nanos(),
            thread: open::threads(span, THREAD_WIDTH),
            is_opened_before_window: span.is_opened_before_window(),
            may_have_closed: span.may_have_closed(),
            pid: span.program().pid,
        }
    }
}
