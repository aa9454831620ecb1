//! Making a filter that can be changed.

use crate::tracing::filter::filter::TargetFilter;
use crate::tracing::filter::filter_handle::FilterHandle;
use crate::tracing::filter::live_filters;

impl FilterHandle {
    /// Makes a filter for a layer; see [`RecorderLayer::filtered`](crate::tracing::RecorderLayer::filtered).
    #[must_use]
    pub fn new(filter: TargetFilter) -> Self {
        let handle = Self::not_known_yet(filter);
        live_filters::add(&handle);
        #[cfg(all(feature = "server", target_os = "linux", not(eventring_unsupported)))]
        crate::tracing::filter::steered::make_known();
        handle
    }
}
