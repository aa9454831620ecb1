//! A changeable filter on a `RecorderLayer`, which also supports span directives.

use super::RecorderLayer;
use crate::tracing::filter::filter_handle::FilterHandle;
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::perf_recorder::handle::PerfRecorder;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::spans::map::{MappedSpan, SpanMap};
use crate::tracing::record::spans::open_spans;
use std::sync::Weak;
use tracing_core::subscriber::{Interest, Subscriber};
use tracing_core::{LevelFilter, Metadata};
use tracing_subscriber::layer::{Context, Filter, Layer};
use tracing_subscriber::registry::LookupSpan;

/// A filter of one layer. It knows the spans that the layer has recorded.
struct LayerFilter {
    handle: FilterHandle,
    owner: u32,
    /// The recorder of the layer. `None` means the recorder in [`PERF`].
    recorder: Option<Weak<PerfCore>>,
}

impl RecorderLayer {
    /// Puts a filter on this layer alone. The filter can be changed while the program runs, through `filter` and its
    /// clones, and it follows spans: span directives such as `[query{user=7}]=debug` have an effect.
    ///
    /// A span directive counts for every open span that this layer has recorded. If a span was not recorded, because
    /// nobody wanted it when it was created, the layer does not know it.
    ///
    /// ```
    /// use eventring::tracing::{FilterHandle, PerfRecorder, RecorderLayer};
    /// use tracing_subscriber::prelude::*;
    ///
    /// let filter = FilterHandle::new("info,my_crate[query{user=7}]=trace".parse()?);
    /// let layer = RecorderLayer::new(PerfRecorder::builder().anonymous().build()?).filtered(&filter);
    /// let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    /// filter.set("debug".parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn filtered<S>(mut self, filter: &FilterHandle) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        self.filter = Some(filter.clone());
        let filter = LayerFilter { handle: filter.clone(), owner: self.owner.get(), recorder: self.sink.own() };
        self.with_filter(filter)
    }

    /// Returns true if the layer has the number of this owner.
    pub(in crate::tracing::record) fn is(&self, owner: u32) -> bool {
        self.owner.is(owner)
    }

    /// Returns the layer's own filter.
    pub(in crate::tracing::record) fn filter(&self) -> Option<&FilterHandle> {
        self.filter.as_ref()
    }

    /// Returns the open spans of the layer.
    pub(in crate::tracing::record) fn spans(&self) -> &SpanMap {
        &self.spans
    }

    /// Judges a span by values of its fields that have just been recorded, if there are conditions on values.
    #[inline(always)]
    pub(super) fn judge(&self, span: MappedSpan, payload: &[u8]) {
        if let Some(filter) = self.judging() {
            open_spans::judge(filter, span.span_id, span.call_site_id, payload);
        }
    }

    #[inline(always)]
    fn judging(&self) -> Option<&FilterHandle> {
        self.filter.as_ref().filter(|filter| filter.judges_values())
    }
}

impl LayerFilter {
    /// Returns false in a forked child.
    fn is_in_this_process(&self) -> bool {
        match &self.recorder {
            Some(core) => core.upgrade().is_some_and(|core| core.belongs_to_this_process()),
            None => PERF.installed().is_some_and(PerfRecorder::belongs_to_this_process),
        }
    }
}

impl<S> Filter<S> for LayerFilter {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        open_spans::accepts(&self.handle, self.owner, metadata, || self.is_in_this_process())
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.handle.interest(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.handle.max_level())
    }
}
