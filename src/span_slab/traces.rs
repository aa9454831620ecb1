//! The traces of open spans.

use super::SpanSlab;
use super::id::INDEX_MASK;
use super::remote_trace::RemoteTrace;
use super::trace::REMOTE;
#[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
use super::trace::TraceKey;
use crate::sync::Ordering;

impl SpanSlab {
    /// Gives a new span the trace of its parent; without a parent, which is 0, it begins a trace.
    #[inline(always)]
    pub(crate) fn inherit_trace(&self, id: u64, parent: u64) {
        let Some(cell) = self.cell(id & INDEX_MASK) else { return };
        let of_parent =
            self.cell(parent & INDEX_MASK).filter(|of| parent != 0 && of.id.load(Ordering::Relaxed) == parent);
        match of_parent.map(|of| (of, of.trace.key.load(Ordering::Relaxed))) {
            Some((_, root)) if root & REMOTE == 0 => cell.trace.set(root, None),
            Some((of, _)) => {
                let (root, remote) = of.trace.get();
                cell.trace.set(root, remote);
            }
            None => cell.trace.set(if parent == 0 { id } else { parent }, None),
        }
    }

    /// Makes an open span the root of this process's part of a remote trace. Returns false if no open span has this
    /// id, or if another thread has done it, or if the span is such a root already.
    pub(crate) fn begin_remote_trace(&self, id: u64, trace: RemoteTrace) -> bool {
        let Some(cell) = self.cell(id & INDEX_MASK).filter(|cell| cell.id.load(Ordering::Relaxed) == id) else {
            return false;
        };
        let (root, remote) = cell.trace.get();
        let is_root_already = remote.is_some() && root == id;
        if !is_root_already {
            cell.trace.set(id, Some(trace));
        }
        !is_root_already
    }

    /// Returns the key of the trace of an open span. Returns `None` if no open span has this id.
    #[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
    #[inline(always)]
    pub(crate) fn trace_key(&self, id: u64) -> Option<TraceKey> {
        let cell = self.cell(id & INDEX_MASK).filter(|cell| cell.id.load(Ordering::Relaxed) == id)?;
        Some(TraceKey(cell.trace.key.load(Ordering::Acquire)))
    }

    /// Returns the root and the remote trace that belong to this key of an open span. Returns `None` if no open span
    /// has this id, or if it has another key now.
    #[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
    #[inline(always)]
    pub(crate) fn try_trace_of(&self, id: u64, key: TraceKey) -> Option<(u64, Option<RemoteTrace>)> {
        let cell = self.cell(id & INDEX_MASK).filter(|cell| cell.id.load(Ordering::Relaxed) == id)?;
        cell.trace.try_get(key.0)
    }

    /// Returns the root of the tree of an open span, and its remote trace if it is in one. Returns `None` if no open
    /// span has this id.
    pub(crate) fn trace_of(&self, id: u64) -> Option<(u64, Option<RemoteTrace>)> {
        let cell = self.cell(id & INDEX_MASK).filter(|cell| cell.id.load(Ordering::Relaxed) == id)?;
        Some(cell.trace.get())
    }
}
