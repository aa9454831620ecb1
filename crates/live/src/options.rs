//! The limits of the engine.

use eventring_tasks::TaskState;
use std::time::Duration;

/// The limits of a [`Live`](super::Live).
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct LiveOptions {
    pub(super) open_spans_max: usize,
    pub(super) names_max: usize,
    pub(super) windows: Vec<Duration>,
    pub(super) has_self_times: bool,
    pub(super) has_tasks: bool,
    /// What somebody wants to know of the tables of the present, if anything.
    pub(super) present: Option<PresentAges>,
}

impl Default for LiveOptions {
    fn default() -> Self {
        let windows = [1, 10, 60].map(Duration::from_secs).to_vec();
        Self {
            open_spans_max: 1_000_000,
            names_max: 512,
            windows,
            has_self_times: true,
            has_tasks: false,
            present: None,
        }
    }
}

impl LiveOptions {
    /// Returns the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many open spans of each program are kept. Default: 1,000,000. Further spans are counted
    /// ([`LiveState::not_tracked`](super::LiveState::not_tracked)).
    ///
    /// A million open spans with three fields each take 830 MiB at the peak, when the table grows. With so many fields
    /// that some are left out (more than 512 bytes for each span), they take 1,220 MiB. Memory is taken only for as
    /// many spans as were open at the same time. A watch takes up to 40 MB more for each age at which it tests them.
    pub fn open_spans_max(self, spans: usize) -> Self {
        Self { open_spans_max: spans.max(1), ..self }
    }

    /// Sets how many names of spans and event types have counts and durations of their own. Default: 512. Further names
    /// are counted together, as [`SeriesKind::OtherSpans`](super::SeriesKind::OtherSpans) and
    /// [`SeriesKind::OtherEvents`](super::SeriesKind::OtherEvents).
    pub fn names_max(self, names: usize) -> Self {
        Self { names_max: names, ..self }
    }

    /// Sets the lengths of the windows in which spans and events are counted. Default: 1 s, 10 s and 60 s. A length is
    /// at least 200 ms, and is rounded up to a multiple of 200 ms.
    pub fn windows(self, windows: impl IntoIterator<Item = Duration>) -> Self {
        Self { windows: windows.into_iter().collect(), ..self }
    }

    /// Leaves out the self times of spans, for which the engine keeps the children of each open span. Without them, the
    /// engine takes about a tenth less time, and each span's self time is not known.
    pub fn without_self_times(self) -> Self {
        Self { has_self_times: false, ..self }
    }

    /// Follows what tasks do ([`Observation::TaskPhaseEnded`](super::Observation::TaskPhaseEnded)). A task takes some
    /// 60 bytes more than its span does.
    pub fn with_tasks(self) -> Self {
        Self { has_tasks: true, ..self }
    }
}

/// The ages at which spans and tasks are to be seen, in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PresentAges {
    pub(crate) open: Vec<u64>,
    pub(crate) phases: Vec<(TaskState, u64)>,
    /// True if nothing else is to be seen.
    pub(crate) is_all: bool,
}

impl PresentAges {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.phases.is_empty()
    }

    pub(crate) fn least_nanos(&self) -> u64 {
        let phases = self.phases.iter().map(|(_, nanos)| *nanos);
        self.open.iter().copied().chain(phases).min().unwrap_or(u64::MAX)
    }
}
